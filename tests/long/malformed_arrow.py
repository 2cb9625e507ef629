"""`python -m tests.long.malformed_arrow --cases N --seed S`: malformed Arrow data, until some is believed.

A case is an array over random buffers, nested ones among them, a foreign producer of one, or a damaged file (Arrow IPC
as file and stream, Parquet, an archive), given to a connection by `push`, `feed` or `replay`. It is taken or refused
with an Error, and a push that is refused has changed nothing; whatever else happens ends the run with exit status 1. A
wild read ends the process: run it in one of its own.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

import minidsms

_WORDS = ["", "a", "ab", "öl", "a longer text that stands in a view's buffer", "0", "1970-01-01"]
_NUMBERS: list[Any] = [
    pa.int8(), pa.int64(), pa.uint64(), pa.float16(), pa.float32(), pa.float64(), pa.bool_(), pa.date32(), pa.date64(),
    pa.timestamp("s"), pa.timestamp("ns", "UTC"), pa.duration("us"), pa.decimal128(5, 0), pa.null(), pa.binary(4),
]  # fmt: skip


_NESTED = (
    "INTEGER[]", "FLOAT[]", "TEXT[]", "DATE[]", "STRUCT(a INTEGER, b TEXT[])", "STRUCT(a TEXT, b TIMESTAMP)[][]",
    "MAP(TEXT, INTEGER)", "DECIMAL(9, 2)", "TIME", "TEXT",
)  # fmt: skip


_COLUMNS = ", l INTEGER[], s STRUCT(a INTEGER, b TEXT[]), m MAP(TEXT, INTEGER)"
"""The nested columns of files and archives."""


class Producer:
    """Something of another library that gives an array, a table or an exception through Arrow's C interface."""

    def __init__(self, data: Any) -> None:
        self._data = data

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        if isinstance(self._data, Exception):
            raise self._data
        return self._data.__arrow_c_stream__(requested_schema)


# ---------------------------------------------------------------------------------------------------- arrays


def random_array(rng: Random, n: int, believed: bool = False) -> Any:
    """An array of n rows, often malformed in a way that Arrow does not notice when it is made.

    believed: only in ways that can be told without the sizes of its buffers.
    """
    for _ in range(20):
        with contextlib.suppress(pa.ArrowException, ValueError):
            return _random_array(rng, n, believed)
    return pa.nulls(n)


def _random_array(rng: Random, n: int, believed: bool) -> Any:
    kind = rng.choice(("text", "text", "large text", "coded", "view", "number", "ends", "nested"))
    if kind in ("text", "large text"):
        return _texts(rng, n, kind == "large text", believed)
    if kind == "coded":
        width = rng.choice((np.int8, np.int32, np.int64))
        codes = np.array([rng.choice((0, 1, 2, 2, 3, -1, 100)) for _ in range(n)], width)
        words = _texts(rng, 3, False, believed)
        return pa.DictionaryArray.from_arrays(pa.array(codes), words, safe=False)
    if kind == "view":
        views = bytearray(pa.array([rng.choice(_WORDS) for _ in range(n)], pa.string_view()).buffers()[1].to_pybytes())
        for _ in range(rng.randrange(3) if views else 0):
            views[rng.randrange(len(views))] = rng.randrange(256)
        return pa.Array.from_buffers(pa.string_view(), n, [None, pa.py_buffer(bytes(views)), pa.py_buffer(b"a" * 60)])
    if kind == "ends":
        ends = pa.array(sorted(rng.sample(range(1, 2 * n + 2), 2)), pa.int32())
        sound = pa.RunEndEncodedArray.from_arrays(ends, pa.array([1, 2]))
        children = [sound.run_ends if rng.random() < 0.5 else pa.array([5, 1], pa.int32()), sound.values]
        return pa.Array.from_buffers(sound.type, n, [None], children=children)
    if kind == "nested":
        return pa.ListArray.from_arrays(pa.array(np.arange(n + 1, dtype=np.int32)), _texts(rng, n, False, believed))
    return _numbers(rng, n, believed)


def _numbers(rng: Random, n: int, believed: bool) -> Any:
    type_ = rng.choice(_NUMBERS)
    bits = None if believed or rng.random() < 0.5 else pa.py_buffer(bytes(rng.randrange(2)))
    data = rng.randbytes(n * 16 if believed else rng.choice((n * 16, n * 16, n, 0)))
    buffers = [None] if pa.types.is_null(type_) else [bits, pa.py_buffer(data)]
    return pa.Array.from_buffers(type_, n, buffers, null_count=rng.choice((-1, -1, 0, n)) if bits else -1)


def _nested_array(rng: Random, n: int, depth: int = 0) -> Any:
    """Lists, structs, maps, unions, run ends and codes within each other, whose offsets, sizes and lengths may be
    wrong.

    What pyarrow itself ends the process over when an array is made is left out: a MAP with keys that are NULL.
    """
    if depth > 3 or (depth and rng.random() < 0.4):
        return _random_array(rng, n, False) if rng.random() < 0.5 else _texts(rng, n, rng.random() < 0.5, False)
    bits = None if rng.random() < 0.6 else pa.py_buffer(rng.randbytes(rng.randrange(n // 8 + 2)))
    start = rng.choice((0, 0, 0, 1)) if n else 0
    length = rng.choice((n, n, 2 * n, max(0, n - 1), 0))
    kind = rng.choice(
        ("list", "list", "view", "fixed", "struct", "map", "dense", "sparse", "codes", "ends", "extension")
    )
    if kind in ("list", "view"):
        inner, is_large = _nested_array(rng, length, depth + 1), rng.random() < 0.5
        width = np.int64 if is_large else np.int32
        buffers = [bits, _offsets(rng, n, length, width)]
        if kind == "list":
            type_ = pa.large_list(inner.type) if is_large else pa.list_(inner.type)
        else:
            type_ = pa.large_list_view(inner.type) if is_large else pa.list_view(inner.type)
            sizes = [rng.choice((0, 1, -1, 2**30)) if rng.random() < 0.2 else 0 for _ in range(n)]
            buffers.append(pa.py_buffer(np.array(sizes, width).tobytes()))
        return pa.Array.from_buffers(type_, n - start, buffers, offset=start, children=[inner])
    if kind == "fixed":
        size = rng.randrange(4)
        inner = _nested_array(rng, rng.choice((n * size, n * size, 0)), depth + 1)
        return pa.Array.from_buffers(pa.list_(inner.type, size), n - start, [bits], offset=start, children=[inner])
    if kind == "struct":
        inners = [_nested_array(rng, rng.choice((n, n, n, length)), depth + 1) for _ in range(rng.randrange(4))]
        type_ = pa.struct([pa.field(rng.choice("abcAB"), inner.type) for inner in inners])
        return pa.Array.from_buffers(type_, n - start, [bits], offset=start, children=inners)
    if kind == "map":
        keys = pa.Array.from_buffers(
            pa.string(), length, [None, _offsets(rng, length, 40, np.int32), pa.py_buffer(b"ab" * 20)]
        )
        values = _nested_array(rng, rng.choice((length, length, 0)), depth + 1)
        entry = pa.struct([pa.field("key", pa.string(), nullable=False), pa.field("value", values.type)])
        entries = pa.Array.from_buffers(entry, length, [None], children=[keys, values])
        buffers = [bits, _offsets(rng, n, length, np.int32)]
        return pa.Array.from_buffers(
            pa.map_(pa.string(), values.type), n - start, buffers, offset=start, children=[entries]
        )
    if kind in ("dense", "sparse"):
        inners = [_nested_array(rng, n, depth + 1), _numbers(rng, n, False)]
        fields = [pa.field(name, inner.type) for name, inner in zip("ab", inners)]
        which = pa.py_buffer(bytes(rng.choice((0, 1, 5, 255)) if rng.random() < 0.2 else 0 for _ in range(n)))
        if kind == "sparse":
            return pa.Array.from_buffers(pa.sparse_union(fields), n, [None, which], children=inners)
        buffers = [None, which, _offsets(rng, n, n, np.int32)]
        return pa.Array.from_buffers(pa.dense_union(fields), n, buffers, children=inners)
    if kind == "codes":
        codes = np.array([rng.choice((0, 1, 2, 3, -1, 100)) for _ in range(n)], rng.choice((np.int8, np.int64)))
        return pa.DictionaryArray.from_arrays(pa.array(codes), _nested_array(rng, 3, depth + 1), safe=False)
    if kind == "ends":
        ends = pa.array([rng.choice((1, n, n + 1, -1)) for _ in range(2)], pa.int32())
        inner = _nested_array(rng, 2, depth + 1)
        type_ = pa.run_end_encoded(pa.int32(), inner.type)
        return pa.Array.from_buffers(type_, n, [None], children=[ends, inner])
    inner = _nested_array(rng, n, depth + 1)
    if depth and isinstance(inner, pa.ExtensionArray):
        return inner
    return pa.ExtensionArray.from_storage(pa.opaque(inner.type, "a type", "somebody"), inner)


def _offsets(rng: Random, n: int, size: int, width: Any) -> Any:
    """A buffer of n + 1 offsets into so many values, of which some may point outside."""
    offsets = np.array(sorted(rng.randrange(size + 1) for _ in range(n + 1)), width)
    for _ in range(rng.choice((0, 0, 1, 2))):
        offsets[rng.randrange(n + 1)] = rng.choice((-1, -(2**31), size + 1, 2**30, 2**31 - 1))
    written = offsets.tobytes()
    return pa.py_buffer(written if rng.random() < 0.9 else written[: rng.randrange(len(written) + 1)])


def _texts(rng: Random, n: int, large: bool, believed: bool) -> Any:
    """n texts whose offsets, bytes or validity may be wrong."""
    width = np.int64 if large else np.int32
    start = 0 if believed else rng.choice((0, 0, 1))
    length, n = n, n + start
    data = b"".join(rng.choice(_WORDS).encode() for _ in range(n)) or b"ab"
    offsets = np.array(sorted(rng.randrange(len(data) + 1) for _ in range(n + 1)), width)
    for _ in range(rng.choice((0, 1, 2))):
        wrong = [-1, -(2**31), len(data) + 1, 2**30, 2**31 - 1]
        # Through the C interface the last offset is the size.
        offsets[rng.randrange(n) if believed and n else rng.randrange(n + 1)] = rng.choice(wrong)
    kept = offsets.tobytes()
    if not believed and rng.random() < 0.2:
        kept = kept[: rng.randrange(len(kept) + 1)]
    bits = None if believed or rng.random() < 0.7 else pa.py_buffer(rng.randbytes(rng.randrange(n // 8 + 2)))
    kind = pa.large_string() if large else pa.string()
    return pa.Array.from_buffers(kind, length, [bits, pa.py_buffer(kept), pa.py_buffer(data)], offset=start)


# ----------------------------------------------------------------------------------------------------- files


def damage(rng: Random, content: bytes) -> bytes:
    """The content with a few bytes changed, a piece cut out, or its end cut off."""
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 5))):
        at = rng.randrange(max(1, len(data)))
        form = rng.randrange(5)
        if form == 0:
            del data[at:]
        elif form == 1:
            del data[at : at + rng.randrange(1, 9)]
        elif form == 2:
            data[at : at + 4] = rng.choice((b"\xff" * 4, b"\0" * 4, b"\xff\xff\xff\x7f", b"\0\0\0\x40"))
        elif data:
            data[at] = rng.randrange(256)
    return bytes(data)


def sound_file(path: str, form: str) -> None:
    """A file that is well formed, of the columns k, x, t, l, s and m. form: "file", "stream" or "parquet"."""
    texts = pa.array(["a", None, "öl", "ab"] * 5)
    table = pa.table({"ts": pa.array(range(20)), "k": pa.array([1, None] * 10), "x": pa.array([0.5] * 20), "t": texts})
    nested = {
        "l": pa.array([[1, None], [], None, [2]] * 5, pa.list_(pa.int64())),
        "s": pa.array([{"a": 1, "b": ["x", "öl"]}, None, {"a": None, "b": None}, {"a": 2, "b": []}] * 5),
        "m": pa.array([[("k", 1)], None, [], [("k", 1), ("l", None)]] * 5, pa.map_(pa.string(), pa.int64())),
    }
    for name, column in nested.items():
        table = table.append_column(name, column)
    if form == "parquet":
        from pyarrow import parquet

        parquet.write_table(table, path)
        return
    opened = pa.ipc.new_file if form == "file" else pa.ipc.new_stream
    with opened(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=8)


# ----------------------------------------------------------------------------------------------------- cases


def _declared(source: str = "", nested: str = "") -> minidsms.Connection:
    db = minidsms.connect()
    db.execute(f"CREATE STREAM S (ts TIMESTAMP, k INTEGER, x FLOAT, t TEXT{nested}) TIMESTAMP BY ts {source}")
    db.execute("CREATE RELATION R (k INTEGER, x FLOAT, t TEXT)")
    db.query("SELECT k, MAX(t), SUM(x) FROM S [ROWS 3] GROUP BY k")
    return db


def _pushed(rng: Random, _: str) -> None:
    """A push, or a table as a source."""
    db, n = _declared(), rng.randrange(7)
    name, by = rng.choice((("S", False), ("R", False), ("S", True)))
    foreign = rng.random() < 0.3
    columns = {c: random_array(rng, n, foreign) for c in ("k", "x", "t") if name == "R" or not by or c == "t"}
    if name == "S":
        columns["ts"] = pa.array(range(n)) if rng.random() < 0.7 else random_array(rng, n, foreign)
        for missing in sorted({"k", "x"} - columns.keys()):
            columns[missing] = pa.nulls(n)
    sign = {"sign": random_array(rng, n)} if name == "R" and rng.random() < 0.2 else {}
    arrays: Any = pa.table(columns) if rng.random() < 0.7 else columns
    data: Any = arrays
    if foreign and isinstance(arrays, pa.Table):
        data = Producer(rng.choice((arrays, arrays, RuntimeError("\x1b[2J"), MemoryError())))
    if rng.random() < 0.2 and isinstance(arrays, pa.Table):
        db.feed(name, rng.choice((data, [data])))
        db.run()
        return
    before = db.stream_input(name).counters.accepted
    try:
        taken = db.push(name, data, **sign)
    except minidsms.Error:
        assert db.stream_input(name).counters.accepted == before
        raise
    assert db.stream_input(name).counters.accepted == before + taken


def _pushed_nested(rng: Random, _: str) -> None:
    """A push of a nested column, or a table of one as a source."""
    db, n = minidsms.connect(), rng.randrange(6)
    db.execute(f"CREATE STREAM S (v {rng.choice(_NESTED)}); CREATE RELATION R (v INTEGER[])")
    query = db.query("SELECT v FROM S")
    array: Any = None
    while array is None:
        with contextlib.suppress(pa.ArrowException, ValueError, TypeError):
            array = _nested_array(rng, n)
    if rng.random() < 0.3:
        db.feed("R", pa.table({"v": array}))
        db.run()
        return
    data: Any = {"v": pa.chunked_array([array, array])} if rng.random() < 0.3 else pa.table({"v": array})
    try:
        taken = db.push("S", data, ts=1)
    except minidsms.Error:
        assert db.stream_input("S").counters.accepted == 0
        raise
    db.advance(2)
    assert len(query.fetch()) == taken


def _read(rng: Random, folder: str) -> None:
    """A damaged file as a source."""
    form = rng.choice(("file", "file", "stream", "parquet"))
    path = os.path.join(folder, "damaged." + ("parquet" if form == "parquet" else "arrow"))
    sound_file(path, form)
    with open(path, "rb") as file:
        content = damage(rng, file.read())
    with open(path, "wb") as file:
        file.write(content)
    db = _declared(f"FROM '{path}'", _COLUMNS)
    try:
        db.run()
    finally:
        db.close()


def _replayed(rng: Random, folder: str) -> None:
    """A damaged archive."""
    from minidsms.archive.format import archives_in
    from minidsms.archive.verifying import verify

    place = os.path.join(folder, f"archive-{rng.randrange(2**30)}")
    with _declared(nested=_COLUMNS) as db:
        db.archive("S", place)
        db.push("S", [(i, i, 0.5, "ab"[i % 2], [i], {"a": i, "b": ["x", None]}, {"k": i}) for i in range(9)])
    files = [os.path.join(at, name) for at, _, names in os.walk(place) for name in names]
    chosen = rng.choice(files)
    with open(chosen, "rb") as file:
        content = damage(rng, file.read())
    with open(chosen, "wb") as file:
        file.write(content)
    if rng.random() < 0.3:
        for archive in archives_in(place):
            list(verify(archive))
        return
    with _declared(nested=_COLUMNS) as db:
        db.replay(place)


CASES: tuple[tuple[Callable[[Random, str], None], int], ...] = (
    (_pushed, 12),
    (_pushed_nested, 8),
    (_read, 6),
    (_replayed, 1),
)
"""What is tried, and how often."""


def run(cases: int, seed: int) -> Counter[str]:
    """How often each outcome came; AssertionError, with the seed, for any that must not be."""
    outcomes: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for i in range(seed, seed + cases):
            rng = Random(i)
            case = rng.choices([c for c, _ in CASES], [n for _, n in CASES])[0]
            try:
                case(rng, folder)
                outcomes["taken"] += 1
            except minidsms.Error:
                outcomes["refused"] += 1
            except Exception as error:
                raise AssertionError(f"seed {i}, {case.__name__}: {type(error).__name__}: {error}") from error
    return outcomes


def main(arguments: Sequence[str] | None = None) -> int:
    """Run cases; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.long.malformed_arrow", description=__doc__)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="of the first case; the others follow")
    options = parser.parse_args(arguments)
    outcomes = run(options.cases, options.seed)
    print(", ".join(f"{n} {outcome}" for outcome, n in sorted(outcomes.items())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
