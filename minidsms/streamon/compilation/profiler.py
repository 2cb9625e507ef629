"""The Profiler of forms: the time that operators spend on elements for which a form is wanted.

Every operator counts its time anyway (`operators.operator.Counters`). It is summed by form, over all queries of the
process: what many short queries want is worth as much as what one long query does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from minidsms.streamon.compilation.executor import FormExecutor


class FormProfiler:
    """Adds what the executor has spent since the last look to the form that was wanted."""

    def __init__(self, executor: FormExecutor) -> None:
        self._executor = executor
        self._seen_ns = executor.operator.counters.time_ns

    def profile(self) -> None:
        """Look at the operator's time."""
        operator = self._executor.operator
        spent, form = operator.counters.time_ns, operator.fitting()
        if form is not None:
            form.spent_ns += spent - self._seen_ns
        self._seen_ns = spent

    def statistics(self) -> Mapping[str, Any]:
        """Milliseconds spent in the operator, and by all for which the form is wanted."""
        operator = self._executor.operator
        form = operator.fitting()
        known = {"operator_ms": operator.counters.time_ns // 1_000_000}
        return known if form is None else {**known, "wanted_ms": form.spent_ns // 1_000_000}
