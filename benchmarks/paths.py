"""The ways into a connection and out of it: what a row costs that goes alone, and one of many.

Every path carries the same rows of four columns, one of them TEXT, through a filter that all of them pass, so that the
lines of a table differ in the path alone. Processor time of the process, with the threads that read and write beside
the engine; the least of three rounds behind a first one. In a folder the clock stands beside it.
"""

from __future__ import annotations

import json
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

import minidsms

ALONE, ROWS, ROUNDS = 1_000, 65_536, 3
"""Rows that go alone, rows of a large push, rounds behind a first one."""
_NAMES = ("auction", "price", "x", "channel")
_DECLARED = "CREATE STREAM bid (auction INTEGER, price INTEGER, x FLOAT, channel TEXT)"
_FROM = "CREATE STREAM bid (ts INTEGER, auction INTEGER, price INTEGER, x FLOAT, channel TEXT) TIMESTAMP BY ts FROM "
_QUERY = "SELECT auction, price, x, channel FROM bid WHERE price > 0"

_PUSHES = 4
"""Large pushes of a round in which files are written."""

Figures = dict[str, dict[str, float]]
Way = Callable[[minidsms.Connection, minidsms.Query], Callable[[], Any]]


def columns(n: int) -> dict[str, list[Any]]:
    """The rows, as lists of Python's values."""
    rng = np.random.default_rng(1)
    return {
        "auction": rng.integers(0, 5000, n).tolist(),
        "price": rng.integers(1, 100_000, n).tolist(),
        "x": rng.random(n).round(6).tolist(),
        "channel": [f"channel-{i}" for i in rng.integers(0, 500, n).tolist()],
    }


# ----------------------------------------------------------------------------------------------------------- rows in


def _dicts(data: dict[str, list[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(_NAMES, row)) for row in zip(*data.values())]


def _frame(data: dict[str, list[Any]]) -> Any:
    return pa.table(data).to_pandas()


def _arrays(data: dict[str, list[Any]]) -> dict[str, Any]:
    return {name: np.array(values, object if name == "channel" else None) for name, values in data.items()}


FORMS: dict[str, Callable[[dict[str, list[Any]]], Any]] = {
    "tuples": lambda data: list(zip(*data.values())),
    "dicts": _dicts,
    "lists by column": lambda data: data,
    "numpy by column": _arrays,
    "pandas": _frame,
    "Arrow table": pa.table,
}
"""What `push` takes, of many rows."""


def measure_push() -> Figures:
    """us of a push of one row and its `advance`, ns of a row of a large push."""
    one, many = columns(ALONE), columns(ROWS)
    return {name: _pushed(form, one, many) for name, form in FORMS.items()}


def _pushed(form: Callable[[dict[str, list[Any]]], Any], one: dict[str, list[Any]], many: Any) -> dict[str, float]:
    rows = [form({name: [values[i]] for name, values in one.items()}) for i in range(ALONE)]
    if form is FORMS["tuples"]:
        rows = [row[0] for row in rows]
    with _connected() as (db, query):
        alone_us = 1e6 * _least(lambda turn: _row_by_row(db, rows, turn), query.fetch_arrow) / ALONE
    with _connected() as (db, query):
        data, ts = form(many), np.arange(ROWS)
        many_ns = 1e9 * _least(lambda turn: db.push("bid", data, ts=ts + turn * ROWS), query.fetch_arrow) / ROWS
    return {"us alone": round(alone_us, 1), "ns of many": round(many_ns)}


def _row_by_row(
    db: minidsms.Connection, rows: Iterable[Any], turn: int, taken: Callable[[], Any] | None = None
) -> None:
    for ts, row in enumerate(rows, turn * ALONE + 1):
        db.push("bid", row, ts=ts)
        db.advance(ts)
        if taken is not None:
            taken()


# ---------------------------------------------------------------------------------------------------------- rows out


def _iterated(db: minidsms.Connection, query: minidsms.Query) -> Callable[[], Any]:
    return lambda: [change for change in query]


def _into(name: str, **options: Any) -> Way:
    def opened(db: minidsms.Connection, query: minidsms.Query) -> Callable[[], Any]:
        query.into(str(Path(_folder.name, name)), **options)
        return _nothing

    return opened


def _called(db: minidsms.Connection, query: minidsms.Query) -> Callable[[], Any]:
    query.on_change(lambda change: None)
    return _nothing


def _called_for_all(db: minidsms.Connection, query: minidsms.Query) -> Callable[[], Any]:
    db.on_change(lambda news: None)
    return _nothing


def _into_function(db: minidsms.Connection, query: minidsms.Query) -> Callable[[], Any]:
    query.into(lambda table: None)
    return _nothing


def _into_client(db: minidsms.Connection, query: minidsms.Query) -> Callable[[], Any]:
    """A client that reads and drops."""
    sink = query.into("tcp-listen://127.0.0.1:0")
    host, port = sink.path.removeprefix("tcp-listen://").split(":")
    client = socket.create_connection((host, int(port)))
    threading.Thread(target=_drain, args=(client,), daemon=True).start()
    while not sink.notes:  # type: ignore[attr-defined]
        time.sleep(0.001)
    return _nothing


def _drain(client: socket.socket) -> None:
    with client:
        while client.recv(1 << 20):
            pass


def _nothing() -> None:
    """It is taken as it comes."""


_folder = tempfile.TemporaryDirectory()
TAKEN: dict[str, Way] = {
    "nobody": lambda db, query: _nothing,
    "fetch": lambda db, query: query.fetch,
    "fetch_arrow": lambda db, query: query.fetch_arrow,
    "df": lambda db, query: query.df,
    "for change in query": _iterated,
    "query.on_change": _called,
    "db.on_change": _called_for_all,
    "a function of tables": _into_function,
    "CSV": _into("a.csv"),
    "JSON lines": _into("a.jsonl"),
    "CSV, append": _into("b.csv", append=True),
    "JSON lines, append": _into("b.jsonl", append=True),
    "Parquet": _into("a.parquet"),
    "Arrow": _into("a.arrow"),
    "a client over TCP": _into_client,
}
"""What takes answers, by name: attached before rows are pushed; what it gives is called behind each push."""


def measure_taking() -> Figures:
    """us of a push of one row and its `advance` with its answer taken; ns of a row of large pushes, likewise; both with
    the query's end, which completes files.
    """
    return {name: _taken(way) for name, way in TAKEN.items()}


def _taken(way: Way) -> dict[str, float]:
    rows = list(zip(*columns(ALONE).values()))
    data, ts = pa.table(columns(ROWS)), np.arange(ROWS)

    def round_s(work: Callable[[minidsms.Connection, Callable[[], Any]], None]) -> float:
        with _connected() as (db, query):
            taken = way(db, query)
            begun = time.process_time()
            work(db, taken)
            query.close()
            return time.process_time() - begun

    def alone(db: minidsms.Connection, taken: Callable[[], Any]) -> None:
        _row_by_row(db, rows, 0, taken)

    def many(db: minidsms.Connection, taken: Callable[[], Any]) -> None:
        for turn in range(_PUSHES):
            db.push("bid", data, ts=ts + turn * ROWS)
            taken()

    alone_us = 1e6 * _least_of(partial(round_s, alone)) / ALONE
    many_ns = 1e9 * _least_of(partial(round_s, many)) / ROWS / _PUSHES
    return {"us alone": round(alone_us, 1), "ns of many": round(many_ns)}


# ------------------------------------------------------------------------------------------------------------- files


def _json_lines(table: pa.Table, path: Path) -> None:
    with path.open("w") as lines:
        for row in table.to_pylist():
            lines.write(json.dumps(row, separators=(",", ":")) + "\n")


FILES: dict[str, Callable[[pa.Table, Path], None]] = {
    "csv": lambda table, path: pa.csv.write_csv(table, path),
    "jsonl": _json_lines,
    "parquet": lambda table, path: pa.parquet.write_table(table, path),
}


def measure_sources() -> Figures:
    """ns of a row of a file that is read to its end, of lines sent as fast as they are taken, of an archive written and
    replayed; us of a line sent alone, once the one before has been answered.
    """
    found = {}
    rows = 8 * ROWS
    table = pa.table({"ts": list(range(rows)), **columns(rows)})
    with tempfile.TemporaryDirectory() as folder:
        for form, write in FILES.items():
            path = Path(folder, f"rows.{form}")
            write(table, path)
            found[form] = {"ns of many": round(1e9 * _least_of(partial(_read, f"'{path}'")) / rows)}
        for form in ("csv", "jsonl"):
            lines = Path(folder, f"rows.{form}").read_bytes()
            lines = lines.split(b"\n", 1)[1] if form == "csv" else lines
            source = f"'tcp-listen://127.0.0.1:0' FORMAT {form.removesuffix('l')} WITH (clients = 1)"
            many_ns = 1e9 * _least_of(partial(_read, source, lines)) / rows
            alone_us = 1e6 * _least_of(partial(_sent_one_by_one, source, lines.split(b"\n")[:ALONE])) / ALONE
            found[f"lines of {form} over TCP"] = {"us alone": round(alone_us, 1), "ns of many": round(many_ns)}
        found |= _archived(Path(folder), table)
    return found


def _read(source: str, lines: bytes = b"") -> float:
    with minidsms.connect() as db:
        db.execute(f"{_FROM}{source}")
        query = db.query(_QUERY)
        if lines:
            sender = socket.create_connection(_address(db))
            threading.Thread(target=lambda: (sender.sendall(lines), sender.close())).start()
        begun = time.process_time()
        db.run()
        taken = time.process_time() - begun
        query.fetch_arrow()
        return taken


def _sent_one_by_one(source: str, lines: list[bytes]) -> float:
    """Each line once the answer of the one before has come."""
    with minidsms.connect() as db:
        db.execute(f"{_FROM}{source}")
        query = db.query(_QUERY)
        answered = threading.Event()
        query.on_change(lambda change: answered.set())

        def send() -> None:
            with socket.create_connection(_address(db)) as sender:
                for line in lines:
                    sender.sendall(line + b"\n")
                    answered.wait(1)
                    answered.clear()

        threading.Thread(target=send).start()
        begun = time.process_time()
        db.run()
        return time.process_time() - begun


def _address(db: minidsms.Connection) -> tuple[str, int]:
    host, port = next(iter(db.execute("SHOW SOURCES")))[1].removeprefix("tcp-listen://").split(":")
    return host, int(port)


def _archived(folder: Path, table: pa.Table) -> Figures:
    def write(turn: int) -> float:
        with minidsms.connect() as db:
            db.execute(_FROM.removesuffix("FROM "))
            db.archive("bid", str(folder / str(turn)))
            begun = time.process_time()
            for first in range(0, len(table), ROWS):
                db.push("bid", table.slice(first, ROWS))
            db.flush()
            return time.process_time() - begun

    def replay() -> float:
        with minidsms.connect() as db:
            db.execute(_FROM.removesuffix("FROM "))
            db.query(_QUERY)
            begun = time.process_time()
            db.replay(str(folder / "0"))
            return time.process_time() - begun

    turns: Iterator[int] = iter(range(ROUNDS + 1))
    written = _least_of(lambda: write(next(turns)))
    return {
        "archived": {"ns of many": round(1e9 * written / len(table))},
        "replayed": {"ns of many": round(1e9 * _least_of(replay) / len(table))},
    }


# ------------------------------------------------------------------------------------------------------- in a folder


def measure_folder() -> Figures:
    """us of a push of one row, its `advance` and a `fetch`, by durability; of the clock, too."""
    return {kind: _in_folder(kind) for kind in ("memory", "os", "batch", "sync")}


def _in_folder(kind: str) -> dict[str, float]:
    rows = list(zip(*columns(ALONE).values()))
    with tempfile.TemporaryDirectory() as folder:
        options: dict[str, Any] = {} if kind == "memory" else {"folder": folder, "durability": kind}
        with minidsms.connect(**options) as db:
            db.execute(_DECLARED)
            query = db.query(_QUERY, "q")
            clock = float("inf")

            def work(turn: int) -> None:
                nonlocal clock
                begun = time.perf_counter()
                _row_by_row(db, rows, turn, query.fetch)
                clock = min(clock, time.perf_counter() - begun)

            used = _least(work, query.fetch_arrow)
        found = {"us alone": round(1e6 * used / ALONE, 1), "us of the clock": round(1e6 * clock / ALONE, 1)}
        if kind != "memory":
            begun = time.process_time()
            minidsms.connect(folder).close()
            found["us of opening, a push"] = round(1e6 * (time.process_time() - begun) / ALONE / (ROUNDS + 1), 1)
        return found


def measure() -> dict[str, Figures]:
    """All of it, by the titles of its tables."""
    return {
        "rows pushed": measure_push(),
        "answers taken, their push included": measure_taking(),
        "sources and archives": measure_sources(),
        "in a folder: a push, its advance and its fetch": measure_folder(),
    }


# ----------------------------------------------------------------------------------------------------------- helpers


class _connected:
    """A connection with the stream and the query."""

    def __enter__(self) -> tuple[minidsms.Connection, minidsms.Query]:
        self._db = minidsms.connect()
        self._db.execute(_DECLARED)
        return self._db, self._db.query(_QUERY)

    def __exit__(self, *_: object) -> None:
        self._db.close()


def _least(work: Callable[[int], Any], between: Callable[[], Any]) -> float:
    """Seconds of the processor, the least of the rounds behind a first one."""
    least = float("inf")
    for turn in range(ROUNDS + 1):
        begun = time.process_time()
        work(turn)
        if turn:
            least = min(least, time.process_time() - begun)
        between()
    return least


def _least_of(work: Callable[[], float]) -> float:
    return min([work() for _ in range(ROUNDS + 1)][1:])
