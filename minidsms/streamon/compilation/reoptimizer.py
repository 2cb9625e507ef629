"""The Re-optimizer of forms: when compiling one pays.

The future is expected to last as long as the past, as in the rent-or-buy problem: once a form would have saved, of the
time spent until now, as much as compiling it takes, it is compiled. It is compiled by another process of a low
priority, so that a second of its time is worth PRICE of one of the query's. What is kept from before costs nothing, and
is taken at once.

Invariant: the query waits for no compiler, but where `compilation = 'at once'` says so.
"""

from __future__ import annotations

from minidsms.machine_code.templates import Form
from minidsms.streamon.bans import Bans
from minidsms.streamon.compilation.executor import FormExecutor
from minidsms.streamon.framework import Proposal

PRICE = 0.05
LEFT_ALONE = 1 << 20
"""Elements for which a form that did not pay is left alone, the first time."""


class FormReoptimizer:
    """may_ask: the second process may be asked for forms."""

    def __init__(self, executor: FormExecutor) -> None:
        self._executor = executor
        self._bans: Bans[Form] = Bans(LEFT_ALONE)

    def propose(self) -> Proposal[Form | None] | None:
        """The fitting form, once its code is there; asks for it when that pays."""
        executor = self._executor
        form = executor.operator.fitting()
        if form is None or form is executor.plan or self._bans.is_banned(form, executor.spent()[1]):
            return None
        if form.code() is None:
            if form.spent_ns * form.template.gain >= form.template.compile_s * 1e9 * PRICE:
                form.compile_beside()
            return None
        return Proposal(form, "its code is there", form.template.gain)

    def give_up(self, form: Form) -> None:
        """It was no faster, as measured: leave it alone for a while."""
        self._bans.ban(form, self._executor.spent()[1])

    def adopt(self, plan: Form | None) -> None:
        """Nothing is remembered of plans."""
