"""What waits in a join's windows, cut at instants into stretches that several threads join side by side.

Elements of streams with ranges are linked in their order and stay linked; rows leave by a pointer. So whoever links
what comes before a stretch, and lets go what has left by then, stands where the stretch before it is going to end, and
waits for nobody. Bucket heads and positions are each one's own. Links are written by all into the same nodes, as far
as rows are still there: two threads that link a slot write the same word, and nobody follows a link that he has not
written himself.

The first stretch, the caller's, is made ready before the others are handed over: copying and making room the caller
would leave the interpreter's lock to a thread that wakes, and have it back when that one has begun to join.

Invariant: what is found stretch after stretch is what one thread finds, and the windows are then as the last one left
them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from time import thread_time_ns
from typing import TypeVar

import numpy as np

from minidsms.elements import Batch, Int32Array
from minidsms.kernels.arrivals import expire
from minidsms.kernels.join_layout import JoinInput, JoinState, Windows
from minidsms.kernels.window_index import link
from minidsms.machine_code import rows_of
from minidsms.process.side_by_side import NEWEST, side_by_side
from minidsms.synopses.window_index import WindowIndex

T = TypeVar("T")

_LINKING = 0.25
"""What linking an element takes of what joining it does, before it has been measured, ..."""
_MOST_LINKING = 0.9
""".. and the most that counts."""


class Stretch:
    """state: of its run.  elements: joined in it.  linked: before it.  linking_ns, joining_ns: what these took."""

    def __init__(self) -> None:
        self.state = JoinState()
        self.inputs = rows_of(JoinInput, 0)
        self.heads: Int32Array = np.zeros(0, np.int32)
        self.elements = self.linked = self.linking_ns = self.joining_ns = self.thread = 0
        self._firsts: Sequence[int] = ()
        self._begins = 0
        self._windows: Windows

    def lay(
        self, index: WindowIndex, state: JoinState, firsts: Sequence[int], stops: Sequence[int], begins: int
    ) -> None:
        """Stand for the slots [first, stop) of each input, which come from an instant on."""
        whole = index.bundle
        self.state, self.inputs = JoinState.from_buffer_copy(state), index.inputs.copy()
        self.state.inspected = 0
        self.inputs["stop"] = stops
        self.elements = sum(stops) - sum(firsts)
        self.linked = sum(firsts) - sum(index.inputs["hi"].tolist())
        self._firsts, self._begins = firsts, begins
        if len(self.heads) != len(whole.heads):
            self.heads = np.empty_like(whole.heads)
        if not self.linked:  # the caller's
            self.heads[:] = whole.heads
        self._windows = whole._replace(inputs=self.inputs, heads=self.heads)

    def join(self, whole: Windows, work: Callable[[Windows, JoinState], T]) -> T:
        """What `work` finds in the stretch. whole: the windows, in which nothing of the part has been joined."""
        began, windows = thread_time_ns(), self._windows
        if self.linked:
            self.heads[:] = whole.heads
            before = self.inputs["hi"].tolist()
            self.inputs["hi"] = self._firsts
            expire(windows.nodes, self.inputs, self._begins - 1)
            for i, at in enumerate(before):
                link(windows, i, at)
        linked = thread_time_ns()
        found = work(windows, self.state)
        self.linking_ns, self.joining_ns = linked - began, thread_time_ns() - linked
        self.thread = threading.get_ident()
        return found


class Stretches:
    """beside_ns: what other threads took the last time."""

    def __init__(self, index: WindowIndex, state: JoinState) -> None:
        self._index = index
        self._state = state
        self._known: list[Stretch] = []
        self._linking = _LINKING
        self.beside_ns = 0

    def join(self, stretches: Sequence[Stretch], work: Callable[[int, Windows, JoinState], T]) -> list[T]:
        """What `work` finds in each of those that have just been cut."""
        index, whole = self._index, self._index.bundle

        def join(k: int) -> T:
            return stretches[k].join(whole, lambda windows, state: work(k, windows, state))

        found = side_by_side(join, len(stretches))
        last = stretches[-1]
        index.go_on(last.inputs, last.heads)
        last.heads = whole.heads
        self._learn(stretches)
        return found

    def cut(self, part: Sequence[Batch | None], ways: int) -> list[Stretch]:
        """At most so many of the part, which waits in the windows, that take equally long: where linking takes a share
        of joining, each is shorter by that share than the one before.
        """
        index, laid, known = self._index, [], self._known
        while len(known) < ways:
            known.append(Stretch())
        firsts, stops = index.inputs["hi"].tolist(), index.inputs["stop"].tolist()
        longest = max((batch.ts for batch in part if batch is not None), key=len)
        left = 1 - self._linking
        end, size, begins = 0.0, len(longest) / sum(left**k for k in range(ways)), 0
        for k in range(ways - 1):
            end += size * left**k
            instant = int(longest[int(end)])
            ends = [
                stop if batch is None else stop - len(batch.ts) + int(batch.ts.searchsorted(instant))
                for batch, stop in zip(part, stops)
            ]
            if ends != firsts:
                laid.append((firsts, ends, begins))
                firsts, begins = ends, instant
        laid.append((firsts, stops, begins))
        for k, (stretch, each) in enumerate(zip(known, laid)):
            stretch.lay(index, self._state, *each)
            if k + 1 < len(laid):
                stretch.state.closed = laid[k + 1][2] - 1
        return known[: len(laid)]

    def _learn(self, stretches: Sequence[Stretch]) -> None:
        """Count what was done, and see what linking takes."""
        caller, inspected = threading.get_ident(), 0
        elements = linked = joining_ns = linking_ns = beside_ns = 0
        for each in stretches:
            inspected += each.state.inspected
            elements += each.elements
            joining_ns += each.joining_ns
            if each.linked:
                linked += each.linked
                linking_ns += each.linking_ns
            if each.thread != caller:
                beside_ns += each.linking_ns + each.joining_ns
        self._state.inspected += inspected
        self.beside_ns = beside_ns
        if linked and joining_ns:
            share = min(_MOST_LINKING, linking_ns * elements / (linked * joining_ns))
            self._linking += NEWEST * (share - self._linking)
