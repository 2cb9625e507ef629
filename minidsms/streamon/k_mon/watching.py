"""What a join tells the monitors of its constraints, and what they let it take for granted.

By a side that leads from a parent to its child RIDS(k) and OAC(k) say when the child will not come any more; by one
that leads from a child to its parents CA(k) and OAP(k) say when no parent will (Babu 2005, sections 6.6.1, 6.7.1, 6.8.1
and 6.8.5). All that hold are used together (section 6.10), if k is less than the rows that come while a window lasts:
with a greater one rows leave with their window, and monitors need not look for it.

Invariant: what is taken for granted is asked of the monitors when it is used, with all arrivals told before.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from minidsms.elements import Batch, BoolArray, Int64Array, Type
from minidsms.kernels.hashing import hash_rows
from minidsms.kernels.k_mon_keys import Limit, StreamFigures
from minidsms.kernels.k_mon_reduction import FLOATS, INTEGERS
from minidsms.kernels.k_mon_rows import CHANGES, RANGE, ROWS
from minidsms.machine_code import Rows, record_in
from minidsms.operators.k_mon.contracts import NEVER, Arrivals, KConstraint, KeyMonitor, Kind, Monitor, Monitors, Source
from minidsms.operators.k_mon.limits import no_limits, ordered_words
from minidsms.streamon.change_detection.usual import SHARES, Usual
from minidsms.streamon.k_mon.arrival_marks import ArrivalInstants
from minidsms.streamon.k_mon.journal import MOST, Journal, Told, told
from minidsms.streamon.k_mon.monitoring.registry import Unwatched

if TYPE_CHECKING:
    from minidsms.operators.k_mon_join import KMonJoin

_ORDERED = (Type.INTEGER, Type.TIMESTAMP, Type.INTERVAL, Type.FLOAT)
_derived = itertools.count(1)
_FEW, _MANY = 1000, 20_000
"""Arrivals after which it is reckoned how many come in a window: the first time, and at most."""
_ALL = 1 << 60
_ROOM_SHARE, _MOST_ROOM = 128, 2048


@dataclass
class _Watched:
    """A constraint that closes a side, and its monitor.

    most: the arrivals of its stream while a row of the side's stream is in its window, as far as is known.
    """

    side: int
    constraint: KConstraint
    monitor: Monitor
    most: float = inf


class Watching:
    """The constraints of one join. See `Watches`.

    sources: of its inputs. What the join says of its sides are declared keys of their streams; whether others are keys
    is watched. Of the inputs that are relations, whose rows come and go, nothing is watched, and a declared key is one
    until it is refuted.
    notices_changes: when other shares of the rows come from the inputs than did, whoever sleeps looks again.

    Invariant: constraints that are of use only where a side is a key are watched while it is one.
    """

    def __init__(
        self, join: KMonJoin, sources: Sequence[Source], monitors: Monitors, notices_changes: bool = True
    ) -> None:
        schemas = self._schemas = [queue.schema for queue in join.inputs]
        edges = self._edges = tuple(join.edges)
        self._monitors, self._user = monitors, join
        self._windows = [(w.clock == RANGE, w.length) if w.clock in (RANGE, ROWS) else None for w in join.windows]
        changing = [i for i, w in enumerate(join.windows) if w.clock == CHANGES]
        self._is_exact = not join.is_lossy
        self.declared: list[bool] = join.rows.sides["unique"].astype(bool).tolist()
        self._ends = [(edge.ends[k], tuple(pair[k] for pair in edge.columns)) for edge in self._edges for k in (0, 1)]
        self._instants: dict[int, ArrivalInstants] = {}
        n = len(schemas)
        self._next = [0] * n
        """The number of each input's next row."""
        self._wake = [0] * n
        """Of each input, the number from which on its rows are looked at again by somebody who sleeps."""
        self._awake: list[_Watched] = []
        self._said: list[tuple[int, bool]] = []
        """Of those awake, when they wanted to sleep, and whether k was of no use or 0, when that was last looked at."""
        self._marked: set[int] = set()
        """The inputs whose instants are marked."""
        self._unmarked: list[int] = []
        """Those of which rows are counted only: `_left_out` so many since that was last noted."""
        self._left_out = [0] * n
        self._journals = [Journal() for _ in schemas]
        self._shown: list[tuple[int, ...] | None] = [None] * n
        """Of each input, the columns that are looked at; None: its rows are not."""
        self._are_marked_always = False
        self._rates = _Rates(len(schemas))
        self._shares, self._notices = Usual(SHARES, 1), notices_changes
        self._waits = [inf] * (2 * len(edges))
        """By side: the arrivals of the child for which a parent waits in vain, at most."""
        stands_for = [s.stream or f"input {i + 1} of join {next(_derived)}" for i, s in enumerate(sources)]
        self._attributes: list[tuple[str, tuple[str, ...]]] = []
        """Of each side: the name of its stream, and of its columns."""
        for s in range(2 * len(edges)):
            i, columns = self._end(s)
            self._attributes.append((stands_for[i], tuple(sources[i].attributes[c] for c in columns)))
        self._is_watched = [not any(i in changing for i in edge.ends) for edge in self._edges for _ in (0, 1)]
        """Of each side, whether anything of its join is."""
        self._refuted: set[int] = set()
        """The sides of declared keys that are none, where nobody watches."""
        self._keys = {
            s: self._watch(s ^ 1, KConstraint(Kind.KEY, *mine))
            for s, mine in enumerate(self._attributes)
            if self._is_watched[s]
        }
        self._judged: set[int] = set()
        """The sides of which a monitor says whether they are keys. (To ask for its protocol each time is slow.)"""
        for s, each in self._keys.items():
            if isinstance(each.monitor, KeyMonitor):
                self._judged.add(s)
                if self.declared[s]:
                    each.monitor.declare()
        self._dependent: list[_Watched] = []
        self._known: list[bool] | None = None
        self.take_keys(self.keys())

    @property
    def watched(self) -> list[_Watched]:
        """All that is watched now."""
        return [*self._keys.values(), *self._dependent]

    def keys(self, forced: Callable[[KConstraint], int | None] | None = None) -> list[bool]:
        self.tell()
        return [self._is_key(s, forced) for s in range(len(self._ends))]

    def _is_key(self, s: int, forced: Callable[[KConstraint], int | None] | None) -> bool:
        each = self._keys.get(s)
        if each is None:
            return self.declared[s] and s not in self._refuted
        if forced is not None:
            return forced(each.constraint) is not None
        return each.monitor.k is not None if s in self._judged else self.declared[s]

    def take_keys(self, keys: Sequence[bool]) -> None:
        if self._known == list(keys):
            return
        before, self._known = self._dependent, list(keys)
        sides = range(len(keys))
        self._dependent = [self._watch(s, c) for s in sides for c in self._useful(s, keys)]
        children = {self._end(s)[0] for s in sides if keys[s] and self._is_watched[s]}
        self._instants = {i: self._instants.get(i) or ArrivalInstants() for i in sorted(children)}
        kept = {each.constraint for each in self._dependent if not isinstance(each.monitor, OfKey)}
        for each in before:
            if each.constraint not in kept:
                self._monitors.leave(each.constraint, self._user)
        # A constraint may close several sides, and is told once.
        self._told = list({id(each.monitor): each for each in self.watched}.values())
        self._look()

    def _watch(self, side: int, constraint: KConstraint) -> _Watched:
        if constraint.kind is Kind.CA and self._known is not None and self._known[side ^ 1]:
            return _Watched(side, constraint, OfKey(constraint, 0))
        monitor = self._monitors.watch(constraint, self._user)
        monitor.need(self._user, _ALL, self._is_exact)
        return _Watched(side, constraint, monitor)

    def _useful(self, s: int, keys: Sequence[bool]) -> Iterable[KConstraint]:
        """The constraints that may close a side."""
        if not self._is_watched[s]:
            return
        other = self._attributes[s ^ 1]
        is_ordered = self._is_ordered(s ^ 1)
        if keys[s ^ 1]:
            yield KConstraint(Kind.RIDS, *other, *self._attributes[s], self._windows[self._end(s)[0]])
            if is_ordered:
                yield KConstraint(Kind.OAC, *other)
        if keys[s]:
            yield KConstraint(Kind.CA, *other)
            if is_ordered and not keys[s ^ 1]:
                yield KConstraint(Kind.OAP, *other)

    def _is_ordered(self, s: int) -> bool:
        """A side is of one column, whose words have the order of its values."""
        i, columns = self._end(s)
        return len(columns) == 1 and self._schemas[i][columns[0]].type in _ORDERED

    @property
    def nbytes(self) -> int:
        """Bytes of the marks and of what has not been shown; the monitors are the connection's."""
        return sum(m.nbytes for m in self._instants.values()) + sum(j.nbytes for j in self._journals)

    def arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        """The marks; what monitors know is the connection's."""
        self.tell()
        self._note_left_out()
        return {f"instants{i}": mark.array() for i, mark in self._instants.items()}

    def restore(self, arrays: dict[str, np.ndarray[Any, Any]]) -> None:
        """Know what `arrays` gave, and nothing else."""
        for name, array in arrays.items():
            self._instants.setdefault(int(name.removeprefix("instants")), ArrivalInstants()).restore(array)

    def live_codes(self) -> tuple[Int64Array, ...]:
        """Marks are of instants, no TEXT."""
        return ()

    def register(self) -> None:
        """A copy of a join that is watched already: it asks the same monitors, and they stay as long as it does."""
        for each in self.watched:
            if not isinstance(each.monitor, OfKey):
                self._monitors.watch(each.constraint, self._user)

    def close(self) -> None:
        for each in self.watched:
            self._monitors.leave(each.constraint, self._user)

    def observe(self, part: Sequence[Batch | None], firsts: Sequence[int], is_forced: bool = False) -> None:
        if is_forced and not self._are_marked_always:
            self.tell()
            self._are_marked_always = True
            self._look()
        following, wake, is_woken = self._next, self._wake, False
        for i, batch in enumerate(part):
            if batch is not None:
                following[i] = firsts[i] + len(batch) if batch.seq is None else int(batch.seq[-1]) + 1
                is_woken |= following[i] > wake[i]
        if is_woken:
            self.tell()
            self._look()
        self._take_down(part, firsts)

    def _take_down(self, part: Sequence[Batch | None], firsts: Sequence[int]) -> None:
        """Keep what monitors are to be shown of a part, or show it."""
        journals, shown = self._journals, self._shown
        if any(
            b is not None and c is not None and len(journal) + len(b) >= MOST
            for b, c, journal in zip(part, shown, journals)
        ):
            self.tell()
            shown = self._shown
            self._count_unmarked(part)
            self._show([None if b is None or c is None else told(b, n, c) for b, n, c in zip(part, firsts, shown)])
            return
        self._count_unmarked(part)
        for i, batch in enumerate(part):
            if batch is not None and shown[i] is not None:
                journals[i].add(batch, firsts[i])

    def _count_unmarked(self, part: Sequence[Batch | None]) -> None:
        for i in self._unmarked:
            batch = part[i]
            if batch is not None:
                self._left_out[i] += len(batch)

    def _note_left_out(self) -> None:
        for i in self._unmarked:
            if i in self._instants:
                self._instants[i].skip(self._left_out[i])
            self._left_out[i] = 0

    def tell(self) -> None:
        if any(map(len, self._journals)):
            self._show([journal.take() if len(journal) else None for journal in self._journals])

    def _show(self, rows: Sequence[Told | None]) -> None:
        """Show the monitors who are awake the next rows of each input."""
        arrivals: dict[tuple[int, tuple[int, ...]], Arrivals] = {}

        def of(s: int) -> Arrivals:
            end = self._end(s)
            if end not in arrivals:
                arrivals[end] = self._arrivals(*end, rows[end[0]])
            return arrivals[end]

        for each in self._awake:
            if each.constraint.kind is Kind.RIDS:
                counted, parents = of(each.side ^ 1), of(each.side)
                if len(counted.ts) or len(parents.ts):
                    each.monitor.observe(counted, parents)
            elif rows[self._end(each.side ^ 1)[0]] is not None:
                each.monitor.observe(of(each.side ^ 1))
        for i in self._marked:
            own = rows[i]
            if own is not None:
                self._instants[i].add(own.ts)
        # Has somebody fallen asleep, or does somebody say something new?
        if [(each.monitor.asleep_until, not each.monitor.k) for each in self._awake] != self._said:
            self._look()

    def _look(self) -> None:
        """Who is awake now, and what need they be shown? The journals are empty."""
        n = len(self._schemas)
        self._note_left_out()
        self._awake = []
        wake = [NEVER] * n
        columns: list[set[int] | None] = [None] * n
        self._marked = set(self._instants) if self._are_marked_always else set()
        for each in self._told:
            i, own = self._end(each.side ^ 1)
            is_rids = each.constraint.kind is Kind.RIDS
            if is_rids and each.monitor.k:
                self._marked.add(i)
            asleep_until = each.monitor.asleep_until
            if self._next[i] <= asleep_until:
                wake[i] = min(wake[i], asleep_until)
                continue
            self._awake.append(each)
            for j, those in ((i, own), self._end(each.side)) if is_rids else ((i, own),):
                columns[j] = {*(columns[j] or ()), *those}
        for i in self._marked:
            columns[i] = columns[i] or set()
        self._unmarked = [i for i in self._instants if i not in self._marked]
        self._wake = wake
        self._said = [(each.monitor.asleep_until, not each.monitor.k) for each in self._awake]
        self._shown = [None if c is None else tuple(sorted(c)) for c in columns]
        for journal, shown in zip(self._journals, self._shown):
            journal.begin(shown or ())

    def room(self, figures: Rows[StreamFigures]) -> list[int]:
        during = [self._rates.during(record_in(StreamFigures, figures, i), i, i) for i in range(len(figures))]
        rows = [float(total) if many == inf else many for total, many in zip(figures["total"], during)]
        return [int(min(_MOST_ROOM, many / _ROOM_SHARE)) for many in rows]

    def wait_for_dead(self, side: int, figures: Rows[StreamFigures]) -> tuple[float, float]:
        parent, child = self._end(side)[0], self._end(side ^ 1)[0]
        if self._waits[side] == inf:
            return inf, 0.0
        parents = self._rates.during(record_in(StreamFigures, figures, parent), parent, parent)
        return min(parents, self._waits[side] * self._rates.of(parent, child)), self._rates.during(
            record_in(StreamFigures, figures, child), child, child
        )

    def refute(self, sides: Iterable[int]) -> None:
        closed = set(sides)
        if closed:
            self.tell()
            for each in self._dependent:
                if each.side in closed:
                    each.monitor.refuted()
            self._look()

    def refute_keys(self, sides: Iterable[int]) -> None:
        found = list(sides)
        if found:
            self.tell()
            for s in found:
                if s in self._keys:
                    self._keys[s].monitor.refuted()
                else:
                    self._refuted.add(s)
            self._look()

    def sides_closed_by(self, constraint: KConstraint) -> list[int]:
        return [each.side for each in self.watched if each.constraint == constraint]

    def _end(self, s: int) -> tuple[int, tuple[int, ...]]:
        return self._ends[s]

    def _arrivals(self, i: int, columns: tuple[int, ...], rows: Told | None) -> Arrivals:
        """The rows of an input, by these columns."""
        if rows is None:
            return Arrivals(_NONE, _NONE, _NONE)
        valid: BoolArray | None = None
        for c in columns:
            own = rows.valid[c]
            if own is not None:
                valid = own if valid is None else valid & own
        if len(columns) > 1:
            words = np.stack([rows.words[c] for c in columns], axis=1)
            return Arrivals(rows.numbers, rows.ts, hash_rows(np.ascontiguousarray(words)), valid, False)
        values = rows.words[columns[0]]
        type_ = self._schemas[i][columns[0]].type
        if type_ is Type.FLOAT:
            values = ordered_words(values)
        return Arrivals(rows.numbers, rows.ts, values, valid, type_ in _ORDERED)

    def reckon(self, figures: Rows[StreamFigures], now: int) -> bool:
        totals = figures["total"]
        if not self._rates.learn(totals, now):
            return False
        if self._notices and self._shares.change((), totals.tolist(), [int(totals.sum())] * len(totals)):
            self.tell()
            for each in self._told:
                each.monitor.notice(self._next[self._end(each.side ^ 1)[0]])
            self._look()
        needs: dict[int, float] = {}
        for each in self.watched:
            held, counted = self._end(each.side)[0], self._end(each.side ^ 1)[0]
            each.most = self._rates.during(record_in(StreamFigures, figures, held), held, counted)
            needs[id(each.monitor)] = max(needs.get(id(each.monitor), 0), each.most)
        for each in self._told:
            each.monitor.need(self._user, int(min(needs[id(each.monitor)], _ALL)), self._is_exact)
        return True

    def limits(self, counts: Int64Array, forced: Callable[[KConstraint], int | None] | None = None) -> Rows[Limit]:
        self.tell()
        limits = no_limits(len(self._edges))
        self._waits = [inf] * len(limits)
        for each in self._dependent:
            k = each.monitor.k if forced is None else forced(each.constraint)
            if k is None or (k >= each.most and forced is None):
                continue
            row = record_in(Limit, limits, each.side)
            i, columns = self._end(each.side ^ 1)
            if each.constraint.kind is Kind.RIDS:
                row.before = max(row.before, self._instants[i].before(k))
                self._waits[each.side] = min(self._waits[each.side], k)
            elif each.constraint.kind is Kind.CA:
                row.clustered = max(row.clustered, int(counts[i]) - k)
            else:
                below = each.monitor.below(k, self._next[i])
                if below is not None:
                    row.order = FLOATS if self._schemas[i][columns[0]].type is Type.FLOAT else INTEGERS
                    row.below = max(row.below, below)
                    if each.constraint.kind is Kind.OAC:
                        self._waits[each.side] = min(self._waits[each.side], k)
        return limits


class _Rates:
    """How many rows come of each of n streams, lately."""

    def __init__(self, n: int) -> None:
        self._totals: Int64Array = np.zeros(n, np.int64)
        self._now = 0
        self._arrivals: Int64Array = np.zeros(n, np.int64)
        self._ticks = 0

    def learn(self, totals: Int64Array, now: int) -> bool:
        """So many rows have come up to now; whether there were enough since the last time to tell something."""
        more = totals - self._totals
        if more.sum() < (_FEW if not self._ticks else min(_MANY, max(_FEW, int(totals.sum()) // 4))):
            return False
        self._arrivals, self._ticks = more, max(1, now - self._now)
        self._totals, self._now = totals.copy(), now
        return True

    def of(self, one: int, other: int) -> float:
        """Rows of one stream for each of another."""
        return float(self._arrivals[one]) / max(1.0, float(self._arrivals[other]))

    def during(self, figures: StreamFigures, held: int, counted: int) -> float:
        """Arrivals of one stream while a row of another is in its window, whose figures these are."""
        if figures.clock == RANGE and self._ticks:
            return float(figures.length) * float(self._arrivals[counted]) / self._ticks
        if figures.clock == ROWS and self._arrivals[held]:
            return float(figures.length) * float(self._arrivals[counted]) / float(self._arrivals[held])
        return inf


class OfKey(Unwatched):
    """Stands for the monitor of CA(0) on a key, of which each value comes once."""


_NONE: Int64Array = np.zeros(0, np.int64)


def watched_by(
    monitors: Monitors, sources: Sequence[Source], notices_changes: bool = True
) -> Callable[[KMonJoin], Watching]:
    """What makes the constraints of a new join. sources: of its inputs.  notices_changes: see `Watching`."""

    return lambda join: Watching(join, sources, monitors, notices_changes)
