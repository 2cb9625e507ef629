"""Which rows of a join go, and how they come back: the Executor of k-Mon (Babu 2005, sections 6.3.1 and 6.6 to 6.10).

What follows from keys goes for good: no row that may come can bring it into a result. What follows only from
constraints that are watched goes to a `Spill`, and is looked for whenever a row comes that the constraints said could
not come; so answers never depend on them. Where loss was asked for it goes for good, too, and is counted.

Invariant: a row that is spilled is found by the columns of each side by which constraints, here or further on, leave it
less than keys do, or of one by which it lacks a row that would have to come. A row of a result to come that is not in
memory lacks another that such a side leads to; when that one comes, the row comes back, and with it the rows that were
spilled beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import numpy as np

from minidsms.elements import BoolArray, Column, Int64Array, Type
from minidsms.kernels import k_mon_reduction as reduction
from minidsms.kernels.hashing import hash_rows
from minidsms.kernels.k_mon_join import (
    CLOCK,
    COUNT,
    HI,
    LENGTH,
    LO,
    NUMBER,
    RANGE,
    ROWS,
    SIDE,
    SIDES_END,
    STREAM,
    STRIDE,
    TOTAL,
    UNIQUE,
)
from minidsms.kernels.k_mon_reduction import BELOW, CLUSTERED, ORDER, UNORDERED
from minidsms.streamon.k_mon.contracts import KConstraint
from minidsms.streamon.k_mon.join_graph import Edge, message_order
from minidsms.streamon.k_mon.watching import NOTHING, Watching, are_any, no_limits, ordered_words
from minidsms.synopses.k_mon_dead_keys import DeadKeys
from minidsms.synopses.k_mon_lost import LostKeys
from minidsms.synopses.k_mon_rows import KMonRows
from minidsms.synopses.k_mon_spill import Spill, stacked

Verdicts = np.ndarray[Any, np.dtype[np.uint8]]


class StateReduction:
    """Lets rows of `rows` go.

    keeps_full: rows of results that hold stay, for these are found through them.  watching: the join's constraints, or
    None.  is_lossy: what constraints let go goes for good.
    """

    def __init__(
        self, rows: KMonRows, edges: Sequence[Edge], keeps_full: bool, watching: Watching | None, is_lossy: bool
    ) -> None:
        self.rows = rows
        self.dead = DeadKeys(rows)
        self.watching = watching
        self.is_lossy = is_lossy
        self.edges = tuple(edges)
        n = len(rows.figures)
        of = [rows.of_stream[rows.figures[i, SIDE] : rows.figures[i, SIDES_END]].tolist() for i in range(n)]
        self.sides_of: list[list[int]] = of
        texts = [
            [rows.places[i][c] for c in columns if rows.schemas[i][c].type is Type.TEXT]
            for i, columns in enumerate(rows.columns)
        ]
        self.spill = Spill([len(sides) for sides in of], [max(int(a), 0) for a in rows.figures[:, NUMBER]], texts)
        self.dropped = 0
        """Rows that went for good before they left their windows."""
        self.discarded = 0
        """Those of them that went because of a constraint that is watched."""
        self.lost = LostKeys(2 * len(edges))
        self.may_be_lost = 0
        """Rows that came for one that had been discarded: each may lack a result."""
        self.limits = no_limits(len(edges))
        self.may_adapt: Callable[[], bool] | None = None
        """Asked before constraints are used; None: they are."""
        self.forced: Random | None = None
        """Tests: k of every constraint is drawn anew whenever rows go."""
        self._keeps_full = keeps_full
        self._order: Int64Array = np.array(message_order(n, edges), np.int64)

    # ---------------------------------------------------------------------------------------------------- going

    def collect(self, until: int, needs: Sequence[int]) -> None:
        """Let go what is not needed at `until`, and make room for so many rows of each stream."""
        rows, until = self.rows, max(until, -(2**62))
        reduction.expire(rows.figures, rows.cells, until)
        before = len(rows)
        self.limits = self._limits(until)
        is_limited = are_any(self.limits)
        by_keys, by_all, first = self._send_messages(is_limited)
        verdicts = self._judge(by_keys, first)
        self._bury_dead(verdicts)
        if is_limited:
            softly = self._judge(by_all, first)
            going = (softly != reduction.KEPT) & (verdicts == reduction.KEPT)
            if going.any():
                self._let_go(going, by_keys, by_all, first)
                if self.is_lossy:
                    self._bury_dead(np.where(going, softly, reduction.DROPPED).astype(np.uint8))
                verdicts[going] = reduction.DROPPED
        spilled = self.spill.written
        rows.make_room(needs, verdicts)
        self.dropped += before - len(rows) - (self.spill.written - spilled)
        self._forget(until)

    def _limits(self, until: int) -> Int64Array:
        if self.watching is None or (self.forced is None and self.may_adapt is not None and not self.may_adapt()):
            return no_limits(len(self.edges))
        forced: Callable[[KConstraint], int | None] | None = None
        if self.forced is not None:
            rng = self.forced
            drawn: dict[KConstraint, int | None] = {}

            def forced(constraint: KConstraint) -> int | None:
                return drawn.setdefault(constraint, rng.choice((None, 0, 0, 1, 2, 5)))

        self.watching.reckon(self.rows.figures, until)
        return self.watching.limits(self.rows.figures[:, COUNT], forced)

    def _send_messages(self, is_limited: bool) -> tuple[Verdicts, Verdicts, Int64Array]:
        """What each row held has by each side, by keys alone and by all; and where a side's rows begin in that."""
        rows, dead = self.rows, self.dead
        counts = rows.figures[rows.sides[:, STREAM], HI]
        first: Int64Array = np.concatenate([[0], np.cumsum(counts[:-1])]).astype(np.int64)
        by_keys: Verdicts = np.zeros(int(counts.sum()), np.uint8)
        by_all = np.zeros_like(by_keys) if is_limited else by_keys
        reduction.send_messages(
            self._order, rows.figures, rows.of_stream, rows.sides, rows.parts, rows.cells, rows.heads, dead.figures,
            dead.keys, dead.marks, dead.heads, self.limits, is_limited, by_keys, by_all, first,
        )  # fmt: skip
        return by_keys, by_all, first

    def _judge(self, messages: Verdicts, first: Int64Array) -> Verdicts:
        """The verdict on each row held."""
        rows = self.rows
        verdicts: Verdicts = np.zeros(int(rows.figures[:, HI].sum()), np.uint8)
        reduction.judge(
            rows.figures, rows.of_stream, rows.cells, messages, first, self._keeps_full, verdicts, rows.begins()
        )
        return verdicts

    def _let_go(self, going: BoolArray, by_keys: Verdicts, by_all: Verdicts, first: Int64Array) -> None:
        """Rows go because of constraints alone; by_keys, by_all: what each row has by each side."""
        rows = self.rows
        if self.is_lossy:
            self.discarded += int(np.count_nonzero(going))
        for i, begin in enumerate(rows.begins()):
            high = int(rows.figures[i, HI])
            at = np.flatnonzero(going[begin : begin + high])
            if not len(at):
                continue
            gone = rows.view(i, 0, high)[at]
            sides = self.sides_of[i]
            keys = [self._keys(s, gone) for s in sides]
            ways = _ways_back([(by_keys[first[s] + at], by_all[first[s] + at]) for s in sides])
            if self.is_lossy:
                clock = gone[:, max(int(rows.figures[i, NUMBER]), 0)]
                for n, (s, key) in enumerate(zip(sides, keys)):
                    is_way = (ways >> n) & 1 == 1
                    self.lost.add(s, key[is_way], clock[is_way])
            else:
                self.spill.put(i, gone, np.stack(keys), ways)

    def _keys(self, s: int, rows: Int64Array) -> Int64Array:
        """The hash by which rows are found by a side."""
        places = self.rows.parts_of(s)
        if len(places) == 1:
            return np.ascontiguousarray(rows[:, places[0]])
        return hash_rows(np.ascontiguousarray(rows[:, places]))

    # ------------------------------------------------------------------------------------------------ coming back

    def recall(self, columns: Sequence[Sequence[Column] | None], first: int) -> None:
        """Rows are about to come, at `first` the earliest; those that were spilled and may meet them come back.

        columns: of each input's rows, those that `rows` keeps.
        """
        if not len(self.spill) and not self.discarded:
            return
        # Who has left its window by now meets nobody, and breaks no constraint.
        self._until = max(self._until, first)
        rows = self.rows
        back: list[list[Int64Array]] = [[] for _ in self.sides_of]
        asked: list[tuple[int, Int64Array]] = []
        for i, kept in enumerate(columns):
            if kept is not None and len(kept[0]):
                for s in self.sides_of[i]:
                    edge = self.edges[s // 2]
                    words = [kept[rows.columns[i].index(pair[s % 2])].words() for pair in edge.columns]
                    keys = words[0] if len(words) == 1 else hash_rows(np.ascontiguousarray(np.stack(words, axis=1)))
                    asked.append((s, keys))
        if self.is_lossy:
            for s, keys in asked:
                self.lost.expire(s ^ 1, self._present(int(rows.sides[s ^ 1, STREAM])))
                self.may_be_lost += self.lost.count(s ^ 1, keys)
            return
        is_arrival = len(asked)
        # Twins come back, too, so that it is seen where a key is none.
        asked += [(s ^ 1, keys) for s, keys in asked if rows.sides[s, UNIQUE]]
        refuted: set[int] = set()
        while asked:
            s, keys = asked.pop(0)
            is_arrival -= 1
            t = s ^ 1
            j = int(rows.sides[t, STREAM])
            if not self.spill.held(j):
                continue
            found = self.spill.find(j, self.sides_of[j].index(t), keys, self._present(j))
            if found is not None:
                back[j].append(found)
                if is_arrival >= 0:
                    refuted.add(t)
                asked += [(u, self._keys(u, found)) for u in self.sides_of[j]]
        if any(back):
            rows.merge([None if not found else stacked(found) for found in back])
        if self.watching is not None:
            self.watching.refute(refuted)

    def _present(self, i: int) -> int:
        """The least clock of a row in a stream's window, as far as is known."""
        figures = self.rows.figures[i]
        if figures[CLOCK] == RANGE:
            return self._until - int(figures[LENGTH]) + 1
        if figures[CLOCK] == ROWS:
            return int(figures[TOTAL] - figures[LENGTH])
        return -(2**63)

    _until = -(2**62)

    def _forget(self, until: int) -> None:
        """What has left its window is of no use any more, and no dead key that nobody will ask for."""
        self._until = max(self._until, until)
        for i in range(len(self.sides_of)):
            present = self._present(i)
            self.spill.expire(i, present)
            for s in self.sides_of[i]:
                self.lost.expire(s, present)
        self.dead.expire(until)
        if are_any(self.limits):
            self.dead.keep([self._asked_for(t) for t in range(len(self.rows.sides))])

    def _asked_for(self, t: int) -> BoolArray:
        """Which dead keys of a side a row to come may have."""
        keys, limits = self.dead.keys_of(t), self.limits[t]
        if not self._is_asked(t):
            return np.zeros(len(keys), np.bool_)
        asked: BoolArray = np.ones(len(keys), np.bool_)
        if limits[CLUSTERED] != NOTHING:
            now = int(self.rows.figures[self.rows.sides[t ^ 1, STREAM], COUNT])
            has_begun, since = self.dead.clusters_of(t, now)
            asked = ~has_begun | (since <= now - int(limits[CLUSTERED]))
        if limits[ORDER] != UNORDERED:
            words = keys[:, 0]
            asked &= (ordered_words(words) if limits[ORDER] == reduction.FLOATS else words) >= limits[BELOW]
        return asked

    # -------------------------------------------------------------------------------------------------- dead keys

    def _bury_dead(self, verdicts: Verdicts) -> None:
        """Remember the keys of rows that go because nothing will come of them."""
        rows = self.rows
        for i, begin in enumerate(rows.begins()):
            own = [s for s in self.dead.sides_of[i] if self._is_asked(s)]
            high = int(rows.figures[i, HI])
            at = np.flatnonzero(verdicts[begin : begin + high] == reduction.DEAD) if own else ()
            if len(at):
                gone = rows.view(i, 0, high)[at]
                clock = gone[:, max(int(rows.figures[i, NUMBER]), 0)]
                for s in own:
                    self.dead.add(s, clock, gone[:, rows.parts_of(s)])

    def _is_asked(self, s: int) -> bool:
        """Dead keys of a side are of use: those who ask have no other way to know (section 6.6.1), or would take more
        room while they wait. Of either the share is that of the children that are dead.
        """
        if self.watching is None:
            return True
        waiting, present = self.watching.wait_for_dead(s ^ 1, self.rows.figures)
        row_nbytes = 8 * int(self.rows.figures[self.rows.sides[s ^ 1, STREAM], STRIDE])
        return waiting * row_nbytes > present * self.dead.nbytes_of_key(s)

    def bury(self, i: int, clock: Int64Array, columns: Callable[[int], Column], failing: BoolArray) -> None:
        """Rows of an input fail its filter: remember their keys. columns: of all its rows, by number."""
        for s in self.dead.sides_of[i]:
            if self._is_asked(s):
                found = [columns(pair[s % 2]) for pair in self.edges[s // 2].columns]
                known = failing.copy()
                for column in found:
                    if column.valid is not None:
                        known &= column.valid
                if known.any():
                    self.dead.add(s, clock[known], np.stack([column.words()[known] for column in found], axis=1))

    def synopses(self) -> tuple[Any, ...]:
        """What is kept of rows that have gone, and what the arrivals have told."""
        return (
            self.dead,
            self.lost if self.is_lossy else self.spill,
            *(() if self.watching is None else (self.watching,)),
        )

    def close(self) -> None:
        """Ask no monitor any more, and give up files."""
        self.spill.close()
        if self.watching is not None:
            self.watching.close()

    def components(self, down: Sequence[int], i: int) -> tuple[Int64Array, Verdicts]:
        """The rows of a stream in its window that are held, and the component of each (definition 6.3.1)."""
        rows, dead = self.rows, self.dead
        begins = rows.begins()
        result: Verdicts = np.zeros(int(rows.figures[:, HI].sum()), np.uint8)
        reduction.classify(
            np.array(down, np.int64), rows.figures, rows.sides, rows.parts, rows.cells, rows.heads, dead.figures,
            dead.keys, dead.marks, dead.heads, self.limits, are_any(self.limits), result, begins,
        )  # fmt: skip
        low, high = int(rows.figures[i, LO]), int(rows.figures[i, HI])
        return rows.view(i, low, high), result[begins[i] + low : begins[i] + high]


def _ways_back(of: Sequence[tuple[Verdicts, Verdicts]]) -> Int64Array:
    """By which of its sides each row is to be found: a mask.

    of: of each side, what the rows have by keys, and by all.  By each side by which constraints leave a row less it
    would be found in time. But if there is one where nothing stands that joins it, and by which all is lost, that one
    is enough: until a row comes there it is part of no result, and then it asks for the others by all its sides.
    """
    mask: Int64Array = np.zeros(len(of[0][0]), np.int64)
    is_enough: BoolArray = np.zeros(len(mask), np.bool_)
    for n, (more, fewer) in enumerate(of):
        is_lost = (more & reduction.MATCH != 0) & (fewer & (reduction.MATCH | reduction.STANDS) == 0) & ~is_enough
        mask[is_lost] = 1 << n
        is_enough |= is_lost
    for n, (more, fewer) in enumerate(of):
        mask |= ((more != fewer) & ~is_enough).astype(np.int64) << n
    return mask
