"""Plans that a screen can run: they show columns of the rows that pass a filter, and nothing else. docs/sharing.md."""

from __future__ import annotations

from collections.abc import Sequence

from minidsms.cql import bound
from minidsms.operators.operator import Operator
from minidsms.operators.select import Select
from minidsms.plan.logical import OwnRows, Stop
from minidsms.plan.reading import is_immediate


def filter_and_columns(root: Stop) -> tuple[bound.Filter, tuple[int, ...]] | None:
    """The filter of a plan over one stream and the columns of its rows that the plan shows; None of any other plan.

    Such a plan cannot fail, and what passes can never be taken back: ISTREAM has nothing to do. Or it is the plan of a
    family, whose last filter leaves the rows of one query.
    """
    if isinstance(root.input, OwnRows):
        assert isinstance(root.input.input, bound.Filter)
        return root.input.input, tuple(e.index for e in root.input.exprs if isinstance(e, bound.ColumnRef))
    if root.is_relation or not is_immediate(root):
        return None
    node = root.input
    columns: Sequence[int] = range(len(node.schema))
    while isinstance(node, bound.Project):
        chosen = [e.index for e in node.exprs if isinstance(e, bound.ColumnRef)]
        if len(chosen) < len(node.exprs):
            return None
        columns = [chosen[c] for c in columns]
        node = node.input
    return (node, tuple(columns)) if isinstance(node, bound.Filter) else None


def filter_of(operators: Sequence[Operator]) -> Select | None:
    """The filter of such a plan's operators: the last one."""
    selects = [operator for operator in operators if isinstance(operator, Select)]
    return selects[-1] if selects else None
