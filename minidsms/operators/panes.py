"""Panes: the elements of a stream between two multiples of a slide, as one row per group.

A window with SLIDE changes at the multiples of its slide only, so what lies between two of them comes and goes
together. Where nothing but counts, sums and extremes per group is asked of such a window, a row per group and pane
stands for all of its elements.  Li et al. 2005; docs/semantics W6, W9.

Invariant: a row comes at the end of its pane, the instant at which its elements enter the window, and stands for
elements that leave it at one instant.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from minidsms.elements import MAX_INSTANT, Batch, Schema
from minidsms.machine_code.templates import Form
from minidsms.operators.operator import Description
from minidsms.operators.resuming import Resuming
from minidsms.queues import Queue
from minidsms.synopses.measure import Measure
from minidsms.synopses.pane_groups import PaneGroups


class Panes(Resuming):
    """keys: columns of the input.  measures, slide, lag: see `PaneGroups`.  detail: for EXPLAIN.
    See `operators.forms.TwoForms`.
    """

    name = "Panes"
    is_self_contained = True
    knows_rows = False

    def __init__(
        self, input_: Queue, keys: Sequence[int], measures: Sequence[Measure], slide: int, lag: int, schema: Schema,
        detail: str,
    ) -> None:  # fmt: skip
        super().__init__([input_], schema)
        self._detail = detail
        self.form: Form | None = None
        self.groups = PaneGroups(input_.schema, keys, measures, slide, lag, self.claim)

    def process(self, batches: Sequence[Batch | None], until: int) -> Iterable[Batch]:
        batch = self.groups.take(self.uncounted(batches[0]), until, None if self.form is None else self.form.code())
        return () if batch is None else (batch,)

    def wakes_at(self) -> int:
        """The end of the pane."""
        end = self.groups.end
        return MAX_INSTANT if end is None else end

    @property
    def title(self) -> str:
        return f"{self.name} {self._detail}"

    def fitting(self) -> Form | None:
        return self.groups.form()

    def take_form(self, form: Form | None) -> None:
        self.form = form

    def describe(self) -> Description:
        return Description(self.name, self._detail, {"rows": len(self.groups), "bytes": self.groups.nbytes})

    def synopses(self) -> tuple[PaneGroups, ...]:
        return (self.groups,)
