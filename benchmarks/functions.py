"""What functions of one row cost beside pyarrow's own of the same meaning, by processor time of this thread.

Both compute one column of the same values, which are compared. TEXT is coded here, as it stands in stores, and plain in
Arrow: its functions are computed once per different text, and that first time is not in the figures.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from minidsms.cql import bound
from minidsms.cql.binder import bind
from minidsms.cql.catalog import Catalog, StreamDef
from minidsms.cql.parser import parse_query
from minidsms.elements import Column, Schema, Type
from minidsms.expressions.compiler import Context, Evaluator
from minidsms.values.dictionary import TextDictionary

GOAL = 2.0
"""How many times pyarrow's own a vectorised form may cost."""
TEXTS = 1_000
"""Different texts of a column."""
_TURNS = 15
_SCHEMA = Schema.of(
    ("i", Type.INTEGER), ("j", Type.INTEGER), ("s", Type.INTEGER), ("f", Type.FLOAT), ("g", Type.FLOAT),
    ("x", Type.FLOAT), ("b", Type.BOOLEAN), ("c", Type.BOOLEAN), ("t", Type.TEXT), ("u", Type.TEXT),
    ("w", Type.TIMESTAMP), ("v", Type.TIMESTAMP), ("l", Type.INTEGER.list_type),
)  # fmt: skip
"""s: 0 to 30.  f, g: at least 1.  x: from -1 to 1."""

Columns = dict[str, Any]
_Of = Callable[[Columns], Any]
_DAY_MS = 86_400_000


def _of(name: str, *columns: str, **options: Any) -> _Of:
    """pyarrow's function of these columns."""
    function = getattr(pc, name)
    return lambda c: function(*(c[column] for column in columns), **options)


def _given(column: Any) -> Any:
    """TRUE, or NULL where the column is."""
    return pc.equal(column, column)


NUMBERS: dict[str, tuple[str, _Of]] = {
    **{
        f"{name} of INTEGER": (f"i {name} j", _of(f"{there}_checked", "i", "j"))
        for name, there in (("+", "add"), ("-", "subtract"), ("*", "multiply"))
    },
    **{
        name: (f"f {name} g", _of(there, "f", "g"))
        for name, there in (("+", "add"), ("-", "subtract"), ("*", "multiply"), ("/", "divide"))
    },
    "neg": ("-i", _of("negate_checked", "i")),
    "%": ("i % 7", lambda c: pc.remainder(c["i"], 7)),
    **{name: (f"i {name} j", _of(there, "i", "j")) for name, there in (
        ("=", "equal"), ("<>", "not_equal"), ("<", "less"), ("<=", "less_equal"), (">", "greater"),
        (">=", "greater_equal"))},
    "and": ("b AND c", _of("and_kleene", "b", "c")),
    "or": ("b OR c", _of("or_kleene", "b", "c")),
    "not": ("NOT b", _of("invert", "b")),
    "is null": ("i IS NULL", _of("is_null", "i")),
    "in": ("s IN (1, 5, 9, 12)",
           lambda c: pc.and_(pc.is_in(c["s"], value_set=pa.array([1, 5, 9, 12])), _given(c["s"]))),
    "coalesce": ("COALESCE(i, j)", _of("coalesce", "i", "j")),
    "least": ("LEAST(i, j)", _of("min_element_wise", "i", "j")),
    "greatest": ("GREATEST(f, g)", _of("max_element_wise", "f", "g")),
    "case": ("CASE WHEN b THEN i ELSE j END",
             lambda c: pc.if_else(pc.fill_null(c["b"], False), c["i"], c["j"])),
    "abs": ("ABS(i)", _of("abs_checked", "i")),
    "sign": ("SIGN(f)", _of("sign", "f")),
    **{name: (f"{name.upper()}(f)", _of(name, "f")) for name in ("floor", "ceil", "trunc", "sqrt", "ln", "log10",
                                                                 "log2", "acosh", "asinh")},
    "exp": ("EXP(x)", _of("exp", "x")),
    "round": ("ROUND(f)", _of("round", "f", round_mode="half_towards_infinity")),
    "round to places": ("ROUND(f, 1)", _of("round", "f", ndigits=1, round_mode="half_towards_infinity")),
    "power": ("POWER(f, x)", _of("power", "f", "x")),
    "log": ("LOG(f, g)", _of("logb", "g", "f")),
    "mod": ("MOD(i, 7)", lambda c: pc.remainder(c["i"], 7)),
    **{name: (f"{name.upper()}(x)", _of(name, "x"))
       for name in ("sin", "cos", "tan", "asin", "acos", "atan", "atanh", "sinh", "cosh", "tanh")},
    "atan2": ("ATAN2(f, g)", _of("atan2", "f", "g")),
    "bitand": ("BITAND(i, j)", _of("bit_wise_and", "i", "j")),
    "bitor": ("BITOR(i, j)", _of("bit_wise_or", "i", "j")),
    "bitxor": ("BITXOR(i, j)", _of("bit_wise_xor", "i", "j")),
    "bitnot": ("BITNOT(i)", _of("bit_wise_not", "i")),
    "bitshiftleft": ("BITSHIFTLEFT(s, s)", _of("shift_left_checked", "s", "s")),
    "bitshiftright": ("BITSHIFTRIGHT(i, s)", _of("shift_right_checked", "i", "s")),
    "cast to FLOAT": ("CAST(i AS FLOAT)", lambda c: pc.cast(c["i"], pa.float64())),
    "cast to INTEGER": ("CAST(f AS INTEGER)", lambda c: pc.cast(c["f"], pa.int64(), safe=False)),
}  # fmt: skip
TIMES: dict[str, tuple[str, _Of]] = {
    **{name: (f"{name.upper()}(w)", _of(name, "w"))
       for name in ("year", "month", "day", "hour", "minute", "second", "quarter")},
    "millisecond": ("MILLISECOND(w)",
                    lambda c: pc.add(pc.multiply(pc.second(c["w"]), 1000), pc.millisecond(c["w"]))),
    "dayofweek": ("DAYOFWEEK(w)", _of("day_of_week", "w", week_start=7)),
    "isodow": ("ISODOW(w)", _of("day_of_week", "w", count_from_zero=False)),
    "dayofyear": ("DAYOFYEAR(w)", _of("day_of_year", "w")),
    "week": ("WEEK(w)", _of("iso_week", "w")),
    "isoyear": ("ISOYEAR(w)", _of("iso_year", "w")),
    **{f"date_trunc {unit}": (f"DATE_TRUNC('{unit}', w)", _of("floor_temporal", "w", unit=unit))
       for unit in ("second", "hour", "day", "week", "month", "quarter", "year")},
    "time_bucket": ("TIME_BUCKET(15 MINUTES, w, TIMESTAMP '1970-01-01')",
                    _of("floor_temporal", "w", multiple=15, unit="minute")),
    **{f"date_diff {unit}": (f"DATE_DIFF('{unit}', v, w)", _of(f"{unit}s_between", "v", "w"))
       for unit in ("hour", "day", "quarter", "year")},
    "date_diff month": (
        "DATE_DIFF('month', v, w)",
        lambda c: pc.add(pc.multiply(pc.subtract(pc.year(c["w"]), pc.year(c["v"])), 12),
                         pc.subtract(pc.month(c["w"]), pc.month(c["v"])))),
    
    "convert_tz": ("CONVERT_TZ(w, 'UTC', 'America/New_York')",
                   lambda c: pc.local_timestamp(pc.cast(pc.assume_timezone(c["w"], "UTC"),
                                                        pa.timestamp("ms", "America/New_York")))),
}  # fmt: skip
CODED: dict[str, tuple[str, _Of]] = {
    **{name: (f"{name.upper()}(t)", _of(there, "t")) for name, there in (
        ("length", "utf8_length"), ("upper", "utf8_upper"), ("lower", "utf8_lower"), ("reverse", "utf8_reverse"),
        ("octet_length", "binary_length"))},
    **{name: (f"{name.upper()}(t, ' a')", _of(there, "t", characters=" a")) for name, there in (
        ("trim", "utf8_trim"), ("ltrim", "utf8_ltrim"), ("rtrim", "utf8_rtrim"))},
    "substring": ("SUBSTRING(t, 2, 3)", _of("utf8_slice_codeunits", "t", start=1, stop=4)),
    "left": ("LEFT(t, 3)", _of("utf8_slice_codeunits", "t", start=0, stop=3)),
    "replace": ("REPLACE(t, 'a', '+')", _of("replace_substring", "t", pattern="a", replacement="+")),
    "repeat": ("REPEAT(t, 2)", lambda c: pc.binary_repeat(c["t"], 2)),
    "starts_with": ("STARTS_WITH(t, 'a')", _of("starts_with", "t", pattern="a")),
    "ends_with": ("ENDS_WITH(t, '1')", _of("ends_with", "t", pattern="1")),
    "contains": ("CONTAINS(t, '7')", _of("match_substring", "t", pattern="7")),
    "like": ("t LIKE 'a%1'", _of("match_like", "t", pattern="a%1")),
    "instr": ("INSTR(u, '7')", lambda c: pc.add(pc.find_substring(c["u"], pattern="7"), 1)),
    "regexp_matches": ("REGEXP_MATCHES(t, '[0-4]{3}')", _of("match_substring_regex", "t", pattern="[0-4]{3}")),
    "regexp_count": ("REGEXP_COUNT(t, '[0-4]')", _of("count_substring_regex", "t", pattern="[0-4]")),
    "regexp_replace": ("REGEXP_REPLACE(t, '[0-4]', '+', 'g')",
                       _of("replace_substring_regex", "t", pattern="[0-4]", replacement="+")),
    "lpad": ("LPAD(t, 12, '.')", _of("utf8_lpad", "t", width=12, padding=".")),
    "rpad": ("RPAD(t, 12, '.')", _of("utf8_rpad", "t", width=12, padding=".")),
    "= of TEXT": ("t = 'a17 '", lambda c: pc.equal(c["t"], "a17 ")),
    "< of TEXT": ("t < 'a17 '", lambda c: pc.less(c["t"], "a17 ")),
    "strptime": ("STRPTIME(u, '%Y-%m-%d')", _of("strptime", "u", format="%Y-%m-%d", unit="ms")),
    "strftime": ("STRFTIME(DATE_TRUNC('day', w), '%d.%m.%Y')",
                 lambda c: pc.strftime(pc.floor_temporal(c["w"], unit="day"), format="%d.%m.%Y")),
    "concat": ("CONCAT(t, u)", lambda c: pc.binary_join_element_wise(c["t"], c["u"], "")),
    "cardinality": ("CARDINALITY(l)", _of("list_value_length", "l")),
    "element_at": ("l[1]", lambda c: pc.list_element(c["l"], 0)),
    "list_slice": ("l[1:2]", lambda c: pc.list_slice(c["l"], 0, 2)),
}  # fmt: skip
VECTORISED = {**NUMBERS, **TIMES}
"""By name, the call and pyarrow's function. What pyarrow gives without computing, as EPOCH_MS, has no equivalent."""
CALLS = {**VECTORISED, **CODED}


def columns(n: int, null_share: float) -> tuple[dict[str, Column], Columns, TextDictionary]:
    """The same values here and in Arrow."""
    rng = np.random.default_rng(24)
    dictionary = TextDictionary()
    start = np.datetime64("2001-01-01", "ms").astype(np.int64)
    words: list[Any] = [f"{'ab é'[k % 4]}{k}{' ' * (k % 3)}" for k in range(TEXTS)]
    days: list[Any] = [str(np.datetime64("2010-01-01") + k) for k in range(TEXTS)]
    lists: list[Any] = [list(range(k % 5 + 1)) for k in range(TEXTS)]
    made: dict[str, Any] = {
        "i": rng.integers(-(10**6), 10**6, n),
        "j": rng.integers(-(10**6), 10**6, n),
        "s": rng.integers(0, 31, n),
        "f": rng.uniform(1, 1000, n),
        "g": rng.uniform(1.5, 1000, n),
        "x": rng.uniform(-0.99, 0.99, n),
        "b": rng.random(n) < 0.5,
        "c": rng.random(n) < 0.5,
        "w": start + rng.integers(0, 9_000 * _DAY_MS, n),
        "v": start + rng.integers(0, 9_000 * _DAY_MS, n),
    }
    here: dict[str, Column] = {}
    there: Columns = {}
    for name, type_ in zip(_SCHEMA.names, _SCHEMA.types):
        null = rng.random(n) < null_share
        valid = ~null if null.any() else None
        if name in made:
            values = made[name]
            here[name] = Column(values if valid is None else np.where(valid, values, 0).astype(values.dtype), valid)
            array = pa.array(values, mask=null)
            there[name] = array.cast(pa.timestamp("ms")) if type_ is Type.TIMESTAMP else array
            continue
        pool: list[Any] = {"t": words, "u": days, "l": lists}[name]
        which = rng.integers(0, TEXTS, n)
        known = [tuple(v) for v in pool] if name == "l" else pool
        coded = dictionary.column(known, type_).values[which]
        here[name] = Column(coded if valid is None else np.where(valid, coded, 0), valid)
        there[name] = pa.array(pool).take(pa.array(which, mask=null))
    return here, there, dictionary


def evaluator(call: str, dictionary: TextDictionary) -> Evaluator:
    """The compiled expression over the columns."""
    text = f"SELECT RSTREAM({call} AS r) FROM S [NOW]"
    node = bind(parse_query(text), Catalog(streams={"s": StreamDef("S", _SCHEMA)}), text).node
    while not isinstance(node, bound.Project):
        (node,) = node.inputs
    return Evaluator(node.exprs[0], Context(dictionary))


def _least(run: Callable[[], Any]) -> float:
    took = []
    for _ in range(_TURNS):
        begun = time.thread_time()
        run()
        took.append(time.thread_time() - begun)
    return min(took)


def _differing(got: Any, valid: Any, want: Any) -> int:
    known = want.is_valid().to_numpy(zero_copy_only=False)
    if valid is not None and not np.array_equal(valid, known):
        return int((valid != known).sum())
    got, want = got[known], want.drop_null().to_numpy(zero_copy_only=False)
    if want.dtype.kind == "f":
        return int((~np.isclose(got, want, rtol=1e-9, atol=1e-12)).sum())
    if want.dtype.kind == "M":
        want = want.astype("datetime64[ms]")
    return int((got != want.astype(got.dtype)).sum())


def wrong(call: str, function: _Of, made: tuple[dict[str, Column], Columns, TextDictionary]) -> int:
    """In how many rows the two do not give the same value, but for rounding."""
    here, there, dictionary = made
    rows = len(here["i"])
    compiled = evaluator(call, dictionary)
    value, want = compiled(list(here.values()).__getitem__, rows), function(there)
    if not compiled.type.is_coded:
        return _differing(value.values, value.valid, want)
    texts = dictionary.values(value.column(), compiled.type)
    return sum(a != (tuple(b) if isinstance(b, list) else b) for a, b in zip(texts, want.to_pylist()))


def measure(rows: int = 65_536, names: tuple[str, ...] = ()) -> dict[str, dict[str, float]]:
    """By function: nanoseconds a row here, and times pyarrow's without NULLs and with a tenth of them.

    rows: of a column, by default those of a slice of the engine.
    """
    found: dict[str, dict[str, float]] = {}
    for share, label in ((0.0, "of pyarrow"), (0.1, "with NULLs")):
        here, there, dictionary = columns(rows, share)
        read = list(here.values()).__getitem__
        for name in names or CALLS:
            call, function = CALLS[name]
            compiled = evaluator(call, dictionary)
            compiled(read, rows)
            ours, theirs = _least(partial(compiled, read, rows)), _least(partial(function, there))
            figures = found.setdefault(name, {"ns a row": round(ours / rows * 1e9, 2)})
            figures[label] = round(ours / theirs, 2)
    return found
