"""Which rows of a join go, and when: the Executor of k-Mon (Babu 2005, sections 6.3.1 and 6.6 to 6.10).

What follows from keys and from the constraints that are watched is believed, not known: keys are declared or found, and
may be violated. So what is not needed goes to a `Spill`, and is looked for whenever a row comes that was said not to
come (`operators.k_mon.returning`); answers depend on neither. Where declared keys are trusted, what follows from them
goes for good; where loss was asked for, everything does, and is counted.

Invariant: a row that is spilled is found by each way by which no more was expected for it; a row of a result to come
that is not in memory lacks another that such a way leads to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import numpy as np

from minidsms.elements import BoolArray, Column, Int8Array, Int64Array, valid_in_all
from minidsms.joins.directed_graph import Edge, message_order
from minidsms.kernels import k_mon_reduction as reduction
from minidsms.kernels.k_mon_keys import Limit
from minidsms.kernels.k_mon_reduction import UNORDERED
from minidsms.kernels.k_mon_rows import CHANGES, DELETION, FIRST_LINK, RANGE, ROWS
from minidsms.machine_code import record_in
from minidsms.operators.k_mon.contracts import KConstraint, Watches
from minidsms.operators.k_mon.limits import NOTHING, are_any, no_limits, ordered_words
from minidsms.operators.k_mon.returning import Found, Returning, Verdicts
from minidsms.operators.k_mon.updates import Updates
from minidsms.synopses.k_mon_dead_keys import DeadKeys
from minidsms.synopses.k_mon_lost import LostKeys
from minidsms.synopses.k_mon_rows import KMonRows, key_hash


class StateReduction:
    """Lets rows of `rows` go.

    keeps_full: rows of results that hold stay, for these are found through them.  watching: the join's constraints, or
    None.  trusts_keys: what follows from declared keys goes for good.  is_lossy: everything that goes does.  unique: of
    each stream, the columns of a declared key on which the answer relies though nothing is joined by them.
    """

    def __init__(
        self, rows: KMonRows, edges: Sequence[Edge], keeps_full: bool, watching: Watches | None,
        trusts_keys: bool = False, is_lossy: bool = False, unique: dict[int, tuple[int, ...]] | None = None,
    ) -> None:  # fmt: skip
        self.rows = rows
        self.dead = DeadKeys(rows, watching is not None)
        self.watching = watching
        self.trusts_keys, self.is_lossy = trusts_keys or is_lossy, is_lossy
        self.edges = tuple(edges)
        self.sides_of = rows.sides_of
        self.declared: BoolArray = rows.sides["unique"] != 0
        """Of each side, whether its columns hold a declared key; constant."""
        self._of_changes: BoolArray = rows.figures["clock"][rows.sides["stream"]] == CHANGES
        """Of each side, whether it is one of a relation; constant."""
        self._updates = Updates(np.flatnonzero(self._of_changes).tolist())
        self.violated: set[int] = set()
        """The sides of declared keys of which two rows have been seen to agree."""
        self.doubted: set[int] = set()
        """Those of declared keys that are none as far as is watched, and are not trusted all the same."""
        self._unique = unique or {}
        self.returning = Returning(rows, self._unique)
        self.spill = self.returning.spill
        self.dropped = 0
        """Rows that went for good before they left their windows."""
        self.discarded = 0
        """Those of them that went because of a constraint that is watched."""
        windows = [None if f.clock not in (RANGE, ROWS) else f.length for f in rows.streams]
        self.lost = LostKeys([windows[int(i)] for i in rows.sides["stream"]])
        self.trouble = ""
        """Why rows that need not be in memory are there: they could not be written; "" where they could."""
        self.may_be_lost = 0
        """Rows that came for one that had been discarded: each may lack a result."""
        self.limits = no_limits(len(edges))
        self._asked = [True] * (2 * len(edges))
        """By side: whether its dead keys are of use."""
        self.may_adapt: Callable[[], bool] | None = None
        """Asked before constraints are used; None: they are."""
        self.forced: Random | None = None
        """Tests: k of every constraint is drawn anew whenever rows go."""
        self.keeps_full = keeps_full
        self._order: Int64Array = np.array(message_order(len(rows.figures), edges), np.int64)

    # ---------------------------------------------------------------------------------------------------- going

    def collect(self, until: int, needs: Sequence[int]) -> None:
        """Let go what is not needed at `until`, and make room for so many rows of each stream."""
        rows, until = self.rows, max(until, -(2**62))
        self.dead.settle()
        reduction.expire(rows.bundle, until)
        before, spilled = len(rows), self.spill.written
        self._ask(until)
        is_limited = are_any(self.limits)
        if not self.trusts_keys:
            verdicts = self._for_now(None, *self._send_messages(is_limited))
        elif (rows.sides["unique"] == self._trusted()).all():
            sent = self._send_messages(is_limited)
            verdicts = self._for_good(sent[0], sent[2])
            if is_limited:
                verdicts = self._for_now(verdicts, *sent)
        else:
            verdicts = self._for_now(self._by_trusted_keys(), *self._send_messages(is_limited))
        rows.make_room(needs, verdicts)
        self.dropped += before - len(rows) - (self.spill.written - spilled)
        self._forget(until)

    def _by_trusted_keys(self) -> Verdicts:
        """The verdicts that follow from declared keys alone, where others were found, too."""
        sides = self.rows.sides
        keys = sides["unique"].copy()
        sides["unique"] = self._trusted()
        by_keys, _, first = self._send_messages(False)
        verdicts = self._for_good(by_keys, first)
        sides["unique"] = keys
        return verdicts

    def _for_good(self, by_keys: Verdicts, first: Int64Array) -> Verdicts:
        """The verdicts that follow from trusted keys. by_keys: what each row has by each side, from first[side] on."""
        verdicts = self._judge(by_keys, first)
        self._bury_dead(verdicts)
        return verdicts

    def _for_now(
        self, for_good: Verdicts | None, by_keys: Verdicts, messages: Verdicts, first: Int64Array
    ) -> Verdicts:  # fmt: skip
        """The verdicts that follow from all that is believed; those who go only for it can be found again, or are
        counted. for_good: what goes without.  by_keys, messages, first: what each row has by each side.
        """
        verdicts = self._judge(messages, first)
        going = (self._is_held() if for_good is None else for_good == reduction.KEPT) & (verdicts != reduction.KEPT)
        is_room = self.is_lossy or self._reserve(going)
        if not is_room:
            verdicts[going] = reduction.KEPT
            going[:] = False
        elif for_good is None:
            self._bury_dead(verdicts if by_keys is messages else self._judge(by_keys, first))
        if going.any():
            self._let_go(going, messages, first)
            if self.is_lossy:
                self._bury_dead(np.where(going, verdicts, reduction.DROPPED).astype(np.uint8))
            verdicts[going] = reduction.DROPPED
        if for_good is not None:
            verdicts[for_good != reduction.KEPT] = reduction.DROPPED
        if not self.is_lossy and len(self.spill):
            for i, begin in enumerate(self.rows.begins()):
                high = self.rows.records[i].hi
                stays = np.flatnonzero(verdicts[begin : begin + high] == reduction.KEPT)
                self.returning.stay(i, stays, messages, first)
        return verdicts

    def _ask(self, until: int) -> None:
        """Which columns are keys now, and what the constraints say."""
        self.limits = no_limits(len(self.edges))
        keys: Sequence[bool] | BoolArray = self._held_keys()
        if self.watching is not None:
            forced: Callable[[KConstraint], int | None] | None = None
            if self.forced is not None:
                rng = self.forced
                drawn: dict[KConstraint, int | None] = {}

                def forced(constraint: KConstraint) -> int | None:
                    return drawn.setdefault(constraint, rng.choice((None, 0, 0, 1, 2, 5)))

            if forced is not None or self.may_adapt is None or self.may_adapt():
                found = self.watching.keys(forced)
                if self.trusts_keys:
                    found = [a or bool(b) for a, b in zip(found, keys)]
                elif forced is None:
                    self.doubted = {s for s, is_key in enumerate(found) if self.declared[s] and not is_key}
                keys = found
                self.watching.take_keys(keys)
                if self.watching.reckon(self.rows.figures, until):
                    self.rows.least_room = self.watching.room(self.rows.figures)
                self.limits = self.watching.limits(self.rows.figures["count"], forced)
        self.rows.sides["unique"] = keys
        if self.forced is None and (self.may_adapt is None or self.may_adapt()):
            self.rows.sides["unique"][self._updates.open_sides(self.spill.written)] = 0
        self._asked = [self._is_asked(s) for s in range(len(self.rows.sides))]

    def _held_keys(self) -> BoolArray:
        """The sides of declared keys that no two rows have been seen to violate."""
        held = self.declared.copy()
        held[list(self.violated)] = False
        return held

    def _trusted(self) -> BoolArray:
        """Those of them of which no row comes a second time: a relation's key comes again with every update."""
        return self._held_keys() & ~self._of_changes

    def _is_held(self) -> BoolArray:
        """Of each place for a row, whether a row stands there that is in its window."""
        held = np.zeros(int(self.rows.inputs["hi"].sum()), np.bool_)
        for i, begin in enumerate(self.rows.begins()):
            low, high = self.rows.records[i].lo, self.rows.records[i].hi
            held[begin + low : begin + high] = self.rows.are_needed(i, low, high)
        return held

    def _of_stream(self, i: int, messages: Verdicts, first: Int64Array) -> list[Verdicts]:
        """What each row of a stream has by each of its sides."""
        high = self.rows.records[i].hi
        return [messages[first[s] : first[s] + high] for s in self.sides_of[i]]

    def _send_messages(self, is_limited: bool) -> tuple[Verdicts, Verdicts, Int64Array]:
        """What each row held has by each side, by keys alone and by all; and where a side's rows begin in that."""
        rows, dead = self.rows, self.dead
        counts = rows.inputs["hi"][rows.sides["stream"]]
        first: Int64Array = np.concatenate([[0], np.cumsum(counts[:-1])]).astype(np.int64)
        by_keys: Verdicts = np.zeros(int(counts.sum()), np.uint8)
        by_all = np.zeros_like(by_keys) if is_limited else by_keys
        reduction.send_messages(
            self._order, rows.bundle, dead.bundle, self.limits, is_limited, by_keys, by_all, first
        )  # fmt: skip
        return by_keys, by_all, first

    def _judge(self, messages: Verdicts, first: Int64Array) -> Verdicts:
        """The verdict on each row held."""
        rows = self.rows
        # Where rows of the answer might be equal if a key that it relies on is none, they are told apart by results.
        keeps_full = self.keeps_full or (bool(self._unique) and bool((rows.sides["unique"][self.declared] == 0).any()))
        verdicts: Verdicts = np.zeros(int(rows.inputs["hi"].sum()), np.uint8)
        reduction.judge(rows.bundle, messages, first, keeps_full, verdicts, rows.begins())
        return verdicts

    def _reserve(self, going: BoolArray) -> bool:
        """Make room out of memory for rows that go; False: there is none, and they stay."""
        try:
            for i, begin in enumerate(self.rows.begins()):
                count = int(np.count_nonzero(going[begin : begin + self.rows.records[i].hi]))
                if count:
                    self.returning.reserve(i, count)
        except OSError as error:
            self.trouble = error.strerror or str(error)
            return False
        self.trouble = ""
        return True

    def _let_go(self, going: BoolArray, messages: Verdicts, first: Int64Array) -> None:
        """Rows go because of what is believed. messages: what they have by their sides."""
        rows = self.rows
        if self.is_lossy:
            self.discarded += int(np.count_nonzero(going))
        for i, begin in enumerate(rows.begins()):
            high = rows.records[i].hi
            at = np.flatnonzero(going[begin : begin + high])
            if not len(at):
                continue
            if not self.is_lossy:
                self.returning.put(i, at, messages, first)
                continue
            gone = rows.view(i, 0, high)[at]
            clock = gone[:, max(int(rows.figures["number"][i]), 0)]
            of = self._of_stream(i, messages, first)
            for n, s in enumerate(self.sides_of[i]):
                by = of[n][at] & (reduction.MATCH | reduction.NEW) != reduction.MATCH | reduction.NEW
                self.lost.add(s, self.returning.keys_of(i, n, gone)[by], clock[by])

    # ------------------------------------------------------------------------------------------------ coming back

    def recall(self, waiting: Sequence[int], first: int) -> Found | None:
        """Rows are about to come, at `first` the earliest; those that went and may meet them come back.

        waiting: of each stream, the slot of the first of them; some may be deletions, for which none come back. Where
        rows of results that hold are not kept, an end matters only to a result that begins and may be equal: it has the
        same root, and so it begins with a row of the key that was deleted.
        """
        if not len(self.spill) and not self.discarded:
            return None
        # Who has left its window by now meets nobody, and breaks no constraint; what leaves with it may be its equal.
        self._until = max(self._until, first - bool(self._unique))
        rows = self.rows
        if self.is_lossy:
            for i, slot in enumerate(waiting):
                for n, s in enumerate(self.sides_of[i] if slot < rows.figures["end"][i] else ()):
                    self.lost.expire(s ^ 1, self._present(int(rows.sides["stream"][s ^ 1])))
                    come = rows.view(i, slot, int(rows.figures["end"][i]))
                    if rows.figures["clock"][i] == CHANGES:
                        come = come[come[:, FIRST_LINK] != DELETION]
                    self.may_be_lost += self.lost.count(s ^ 1, self.returning.keys_of(i, n, come))
            return None
        found = self.returning.find(waiting, self._present)
        self.returning.merge(found)
        self.refute(found)
        for side, returned in found.updated.items():
            self._updates.came_back(side, returned)
        return found

    def bring_back(self) -> None:
        """All that can be found again comes back; no rows wait to be taken in."""
        self.returning.merge(self.returning.all(self._present))

    def refute(self, found: Found) -> None:
        """Tell the monitors what turned out to be wrong."""
        if self.watching is not None:
            self.watching.refute(found.broken)
            self.watching.refute_keys(found.repeated)

    def _present(self, i: int) -> int:
        """The least clock of a row in a stream's window, as far as is known."""
        figures = self.rows.streams[i]
        if figures.clock == RANGE:
            return self._until - figures.length + 1
        if figures.clock == ROWS:
            return figures.total - figures.length
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
        if not len(self.dead):
            return
        self.dead.expire(until)
        if are_any(self.limits):
            self.dead.keep([self._asked_for(t) for t in range(len(self.rows.sides))])

    def _asked_for(self, t: int) -> BoolArray:
        """Which dead keys of a side a row to come may have."""
        keys, limits = self.dead.keys_of(t), record_in(Limit, self.limits, t)
        if not (self._asked[t] and self.rows.sides["unique"][t]):
            return np.zeros(len(keys), np.bool_)
        asked: BoolArray = np.ones(len(keys), np.bool_)
        if limits.clustered != NOTHING:
            now = int(self.rows.figures["count"][self.rows.sides["stream"][t ^ 1]])
            has_begun, since = self.dead.clusters_of(t, now)
            asked = ~has_begun | (since <= now - limits.clustered)
        if limits.order != UNORDERED:
            words = keys[:, 0]
            asked &= (ordered_words(words) if limits.order == reduction.FLOATS else words) >= limits.below
        return asked

    # -------------------------------------------------------------------------------------------------- dead keys

    def _bury_dead(self, verdicts: Verdicts) -> None:
        """Remember the keys of rows that go because nothing will come of them."""
        rows = self.rows
        for i, begin in enumerate(rows.begins()):
            own = [s for s in self.dead.sides_of[i] if self._asked[s] and rows.sides["unique"][s]]
            high = rows.records[i].hi
            at = np.flatnonzero(verdicts[begin : begin + high] == reduction.DEAD) if own else ()
            if len(at):
                gone = rows.view(i, 0, high)[at]
                clock = gone[:, max(int(rows.figures["number"][i]), 0)]
                for s in own:
                    self.dead.add(s, clock, gone[:, rows.parts_of(s)])

    def _is_asked(self, s: int) -> bool:
        """Dead keys of a side are of use: those who ask have no other way to know (section 6.6.1), or would take more
        room while they wait. Of either the share is that of the children that are dead.
        """
        if not self.rows.sides["unique"][s]:
            return False
        if self.watching is None:
            return True
        waiting, present = self.watching.wait_for_dead(s ^ 1, self.rows.figures)
        row_nbytes = 8 * int(self.rows.strides[self.rows.sides["stream"][s ^ 1]])
        return waiting * row_nbytes > present * self.dead.nbytes_of_key(s)

    def bury(
        self, i: int, clock: Int64Array, columns: Callable[[int], Column], failing: BoolArray,
        signs: Int8Array | None = None,
    ) -> None:  # fmt: skip
        """Rows of an input fail its filter: remember their keys; of those that are deleted, forget them.

        columns: of all its rows, by number.
        """
        if signs is not None and (signs < 0).any():
            self._dig_up(i, columns, failing & (signs < 0))
            failing = failing & (signs > 0)
        for s in self.dead.sides_of[i]:
            if self._asked[s] and self.rows.sides["unique"][s]:
                keys, at = self._keys_of(s, columns, failing)
                if len(at):
                    self.dead.add(s, clock[at], keys)

    def _dig_up(self, i: int, columns: Callable[[int], Column], leaving: BoolArray) -> None:
        """Rows of a relation that fail its filter are deleted: whoever has their keys may wait for others."""
        for s in self.dead.sides_of[i]:
            keys, at = self._keys_of(s, columns, leaving)
            if len(at):
                self.dead.remove(s, key_hash(keys))

    def _keys_of(self, s: int, columns: Callable[[int], Column], chosen: BoolArray) -> tuple[Int64Array, Int64Array]:
        """Of the rows chosen those without NULL in the columns of a side: their words there, and which they are."""
        found = [columns(pair[s % 2]) for pair in self.edges[s // 2].columns]
        valid = valid_in_all([column.valid for column in found])
        at = np.flatnonzero(chosen if valid is None else chosen & valid)
        return np.stack([column.words()[at] for column in found], axis=1), at

    def synopses(self) -> tuple[Any, ...]:
        """What is kept of rows that have gone, and what the arrivals have told."""
        return (
            self.dead,
            *((self.lost,) if self.is_lossy else (self.spill, *self.returning.staying)),
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
        result: Verdicts = np.zeros(int(rows.inputs["hi"].sum()), np.uint8)
        reduction.classify(
            np.array(down, np.int64), rows.bundle, dead.bundle, self.limits, are_any(self.limits), result, begins
        )  # fmt: skip
        low, high = rows.records[i].lo, rows.records[i].hi
        return rows.view(i, low, high), result[begins[i] + low : begins[i] + high]
