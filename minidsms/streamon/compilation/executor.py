"""The Executor of forms: an operator that runs its generic kernel, or one compiled for what holds in its plan.

Invariant: what the operator puts out does not depend on the form (docs/semantics T5).
"""

from __future__ import annotations

from random import Random

from minidsms.machine_code.templates import Form
from minidsms.operators.forms import TwoForms

GENERIC = "generic kernel"


class FormExecutor:
    """The plan is a form, or None: the generic kernel.  measures_time: else an element costs 1."""

    def __init__(self, operator: TwoForms, measures_time: bool) -> None:
        self.operator = operator
        self.may_compile = False
        """A form whose code is not there is compiled when it is asked for."""
        self._measures_time = measures_time

    @property
    def plan(self) -> Form | None:
        return self.operator.form

    def switch(self, plan: Form | None) -> None:
        """Run it."""
        self.operator.take_form(plan)

    def is_legal(self, plan: object) -> bool:
        """The generic kernel, or the form for what holds now, if its code is there."""
        return plan is None or (isinstance(plan, Form) and plan is self.operator.fitting() and self.has_code(plan))

    def has_code(self, form: Form) -> bool:
        """It can run now."""
        if self.may_compile:
            form.compiled()
        return form.code() is not None

    def random_plan(self, rng: Random) -> Form | None:
        """Either, where there are two."""
        form = self.operator.fitting()
        return form if form is not None and self.has_code(form) and rng.random() < 0.5 else None

    def plan_text(self, plan: Form | None) -> str:
        """The form with its constants."""
        return GENERIC if plan is None else str(plan)

    def spent(self) -> tuple[float, int]:
        """Nanoseconds in the operator, or elements where time is not measured; elements."""
        counters = self.operator.counters
        elements = counters.elements_in
        return (float(counters.time_ns) if self._measures_time else float(elements)), elements
