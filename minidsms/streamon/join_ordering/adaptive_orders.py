"""The orders of one MJoin's pipelines with their Executor, Profiler and Re-optimizer. Babu 2005, section 5.5.6.

Adapting begins when it can pay: two inputs have one order, and the algorithms are compiled, so that loading them takes
as long as many small queries run altogether. Only pipelines with several legal orders are profiled, and only where the
join graph is connected: a Cartesian product costs what it costs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from minidsms.elements import Batch
from minidsms.joins.logical_filters import LogicalFilters
from minidsms.joins.plan import Orders
from minidsms.joins.tree import flat
from minidsms.streamon.contracts import DetectsChanges
from minidsms.streamon.join_ordering.executor import OrderExecutor
from minidsms.streamon.join_ordering.profiler import JoinOrderProfiler
from minidsms.streamon.join_ordering.reoptimizer import JoinOrderReoptimizer
from minidsms.streamon.join_trees.pipelines import JoinPipelines
from minidsms.streamon.join_watch import JoinWatch
from minidsms.streamon.loop import Budget, Loop
from minidsms.streamon.pipelined_filters.algorithms import OrderingOptions, check_size
from minidsms.streamon.pipelined_filters.change_watch import FRESH, watched_by
from minidsms.streamon.pipelined_filters.sampling import SamplingSchedule

BUDGET = Budget(urgent=0.04, promised=0.03)
"""Of the time of the pipelines with a choice, 4 % more where their filters are not known yet or not any more."""
BEGIN_NS = 1_000_000
"""What the first profiles take, about: no more than is promised of the time spent joining."""
DEFAULT = "a_greedy"
MODELLED_EVERY = 8_192
"""Elements between two looks at the sizes of joins of inputs while conditions stay."""
LEAST_SAVED = 0.01
"""A share of what an element of the join takes that other orders must save."""


class AdaptiveOrders:
    """See `Adapting`. `watch` counts the join's elements, and asks.  pipelines: of the same join.

    filters: by input, the logical filters of the pipelines that have several legal orders.
    """

    def __init__(self, watch: JoinWatch, pipelines: JoinPipelines) -> None:
        join = watch.join
        self.due_at = 0
        self._options = OrderingOptions.of(watch.streamon.settings)
        graph = join.graph
        check_size(self._options.algorithm, graph.n - 1)
        self._join = join
        self.executor = OrderExecutor(join, join.names, watch)
        self.filters = self._pipelines()
        self.profiler = JoinOrderProfiler(graph, join.index, join.names, self.filters, {}, self._options.measures_time)
        is_modelled = pipelines.are_modelled and self._options.algorithm == DEFAULT
        self._model = pipelines if is_modelled else None
        """Where orders are of least cost by its model; else they are the algorithm's."""
        self._modelled_at: int | None = None
        """Elements when it was asked last, ..."""
        self._has_changed = False
        """... whether conditions have changed since, ..."""
        self._found_better = False
        """... and whether other orders were taken: then the next look promises to pay, too."""
        self.reoptimizer = JoinOrderReoptimizer(self._options.algorithm, join.orders, self.filters, {}, self._model)
        self.adaptation: Loop[Orders] = Loop(
            "join ordering", watch.operator, self.executor, self.profiler, self.reoptimizer, watch.streamon, BUDGET
        )
        self._can_adapt = bool(self.filters) and self._options.algorithm != "static"
        self._schedules: dict[int, SamplingSchedule] = {}
        self._told: dict[int, int] = {}
        """By input, changes that its detectors had told when they were asked last."""
        self._arrived = np.zeros(graph.n, np.int64)
        self._watch = watch

    @property
    def has_choice(self) -> bool:
        graph = self._join.graph
        return graph.n > 2

    def look(self, part: Sequence[Batch | None], instant: int) -> None:
        elements = self._watch.elements
        if self._can_adapt and self.adaptation.is_free and self._join.uses_orders:
            if self._model is not None:
                if self._modelled_at is not None or self._is_worth_it():
                    self._follow(self._model, instant)
                else:
                    self.due_at = elements + self.adaptation.rest.longer()
            elif self._schedules:
                self._adapt(part, instant)
            elif self._is_worth_it():
                self._begin()
                self.due_at = elements
            else:
                self.due_at = elements + self.adaptation.rest.longer()
        elif self._options.measures_time:
            self.due_at = elements + self.adaptation.rest.longer()

    def _is_worth_it(self) -> bool:
        return self.adaptation.is_worth_it() and self.adaptation.is_promising(self.executor.spent()[0], BEGIN_NS)

    def notice(self, shares_have_shifted: bool, work_changed_by: float) -> None:
        if work_changed_by and self._model is not None:
            self._has_changed = True
            self.due_at = 0
        elif work_changed_by and self._schedules:
            self.reoptimizer.has_noticed = True
            for i, schedule in self._schedules.items():
                if not schedule.is_deaf:
                    detecting = self._detecting(i)
                    schedule.hurry(None if detecting is None else FRESH)
                    if detecting is not None:
                        detecting.notice()
                        self._told[i] = detecting.changes
            self.adaptation.rest.wake()
            self.due_at = 0

    def _detecting(self, i: int) -> DetectsChanges | None:
        algorithm = self.reoptimizer.algorithms[i]
        return algorithm if isinstance(algorithm, DetectsChanges) else None

    def _begin(self) -> None:
        options = self._options
        orders = self._join.orders
        for i, filters in self.filters.items():
            algorithm = options.algorithm_over(len(filters.others), filters.filters(orders[i]))
            self.profiler.algorithms[i] = self.reoptimizer.algorithms[i] = algorithm
            rate = algorithm.default_rate if options.rate is None else options.rate
            burst = algorithm.default_window if options.window is None else options.window
            self._schedules[i] = SamplingSchedule(rate, options.rate is not None, burst, options.seed + i)

    def _adapt(self, part: Sequence[Batch | None], instant: int) -> None:
        """Profile what is due, and take the orders that follow."""
        arrived = [_insertions(batch) for batch in part]
        self._arrived += arrived
        with self.adaptation.deciding():
            profiled = self._profile(part, arrived)
            self.due_at = self._watch.elements
            if profiled:
                self._choose(profiled, instant)
        if profiled:
            self.adaptation.rest.wake()
            self.due_at += self._waits()
        elif self._options.measures_time and self._options.rate is None:
            self.due_at += self.adaptation.rest.longer()

    def _profile(self, part: Sequence[Batch | None], arrived: Sequence[int]) -> list[int]:
        """Ask the filters of the pipelines whose turn it is; which were."""
        profiled: list[int] = []
        share: float | None = None
        for i, schedule in self._schedules.items():
            positions = schedule.due(arrived[i], self.adaptation.is_affordable) if arrived[i] else None
            if positions is None:
                continue
            if share is None:
                if self._join.index.has_ranges:
                    # Rows that have left may still stand in the windows.
                    self._join.index.expire(max(int(batch.ts[-1]) for batch in part if batch is not None))
                share = self.profiler.recent(arrived)
            back = (positions * share).astype(np.int64)
            self.profiler.profile(i, self._join.index.windows[i].recent(back))
            profiled.append(i)
        return profiled

    def _choose(self, profiled: Sequence[int], instant: int) -> None:
        """Take the orders that the profiles ask for."""
        total = int(self._arrived.sum())
        self.reoptimizer.weights = {i: int(self._arrived[i]) / total for i in self.filters}
        self.reoptimizer.least = LEAST_SAVED * self._cost()
        before = self.executor.plan
        found = {i: self._found(i) for i in profiled}
        self.adaptation.changes += sum(found.values())
        self.reoptimizer.has_noticed |= any(found.values())
        self.adaptation.reconsider(instant)
        after = self.executor.plan
        for i in profiled:
            self._schedules[i].profiled(before[i] != after[i])
            if found[i] and before[i] == after[i]:
                self._schedules[i].hurry(FRESH, is_sure=True)

    def _follow(self, model: JoinPipelines, instant: int) -> None:
        """Take the orders of least cost, now and then, and soon where conditions have changed."""
        elements = self._watch.elements
        is_due = self._modelled_at is None or elements >= self._modelled_at + MODELLED_EVERY
        urgency, promise = float(self._has_changed), float(self._found_better)
        if (is_due or self._has_changed) and self.adaptation.is_affordable(urgency, promise):
            self._ask(model, instant)
        self.due_at = elements + (MODELLED_EVERY if self._options.measures_time else 0)

    def _ask(self, model: JoinPipelines, instant: int) -> None:
        with self.adaptation.deciding():
            if self._has_changed:
                model.forget(self._watch.arrived)
            model.measure(self._watch.arrived)
            self.reoptimizer.has_noticed |= self._has_changed
            self.reoptimizer.least = LEAST_SAVED * self._cost()
            self._found_better = self.adaptation.reconsider(instant)
        self._modelled_at, self._has_changed = self._watch.elements, False

    def return_to_pipelines(self, instant: int) -> None:
        """A tree has gone: take the orders of least cost at once, where they are known."""
        if self._model is not None and self._can_adapt and self.adaptation.is_free:
            self._ask(self._model, instant)

    def _found(self, i: int) -> int:
        """Changes that the detectors of a pipeline have told since they were asked last."""
        detecting = self._detecting(i)
        if detecting is None:
            return 0
        told, self._told[i] = self._told.get(i, 0), detecting.changes
        return detecting.changes - told

    def _waits(self) -> int:
        """Elements until profiling has taken its share at most, whatever is urgent: bursts of small parts take a look
        each, and orders save no more than what the pipelines take that have a choice. Where the rate was given,
        nothing is waited for.
        """
        return 0 if self._options.rate is not None else self.adaptation.waits(sum(self.reoptimizer.weights.values()))

    def _cost(self) -> float:
        """What an element of the join has taken so far, where time is measured."""
        units, elements = self.executor.spent()
        return units / elements if elements and self._options.measures_time else 0.0

    def _pipelines(self) -> dict[int, LogicalFilters]:
        """The logical filters of the pipelines that have several legal orders."""
        graph = self._join.graph
        if not graph.is_connected:
            return {}
        pipelines = {i: LogicalFilters(graph, i) for i in range(graph.n)}
        return {i: filters for i, filters in pipelines.items() if filters.has_choice}

    def describe(self) -> tuple[str, ...]:
        """A line per pipeline, with what its order was chosen by; by the model also what its best orders cost."""
        names, orders = self.executor.names, self._join.orders
        model = self._model.costs(is_present=True) if self._model is not None and self._model.is_measured else None
        lines = []
        for i, order in enumerate(orders):
            steps = [names[j] for j in order]
            if model is not None:
                costs = zip(steps, model.steps(i, order))
                steps = [f"{name} [{probes:,.1f} probes; {self._told_cost(cost)}]" for name, (probes, cost) in costs]
            elif i in self.reoptimizer.algorithms and self._model is None:
                steps = self._steps_with_figures(i, order)
            lines.append(f"{names[i]}: {', '.join(steps)}")
        if model is not None and self._model is not None:
            possible, tree = self._model.costs(is_present=False), flat(len(orders))
            present, best = model.of(tree, orders), possible.of(tree, possible.orders())
            lines.append(
                f"by c_d these orders take {self._told_cost(present)} an element, the best {self._told_cost(best)}"
            )
        if self._schedules:
            lines += watched_by(self._options.detection, self.adaptation.changes, None, self.adaptation.switches)
        return tuple(lines)

    def _told_cost(self, cost: float) -> str:
        """Of an element."""
        return f"{cost:,.1f} ns" if self._options.measures_time else f"cost {cost:,.1f}"

    def _steps_with_figures(self, i: int, order: Sequence[int]) -> list[str]:
        filters = self.filters[i]
        told = self.reoptimizer.algorithms[i].describe()
        costs = self.profiler.costs[i]
        texts = []
        for j in order:
            f = filters.number_of[j]
            rate = told.drop_rates[told.order.index(f)]
            figures = [] if rate is None else [f"drops {100 * rate:.1f} %"]
            if costs[f] == costs[f]:
                figures.append(f"{costs[f]:.1f} ns" if self._options.measures_time else f"cost {costs[f]:g}")
            texts.append(self.executor.names[j] + (f" [{'; '.join(figures)}]" if figures else ""))
        return texts


def _insertions(batch: Batch | None) -> int:
    if batch is None:
        return 0
    return len(batch) if batch.sign is None else int(np.count_nonzero(batch.sign > 0))
