"""`python -m tests.long.allocation_cases --case NAME`: every allocation of an array finds no memory, in turn.

A case is a kind of state (`tests.long.slopes`) with queries that have nothing to do with it. It is run without a
fault, then with its first allocation failing, its second, and so on; once, or until the call is over. A call that
raises has changed nothing: made again, it does what it would have done. Where it does not raise, queries have failed,
each with its answers up to an instant and a reason; all others tell what they tell without a fault. At the end nothing
is held by what is gone.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any

import minidsms
from tests.long.allocations import Allocations, failing
from tests.long.fault_cases import run_chosen
from tests.long.slopes import KINDS

DECLARATIONS = (
    "CREATE STREAM R (k INTEGER, v INTEGER, t TEXT); CREATE STREAM S (k INTEGER, v INTEGER, t TEXT) SLACK 2; "
    "CREATE STREAM T (k INTEGER, v INTEGER, t TEXT); CREATE STREAM U (k INTEGER, t TEXT); "
    "CREATE RELATION N (k INTEGER, name TEXT)"
)
BYSTANDERS = {"other stream": "SELECT k, t FROM U", "other count": "SELECT t, COUNT(*) FROM U [RANGE 3] GROUP BY t"}
"""Queries that no case concerns."""
_ROWS = 1500
"""Elements of the large pushes: stores and synopses begin with room for 1,024."""

CASES: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    **{name: kind for name, kind in KINDS.items() if name not in ("archive", "sinks", "dictionary")},
    "texts": ({}, ("SELECT ISTREAM(t || '!') FROM R", "SELECT UPPER(t), k FROM S [ROWS 100]")),
    "relation": (
        {},
        ("SELECT R.k, N.name FROM R [RANGE 20], N WHERE R.k = N.k", "SELECT name, COUNT(*) FROM N GROUP BY name"),
    ),
    "rstream and slide": (
        {},
        ("SELECT RSTREAM(COUNT(*)) FROM R [RANGE 20 SLIDE 10]", "SELECT DSTREAM(k) FROM R [ROWS 3]"),
    ),
}


class World:
    """A connection with the queries of a case, and what is done to it, call by call."""

    def __init__(self, case: str) -> None:
        options, self._texts = CASES[case]
        self.db = minidsms.connect(**options)
        self.db.execute(DECLARATIONS)
        for name, text in BYSTANDERS.items():
            self.db.query(text, name=name)
        self._told: dict[str, list[Any]] = {}

    def calls(self) -> list[Callable[[], Any]]:
        """What is done, in order: each may be made again where it has raised."""
        push, n = self.db.push, _ROWS
        first = [self._register(i) for i in range(len(self._texts))]
        return [
            lambda: push("N", [(k, f"name {k % 7}") for k in range(40)], ts=0),
            *first,
            *(self._large(name, 0, n) for name in "RST"),
            lambda: push("U", [(k, f"u{k % 3}") for k in range(5)], ts=[1, 1, 2, 3, 4]),
            lambda: push("N", [(50, "more"), (3, "name 3")], sign=[1, -1], ts=n + 10),
            lambda: self.db.advance(n + 20),
            lambda: push("R", (7, 8, "a text of its own"), ts=n + 21),
            lambda: push("S", (7, 9, None), ts=n + 21),
            lambda: push("T", (7, 9, "another"), ts=n + 21),
            self._fetch,
            *(self._large(name, n + 30, 2 * n) for name in "TSR"),
            lambda: push("U", (9, "u"), ts=n + 40),
            lambda: self.db.advance(4 * n),
            self._fetch,
        ]  # fmt: skip

    def _register(self, i: int) -> Callable[[], Any]:
        return lambda: self.db.query(self._texts[i], name=f"concerned {i}")

    def _large(self, name: str, at: int, n: int) -> Callable[[], Any]:
        rows = range(at, at + n)
        return lambda: self.db.push(
            name,
            {"k": [i // 3 for i in rows], "v": [i * 7 % 100 for i in rows], "t": [f"{name} {i % 50}" for i in rows]},
            ts=[at + (i - at) // 2 for i in rows],
        )

    def _fetch(self) -> None:
        for name, query in self.db.queries.items():
            if query.failure is None or query.is_waiting:
                self._told.setdefault(name, []).extend(tuple(change) for change in query.fetch())

    def told(self) -> dict[str, Any]:
        """What queries have told: their failures, changes, rows present and counts."""
        return {
            name: (
                query.failure,
                self._told.get(name, []),
                sorted(query.snapshot(), key=repr) if query.kind == "relation" and query.failure is None else None,
            )
            for name, query in self.db.queries.items()
        }

    def end(self) -> None:
        """Close everything; AssertionError where something is still held."""
        for query in list(self.db.queries.values()):
            query.close()
        assert not self.db.groups.all, "a group is left"
        for each in self.db.inputs:
            assert not each.store.is_read, f"the store of {each.definition.name} has a reader"
        self.db.close()


def run_case(name: str, allocations: Allocations) -> dict[str, Any]:
    """One run, and what was told. AssertionError where anything but a MemoryError comes out."""
    world = World(name)
    for number, call in enumerate(world.calls()):
        try:
            with failing(allocations):
                call()
        except (MemoryError, minidsms.Error) as error:
            assert allocations.failed, f"call {number} raised {error!r}"
            allocations.at = 0
            call()
        if allocations.failed:
            allocations.at = 0
    told = world.told()
    world.end()
    return told


def check(told: dict[str, Any], expected: dict[str, Any], lasting: bool = False) -> None:
    """AssertionError where a query tells something else, or has failed without its answers before."""
    assert told.keys() == expected.keys(), f"queries are {sorted(told)}"
    failed = {name in BYSTANDERS for name, (failure, *_) in told.items() if failure is not None}
    assert len(failed) < 2 or lasting, f"queries that have nothing in common have failed: {told}"
    for name, (failure, changes, rows) in told.items():
        _, all_changes, all_rows = expected[name]
        if failure is None:
            assert changes == all_changes, f"{name} tells {_first_difference(changes, all_changes)}"
            assert rows == all_rows, f"{name} shows other rows"
        else:
            assert "memory" in failure[1], f"{name} has failed: {failure[1]}"
            # Of an instant that is still open some may have been told.
            told_whole = sum(change[0] < failure[0] for change in all_changes)
            most = sum(change[0] <= failure[0] for change in all_changes)
            assert told_whole <= len(changes) <= most and changes == all_changes[: len(changes)], (
                f"{name}, failed at {failure[0]}, tells {_first_difference(changes, all_changes[:told_whole])}"
            )


def _first_difference(got: Sequence[Any], expected: Sequence[Any]) -> str:
    at = next((i for i, pair in enumerate(zip(got, expected)) if pair[0] != pair[1]), min(len(got), len(expected)))
    return f"{len(got)} changes for {len(expected)}, at {at} {got[at : at + 2]} for {expected[at : at + 2]}"


@functools.cache
def _told_without_a_fault(name: str) -> dict[str, Any]:
    run_case(name, Allocations())  # what is loaded and compiled once allocates too
    return run_case(name, Allocations())


def run_all(name: str, lasting: bool = False, stride: int = 1, first: int = 1) -> int:
    """Let one allocation after the other fail until none is left; how many runs it took."""
    expected = _told_without_a_fault(name)
    runs = 0
    for at in range(first, sys.maxsize, stride):
        allocations = Allocations(at, lasting)
        try:
            told = run_case(name, allocations)
            if not allocations.failed:
                return runs
            check(told, expected, lasting)
        except Exception as error:
            how = "and those after it" if lasting else "alone"
            raise AssertionError(
                f"{name}: allocation {at} {how} ({', '.join(allocations.failed[:2])}): {type(error).__name__}: {error}"
            ) from error
        runs += 1
    return runs


def main(arguments: Sequence[str] | None = None) -> int:
    """Run cases; returns the exit status."""
    return run_chosen("tests.long.allocation_cases", __doc__ or "", CASES, run_all, arguments)


if __name__ == "__main__":
    sys.exit(main())
