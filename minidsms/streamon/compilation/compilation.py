"""The form of one operator with its Executor, Profiler and Re-optimizer, asked between two slices.

`SET compilation` is asked for each time: 'off' goes back to generic kernels, 'at once' compiles before the next slice.
While nothing is decided this costs a slice three comparisons. Where costs are not measured 'auto' asks for nothing:
what is kept on the machine, and how fast it is, would decide.
"""

from __future__ import annotations

from minidsms.machine_code.templates import Form
from minidsms.operators.forms import TwoForms
from minidsms.streamon.compilation.executor import GENERIC, FormExecutor
from minidsms.streamon.compilation.profiler import FormProfiler
from minidsms.streamon.compilation.reoptimizer import FormReoptimizer
from minidsms.streamon.loop import Loop
from minidsms.streamon.stream_monitor import StreaMon

LOOK = 8_192
"""Elements between two looks while a form may come, and before the first: few are not worth loading code for."""


class Compilation:
    """adaptation: the place where the form can change."""

    def __init__(self, operator: TwoForms, streamon: StreaMon) -> None:
        self._operator = operator
        self._streamon = streamon
        self._due_at = 0
        self._passed = 0
        self._form = operator.form
        self.executor = FormExecutor(operator, streamon.settings["cost_model"] == "measured")
        self.profiler = FormProfiler(self.executor)
        self.reoptimizer = FormReoptimizer(self.executor)
        self.adaptation: Loop[Form | None] = Loop(
            "compilation", operator.title, self.executor, self.profiler, self.reoptimizer, streamon
        )

    def between(self, elements: int, instant: int, coming: int = 0) -> None:
        """Two slices.  elements: the operator has taken.  instant: up to which it has.  coming: of the next slice."""
        if elements >= self._due_at or self._operator.form is not self._form or self._streamon.forcing is not None:
            with self._streamon.deciding:
                self._look(elements, instant, coming)

    def _look(self, elements: int, instant: int, coming: int) -> None:
        loop, asked = self.adaptation, self._streamon.settings["compilation"]
        self._due_at = elements + (1 if asked == "at once" else LOOK)
        self.executor.may_compile = asked == "at once"
        loop.passed(elements - self._passed, instant)
        self._passed = elements
        if self._streamon.forcing is None and not loop.is_pinned:
            if asked == "off":
                self._take(None, "compilation = off")
            elif asked == "at once":
                form = self._operator.fitting()
                if form is not None and self.executor.has_code(form):
                    self._take(form, "compilation = at once")
                    self._due_at = elements + LOOK
            elif loop.is_free and loop.measures_time and elements + coming >= LOOK:
                self.profiler.profile()
                loop.reconsider(instant)
        self._form = self._operator.form
        if self._form is not None and not loop.is_measuring:
            self._due_at = elements + loop.rest.longer()

    def _take(self, form: Form | None, reason: str) -> None:
        if form is not self._operator.form:
            self.adaptation.take(form, reason)

    def describe(self) -> tuple[str, ...]:
        """What EXPLAIN ANALYZE tells: which form runs, or is wanted."""
        form, fitting = self._operator.form, self._operator.fitting()
        if form is not None:
            return (f"compiled: {form}",)
        if fitting is None:
            return ()
        state = (
            "being compiled"
            if fitting.is_awaited
            else "cannot be compiled"
            if fitting.has_failed
            else "not worth it yet"
        )
        return (f"{GENERIC}; one compiled for this plan: {state}",)
