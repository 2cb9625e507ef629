"""Windows: from what stands in the brackets to ticks, rows and column positions (docs/semantics W1 to W7, W9, W11, T1).

Invariant: a spec that leaves here is one the engine can run: RANGE >= 0, ROWS, SLIDE >= 1, keys within the stream.
"""

from __future__ import annotations

from typing import assert_never

from minidsms.cql import bound, syntax
from minidsms.cql.scope import Ambiguous, Scope, ambiguous
from minidsms.cql.session import Session
from minidsms.cql.times import NotATime, duration_ticks
from minidsms.cql.window_spec import WindowKind, WindowSpec
from minidsms.elements import INT64_MAX


def bind_window(session: Session, window: syntax.Window, scope: Scope) -> WindowSpec:
    """The window over the stream whose columns the scope names."""
    match window:
        case syntax.NowWindow():
            return WindowSpec(WindowKind.RANGE, range_=0)
        case syntax.UnboundedWindow():
            return WindowSpec(WindowKind.UNBOUNDED)
        case syntax.RangeWindow(range=range_, slide=slide):
            length = ticks(session, range_)
            if slide is None:
                return WindowSpec(WindowKind.RANGE, range_=length)
            _positive(session, range_, "a window that slides")
            return WindowSpec(WindowKind.RANGE, range_=length, slide=_positive(session, slide, "SLIDE"))
        case syntax.HopWindow(length=size, step=every):
            length = _positive(session, size, "a window that moves in steps")
            step_length = length if every is None else _positive(session, every, "EVERY")
            return WindowSpec(WindowKind.HOP, range_=length, slide=step_length)
        case syntax.RowsWindow(rows=rows, slide=step):
            _at_least_one(session, rows, "ROWS", window)
            if step is not None:
                _at_least_one(session, step, "SLIDE", window)
            return WindowSpec(WindowKind.ROWS, rows=rows, slide=step)
        case syntax.SessionWindow(gap=gap, keys=keys):
            positions = tuple(_key(session, key, scope) for key in keys)
            return WindowSpec(WindowKind.SESSION, range_=_positive(session, gap, "the gap"), keys=positions)
        case syntax.PartitionWindow(keys=keys, rows=rows, range=span, slide=step):
            if step is not None:
                raise session.error(
                    "a PARTITION window does not slide", step.span, "", "leave SLIDE out, or use [RANGE .. SLIDE ..]"
                )
            _at_least_one(session, rows, "ROWS", window)
            length_or_none = None if span is None else ticks(session, span)
            positions = tuple(_key(session, key, scope) for key in keys)
            return WindowSpec(WindowKind.PARTITION, range_=length_or_none, rows=rows, keys=positions)
        case _:
            assert_never(window)


def ticks(session: Session, duration: syntax.Duration) -> int:
    """A duration's ticks, never negative."""
    try:
        length = duration_ticks(duration.number, duration.unit, session.catalog.tick_ns)
    except NotATime as problem:
        raise session.error(str(problem), duration.span, hint=problem.hint) from None
    if length < 0:
        raise session.error("a length of time cannot be negative", duration.span)
    return length


def _positive(session: Session, duration: syntax.Duration, what: str) -> int:
    length = ticks(session, duration)
    if length < 1:
        raise session.error(f"{what} must be at least one tick", duration.span)
    return length


def _at_least_one(session: Session, count: int, word: str, window: syntax.Window) -> None:
    if count < 1:
        raise session.error(
            f"{word} must be at least 1", window.span, "", "[NOW] holds the rows of the present instant"
        )
    if count > INT64_MAX:
        raise session.error(f"{word} {count} is too large", window.span, "", "use [ROWS UNBOUNDED] to keep every row")


def _key(session: Session, key: syntax.Name, scope: Scope) -> int:
    qualifier = key.qualifier
    if qualifier is not None and scope.table(qualifier) is None and not any(t.declared for t in scope.tables):
        # NEXMark's query 6 names the key of a derived stream by the table it came from, one query further in.
        qualifier = None
    try:
        found = scope.find(key.name, qualifier)
    except Ambiguous as problem:
        raise ambiguous(key.name, problem.tables, session.text, key.span) from None
    if found is None:
        raise scope.unknown(key.name, key.qualifier, session.text, key.span)
    assert isinstance(found, bound.ColumnRef), "the columns of one stream are positions"
    return found.index
