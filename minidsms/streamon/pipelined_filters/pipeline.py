"""One pipeline of commutative filters with its Executor, Profiler and Re-optimizer. Babu 2005, figures 3.2 and 4.10.

Adapting begins when it can pay: its algorithms are compiled, and loading them takes some 20 ms, as long as many small
queries run altogether. Until then, and for a single filter, the order is the one written. When it begins depends on
tuples and time alone: it is the same where kernels are kept and where they must be compiled.
"""

from __future__ import annotations

from collections.abc import Sequence

from minidsms.elements import BoolArray, Int64Array
from minidsms.expressions.attributes import Attributes
from minidsms.expressions.filters import TupleFilter
from minidsms.expressions.routes import FilterPlan, Order, Routes, usual_order
from minidsms.expressions.value import Frame
from minidsms.streamon.content_routing.content_learns import ContentLearns
from minidsms.streamon.content_routing.learning import LearnedReoptimizer, LearningProfiler
from minidsms.streamon.content_routing.reoptimizer import RoutedReoptimizer
from minidsms.streamon.content_routing.sample import Sample
from minidsms.streamon.contracts import DrawsOrders, Evaluate, OrderingAlgorithm
from minidsms.streamon.filter_ordering.static import Static
from minidsms.streamon.loop import Budget, Loop
from minidsms.streamon.pipelined_filters.algorithms import OrderingOptions, check_size
from minidsms.streamon.pipelined_filters.change_watch import ChangeWatch
from minidsms.streamon.pipelined_filters.costs import FilterCosts
from minidsms.streamon.pipelined_filters.drawing import run_drawn
from minidsms.streamon.pipelined_filters.executor import FilterExecutor
from minidsms.streamon.pipelined_filters.profiler import FilterProfiler
from minidsms.streamon.pipelined_filters.reoptimizer import OrderReoptimizer
from minidsms.streamon.pipelined_filters.sampling import SamplingSchedule
from minidsms.streamon.stream_monitor import StreaMon

BUDGET = Budget(worth_ns=50_000_000, urgent=0.02)
"""Where filters are dear, few tuples are enough."""
NOTICED_NS = 1_000_000
"""Spent in the filters between two looks at what execution counts: a look takes up to some 20 us."""
SAMPLED = 4096
"""Tuples that tell of classes."""
BURST = 2048
"""Of them, what is profiled at once where routing may pay."""


class FilterPipeline:
    """filters: those that may be evaluated in any order among each other.  first: filters of the condition before.
    attributes: of the tuples, None where they are never routed.
    """

    def __init__(
        self,
        filters: Sequence[TupleFilter],
        operator: str,
        streamon: StreaMon,
        first: int = 0,
        attributes: Attributes | None = None,
    ) -> None:
        self._options = OrderingOptions.of(streamon.settings)
        check_size(self._options.algorithm, len(filters))
        self._attributes = None if self._options.routing.mode == "off" else attributes
        self.executor = FilterExecutor(
            filters,
            self._options.measures_time,
            first,
            self._attributes,
            lambda: streamon.settings["threads"],
        )
        self._costs = FilterCosts(filters, self._options.measures_time)
        static = Static(len(filters))
        self.adaptation: Loop[FilterPlan] = Loop(
            "filter ordering",
            operator,
            self.executor,
            FilterProfiler(filters, static, self._costs),
            OrderReoptimizer("static", static),
            streamon,
            BUDGET,
        )
        self._can_adapt = len(filters) > 1 and self._options.algorithm != "static"
        self._schedule: SamplingSchedule | None = None
        self._profiler: FilterProfiler | LearningProfiler | None = None
        self._routing: RoutedReoptimizer | None = None
        self._sample: Sample | None = None
        self._eddy: DrawsOrders | None = None
        self._ordering: OrderingAlgorithm | None = None
        self._watch = ChangeWatch(self._options, self.executor, static)
        self._reordered = 0
        self._order_before: Order | None = None
        self._has_asked = False
        self._noticed_ns = 0

    def looks_ahead(self, tuples: int) -> bool:
        """Whether `part_before_change` should be asked about a chunk of so many tuples."""
        return self._schedule is not None and self._watch.looks_ahead(tuples) and self.adaptation.is_free

    def part_before_change(self, frame: Frame, use_kernels: bool) -> int:
        """How many tuples of a chunk, from its first on, to run first: all, or those before a change that lies ahead.

        A change that lies behind is answered now.
        """
        at = self._watch.change_ahead(frame, use_kernels)
        if at == 0 and self._schedule is not None:
            self._answer(self._schedule)
        return at or frame.n

    def run(
        self, frame: Frame, rows: Int64Array | None, instant: int, use_kernels: bool
    ) -> tuple[Int64Array | None, Int64Array | None]:
        """As `narrow_by`, in an order that fits these tuples, as far as those before and a sample of them tell."""
        if not self._can_adapt:
            return self.executor.run(frame, rows, use_kernels)
        entering = frame.n if rows is None else len(rows)
        schedule = self._adapting(entering)
        if schedule is not None and self._profiler is not None:
            if self._routing is not None:
                self._routing.enters(entering)
            sampled = schedule.due(entering, self.adaptation.is_affordable)
            if sampled is not None:
                self._profile(frame, rows, sampled, instant, use_kernels)
        if schedule is not None and self._eddy is not None:
            result = run_drawn(self.executor, self._eddy, frame, rows, use_kernels)
        else:
            result = self.executor.run(frame, rows, use_kernels)
        self.adaptation.passed(entering, instant)
        if schedule is not None:
            self._notice(schedule, instant)
        return result

    def _profile(
        self, frame: Frame, rows: Int64Array | None, sampled: Int64Array, instant: int, use_kernels: bool
    ) -> None:
        """Profile sampled tuples, and take the order that they ask for."""
        assert self._schedule is not None and self._profiler is not None
        adaptation, schedule, watch = self.adaptation, self._schedule, self._watch
        decided_ns, order = adaptation.decided_ns, usual_order(self.executor.plan)
        with adaptation.deciding():
            self._profiler.profile(frame, rows, sampled, use_kernels, self.executor.tuples)
            has_changed = adaptation.reconsider(instant)
            schedule.profiled(has_changed)
            if watch.detectors_have_told() and not has_changed:
                schedule.hurry(watch.fresh, is_sure=True)
        if has_changed:
            self._reordered += 1
            self._order_before = order
        watch.profiled(adaptation.decided_ns - decided_ns, self._saving)
        adaptation.changes = watch.changes

    def _saving(self) -> float:
        """ns per tuple that the order saves against the one before it, as far as profile tuples tell; scaled down where
        they promise more than what is spent altogether.
        """
        executor, ordering = self.executor, self._ordering
        if ordering is None or self._order_before is None:
            return 0.0
        before, now = (ordering.expected_cost(o) for o in (self._order_before, usual_order(executor.plan)))
        if before is None or now is None or not 0 < now < before:
            return 0.0
        return (before - now) * min(1.0, executor.time_ns / max(executor.tuples, 1) / now)

    def _notice(self, schedule: SamplingSchedule, instant: int) -> None:
        """A chunk has passed: have the streams changed, is it time to look for routes?"""
        if self._options.measures_time:
            if self.executor.time_ns - self._noticed_ns < NOTICED_NS:
                return
            self._noticed_ns = self.executor.time_ns
        routing = self._routing
        if self._watch.counts_have_changed():
            self.adaptation.changes = self._watch.changes
            self._answer(schedule)
        if routing is not None and routing.seen():
            with self.adaptation.deciding():
                self.adaptation.reconsider(instant)

    def _answer(self, schedule: SamplingSchedule) -> None:
        """Execution tells that the streams have changed: profile anew, if that is not told too often."""
        if not schedule.is_deaf and self._watch.may_answer():
            schedule.hurry(self._watch.fresh)
            self._watch.answered()
            if self._routing is not None:
                self._routing.forget()
                self._has_asked = False

    def _adapting(self, entering: int) -> SamplingSchedule | None:
        """When to profile; None while nothing may change or it could not pay."""
        if not self.adaptation.is_free:
            return None
        if self._schedule is None and self.adaptation.is_worth_it(entering):
            self._begin()
        return self._schedule

    def _begin(self) -> None:
        """Take the Profiler and the Re-optimizer that the settings ask for."""
        if self._attributes is not None and self._options.routing.mode == "content":
            self._begin_learning(self._attributes)
        else:
            self._begin_ordering()

    def _begin_learning(self, attributes: Attributes) -> None:
        """Content-Learns, which orders filters by itself."""
        options, executor = self._options.routing, self.executor
        learns = ContentLearns(len(executor.filters), attributes, options)
        profiler = LearningProfiler(executor.filters, attributes, learns, lambda: executor.plan)
        self._profiler = self.adaptation.profiler = profiler
        self.adaptation.reoptimizer = LearnedReoptimizer(learns, executor.spent, executor.plan)
        self._schedule = SamplingSchedule(options.rate, True, options.sample, self._options.seed)

    def _begin_ordering(self) -> None:
        """An ordering algorithm, and routes where they pay."""
        options, filters = self._options, self.executor.filters
        algorithm = options.algorithm_over(len(filters), usual_order(self.executor.plan))
        self._ordering = algorithm
        watch = self._watch = ChangeWatch(options, self.executor, algorithm)
        ordering = OrderReoptimizer(options.algorithm, algorithm, self.executor.first, watch)
        rate = algorithm.default_rate if options.rate is None else options.rate
        burst = algorithm.default_window if options.window is None else options.window
        self._eddy = algorithm if isinstance(algorithm, DrawsOrders) else None
        if self._eddy is not None:
            rate = 0.0
        observe = None
        if self._attributes is not None and algorithm.wanted().evaluate is Evaluate.ALL:
            self._sample = Sample(len(filters), self._attributes, SAMPLED)
            self._routing = RoutedReoptimizer(
                ordering,
                self._sample,
                self._costs,
                self.executor.spent,
                options.routing.buckets,
                options.measures_time,
            )
            observe = self._observe
        self._profiler = self.adaptation.profiler = FilterProfiler(filters, algorithm, self._costs, observe, watch)
        self.adaptation.reoptimizer = self._routing or ordering
        self._schedule = SamplingSchedule(rate, options.rate is not None or not rate, burst, options.seed)

    def _observe(self, part: Frame, drops: BoolArray) -> None:
        """While conditions stay, all sampled tuples of filters that are dear enough are kept with their attributes;
        many at once at first.
        """
        assert self._routing is not None and self._sample is not None and self._schedule is not None
        if self._watch.is_calm and self._routing.is_promising(drops):
            self._sample.take(part, drops)
            if not self._has_asked:
                self._has_asked = True
                if part.n < BURST:
                    self._schedule.ask_for(BURST)

    def describe(self) -> tuple[str, ...]:
        """What tuples are routed by; then a line per filter: what it drops of what reaches it, and what it costs."""
        executor = self.executor
        plan = executor.plan
        lines = list(self._route_lines(plan)) if isinstance(plan, Routes) else []
        places = [{number: place for place, number in enumerate(part.order)} for part in executor.parts]
        for number in usual_order(plan):
            before = after = 0
            for part, places_of in zip(executor.parts, places):
                place = places_of[number]
                before, after = before + part.reached[place], after + part.reached[place + 1]
            figures = [f"drops {100 * (1 - after / before):.1f} % of {before:,}" if before else "reached by none"]
            cost = self._costs.values[number]
            if self._can_adapt and cost == cost:
                figures.append(f"{cost:.1f} ns" if self._options.measures_time else f"cost {cost:g}")
            lines.append(f"F{executor.first + number + 1} {executor.filters[number].text}   [{'; '.join(figures)}]")
        return (*lines, *(() if self._schedule is None else self._watch.describe(self._reordered)))

    def _route_lines(self, routes: Routes) -> tuple[str, ...]:
        executor = self.executor
        tuples = sum(part.reached[0] for part in executor.parts)
        shares = sorted(((part.reached[0], executor.plan_text(part.order)) for part in executor.parts), reverse=True)
        told = [f"{text} [{100 * count / tuples:.1f} %]" for count, text in shares if count]
        names = ", ".join(map(str, routes.classifiers))
        return (f"routed by {names}, {len(routes.orders)} orders: {'; '.join(told)}",)
