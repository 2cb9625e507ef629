"""What the columns of a text file may be: types that nearly all of their values have, and how these are written.

Invariant: every guess comes with its reason, and a value that does not fit it is shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from minidsms.cql.printer import print_name
from minidsms.elements import Type
from minidsms.sources.text_columns import by_format

_MOST_STRANGE = 0.05
"""The share of values that may be of no type and still be taken for mistakes; one value of three or more always may."""
_MOST_TOLD = 20
"""So many mistakes, in half of the values at most, are told where they are too many."""
_DAYS = (
    *("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%Y.%m.%d", "%d-%m-%Y", "%m-%d-%Y", "%d %b %Y", "%d-%b-%Y"),
    *("%b %d, %Y", "%d.%m.%y", "%d/%m/%y", "%m/%d/%y"),
)
_TIMES = (" %H:%M:%S", " %H:%M", "", " %I:%M:%S %p", " %I:%M %p")
FORMATS = (
    *(day + time for day in _DAYS for time in _TIMES),
    *("%Y%m%dT%H%M%S", "%d/%b/%Y:%H:%M:%S", "%a %b %d %H:%M:%S %Y"),
)
_IN_DIGITS = ("%Y%m%d", "%Y%m%d%H%M%S")
_LOOKED_AT = 3
"""Values of which one has a form, if it is that of the column."""
_UNITS = {"seconds": 10**9, "milliseconds": 10**6, "microseconds": 1000, "nanoseconds": 1}
_FROM_S, _TO_S = 631_152_000, 4_102_444_800
"""1990 and 2100, in seconds."""


@dataclass(frozen=True)
class Guess:
    """type; options: of WITH, that say how values are written; instants: in milliseconds, where they are; reason."""

    type: Type
    options: tuple[tuple[str, Any], ...] = ()
    instants: Any = None
    reason: str = ""


def delimiter_of(header: str) -> str:
    """What stands between the names of the first line."""
    return max(",;\t|", key=lambda mark: (header.count(mark), mark == ","))


def guess(name: str, texts: Any, comma_is_free: bool) -> Guess | None:
    """What a column of texts may be that its reader took for TEXT; None: TEXT. comma_is_free: it parts no fields."""
    texts = pc.utf8_trim_whitespace(texts.drop_null())
    if not len(texts):
        return None
    tries = []
    iso = _tried(texts, _iso)
    tries.append((iso, "an ISO time"))
    found = _nearly(name, texts, iso, Type.TIMESTAMP, "an ISO time", ())
    if found is not None:
        return found
    fitting = []
    for form in FORMATS:
        if not _in_form(texts[:_LOOKED_AT], form).is_valid().true_count:
            continue
        read = _in_form(texts, form)
        tries.append((read, f"a time as {form}"))
        guessed = _nearly(name, texts, read, Type.TIMESTAMP, f"a time as {form}", (("time_format", form),))
        if guessed is not None:
            fitting.append((read.null_count, guessed))
    if fitting:
        least = min(bad for bad, _ in fitting)
        best = [guessed for bad, guessed in fitting if bad == least]
        others = [str(each.options[0][1]) for each in best[1:]]
        also = f"; {' and '.join(others)} fit as well" if others else ""
        return Guess(best[0].type, best[0].options, best[0].instants, best[0].reason + also)
    grouped = _in_thousands(name, texts)
    if grouped is not None:
        return grouped
    for type_, word, arrow in ((Type.INTEGER, "a whole number", pa.int64()), (Type.FLOAT, "a number", pa.float64())):
        numbers = _tried(texts, lambda some, kind=arrow: pc.cast(some, kind))
        tries.append((numbers, word))
        found = _nearly(name, texts, numbers, type_, word, ())
        if found is not None:
            return found
    if comma_is_free:
        points = pc.replace_substring(texts, ",", ".", max_replacements=1)
        read = _tried(points, lambda some: pc.cast(some, pa.float64()))
        found = _nearly(name, texts, read, Type.FLOAT, "a number with a comma", (("decimal_comma", True),))
        if found is not None:
            return found
    for read, word in tries:
        if 2 * read.null_count <= len(texts):
            return Guess(Type.TEXT, reason=f"{_counted(name, texts, read, word)}: too many to leave out, so it is TEXT")
    return None


def _in_thousands(name: str, texts: Any) -> Guess | None:
    """TEXT for numbers with marks between thousands, which no option reads; None where not all are such numbers."""
    for mark, point in (".,", ",."):
        form = rf"^[+-]?[0-9]{{1,3}}(\{mark}[0-9]{{3}})*(\{point}[0-9]*)?$"
        grouped = pc.match_substring_regex(texts, rf"\{mark}[0-9]{{3}}(\{mark}|\{point}|$)")
        if pc.all(pc.match_substring_regex(texts, form)).as_py() and pc.any(grouped).as_py():
            column = print_name(name)
            bare = f"REPLACE({column}, '{mark}', '')"
            plain = bare if point == "." else f"REPLACE({bare}, ',', '.')"
            shown = texts.filter(grouped)[0].as_py()
            return Guess(
                Type.TEXT, reason=f"{name}: {shown!r} is a number by CAST({plain} AS FLOAT), and TEXT as it stands"
            )
    return None


def guess_epoch(name: str, numbers: Any) -> Guess | None:
    """The unit in which all numbers of a column are instants of our days, or the form; None where there is none."""
    values = numbers.drop_null().to_numpy(zero_copy_only=False).astype(np.float64)
    if not len(values):
        return None
    for unit, ns in _UNITS.items():
        if ((values * ns >= _FROM_S * 1e9) & (values * ns < _TO_S * 1e9)).all():
            reason = f"{name}: {int(values[0])} and the others are {unit} since 1970"
            options = (("epoch", unit),) if unit != "milliseconds" or pa.types.is_floating(numbers.type) else ()
            return Guess(Type.TIMESTAMP, options, pa.array((values * ns / 1e6).astype(np.int64)), reason)
    for form in _IN_DIGITS if pa.types.is_integer(numbers.type) else ():
        instants = pc.cast(_in_form(pc.cast(numbers.drop_null(), pa.string()), form), pa.int64())
        if (
            not instants.null_count
            and pc.min(instants).as_py() >= _FROM_S * 1000
            and pc.max(instants).as_py() < _TO_S * 1000
        ):
            reason = f"{name}: {int(values[0])} and the others are times as {form}"
            return Guess(Type.TIMESTAMP, (("time_format", form),), instants, reason)
    return None


def slack_of(instants: Any) -> int:
    """By how many milliseconds, at most, an instant stands behind a later one."""
    values = instants.drop_null().to_numpy(zero_copy_only=False).astype(np.int64)
    return int((np.maximum.accumulate(values) - values).max()) if len(values) else 0


def _in_form(texts: Any, form: str) -> Any:
    """Times, in milliseconds; NULL for a text that is none of the form."""
    return pc.cast(by_format(texts, form), pa.timestamp("ms"), safe=False)


def _iso(texts: Any) -> Any:
    """Instants that all have a zone, or none, cut off to milliseconds. ArrowInvalid for other texts."""
    try:
        read = pc.cast(texts, pa.timestamp("us"))
    except pa.ArrowInvalid:
        read = pc.cast(texts, pa.timestamp("us", "UTC"))
    return pc.cast(read, pa.timestamp("ms"), safe=False)


def _nearly(
    name: str, texts: Any, read: Any, type_: Type, word: str, options: tuple[tuple[str, Any], ...]
) -> Guess | None:
    if read.null_count > _admitted(len(texts)):
        return None
    reason = f"{name}: {texts[0].as_py()!r} is {word}" if options else ""
    if read.null_count:
        reason = _counted(name, texts, read, word)
        reason += ", and its row is left out" if read.null_count == 1 else ", and such rows are left out"
    instants = pc.cast(read, pa.int64()) if type_ is Type.TIMESTAMP else None
    return Guess(type_, options, instants, reason)


def _admitted(values: int) -> float:
    return max(_MOST_STRANGE * values, 1 if values >= 3 else 0)


def _counted(name: str, texts: Any, read: Any, word: str) -> str:
    strange = texts.filter(read.is_null())[0].as_py()
    return f"{name}: {len(texts) - read.null_count:,} of {len(texts):,} values are {word}; {strange!r} is none"


def _tried(texts: Any, cast: Any) -> Any:
    """The texts cast, NULL where that is not possible; and once more than can be told are not, the rest, too."""
    kind = cast(pa.array([], texts.type)).type
    strange, most = 0, max(_admitted(len(texts)), min(len(texts) // 2, _MOST_TOLD))

    def tried(part: Any) -> Any:
        nonlocal strange
        if strange > most:
            return pa.nulls(len(part), kind)
        try:
            return cast(part)
        except pa.ArrowInvalid:
            if len(part) == 1:
                strange += 1
                return pa.nulls(1, kind)
            half = len(part) // 2
            return pa.concat_arrays([tried(each) for each in (part[:half], part[half:])])

    return tried(texts)


def merged_options(guesses: Sequence[Guess]) -> dict[str, Any]:
    """The options of all; of two that differ the first stays, for a file has one form."""
    found: dict[str, Any] = {}
    for each in guesses:
        for name, value in each.options:
            found.setdefault(name, value)
    return found
