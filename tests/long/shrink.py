"""Smaller feeds that still show a difference: steps are left out, then rows, as long as the case goes on failing."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from minidsms.testing.feeds import Push, Step
from minidsms.testing.generators import Case, with_feed


def shrink(case: Case, still_fails: Callable[[Case], bool], attempts: int = 300) -> Case:
    """A case with a smaller feed for which `still_fails`; tries at most `attempts` candidates."""
    smaller = True
    while smaller and attempts > 0:
        smaller = False
        for feed in _smaller(case.feed):
            attempts -= 1
            candidate = with_feed(case, feed)
            if still_fails(candidate):
                case, smaller = candidate, True
                break
            if attempts <= 0:
                break
    return case


def _smaller(feed: tuple[Step, ...]) -> Iterator[tuple[Step, ...]]:
    """Feeds with one step or one row less, large pieces first; the last heartbeat stays."""
    size = (len(feed) - 1) // 2
    while size > 0:
        for start in range(0, len(feed) - 1, size):
            yield feed[:start] + feed[min(start + size, len(feed) - 1) :]
        size //= 2
    for i, step in enumerate(feed):
        if isinstance(step, Push) and len(step.rows) > 1:
            for j in range(len(step.rows)):
                fewer = Push(step.name, step.rows[:j] + step.rows[j + 1 :])
                yield (*feed[:i], fewer, *feed[i + 1 :])
