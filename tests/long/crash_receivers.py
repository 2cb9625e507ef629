"""Receivers of answers that are told again after a crash: callbacks, functions, and lines over TCP.

They tell repetitions by the number of the answer: what comes again replaces what a receiver has from there on. Nothing
may be missing.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from minidsms import Change
from minidsms.query import Query
from minidsms.sinks.tcp_output import TcpWriter

KINDS = ("callback", "function", "lines")
Told = tuple[int, int, str]
"""(ts, sign, row as it is shown)."""


class Receiver:
    """What has been told of one query. keep: called with the number of each answer, and it."""

    def __init__(self, kind: str, keep: Callable[[int, Told], None] = lambda number, told: None) -> None:
        self.kind = kind
        self.told: list[Told] = []
        self.keep = keep
        self.lines = Lines(self._read) if kind == "lines" else None

    def into(self) -> str:
        """What stands behind the query."""
        return "" if self.lines is None else f"INTO '{self.lines.place}' FORMAT json WITH (position = true)"

    def attach(self, query: Query) -> None:
        """Let it be told, where the folder does not see to that."""
        if self.kind == "function":
            query.into(self._take_table, position=True)
        elif self.kind == "callback":

            @query.on_change
            def tell(change: Change) -> None:
                self._take(query.told - 1, (change.ts, change.sign, repr(tuple(change.row))))

    def _take_table(self, table: pa.Table) -> None:
        instants = table["_ts"].cast(pa.int64()).to_pylist()
        for ts, row in zip(instants, table.drop_columns(["_ts"]).to_pylist()):
            number, sign = row.pop("_position"), row.pop("_sign", 1)
            self._take(number, (ts, sign, repr(row)))

    def _read(self, line: bytes) -> None:
        row = json.loads(line)
        number, ts, sign = (row.pop(name, 1) for name in ("_position", "_ts", "_sign"))
        self._take(number, (ts, sign, repr(row)))

    def _take(self, number: int, told: Told) -> None:
        assert number <= len(self.told), f"answers {len(self.told)} to {number - 1} are missing"
        self.told[number:] = [told]
        self.keep(number, told)

    def settle(self) -> None:
        """Return when everything that has been sent has come."""
        if self.lines is not None:
            self.lines.settle()

    def end(self) -> None:
        """Take no more."""
        if self.lines is not None:
            self.lines.end()


class Lines:
    """A server that hands over every line that comes, of one connection after the other."""

    def __init__(self, take: Callable[[bytes], None]) -> None:
        self._take = take
        self._failure: Exception | None = None
        self._server = socket.create_server(("127.0.0.1", 0))
        self._has_settled = threading.Event()
        self.place = f"tcp://127.0.0.1:{self._server.getsockname()[1]}"
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while True:
            connected, _ = self._server.accept()
            with connected, connected.makefile("rb") as lines, contextlib.suppress(ConnectionError):
                for line in lines:
                    if line in (b"settle", b"end"):
                        self._has_settled.set()
                    if line == b"end":
                        self._server.close()
                        return
                    if line.endswith(b"\n"):  # else it was cut off
                        self._hand_over(line)

    def _hand_over(self, line: bytes) -> None:
        try:
            if self._failure is None:
                self._take(line)
        except Exception as error:
            self._failure = error

    def settle(self, word: bytes = b"settle") -> None:
        """Return when all connections so far have been read to their ends; raises what the receiver has."""
        self._has_settled.clear()
        with socket.create_connection(self._server.getsockname()) as own:
            own.sendall(word)
        assert self._has_settled.wait(60)
        if self._failure is not None:
            raise self._failure

    def end(self) -> None:
        """Take no more."""
        self.settle(b"end")


@contextlib.contextmanager
def connections() -> Iterator[Callable[[], None]]:
    """Gives what closes all connections for lines, as the system does when a process ends."""
    opened: list[TcpWriter] = []
    begin = TcpWriter.__init__

    def noted(self: TcpWriter, *given: Any) -> None:
        begin(self, *given)
        opened.append(self)

    def close_all() -> None:
        while opened:
            opened.pop().discard()

    TcpWriter.__init__ = noted  # type: ignore[assignment, method-assign]
    try:
        yield close_all
    finally:
        TcpWriter.__init__ = begin  # type: ignore[method-assign]
        close_all()
