"""What a join tells the monitors of its constraints, and what they let it take for granted.

By a side that leads from a parent to its child RIDS(k) and OAC(k) say when the child will not come any more; by one
that leads from a child to its parents CA(k) and OAP(k) say when no parent will (Babu 2005, sections 6.6.1, 6.7.1, 6.8.1
and 6.8.5). All that hold are used together (section 6.10).

Invariant: what is taken for granted is asked of the monitors when it is used, with all arrivals told before.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from minidsms.elements import Batch, BoolArray, Int64Array, Schema, Type
from minidsms.kernels.hashing import hash_rows
from minidsms.kernels.k_mon_reduction import BEFORE, BELOW, CLUSTERED, FLOATS, INTEGERS, LIMIT_WORDS, ORDER, UNORDERED
from minidsms.streamon.k_mon.arrival_marks import ArrivalInstants, LowWater
from minidsms.streamon.k_mon.contracts import Arrivals, KConstraint, Kind, Monitor, Monitors, User
from minidsms.streamon.k_mon.join_graph import Edge

NOTHING = -(2**63)
"""A limit that is not used."""
_ORDERED = (Type.INTEGER, Type.TIMESTAMP, Type.INTERVAL, Type.FLOAT)
_derived = itertools.count(1)


@dataclass(frozen=True)
class Source:
    """Where an input's rows come from. stream: its name, "" where no other join can name it.  attributes: of its
    columns.
    """

    stream: str
    attributes: tuple[str, ...]


@dataclass
class _Watched:
    """A constraint that closes a side, and its monitor."""

    side: int
    constraint: KConstraint
    monitor: Monitor


class Watching:
    """The constraints of one join.

    schemas, sources: of its inputs.  edges: its tree.  keys: whether the columns of a side are a key of its stream.
    windows: see `KConstraint.window`; without, rows stay for good.
    """

    def __init__(
        self, schemas: Sequence[Schema], sources: Sequence[Source], edges: Sequence[Edge], keys: Sequence[bool],
        monitors: Monitors, user: User, windows: Sequence[tuple[bool, int] | None] | None = None,
    ) -> None:  # fmt: skip
        self._schemas, self._edges = list(schemas), tuple(edges)
        self._monitors, self._user = monitors, user
        names = [s.stream or f"input {i + 1} of join {next(_derived)}" for i, s in enumerate(sources)]
        self._instants: dict[int, ArrivalInstants] = {}
        self._waters: dict[int, LowWater] = {}
        self.watched: list[_Watched] = []
        for s in range(2 * len(edges)):
            i, mine = self._end(s)
            j, theirs = self._end(s ^ 1)
            own = tuple(sources[i].attributes[c] for c in mine)
            other = tuple(sources[j].attributes[c] for c in theirs)
            kinds = []
            is_ordered = len(theirs) == 1 and schemas[j][theirs[0]].type in _ORDERED
            if keys[s ^ 1]:
                self._instants.setdefault(j, ArrivalInstants())
                window = None if windows is None else windows[i]
                kinds.append(KConstraint(Kind.RIDS, names[j], other, names[i], own, window))
                if is_ordered:
                    kinds.append(KConstraint(Kind.OAC, names[j], other))
            if keys[s]:
                kinds.append(KConstraint(Kind.CA, names[j], other))
                if is_ordered and not keys[s ^ 1]:
                    kinds.append(KConstraint(Kind.OAP, names[j], other))
            if is_ordered and (keys[s] or keys[s ^ 1]):
                self._waters[s] = LowWater()
            self.watched += [_Watched(s, c, monitors.watch(c, user)) for c in kinds]

    @property
    def nbytes(self) -> int:
        """Bytes of the marks held; the monitors are the connection's."""
        return sum(m.nbytes for m in self._instants.values()) + sum(m.nbytes for m in self._waters.values())

    def arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        """The marks; what monitors know is the connection's."""
        state = {f"instants{i}": mark.array() for i, mark in self._instants.items()}
        return state | {f"waters{s}": mark.array() for s, mark in self._waters.items()}

    def restore(self, arrays: dict[str, np.ndarray[Any, Any]]) -> None:
        """Know what `arrays` gave, and nothing else."""
        for i, instants in self._instants.items():
            instants.restore(arrays[f"instants{i}"])
        for s, water in self._waters.items():
            water.restore(arrays[f"waters{s}"])

    def live_codes(self) -> tuple[Int64Array, ...]:
        """Marks are of ordered words, no TEXT."""
        return ()

    def close(self) -> None:
        """Nobody asks any more."""
        for each in self.watched:
            self._monitors.leave(each.constraint, self._user)

    def observe(self, part: Sequence[Batch | None], firsts: Sequence[int]) -> None:
        """Tell the rows of one part, all of them. firsts: the number of each input's first, where it has no others."""
        told: dict[int, Arrivals] = {}

        def arrivals(s: int) -> Arrivals:
            if s not in told:
                told[s] = self._arrivals(s, part, firsts)
            return told[s]

        seen: set[int] = set()
        for each in self.watched:
            # A constraint may close several sides, and is told once.
            if id(each.monitor) not in seen:
                seen.add(id(each.monitor))
                of = arrivals(each.side ^ 1)
                parents = arrivals(each.side) if each.constraint.kind is Kind.RIDS else None
                if len(of.ts) or (parents is not None and len(parents.ts)):
                    each.monitor.observe(of, parents)
        for i, instants in self._instants.items():
            batch = part[i]
            if batch is not None:
                instants.add(batch.ts)
        for s, water in self._waters.items():
            of = arrivals(s ^ 1)
            water.add(of.values, of.valid)

    def refute(self, sides: Iterable[int]) -> None:
        """Rows have come by these sides that the constraints said would not come."""
        closed = set(sides)
        for each in self.watched if closed else ():
            if each.side in closed:
                each.monitor.refuted()

    def _end(self, s: int) -> tuple[int, tuple[int, ...]]:
        edge = self._edges[s // 2]
        return edge.ends[s % 2], tuple(pair[s % 2] for pair in edge.columns)

    def _arrivals(self, s: int, part: Sequence[Batch | None], firsts: Sequence[int]) -> Arrivals:
        """The rows of a side's stream, by its columns."""
        i, columns = self._end(s)
        batch = part[i]
        if batch is None:
            return Arrivals(_NONE, _NONE, _NONE)
        n = len(batch)
        numbers = batch.seq if batch.seq is not None else np.arange(firsts[i], firsts[i] + n, dtype=np.int64)
        found = [batch.column(c) for c in columns]
        valid: BoolArray | None = None
        for column in found:
            if column.valid is not None:
                valid = column.valid if valid is None else valid & column.valid
        if len(found) > 1:
            words = np.stack([c.words() for c in found], axis=1)
            return Arrivals(numbers, batch.ts, hash_rows(np.ascontiguousarray(words)), valid, False)
        values = found[0].words()
        type_ = self._schemas[i][columns[0]].type
        if type_ is Type.FLOAT:
            values = ordered_words(values)
        return Arrivals(numbers, batch.ts, values, valid, type_ in _ORDERED)

    def limits(self, counts: Int64Array, forced: Callable[[KConstraint], int | None] | None = None) -> Int64Array:
        """What may be taken for granted now, for each side (`kernels.k_mon_reduction`).

        counts: of each stream, the rows taken in that pass its filter.  forced: gives k in place of the monitors.
        """
        limits = no_limits(len(self._edges))
        for each in self.watched:
            k = each.monitor.k if forced is None else forced(each.constraint)
            if k is None:
                continue
            row = limits[each.side]
            i, columns = self._end(each.side ^ 1)
            if each.constraint.kind is Kind.RIDS:
                row[BEFORE] = max(row[BEFORE], self._instants[i].before(k))
            elif each.constraint.kind is Kind.CA:
                row[CLUSTERED] = max(row[CLUSTERED], counts[i] - k)
            else:
                row[ORDER] = FLOATS if self._schemas[i][columns[0]].type is Type.FLOAT else INTEGERS
                row[BELOW] = max(row[BELOW], self._waters[each.side].below(k))
        return limits


def no_limits(edges: int) -> Int64Array:
    """Nothing is taken for granted."""
    limits = np.zeros((2 * edges, LIMIT_WORDS), np.int64)
    limits[:, BEFORE] = limits[:, BELOW] = limits[:, CLUSTERED] = NOTHING
    limits[:, ORDER] = UNORDERED
    return limits


def are_any(limits: Int64Array) -> bool:
    """Something is taken for granted."""
    return bool((limits[:, [BEFORE, BELOW, CLUSTERED]] != NOTHING).any())


def ordered_words(words: Int64Array) -> Int64Array:
    """Words of FLOATs in the order of the numbers."""
    return np.where(words >= 0, words, words ^ np.int64(0x7FFFFFFFFFFFFFFF))


_NONE: Int64Array = np.zeros(0, np.int64)
