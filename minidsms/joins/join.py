"""The equi-join of two or more inputs in one operator.

What it is to put out is a `JoinSpec`; how it finds it is a `JoinPlan`, which may be changed between any two parts of
its input. All plans run over the same windows: by pipelines alone (`by_pipelines`), with caches in them (`by_caches`),
or by a tree that keeps results of inner joins (`by_tree`). Caches begin empty, subresults are filled from the windows.
NULL keys match nothing (docs/semantics R2). Babu 2005, sections 2.2.2, 3.2, 5.2 to 5.7 and 5.8.4.

Invariant: whatever plan runs, the answer is the same; between slices every window holds the rows of its relation at
`progress`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random
from time import perf_counter_ns
from typing import Any, Protocol

import numpy as np

from minidsms.cql.errors import MemoryLimitError
from minidsms.elements import MAX_INSTANT, Batch
from minidsms.expressions.attributes import Attributes
from minidsms.joins.answer import Answer
from minidsms.joins.by_caches import ByCaches, CacheOptions
from minidsms.joins.by_form import ByForm
from minidsms.joins.by_pipelines import ByPipelines
from minidsms.joins.by_tree import ByTree
from minidsms.joins.cache_plan import problem_with, random_plan
from minidsms.joins.equal_columns import Equality, equalities_text
from minidsms.joins.figures import CacheFigures, Memory
from minidsms.joins.graph import JoinGraph
from minidsms.joins.plan import CacheSpec, Index, JoinPlan, JoinRoutes, Orders, Tree
from minidsms.joins.row_routes import MOST_PIPELINES
from minidsms.joins.spec import JoinSpec
from minidsms.joins.tree import flat, is_legal, tree_text
from minidsms.kernels.access_methods.bit_addresses import Bits
from minidsms.limits.allowance import Allowance
from minidsms.machine_code.templates import Form
from minidsms.operators.operator import Description, Failure, Operator
from minidsms.process.side_by_side import Dividing, is_dividing, usable_threads
from minidsms.queues import Queue
from minidsms.synopses.indexed_window import IndexedWindow
from minidsms.synopses.synopsis import Synopsis
from minidsms.synopses.window_index import WindowIndex

_PART = 1 << 14
"""Elements of one input indexed at a time: slots that are filled, linked and left while they stand in the cache."""
_OF_FORM = 1 << 16
"""Where a form joins them, if the windows have room: what Python does beside a part counts for more than the cache."""
_DIVIDED = 1 << 15
"""For each thread, where several divide them: handing over takes as long as to join some thousand."""
LEAST_ELEMENTS = 4_096
"""That a thread is given to join: handing them over takes some 30 us."""
LEAST_ENTERING = 16_384
"""That it is given to put into windows."""


class Watch(Protocol):
    """What looks at the plan between two parts, and may change it."""

    @property
    def adapting(self) -> Sequence[Any]:
        """Each with its `adaptation` (`streamon.framework`), whether it `has_choice`, and lines to `describe` it."""

    def limit(self, elements: int) -> int:
        """How many of the elements that wait may be joined before the plan must be looked at."""

    def joined(self, part: Sequence[Batch | None], beside_ns: int) -> None:
        """A part was joined under the plan. beside_ns: what other threads took for it."""


class Reduced(Protocol):
    """An operator over the same inputs that keeps fewer rows."""

    allowance: Allowance
    failure: Failure | None

    def process(self, batches: Sequence[Batch | None], until: int) -> Iterable[Batch]:
        """As of `Operator`; so are the others."""

    def wakes_at(self) -> int:
        """When time alone gives it something to do."""

    def describe(self) -> Description:
        """Name, detail and figures."""

    def synopses(self) -> tuple[Any, ...]:
        """What it keeps."""

    def close(self) -> None:
        """End what it claims."""

    def let_go(self) -> None:
        """Lose all that it has."""


class Sparing(Protocol):
    """What may have the join keep fewer rows."""

    @property
    def adaptation(self) -> Any:
        """The place where it does (`streamon.loop`)."""

    @property
    def has_choice(self) -> bool:
        """It may."""

    def describe(self) -> tuple[str, ...]:
        """What EXPLAIN ANALYZE tells, a line each."""


class Join(Operator):
    """names: of the inputs, for plans in words.  caching: how caches are kept, where there come to be any."""

    name = "MJoin"

    def __init__(
        self, inputs: Sequence[Queue], spec: JoinSpec, names: Sequence[str] = (), caching: CacheOptions | None = None
    ) -> None:
        super().__init__(inputs, spec.schema)
        self.spec = spec
        self.name = "LeftJoin" if spec.outer else self.name
        self.names = names
        self.graph = JoinGraph(len(inputs), spec.equalities, spec.bands)
        self.index: WindowIndex = spec.windows([q.schema for q in inputs], self.graph)
        self.answer = Answer(spec, self.index, self.claim)
        self._pipelines = ByPipelines(self.graph, self.index, self.answer)
        self.cached = None if caching is None else self._with_caches(caching)
        self.kept: ByTree | None = None
        self.form: Form | None = None
        self._by_form = (
            ByForm(spec, self.graph, self.index, self.answer.state, self.claim)
            if ByForm.suits(spec, self.graph, self.index)
            else None
        )
        self._put_out = 0
        self._plan = JoinPlan(self._pipelines.orders)
        self.threads: Callable[[], int | str] = lambda: 1
        """How many may work at once, or 'auto'."""
        self._dividing = Dividing()
        self._watch: Watch | None = None
        self._reduced: Reduced | None = None
        self.sparing: Sparing | None = None

    @property
    def is_self_contained(self) -> bool:  # type: ignore[override]
        """As `Operator` says: a condition may ask the dictionary, rows that are not kept are looked for on disk."""
        return self.spec.condition is None and self._reduced is None

    @property
    def watch(self) -> Watch | None:
        """What looks at its plan; None where nothing may change."""
        return self._watch

    def watch_by(self, watch: Watch) -> None:
        """Be looked at, and have the plan changed, between two parts."""
        self._watch = watch

    # --------------------------------------------------------------------------------------------------- the plan

    @property
    def plan(self) -> JoinPlan:
        """What runs."""
        return self._plan

    @property
    def orders(self) -> Orders:
        """Of each input, the others in the order its elements visit them."""
        return self._plan.orders

    @property
    def tree(self) -> Tree:
        """The one that runs; flat where no results are kept."""
        return flat(self.graph.n) if self._plan.tree is None else self._plan.tree

    @property
    def uses_orders(self) -> bool:
        """The orders decide what is done now: no tree does."""
        return self._plan.tree is None

    @property
    def equalities(self) -> tuple[Equality, ...]:
        """Of the join, with all that follow from them."""
        return self.graph.equalities

    @property
    def ranges(self) -> Sequence[int | None] | None:
        """How long rows of each input stay, where the inputs are streams."""
        return self.spec.ranges

    @property
    def leaves_out(self) -> bool:
        """Deletions that cancel no insertion of their instant are not put out."""
        return self.spec.leaves_out

    def is_legal(self, plan: object) -> bool:
        """The join can run this plan, or these orders."""
        if self._plan.is_reduced:
            return plan == self._plan
        if not isinstance(plan, JoinPlan):
            return self.graph.is_legal(plan)  # type: ignore[arg-type]
        has_pipelines = plan.tree in (None, flat(self.graph.n))
        is_indexed = not plan.index or (has_pipelines and self.graph.is_index(plan.index, plan.orders))
        are_orders_legal = self._problem(plan) is None and is_indexed and self._are_routes(plan.routes)
        return are_orders_legal and (plan.tree is None or self.is_legal_tree(plan.tree))

    def is_legal_tree(self, tree: object) -> bool:
        """`take_tree` takes it."""
        return is_legal(tree, self.graph)

    def random_plan(self, rng: Random) -> JoinPlan:
        """Any legal plan without a tree."""
        plan = random_plan(self.graph, rng, self.spec.bags)
        return replace(plan, caches=()) if self.graph.bands else plan

    def switch(self, plan: JoinPlan) -> None:
        """Run this plan, a legal one, from the next part on. O(1), and where there is another tree O(rows + tuples of
        its subresults); MemoryLimitError or MemoryError where these do not fit, and then the plan stands.
        """
        assert self.is_legal(plan), self._problem(plan) or f"{plan.tree} is no tree in normal form of linked inputs"
        before, tree = self._plan, None if plan.tree == flat(self.graph.n) else plan.tree
        assert tree is None or not plan.caches, "a tree has no pipelines that could look caches up"
        kept = self.kept
        if tree != before.tree:
            # First: where there is no memory for its subresults the plan stands as it is.
            kept = None if tree is None else self._by_tree(tree)
        if (plan.orders, plan.index, plan.routes) != (before.orders, before.index, before.routes):
            self._pipelines.reorder(plan.orders, plan.index, plan.routes)
        if plan.caches or before.caches:
            if self.cached is None:
                self.cached = self._with_caches(CacheOptions())
            self.cached.use(plan)
        self.kept = kept
        self._plan = replace(plan, tree=tree)

    def _by_tree(self, tree: Tree) -> ByTree:
        """Filled by keys: what goes by bits goes by keys from now on, unless there is no memory."""
        plan = self._plan
        has_bits = any(isinstance(each, Bits) for each in plan.index)
        if has_bits:
            self._pipelines.reorder(plan.orders)
        try:
            return ByTree(tree, self.graph, self.index, self.answer)
        except (MemoryLimitError, MemoryError):
            if has_bits:
                self._pipelines.reorder(plan.orders, plan.index, plan.routes)
            raise

    def reorder(self, orders: Orders) -> None:
        """Let the pipelines visit the inputs in these orders, which are legal; caches they do not allow are dropped."""
        plan = replace(self._plan, orders=orders, index=self.patterns_under(orders))
        assert self.graph.is_legal(orders), f"{orders} take a Cartesian step where an input is linked, or leave one out"
        while self._problem(plan) is not None:
            plan = replace(plan, caches=plan.caches[:-1])
        self.switch(plan)

    def take_tree(self, tree: Tree) -> None:
        """Join by this tree, a legal one; caches and patterns go where subresults come."""
        plan = self._plan
        self.switch(replace(plan, tree=tree) if tree == flat(self.graph.n) else JoinPlan(plan.orders, tree=tree))

    def take_reduced(self, reduced: Reduced) -> None:
        """Have what is to come joined by this operator, which has been given the rows held (`held_rows`)."""
        self.close()
        self._reduced, self._watch, self.form, self._by_form = reduced, None, None, None
        self.cached = self.kept = None
        self._plan = JoinPlan(self._plan.orders, is_reduced=True)
        # Empty from now on: what had grown is given up.
        self.index = self.spec.windows([q.schema for q in self.inputs], self.graph)
        self.answer = Answer(self.spec, self.index, self.claim)
        self._pipelines = ByPipelines(self.graph, self.index, self.answer)

    def held_rows(self) -> list[Batch]:
        """The rows of each input, a stream with a range, that its window holds."""
        return [window.rows() for window in self.index.windows if isinstance(window, IndexedWindow)]

    def take_index(self, index: Index) -> None:
        """Index these patterns, which the orders probe."""
        self.switch(replace(self._plan, index=index))

    def migrate(self, i: int, numbers: Iterable[int]) -> None:
        """Store the rows of input i that stand under these configurations under the newest one."""
        self.index.migrate(i, numbers)
        self._pipelines.compile()

    def requests(self) -> Sequence[Mapping[int, int]]:
        """See `ByPipelines.requests`."""
        return self._pipelines.requests()

    def tell_apart_by(self, attributes: Sequence[Attributes]) -> None:
        """Of each input those of the columns its window keeps: by them `take_routes` may tell rows apart."""
        self._pipelines.rows.attributes = attributes

    def take_routes(self, routes: JoinRoutes) -> None:
        """Divide the elements of inputs by these routes, which are legal."""
        self.switch(replace(self._plan, routes=routes))

    def _are_routes(self, routes: JoinRoutes) -> bool:
        attributes = self._pipelines.rows.attributes
        inputs = [i for i, _ in routes]
        return (
            inputs == sorted(set(inputs) & set(range(len(attributes))) - self.spec.bags)
            and self.graph.n + sum(len(each.orders) for _, each in routes) <= MOST_PIPELINES
            and all(each.is_whole and all(map(attributes[i].has, each.classifiers)) for i, each in routes)
            and all(self.graph.is_order(i, order) for i, each in routes for order in each.orders)
        )

    def patterns_under(self, orders: Orders) -> Index:
        """The patterns that go on under other orders: those of now, and all that only these probe."""
        return self.graph.index_under(orders, self._plan.orders, self._plan.index)

    def _problem(self, plan: JoinPlan) -> str | None:
        if plan.caches and self.graph.bands:
            return "what a step finds by a band depends on more than the key of a cache"
        if plan.caches and any(isinstance(each, Bits) for each in plan.index):
            return "caches look rows up by keys, which inputs with bits do not have"
        return problem_with(plan, self.graph, self.spec.bags)

    def _with_caches(self, options: CacheOptions) -> ByCaches:
        return ByCaches(self.graph, self.index, self.answer, self._pipelines, self.spec.bags, options)

    @property
    def _program(self) -> ByPipelines | ByCaches | ByTree:
        if self.kept is not None:
            return self.kept
        return self.cached if self.cached is not None and self._plan.caches else self._pipelines

    # ------------------------------------------------------------------------------------------------------ forms

    @property
    def title(self) -> str:
        """As `operators.forms.TwoForms` says."""
        return f"{self.name} {', '.join(self.names)}".rstrip()

    def fitting(self) -> Form | None:
        """As `operators.forms.TwoForms` says."""
        return None if self._by_form is None else self._by_form.fitting(self._plan)

    def take_form(self, form: Form | None) -> None:
        """As `operators.forms.TwoForms` says."""
        self.form = form

    # ---------------------------------------------------------------------------------------------------- running

    def process(self, batches: Sequence[Batch | None], until: int) -> Iterable[Batch]:
        """Probe and index the batches' elements; one batch of output per full buffer of tuples."""
        if self._reduced is not None:
            yield from self._by_reduced(self._reduced, batches, until)
            return
        waits = _elements(batches)
        ways, is_tried = self._ways(waits)
        has_joined = False
        for part in self._cut(batches, waits, ways):
            has_joined = True
            waits = 0 if part is batches else waits - _elements(part)
            self.answer.state.closed = until if waits == 0 else max(int(b.ts[-1]) for b in part if b is not None)
            for rows in self._join(part, waits, ways, is_tried):
                self._put_out += len(rows.ts)
                yield rows
            if self.failure is not None:
                return
        if self._by_form is not None:
            for rows in self._by_form.flush() if self.form is not None else ():
                self._put_out += len(rows.ts)
                yield rows
            self._by_form.joined(self.counters.elements_in, self._put_out)
        if self.spec.ranges is not None:
            self.index.expire(until, has_joined)
        for window in self.index.windows:
            window.settle()
        if self.kept is not None:
            self.kept.settle(_elements(batches))

    def _cut(self, batches: Sequence[Batch | None], elements: int, ways: int) -> Iterable[Sequence[Batch | None]]:
        """The parts of a slice that are joined one after the other."""
        watch = self._watch
        each = _PART
        if ways > 1:
            each = ways * _DIVIDED
        elif elements > _PART and self.form is not None:
            each = self._of_form(batches)
        if watch is None and elements <= each:
            return (batches,)
        limit = _unlimited if watch is None else watch.limit
        return _parts(batches, elements, limit, each)

    def _of_form(self, batches: Sequence[Batch | None]) -> int:
        """Elements of each input in a part that a form joins: no more than there is room for, and for the rest of an
        instant, so that windows are as large as their rows need it, and not slices.
        """
        each = _OF_FORM
        for i, batch in enumerate(batches):
            fit = max(_PART, self.index.room(i) * 7 // 8)
            if batch is not None and len(batch) > fit:
                each = min(each, fit)
        return each

    def _join(self, part: Sequence[Batch | None], waits: int, ways: int, is_tried: bool) -> Iterator[Batch]:
        """Take a part's elements into the windows, and join them. waits: elements of the slice behind them.  ways:
        threads among which parts are divided.  is_tried: it is to be seen what that takes.
        """
        began = perf_counter_ns() if is_tried else 0
        at_once = 1 if ways == 1 else max(1, min(ways, _elements(part) // LEAST_ELEMENTS))
        self._take(part, at_once)
        if waits and self.form is None and self.compilation is not None:
            self.compilation.between(self.counters.elements_in - waits, self.progress)
        form, by_form = self.form, self._by_form
        code = None if form is None or form is not self.fitting() else form.code()
        if code is not None and by_form is not None:
            rows: Iterable[Batch]
            rows = by_form.run(code, waits) if at_once == 1 else by_form.run_side_by_side(code, part, at_once)
            if is_tried:
                rows = list(rows)
                self._dividing.took(ways > 1, (perf_counter_ns() - began) / _elements(part))
            yield from rows
        else:
            if form is not None and by_form is not None:
                self.form = None
                yield from by_form.flush()
            for found in self._program.run():
                accepted = self._rows(found)
                if accepted is not None:
                    yield accepted
                if self.failure is not None:
                    return
        if self._watch is not None:
            self._watch.joined(part, 0 if at_once == 1 or by_form is None else by_form.beside_ns)

    def _take(self, part: Sequence[Batch | None], at_once: int) -> None:
        if at_once > 1:
            self.index.arrive(part, max(1, min(at_once, _elements(part) // LEAST_ENTERING)))
        elif self.spec.ranges is None:
            self.index.admit(part)
        else:
            self.index.arrive(part)

    def _ways(self, elements: int) -> tuple[int, bool]:
        """Among how many threads the parts of so many elements are divided, and whether it is to be seen what that
        takes. Where memory or time is limited, which query fails depends on the order: then one joins all; and of a
        relation on where a slice is cut depends in which order rows of an instant come.
        """
        if elements < 2 * LEAST_ELEMENTS or self.form is None or self.spec.shown is None:
            return 1, False
        asked = self.threads()
        ways = min(usable_threads(asked), elements // LEAST_ELEMENTS)
        if ways < 2 or not self.allowance.is_open or is_dividing():
            return 1, False
        is_tried = asked == "auto"
        return ways if not is_tried or self._dividing.pays() else 1, is_tried

    def _by_reduced(self, reduced: Reduced, batches: Sequence[Batch | None], until: int) -> Iterator[Batch]:
        reduced.allowance = self.allowance
        yield from reduced.process(batches, until)
        if reduced.failure is not None:
            self.fail(reduced.failure.ts, reduced.failure.reason)

    def _rows(self, found: int) -> Batch | None:
        """The rows of the first tuples found, as far as the condition accepts them and they are of use; None where none
        are.
        """
        condition = self.spec.condition
        if self.spec.only_enters:
            found = self.answer.choose_entering(found)
        if condition is not None:
            whole = self.answer.whole(found)
            accepted, failed = condition.predicate(whole)
            if failed is not None and failed.any():
                first = int(failed.argmax())
                self.fail(int(whole.ts[first]), condition.reason(whole.slice(first, first + 1)))
            if not accepted.all():
                found = self.answer.choose(np.flatnonzero(accepted))
        return self.answer.rows(found) if found else None

    def wakes_at(self) -> int:
        """The instant at which the next row leaves; never, where deletions come as elements."""
        if self._reduced is not None:
            return self._reduced.wakes_at()
        if self.spec.ranges is None:
            return MAX_INSTANT
        inputs = self.index.inputs
        return int(min(inputs["leaves"].tolist()))

    # ---------------------------------------------------------------------------------------------------- figures

    def cache_figures(self) -> Mapping[CacheSpec, CacheFigures]:
        """Of every used cache."""
        return {} if self.cached is None else self.cached.figures()

    def allot(self, memory: Memory) -> None:
        """Let the caches keep to this budget from now on."""
        if self.cached is None:
            self.cached = self._with_caches(CacheOptions())
        self.cached.allot(memory)

    def work(self) -> tuple[int, int, int, int]:
        """Since the beginning: nanoseconds, slots inspected, elements taken, tuples put out."""
        counters = self.counters
        return counters.time_ns, self.answer.state.inspected, counters.elements_in, counters.elements_out

    def describe(self) -> Description:
        """Equalities, rows and bytes held, slots inspected by all probes so far; of a tree the tuples it keeps."""
        if self._reduced is not None:
            return self._reduced.describe()
        names = [q.schema.names for q in self.inputs]
        detail = equalities_text(self.graph.written, names, self.names)
        bands = () if self.graph.has_banded_patterns else self.graph.bands
        detail = " AND ".join([*([detail] if detail else []), *(band.text(names, self.names) for band in bands)])
        detail = detail or "every pair"
        if self.spec.condition is not None:
            detail += " AND residual"
        if self.spec.ranges is not None:
            detail += " of " + ", ".join("RANGE UNBOUNDED" if r is None else f"RANGE {r}" for r in self.spec.ranges)
        figures = {
            "rows": "+".join(str(len(w)) for w in self.index.windows),
            "netted": self.leaves_out,
            "bytes": sum(s.nbytes for s in self.synopses()),
            "inspected": self.answer.state.inspected,
        }
        if self.cached is not None:
            figures["cache entries"] = len(self.cached.caches)
        adapting = () if self._watch is None else self._watch.adapting
        sparing = () if self.sparing is None else self.sparing.describe()
        if self.kept is None:
            parts = (*(line for each in adapting for line in each.describe()), *sparing)
            return Description(self.name, detail, figures, parts)
        kept = zip(self.kept.pipelines.nodes, self.kept.subresults.parts)
        told = [f"{tree_text(node, self.names)}: {len(part):,} tuples, {part.nbytes:,} bytes" for node, part in kept]
        told += [line for each in adapting if each.adaptation.technique == "join plan" for line in each.describe()]
        return Description("XJoin", f"{tree_text(self.tree, self.names)} on {detail}", figures, (*told, *sparing))

    def adaptations(self) -> tuple[Any, ...]:
        """See `operators.adaptivity.Adaptive`."""
        adapting = () if self._watch is None else tuple(self._watch.adapting)
        sparing = () if self.sparing is None else (self.sparing,)
        return tuple(each.adaptation for each in (*adapting, *sparing) if each.has_choice)

    def close(self) -> None:
        """End the claims on the inputs' stores, and on files."""
        if self._reduced is not None:
            self._reduced.close()
        for window in self.index.windows:
            window.release()

    def let_go(self) -> None:
        """See `Operator`; the index goes, too, to which its windows and what adapts the join refer."""
        vars(self.index).clear()
        if self._reduced is not None:
            self._reduced.let_go()
        super().let_go()

    def synopses(self) -> tuple[Synopsis, ...]:
        """The inputs' rows, the subresults and the caches."""
        if self._reduced is not None:
            return self._reduced.synopses()
        subresults = () if self.kept is None else self.kept.subresults.parts
        return (*self.index.windows, *subresults, *(() if self.cached is None else (self.cached.caches,)))


def _unlimited(waiting: int) -> int:
    return waiting


def _elements(batches: Sequence[Batch | None]) -> int:
    n = 0
    for batch in batches:
        if batch is not None:
            n += len(batch.ts)
    return n


def _parts(
    batches: Sequence[Batch | None], waiting: int, limit: Callable[[int], int], each: int
) -> Iterator[Sequence[Batch | None]]:
    """The batches cut at instants into parts of about `each` elements of each input. waiting: elements of all.

    limit: of so many elements that wait, how many a part may have; it has whole instants, and at least one.
    """
    starts, is_first = [0] * len(batches), True
    while waiting:
        most = limit(waiting)
        if is_first and most == waiting and (most <= each or all(b is None or len(b) <= each for b in batches)):
            yield batches
            return
        is_first = False
        ends = [int(b.ts[at + each]) for b, at in zip(batches, starts) if b is not None and at + each < len(b)]
        if most < waiting:
            soon = [b.ts[at : at + most] for b, at in zip(batches, starts) if b is not None]
            ends.append(int(np.sort(np.concatenate(soon), kind="stable")[most - 1]))
        part: list[Batch | None] = []
        for i, b in enumerate(batches):
            at = starts[i]
            stop = 0 if b is None else int(np.searchsorted(b.ts, min(ends), side="right")) if ends else len(b)
            part.append(b.slice(at, stop) if b is not None and stop > at else None)
            starts[i] = max(stop, at)
        waiting -= sum(len(b) for b in part if b is not None)
        yield part
