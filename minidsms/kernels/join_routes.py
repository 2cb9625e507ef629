"""Which pipeline a row's element takes, where the rows of an input take different ones by what they say.

Pipelines 0 to n - 1 are those of the inputs; behind them stand the others that routes lead to. Any pipeline of an input
finds the same (`joins.by_pipelines`), so that routes need not be what they were when a row came.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from minidsms.kernels.join_layout import Windows
from minidsms.machine_code import Int64s, Uint8s, helper, int64


class Routes(NamedTuple):
    """pipelines: by input and place in its ring of slots.  begins: (n,) where those of an input begin, -1 where all its
    rows take its own.
    """

    pipelines: Uint8s
    begins: Int64s


@helper(inline=True)
def pipeline_of(windows: Windows, routes: Routes, i: int, slot: int) -> Any:
    """The pipeline of the row of input i in this slot."""
    begin = routes.begins[i]
    return int64(i) if begin < 0 else int64(routes.pipelines[begin + (slot & windows.inputs[i].mask)])
