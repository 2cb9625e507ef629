"""What adapts a join is asked when it is due, told when conditions change, and left alone in between."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np

from minidsms.elements import Batch
from minidsms.streamon.join_watch import BUSY, TICK, JoinWatch
from minidsms.streamon.loop import LONGEST_REST, REST, Rest

PART = 1_024


class Asked:
    """Wants to be asked at these counts of elements, one after the other."""

    def __init__(self, *wishes: int) -> None:
        self.wishes = list(wishes)
        self.due_at = self.wishes.pop(0)
        self.looks: list[int] = []
        self.notices: list[tuple[bool, float]] = []
        self.passed: list[int] = []
        self.adaptation: Any = SimpleNamespace(
            executor=SimpleNamespace(plan="a"),
            limit=lambda elements: 3,
            passed=lambda elements, instant: self.passed.append(elements),
            changes=0,
        )
        self.watch: JoinWatch | None = None
        self.has_choice = True

    def look(self, part: Sequence[Batch | None], instant: int) -> None:
        assert self.watch is not None
        self.looks.append(self.watch.elements)
        self.due_at = self.wishes.pop(0) if self.wishes else 2**62

    def notice(self, shares_have_shifted: bool, work_changed_by: float) -> None:
        self.notices.append((shares_have_shifted, work_changed_by))

    def describe(self) -> tuple[str, ...]:
        return ()


class Join:
    """Inspects as many slots per element as it is told to."""

    names, graph = ("R", "S"), SimpleNamespace(n=2)

    def __init__(self) -> None:
        self.inspected = self.taken = 0

    def work(self) -> tuple[int, int, int, int]:
        return 0, self.inspected, self.taken, 0


def watched(*asked: Asked) -> tuple[JoinWatch, Join, Any]:
    streamon: Any = SimpleNamespace(
        forcing=None, settings={"cost_model": "fixed", "change_detection": "auto"}, deciding=nullcontext()
    )
    join = Join()
    watch = JoinWatch(join, streamon)
    for each in asked:
        each.watch = watch
        watch.add(each)
    return watch, join, streamon


def pass_by(watch: JoinWatch, join: Join, parts: int, first: int = PART // 2, inspected: int = 1) -> None:
    """Parts of so many elements, `first` of them of the first input; each inspects so many slots."""
    for _ in range(parts):
        counts = (first, PART - first)
        part = [Batch(np.zeros(n, np.int64), None, []) if n else None for n in counts]
        join.taken += PART
        join.inspected += inspected * PART
        watch.joined(part)


def test_who_rests_is_not_asked_before_it_is_due() -> None:
    first, second = Asked(3 * PART, 20 * PART), Asked(5 * PART)
    watch, join, _ = watched(first, second)
    pass_by(watch, join, 40)
    assert first.passed == [3 * PART, 17 * PART] and second.passed == [5 * PART]
    assert (first.looks, second.looks) == ([3 * PART, 20 * PART], [5 * PART])
    assert watch.elements == 40 * PART and watch.arrived == [20 * PART, 20 * PART]


def test_everybody_is_told_when_inputs_bring_other_shares() -> None:
    one = Asked(2**62)
    watch, join, _ = watched(one)
    pass_by(watch, join, 3 * TICK // PART)
    assert one.notices == []
    pass_by(watch, join, 2 * TICK // PART, first=PART // 8)
    assert one.notices == [(True, 0.0)]
    assert one.adaptation.changes == 1


def test_everybody_is_told_when_an_element_makes_other_work() -> None:
    one = Asked(2**62)
    watch, join, _ = watched(one)
    pass_by(watch, join, 12 * TICK // PART)
    assert one.notices == []
    pass_by(watch, join, 12 * TICK // PART, inspected=4)
    assert [shifted for shifted, _ in one.notices] == [False] * len(one.notices)
    assert one.notices and one.notices[0][1] > 0.5


def test_under_forced_plans_everybody_is_asked_after_every_part() -> None:
    one = Asked(2**62)
    watch, join, streamon = watched(one)
    streamon.forcing = object()
    assert watch.limit(100) == 3
    pass_by(watch, join, 4)
    assert one.looks == [PART, 2 * PART, 3 * PART, 4 * PART]


def test_parts_are_small_only_while_somebody_waits_for_them() -> None:
    one = Asked(0, PART, 2**62)
    watch, join, _ = watched(one)
    assert watch.limit(10 * BUSY) == BUSY
    pass_by(watch, join, 2)
    assert watch.limit(10 * BUSY) == 10 * BUSY
    watch.wake()
    assert watch.limit(10 * BUSY) == BUSY


def test_who_finds_nothing_rests_longer_each_time_up_to_the_longest() -> None:
    rest = Rest()
    lengths = [rest.longer() for _ in range(8)]
    assert lengths[:3] == [REST, 2 * REST, 4 * REST] and lengths[-2:] == [LONGEST_REST] * 2
    rest.wake()
    assert rest.longer() == REST
