"""The Re-optimizer of forms: when compiling one pays.

The future is expected to last as long as the past, as in the rent-or-buy problem: once a form would have saved, of the
time spent until now, as much as compiling it takes, it is compiled. It is compiled by another process of a low
priority, so that a second of its time is worth PRICE of one of the query's. What is kept from before costs nothing, and
is taken at once.

A form does what the generic kernel does with fewer questions, so that one that fits is not given up: the gain measured
over one stretch, by the clock on the wall, says more of what else the machine does.

Invariant: the query waits for no compiler, but where `compilation = 'at once'` says so.
"""

from __future__ import annotations

from minidsms.machine_code.templates import Form
from minidsms.streamon.compilation.executor import FormExecutor
from minidsms.streamon.framework import Proposal

PRICE = 0.05
"""Of the compiler's time: other processors are idle more often than not."""


class FormReoptimizer:
    """executor: whose operator wants forms."""

    def __init__(self, executor: FormExecutor) -> None:
        self._executor = executor

    def propose(self) -> Proposal[Form | None] | None:
        """The fitting form, once its code is there; asks for it when that pays."""
        executor = self._executor
        form = executor.operator.fitting()
        if form is None or form is executor.plan:
            return None
        if form.code() is None:
            if form.spent_ns * form.template.gain >= form.template.compile_s * 1e9 * PRICE:
                form.compile_beside()
            return None
        return Proposal(form, "its code is there", form.template.gain)

    def adopt(self, plan: Form | None) -> None:
        """Nothing is remembered of plans."""
