"""Values of DECIMAL and of nested types as texts, which the dictionary codes: equal values have equal texts.

In Python a DECIMAL is a `Decimal` of its type's scale, a DATE an int of days, a TIME one of microseconds; a list and a
STRUCT are tuples, a MAP is a tuple of (key, value) in the order of the keys. In the dictionary what is nested is JSON,
which also is its form as TEXT; infinities are `Infinity`. A DECIMAL is its digits without the point, counted from the
least that 38 digits can say: their texts are in the order of the numbers.

A DECIMAL of few digits does not stand in the dictionary, for its code is computed: the digits themselves, as far below
0 as no other code is. So columns of DECIMAL are computed, compared and summed as whole numbers are. All DECIMALs of at
most 18 digits have such codes, and nearly all others.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import MAX_PREC, ROUND_HALF_UP, Context, Decimal
from functools import cache, lru_cache
from itertools import islice
from typing import Any

from minidsms.values.types import MOST_DIGITS, Type

List = tuple[Any, ...]

_pieces: Callable[[Any, int], Iterable[str]] = json.encoder.c_make_encoder(  # type: ignore[attr-defined]
    None,
    None,
    json.encoder.encode_basestring,
    None,
    ": ",
    ", ",
    False,
    False,
    True,
)
"""What `json.JSONEncoder(ensure_ascii=False)` makes anew for each value: it takes as long as writing a short one."""
_MOST_KEPT = 4096
"""Texts whose values are remembered."""
_READ_TOGETHER = 64

EXACT = Context(prec=MAX_PREC, Emin=-(10**6), Emax=10**6)
"""Arithmetic of DECIMAL before it is judged whether a result fits: nothing is rounded."""
_LEAST: int = 10**MOST_DIGITS
CODE_OF_ZERO = -(2**62)
"""The code of 0; that of other digits is as far from it as they are from 0."""
MOST_COMPUTED = 2**61 - 1
"""The digits whose code is computed are at most so far from 0."""
_EPOCH = datetime.date(1970, 1, 1).toordinal()
FIRST_DAY, LAST_DAY = 1 - _EPOCH, datetime.date.max.toordinal() - _EPOCH
"""The days that a DATE can be: of the years 1 to 9999."""
DAY_US = 86_400_000_000
"""Microseconds of a day; a TIME is less."""


def text_of(value: Any, type_: Type) -> str:
    """The dictionary's text of a value, not NULL, of a coded type.

    >>> text_of((1.0, None), Type.FLOAT.list_type)
    '[1.0, null]'
    >>> text_of((7, "é"), Type.struct((("a", Type.INTEGER), ("b", Type.TEXT))))
    '{"a": 7, "b": "é"}'
    """
    if type_ is Type.TEXT:
        return value  # type: ignore[no-any-return]
    if type_.kind == "DECIMAL":
        return text_of_digits(unscaled(value, type_.scale))
    return "".join(_pieces(_writer(type_)(value), 0))


@lru_cache(maxsize=_MOST_KEPT)
def value_of(text: str, type_: Type) -> Any:
    """The value whose text `text_of` wrote."""
    if type_ is Type.TEXT:
        return text
    if type_.kind == "DECIMAL":
        return scaled(digits_of(text), type_.scale)
    return _reader(type_)(json.loads(text))


def values_of(texts: Sequence[str | None], type_: Type, most: int = _MOST_KEPT) -> Iterator[Any]:
    """The values of texts, None for NULL, of a coded type. Of more than `most` none is remembered: what is
    nested is read together with others.

    >>> [*values_of(['["a, b"]', None, "[]"], Type.TEXT.list_type, 0)]
    [('a, b',), None, ()]
    """
    if len(texts) <= most or not type_.is_nested:
        yield from (None if text is None else value_of(text, type_) for text in texts)
        return
    left, read = iter(texts), _reader(type_)
    while part := [*islice(left, _READ_TOGETHER)]:
        yield from map(read, json.loads(f"[{','.join([text or 'null' for text in part])}]"))


def text_of_digits(digits: int) -> str:
    """The text of a DECIMAL, given its digits without the point."""
    return f"{digits + _LEAST:039d}"


def digits_of(text: str) -> int:
    """The inverse of `text_of_digits`."""
    return int(text) - _LEAST


def code_of_digits(digits: int) -> int:
    """The computed code of a DECIMAL, given its digits without the point; 0 where it has none.

    >>> code_of_digits(-150) - CODE_OF_ZERO, code_of_digits(2**61)
    (-150, 0)
    """
    return digits + CODE_OF_ZERO if -MOST_COMPUTED <= digits <= MOST_COMPUTED else 0


def unscaled(value: Decimal, scale: int) -> int:
    """The digits of a DECIMAL without the point."""
    return int(value.scaleb(scale, EXACT))


def scaled(digits: int, scale: int) -> Decimal:
    """The inverse of `unscaled`.

    >>> scaled(-150, 2)
    Decimal('-1.50')
    """
    return Decimal(digits).scaleb(-scale, EXACT)


def fitted(value: Decimal, type_: Type) -> Decimal | None:
    """A finite number as a DECIMAL, rounded half away from zero; None where it has too many digits."""
    if value and value.adjusted() >= type_.digits:
        return None
    rounded = value.quantize(_unit(type_.scale), ROUND_HALF_UP, EXACT)
    return EXACT.plus(rounded) if rounded.adjusted() < type_.digits - type_.scale else None


@cache
def _unit(scale: int) -> Decimal:
    return Decimal(1).scaleb(-scale)


def day_of(date: datetime.date) -> int:
    """A DATE's days since 1970."""
    return date.toordinal() - _EPOCH


def date_of(day: int) -> datetime.date:
    """The inverse of `day_of`."""
    return datetime.date.fromordinal(day + _EPOCH)


def microseconds_of(time: datetime.time) -> int:
    """A TIME's microseconds since midnight."""
    return ((time.hour * 60 + time.minute) * 60 + time.second) * 1_000_000 + time.microsecond


def time_of(microseconds: int) -> datetime.time:
    """The inverse of `microseconds_of`."""
    seconds, fraction = divmod(microseconds, 1_000_000)
    return datetime.time(seconds // 3600, seconds // 60 % 60, seconds % 60, fraction)


def shown(value: Any, type_: Type) -> Any:
    """A value as rows have it: lists and dicts for what is nested, `datetime` for DATE and TIME.

    >>> shown((("k", 20_000),), Type.map(Type.TEXT, Type.DATE))
    {'k': datetime.date(2024, 10, 4)}
    """
    if value is None:
        return None
    if type_ is Type.DATE:
        return date_of(value)
    if type_ is Type.TIME:
        return time_of(value)
    if type_.element is not None:
        return [shown(v, type_.element) for v in value] if has_shape(type_.element) else list(value)
    if type_.kind == "STRUCT":
        return {name: shown(v, t) for v, (name, t) in zip(value, type_.fields)}
    if type_.kind == "MAP":
        return {key: shown(v, type_.fields[1][1]) for key, v in value}
    return value


def has_shape(type_: Type) -> bool:
    """`shown` gives something else than the value."""
    return type_.is_nested or type_ in (Type.DATE, Type.TIME)


def as_text(value: Any, type_: Type) -> str:
    """A DECIMAL, a DATE, a TIME or what is nested, not NULL, as CAST to TEXT writes it."""
    if type_.kind == "DECIMAL":
        return format(value, "f")
    return text_of(value, type_) if type_.is_nested else str(shown(value, type_))


def _itself(value: Any) -> Any:
    return value


@cache
def _writer(type_: Type) -> Callable[[Any], Any]:
    """What makes of a value of a nested type, or of a part of one, what JSON has for it."""
    if type_.element is not None:
        inside = _writer(type_.element)
        if inside is _itself:
            return _itself
        return lambda value: None if value is None else [*map(inside, value)]
    if type_.kind == "STRUCT":
        writers = [(name, _writer(t)) for name, t in type_.fields]
        return lambda value: None if value is None else {name: w(v) for v, (name, w) in zip(value, writers)}
    if type_.kind == "MAP":
        inside = _writer(type_.fields[1][1])
        return lambda value: None if value is None else {str(key): inside(v) for key, v in value}
    if type_.kind == "DECIMAL" or has_shape(type_):
        return lambda value: None if value is None else as_text(value, type_)
    return _itself


@cache
def _reader(type_: Type) -> Callable[[Any], Any]:
    """What makes a value of a nested type, or of a part of one, of what JSON has for it."""
    if type_.element is not None:
        inside = _reader(type_.element)
        if inside is _itself:
            return lambda value: None if value is None else tuple(value)
        return lambda value: None if value is None else tuple(map(inside, value))
    if type_.kind == "STRUCT":
        readers = [_reader(t) for _, t in type_.fields]
        if {*readers} == {_itself}:
            return lambda value: None if value is None else tuple(value.values())
        return lambda value: None if value is None else tuple(r(v) for r, v in zip(readers, value.values()))
    if type_.kind == "MAP":
        key = int if type_.fields[0][1] is Type.INTEGER else _itself
        inside = _reader(type_.fields[1][1])
        return lambda value: None if value is None else tuple((key(k), inside(v)) for k, v in value.items())
    if type_.kind == "DECIMAL":
        return lambda value: None if value is None else Decimal(value)
    if type_ is Type.DATE:
        return lambda value: None if value is None else day_of(datetime.date.fromisoformat(value))
    if type_ is Type.TIME:
        return lambda value: None if value is None else microseconds_of(datetime.time.fromisoformat(value))
    return _itself
