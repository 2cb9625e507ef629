"""Aggregates over a window with SLIDE, by panes: elements that come and go together are aggregated before they enter.

`Aggregate(Window(stream))` becomes `Aggregate(Window(Panes(stream)))`, where an element of the new window stands for
those of one group between two multiples of the slide. It is done where the window's length is a multiple of its slide,
the keys and arguments are columns of the stream, and COUNT, SUM, AVG, MIN and MAX of whole numbers (MIN and MAX also of
other values that are not codes) are all that is asked: their results follow from those of the parts, exactly.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from minidsms.cql import bound
from minidsms.cql.bound import Expr, Node, WindowSpec
from minidsms.elements import Field, Schema, Type
from minidsms.plan.logical import Panes
from minidsms.synopses.measure import MOST_COLUMNS, Measure

if TYPE_CHECKING:
    from minidsms.operators.aggregate import AggregateSpec


@dataclass(frozen=True)
class ByPanes:
    """What takes the place of an aggregate's input, and of its calls; its keys are the first columns."""

    input: Node
    calls: tuple[AggregateSpec, ...]


def by_panes(node: Node, exprs: Sequence[Expr], keys: int, calls: Sequence[AggregateSpec]) -> ByPanes | None:
    """None where panes do not give the answers, or there are none.

    node: what is aggregated.  exprs: its columns as the calls number them, the keys first.
    """
    columns = _columns(exprs)
    while isinstance(node, bound.Project) and columns is not None:
        columns = _columns([node.exprs[i] for i in columns])
        node = node.input
    if columns is None or not isinstance(node, bound.Window) or not _is_of_panes(node.spec):
        return None
    wanted = [_measures(call) for call in calls]
    if not all(wanted) or max(keys, len({each for kinds in wanted for each in kinds})) > MOST_COLUMNS:
        return None
    stream = node.input
    if not len(stream.schema):
        return None
    placed = [*columns, columns[0] if columns else 0]  # the last one stands for the column of COUNT(*), any will do
    measures = list(dict.fromkeys(Measure(kind, placed[arg]) for kinds in wanted for kind, arg in kinds))
    measures.sort(key=lambda measure: measure.kind != "sum")

    def place(kind: str, arg: int) -> int:
        return keys + measures.index(Measure(kind, placed[arg]))

    fields = [Field(exprs[i].name, exprs[i].type) for i in range(keys)]  # type: ignore[attr-defined]
    fields += [Field(f"{m.kind} {stream.schema[m.column].name}", m.type_over(stream.schema)) for m in measures]
    assert node.spec.step is not None
    panes = Panes(Schema(tuple(fields)), stream, node.spec.step, node.spec.lag, tuple(columns[:keys]), tuple(measures))
    return ByPanes(
        bound.Window.of(panes, node.spec, node.name),
        tuple(_over_panes(call, [place(*each) for each in kinds]) for call, kinds in zip(calls, wanted)),
    )


def _columns(exprs: Sequence[Expr]) -> list[int] | None:
    columns = [e.index for e in exprs if isinstance(e, bound.ColumnRef)]
    return columns if len(columns) == len(exprs) else None


def _is_of_panes(spec: WindowSpec) -> bool:
    return spec.step is not None and spec.range_ is not None and spec.range_ > 0 and spec.range_ % spec.step == 0


def _measures(call: AggregateSpec) -> list[tuple[str, int]]:
    """(kind, column) of what is asked of a pane, so that the aggregate follows: the value, and how many it stands for.
    Empty where it does not.
    """
    arg, is_coded = call.arg, call.arg_type.is_coded
    if call.objects is not None:
        return []
    match call.function:
        case "count" if arg is None:
            return [("rows", -1)]
        case "min" | "max" if arg is not None and not is_coded:
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
