"""When an operator's kernel is compiled for its plan and taken; the compiler itself is a stand-in here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minidsms.machine_code.templates import Form, template
from minidsms.operators.operator import Counters
from minidsms.settings import Settings
from minidsms.streamon.compilation.compilation import LOOK, Compilation
from minidsms.streamon.forcing import ForcedSwitching
from minidsms.streamon.loop import ENOUGH
from minidsms.streamon.stream_monitor import StreaMon

WIDTH = 1


class StandIn(Form):
    """A form whose code is there when the test says so."""

    def __init__(self) -> None:
        super().__init__(template("WIDTH", gain=0.5, compile_s=4.0)(lambda x: x), {"WIDTH": 3})
        self.has_code = False
        self.asked = 0

    def code(self) -> Callable[..., Any] | None:
        return (lambda: None) if self.has_code else None

    def compile_beside(self) -> None:
        self.asked += 1

    def compiled(self) -> Callable[..., Any]:
        self.has_code = True
        return lambda: None


class Worker:
    """An operator with two forms, of which an element takes as long as the test says."""

    title = "Worker"

    def __init__(self) -> None:
        self.counters = Counters()
        self.form: Form | None = None
        self.wanted: StandIn | None = StandIn()

    def fitting(self) -> Form | None:
        return self.wanted

    def take_form(self, form: Form | None) -> None:
        self.form = form


def made(**settings: Any) -> tuple[Worker, Compilation, StreaMon]:
    streamon = StreaMon(Settings(**settings))
    worker = Worker()
    return worker, Compilation(worker, streamon), streamon


def work(worker: Worker, compilation: Compilation, ns: int, slices: int = 1, elements: int = LOOK) -> None:
    """Slices in which an element takes so many nanoseconds."""
    for _ in range(slices):
        compilation.between(worker.counters.elements_in, worker.counters.elements_in)
        worker.counters.elements_in += elements
        worker.counters.time(ns * elements, False)


def test_a_form_is_asked_for_when_it_would_have_saved_its_price_and_taken_when_it_is_there() -> None:
    worker, compilation, streamon = made()
    assert worker.wanted is not None
    work(worker, compilation, 100, 10)
    assert worker.wanted.asked == 0 and worker.form is None
    work(worker, compilation, 10_000, 10)
    assert worker.wanted.asked > 0 and worker.form is None
    assert compilation.describe()[0].startswith("generic kernel; one compiled for this plan")
    worker.wanted.has_code = True
    work(worker, compilation, 100)
    assert worker.form is worker.wanted
    assert compilation.describe() == ("compiled: <lambda> (width 3)",)
    (decision,) = streamon.plan_log
    assert (decision.technique, decision.old_plan, decision.new_plan) == (
        "compilation", "generic kernel", "<lambda> (width 3)",
    )  # fmt: skip
    assert decision.expected_gain == 0.5 and decision.statistics["wanted_ms"] > 400


def test_what_is_kept_from_before_is_taken_after_the_first_elements() -> None:
    worker, compilation, _ = made()
    assert worker.wanted is not None
    worker.wanted.has_code = True
    work(worker, compilation, 10, 2, elements=LOOK - 1)
    assert worker.form is None
    work(worker, compilation, 10)
    assert worker.form is worker.wanted


def test_what_is_kept_takes_the_first_slice_too_where_it_is_large() -> None:
    for coming in (LOOK - 1, LOOK):
        worker, compilation, _ = made()
        assert worker.wanted is not None
        worker.wanted.has_code = True
        compilation.between(0, 0, coming)
        assert worker.form is (worker.wanted if coming == LOOK else None)


def test_where_time_is_not_measured_nothing_is_compiled_unasked() -> None:
    worker, compilation, _ = made(cost_model="fixed")
    assert worker.wanted is not None
    worker.wanted.has_code = True
    work(worker, compilation, 10_000, 20)
    assert worker.form is None and worker.wanted.asked == 0


def test_the_gain_is_measured_and_a_busy_stretch_changes_no_plan() -> None:
    worker, compilation, streamon = made()
    assert worker.wanted is not None
    work(worker, compilation, 100, 4)
    worker.wanted.has_code = True
    work(worker, compilation, 300, 2 * ENOUGH // LOOK + 20)
    (decision,) = streamon.plan_log
    assert decision.measured_gain is not None and decision.measured_gain < -1
    assert worker.form is worker.wanted


def test_settings_hold_at_the_next_look() -> None:
    worker, compilation, streamon = made(compilation="at once")
    assert worker.wanted is not None
    work(worker, compilation, 10)
    assert worker.form is worker.wanted and not worker.wanted.asked
    streamon.settings.set("compilation", "off")  # type: ignore[attr-defined]
    work(worker, compilation, 10, 2 + 65_536 // LOOK)
    assert worker.form is None


def test_an_operator_that_has_gone_back_is_asked_before_its_next_slice() -> None:
    worker, compilation, _ = made(compilation="at once")
    work(worker, compilation, 10)
    worker.form, worker.wanted = None, StandIn()
    work(worker, compilation, 10, elements=1)
    assert worker.form is worker.wanted


def test_plans_that_may_not_change_stay() -> None:
    worker, compilation, _ = made(adaptive="off")
    assert worker.wanted is not None
    worker.wanted.has_code = True
    work(worker, compilation, 10, 4)
    assert worker.form is None


def test_forced_switching_takes_either_form() -> None:
    worker, compilation, streamon = made(compilation="at once")
    streamon.forcing = ForcedSwitching(1)
    seen = []
    for _ in range(20):
        work(worker, compilation, 10, elements=1)
        seen.append(worker.form)
    assert {form is None for form in seen} == {True, False}
    assert all(decision.reason == "forced" for decision in streamon.plan_log)
