"""The line below the prompt: what is declared, rates, lag, memory, feeds, watches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minidsms.counted import counted
from minidsms.shell.harmless import harmless
from minidsms.shell.instants import number

if TYPE_CHECKING:
    from minidsms.activity import Activity, QueryActivity, Rates
    from minidsms.shell.feed import Feed
    from minidsms.shell.session import Session
    from minidsms.shell.worker import Worker

LONG_S = 1.0
"""A step of the worker that takes longer is told of."""
_BAR = 16


def toolbar_parts(session: Session, activity: Activity, rates: Rates) -> list[tuple[str, str]]:
    """(kind, text) of each part, in order. kind: counts, figures, size, feed, watch, problem or hint."""
    queries = list(activity.queries.values())
    streams = len(activity.inputs)
    if not streams and not queries:
        return [("hint", ".help start: the first five minutes    .demo: something to see    .quit: leave")]
    failed = [q.name for q in queries if q.state == "failed"]
    parts = [("counts", f"{counted(streams, 'input')}  {_states(queries)}")]
    coming, going = sum(rates.inputs.values()), sum(rates.queries.values())
    parts.append(("figures", f"in {number(coming)}/s  out {number(going)}/s"))
    if queries:
        parts.append(("figures", f"lag {session.instants.length(activity.lag)}"))
    parts.append(("size", _size(activity.nbytes)))
    parts += [("feed", feed_bar(feed)) for feed in list(session.feeds)]
    if failed:
        parts.append(("problem", harmless(f"failed: {', '.join(failed)}")))
    watched = session.watches.names()
    if watched or session.plan_shown is not None:
        what = ", ".join(watched) if len(watched) < 4 else f"{len(watched)} queries"
        parts.append(("watch", harmless(f"Ctrl-C stops watching {what or 'the plan'}")))
    return parts


def with_work(worker: Worker, is_watched: bool, is_fed: bool) -> list[tuple[str, str]]:
    """The parts, and how long the present step has taken, if that is long, with what Ctrl-C does next.

    is_watched, is_fed: there is something that has not been asked to stop.
    """
    if worker.at_work_s < LONG_S:
        return worker.toolbar
    next_ = ""
    if not is_watched and (is_fed or worker.is_behind):
        next_ = f"; Ctrl-C {'stops the feed' if is_fed else 'ends the query'}"
    parts = [part for part in worker.toolbar if part[0] != "watch" or is_watched]
    return [*parts, ("problem", f"at work for {worker.at_work_s:.0f} s{next_}")]


def fitted(parts: list[tuple[str, str]], room: int) -> list[tuple[str, str]]:
    """As many of the parts as fit beside each other: what matters least goes first. One always stays."""
    kept = list(parts)
    for kind in ("hint", "size", "counts", "watch", "figures"):
        for part in [p for p in kept if p[0] == kind]:
            if len(kept) > 1 and sum(len(text) + 3 for _, text in kept) > room:
                kept.remove(part)
    return kept


def feed_bar(feed: Feed) -> str:
    """A feed's progress: name, bar, share, speed."""
    speed = "" if feed.speed is None else f" {feed.speed:g}x"
    if not feed.is_bounded:
        return harmless(f"reading {', '.join(feed.names)}{speed}")
    done = round(feed.fraction * _BAR)
    bar = "\u2588" * done + "\u2591" * (_BAR - done)
    return harmless(f"{', '.join(feed.names)} {bar} {100 * feed.fraction:.0f} %{speed}")


def _states(queries: list[QueryActivity]) -> str:
    """How many queries there are, and how many of them do not run."""
    resting = [(state, sum(q.state == state for q in queries)) for state in ("paused", "ended", "failed")]
    told = ", ".join(f"{count} {state}" for state, count in resting if count)
    return counted(len(queries), "query", "queries") + (f" ({told})" if told else "")


def _size(nbytes: int) -> str:
    size = float(nbytes)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            return f"{size:.3g} {unit}"
        size /= 1000
    return ""
