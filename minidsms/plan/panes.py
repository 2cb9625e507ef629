"""Aggregates over a window that moves in steps, by panes: elements that come and go together are aggregated before they
enter.

`Aggregate(Window(stream))` becomes `Aggregate(Window(Panes(stream)))`, where an element of the new window stands for
those of one group between two multiples of the slide; start and end of the window may stand between (`bound.Bounds`),
and be keys. It is done where the window's length is a multiple of its slide, keys and arguments are expressions that
cannot fail, and COUNT, SUM, AVG, MIN and MAX of whole numbers (MIN and MAX also of other values that are not codes) are
all that is asked: their results follow from those of the parts, exactly.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from minidsms.cql import bound
from minidsms.cql.bound import Expr, Node
from minidsms.cql.functions import can_fail
from minidsms.cql.scalar import columns_used, substitute
from minidsms.cql.window_spec import WindowSpec
from minidsms.elements import Field, Schema, Type
from minidsms.plan.logical import Panes, projected
from minidsms.synopses.measure import MOST_COLUMNS, Measure

if TYPE_CHECKING:
    from minidsms.operators.aggregate import AggregateSpec


@dataclass(frozen=True)
class ByPanes:
    """What takes the place of an aggregate's input, keys and calls. window: the one whose place `of_panes` takes."""

    window: bound.Window
    of_panes: bound.Window
    input: Node
    keys: tuple[int, ...]
    calls: tuple[AggregateSpec, ...]


@dataclass(frozen=True)
class _Read:
    """What is read of a window: expressions over its stream.  bounds: by the place of an expression that is the
    window's start or end, which of the two; those expressions mean nothing else.
    """

    window: bound.Window
    exprs: list[Expr]
    bounds: dict[int, int]


def by_panes(node: Node, exprs: Sequence[Expr], keys: int, calls: Sequence[AggregateSpec]) -> ByPanes | None:
    """None where panes do not give the answers, or there are none.

    node: what is aggregated.  exprs: its columns as the calls number them, the keys first.
    """
    wanted = [_measures(call) for call in calls]
    read = _window_behind(node, exprs)
    if read is None or not all(wanted) or not _is_of_panes(read.window.spec):
        return None
    asked = {each for kinds in wanted for each in kinds}
    if any(arg in read.bounds for _, arg in asked) or keys + len(asked) > MOST_COLUMNS:
        return None
    source, placed = _source(read)
    own = [i for i in range(keys) if i not in read.bounds]
    measures = list(dict.fromkeys(Measure(kind, placed[arg]) for kinds in wanted for kind, arg in kinds))
    measures.sort(key=lambda measure: measure.kind != "sum")
    panes = _panes(source, read.window.spec, [placed[i] for i in own], measures)
    of_panes = bound.Window.of(panes, read.window.spec, read.window.name)
    input_: Node = of_panes
    width = len(input_.schema)
    if read.bounds:
        input_ = bound.Bounds.of(input_, read.window.spec)

    def place(kind: str, arg: int) -> int:
        return len(own) + measures.index(Measure(kind, placed[arg]))

    return ByPanes(
        read.window,
        of_panes,
        input_,
        tuple(width + read.bounds[i] if i in read.bounds else own.index(i) for i in range(keys)),
        tuple(_over_panes(call, [place(*each) for each in kinds]) for call, kinds in zip(calls, wanted)),
    )


def _window_behind(node: Node, exprs: Sequence[Expr]) -> _Read | None:
    """The window that expressions over a node read, through projections; neither they nor these can fail."""
    exprs = list(exprs)
    bounds: dict[int, int] = {}
    while not isinstance(node, bound.Window):
        match node:
            case bound.Project() if not any(map(can_fail, node.exprs)):
                of_input: list[Expr] = list(node.exprs)
            case bound.Bounds() if not bounds:
                own = len(node.input.schema)
                bounds = {
                    i: e.index - own for i, e in enumerate(exprs) if isinstance(e, bound.ColumnRef) and e.index >= own
                }
                of_input = list(bound.column_refs(node.schema))
                if any(max(columns_used(e), default=-1) >= own for i, e in enumerate(exprs) if i not in bounds):
                    return None
            case _:
                return None
        exprs = [e if i in bounds else substitute(e, of_input) for i, e in enumerate(exprs)]
        node = node.inputs[0]
    if any(can_fail(e) for i, e in enumerate(exprs) if i not in bounds):
        return None
    return _Read(node, exprs, bounds)


def _source(read: _Read) -> tuple[Node, list[int]]:
    """The stream, widened where something is computed, and the column of each expression; behind them -1 for none."""
    stream = read.window.input
    exprs = [e for i, e in enumerate(read.exprs) if i not in read.bounds]
    source = stream
    at: dict[Expr, int] = {e: e.index for e in exprs if isinstance(e, bound.ColumnRef)}
    if len(at) < len(set(exprs)):
        at = {e: i for i, e in enumerate(dict.fromkeys(exprs))}
        source = projected(stream, list(at))
    return source, [-1 if i in read.bounds else at[e] for i, e in enumerate(read.exprs)] + [-1]


def _panes(source: Node, spec: WindowSpec, keys: Sequence[int], measures: Sequence[Measure]) -> Panes:
    fields = [source.schema[key] for key in keys]
    fields += [Field(m.text(source.schema), m.type_over(source.schema)) for m in measures]
    assert spec.step is not None
    return Panes(Schema(tuple(fields)), source, spec.step, spec.lag, tuple(keys), tuple(measures))


def _is_of_panes(spec: WindowSpec) -> bool:
    """Elements come together, and leave together. (A step of one tick is an instant.)"""
    length, step = spec.range_, spec.step
    return step is not None and step > 1 and length is not None and length > 0 and length % step == 0


def _measures(call: AggregateSpec) -> list[tuple[str, int]]:
    """(kind, column) of what is asked of a pane, so that the aggregate follows: the value, and how many it stands for.
    Empty where it does not.
    """
    arg = call.arg
    if call.objects is not None:
        return []
    match call.function:
        case "count" if arg is None:
            return [("rows", -1)]
        case "min" | "max" if arg is not None and not call.arg_type.is_ranked:
            return [(call.function, arg)]
        case _ if arg is None or call.distinct:
            return []
        case "count":
            return [("count", arg)]
        case "sum" if call.arg_type is not Type.FLOAT:
            return [("sum", arg)]
        case "avg" if call.arg_type is not Type.FLOAT:
            return [("sum", arg), ("count", arg)]
    return []


def _over_panes(call: AggregateSpec, places: Sequence[int]) -> AggregateSpec:
    times = places[-1] if call.function in ("count", "avg") else None
    return dataclasses.replace(call, arg=places[0], times=times, label=str(call))
