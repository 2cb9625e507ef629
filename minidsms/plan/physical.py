"""The physical planner: from the rewritten logical plan to operators joined by queues.

Each logical node becomes one operator, with a projection before it where it reads computed columns; a node with several
readers has one queue to each. Operator modules are imported when first needed, for kernels are slow to load.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from minidsms.cql import bound
from minidsms.cql.bound import Expr, JoinKind, Node, SetKind, StreamKind
from minidsms.cql.catalog import Catalog
from minidsms.cql.origins import equal_pairs
from minidsms.cql.window_spec import WindowKind
from minidsms.elements import Batch, Choice, Int64Array, Schema
from minidsms.engine.network import InputProgress, Network, close_operator
from minidsms.expressions import (
    Context,
    Projection,
    compile_predicate,
    constant_column,
    explain_failure,
    print_expression,
)
from minidsms.expressions.attributes import Attributes
from minidsms.expressions.filters import Filter, TupleFilter
from minidsms.expressions.predicate import filters_of
from minidsms.operators import arrival, constants
from minidsms.operators.contents import KnowsContents, PresentContents
from minidsms.operators.operator import Operator
from minidsms.operators.output import Output
from minidsms.operators.project import Project
from minidsms.operators.relation_source import RelationSource
from minidsms.operators.resuming import Resuming
from minidsms.operators.select import Select
from minidsms.operators.stream_source import StreamSource
from minidsms.plan.adaptivity import Adaptivity
from minidsms.plan.aggregate_calls import AggregateCalls
from minidsms.plan.constants import keeps_apart
from minidsms.plan.logical import (
    Constants,
    Entering,
    FirstArrival,
    KeepArrival,
    LookupJoin,
    MultiJoin,
    Netted,
    NewRows,
    Openings,
    Panes,
    ProbedStream,
    ReducedJoin,
    RelationEvents,
    RestoreArrival,
    SemiJoin,
    Stop,
    WindowEvents,
    column_refs,
    conjunction,
    conjuncts,
    nodes,
    projected,
    rewrite,
)
from minidsms.plan.matching import never_null
from minidsms.plan.n_way_joins import plan_key
from minidsms.plan.panes import by_panes
from minidsms.plan.reading import is_immediate
from minidsms.plan.reduced_joins import reduced_from, reduced_join
from minidsms.plan.screening import box_of
from minidsms.plan.sharing import RunningOperators, lineage_key, name_lineage, operators_behind
from minidsms.queues import Queue
from minidsms.screens.screening import Screening
from minidsms.screens.tail import Tail
from minidsms.synopses.relation_store import RelationStore
from minidsms.synopses.stream_store import StreamStore

if TYPE_CHECKING:
    from minidsms.inputs.relation_input import RelationInput


class _MeetsOthers(Exception):
    """A plan would need a new operator behind one that holds the rows of other queries."""


@dataclass(frozen=True)
class Inputs:
    """What a plan is connected to. stream, relation: by declared name, the store and the input's progress, and for a
    stream the instants of elements that came before the query and have not been released (see `StreamSource`).
    """

    stream: Callable[[str], tuple[StreamStore, InputProgress, Int64Array]]
    relation: Callable[[str], tuple[RelationStore, RelationInput]]


class PhysicalPlanner:
    """Builds the network of one query."""

    def __init__(
        self,
        inputs: Inputs,
        catalog: Catalog,
        context: Context,
        queue_size: int,
        start: int,
        adaptivity: Adaptivity,
        with_history: bool = False,
        running: RunningOperators | None = None,
    ) -> None:
        """queue_size: bound of each queue, in elements.  start: the query's first instant (docs/semantics T7).

        adaptivity: by what the operators adapt.  with_history: streams are read from what their stores still hold.
        running: the operators of the group the network will join.
        """
        self._adaptivity = adaptivity
        self._with_history = with_history
        self._inputs = inputs
        self._catalog = catalog
        self._context = context
        self._calls = AggregateCalls(catalog, context.tick_ns)
        self._queue_size = queue_size
        self._start = start
        self._begin(running or RunningOperators(True))

    def _begin(self, running: RunningOperators) -> None:
        """Nothing has been made yet. running: the operators that may be taken."""
        self._running = running
        self._operators: dict[int, Operator] = {}
        self._made: list[Operator] = []
        self._links: list[Queue] = []
        self._by_key: dict[Hashable, Operator] = {}
        self._sources: set[Hashable] = set()
        self._kept: list[Node] = []
        self._instead: dict[Node, list[Node]] = {}
        """The nodes whose operators take the place of one."""
        self._streams: dict[str, InputProgress] = {}
        self._relations: dict[str, RelationInput] = {}
        self._keeps_apart = False

    def network(
        self,
        root: Stop,
        deliver: Callable[[Batch], int | None],
        tail: Tail | None = None,
        constant: constants.Constant | None = None,
    ) -> Network:
        """The running plan of a query. tail: where a screen may run it.  constant: where it is one of a family."""
        try:
            made = self._network(root, deliver, tail, constant)
        except BaseException as error:
            for operator in self._made:
                close_operator(operator)
            if not isinstance(error, _MeetsOthers):
                raise
        else:
            self._begin(self._running)  # functions of the operators refer to it, and it should not to them
            return made
        # Beside the family, not in it.
        self._begin(RunningOperators(self._running.is_sharing))
        return self.network(root, deliver, tail, constant)

    def _network(
        self, root: Stop, deliver: Callable[[Batch], int | None], tail: Tail | None, constant: constants.Constant | None
    ) -> Network:
        self._keeps_apart = keeps_apart(root)
        for node in nodes(root):  # inputs first: no deep recursion for long chains of views
            if not isinstance(node, Stop):
                self._operator(node)
        last = self._operator(root.input)
        contents = self._contents(root.input) if root.is_relation else None
        if root.is_relation and not root.input.is_netted:
            keeps = contents is None and self._recalls(root.input)
            last = self._found_or_made(("net", keeps), root.schema, [last], lambda: self._net(root.input, keeps))
            if keeps and isinstance(last, KnowsContents):
                contents = PresentContents(last)
        output = Output(self._connect(last), deliver)
        operators = operators_behind(output)
        self._drop_all_but(operators)
        immediate = is_immediate(root)
        for operator in self._made:
            operator.is_immediate = immediate
        output.is_immediate = immediate
        streams, relations = list(self._streams.values()), list(self._relations.values())
        network = Network(operators, output, streams, relations, immediate, self._links, tail, constant)
        network.contents = contents
        at = {id(operator): i for i, operator in enumerate(operators) if isinstance(operator, Resuming)}
        if at:
            of = {node: self._instead.get(node, [node]) for node in (*self._kept, *self._instead)}
            places = {node: [at.get(id(self._operators[id(each)])) for each in made] for node, made in of.items()}
            network.places = {node: [p for p in found if p is not None] for node, found in places.items()}
        return network

    def _drop_all_but(self, used: Sequence[Operator]) -> None:
        """Take away what was made for a node and is read by nobody, another operator having reached below it."""
        kept = {id(operator) for operator in used}
        unread = {id(queue) for op in self._made if id(op) not in kept for queue in op.inputs}
        self._links = [queue for queue in self._links if id(queue) not in unread]
        for operator in self._made:
            if id(operator) in kept:
                operator.outputs = [queue for queue in operator.outputs if id(queue) not in unread]
            else:
                close_operator(operator)
        self._made = [operator for operator in self._made if id(operator) in kept]

    def _net(self, node: Node, keeps: bool) -> Operator:
        from minidsms.operators.net import Net

        return Net(self._queue(node), keeps)

    def _contents(self, node: Node) -> PresentContents | None:
        """What gives the present rows of a relation, where the operator that makes them knows them."""
        choices: list[Choice] = []
        operator = self._operator(node)
        # By operator, not by node: a semijoin may end in a projection, and what it reads is not what it shows.
        while isinstance(operator, Project) and operator.choice is not None:
            choices.append(operator.choice)
            producer = operator.inputs[0].producer
            assert producer is not None
            operator = producer
        if not isinstance(operator, KnowsContents):
            return None
        return PresentContents(operator, choices)

    # --------------------------------------------------------------------------------------------------- wiring

    def _operator(self, node: Node) -> Operator:
        key = id(node)
        if key not in self._operators:
            inputs = [self._operator(child) for child in node.inputs]
            self._note_input(node)
            shape = node.shape
            if isinstance(node, MultiJoin) and not isinstance(node, ReducedJoin):
                shape = shape, plan_key(node, self._adaptivity.settings)
            elif isinstance(node, bound.Filter) and len(conjuncts(node.condition)) > 1:
                shape = shape, self._adaptivity.condition_key()
            if isinstance(node, bound.Aggregate):
                self._operators[key] = self._aggregate(node, inputs)
            else:
                self._operators[key] = self._found_or_made(shape, node.schema, inputs, lambda: self._make(node))
            self._kept.append(node)
        return self._operators[key]

    def _note_input(self, node: Node) -> None:
        """What the query reads counts for its progress, whether a source is made for it or runs already."""
        match node:
            case bound.BaseStream():
                self._streams[node.name.lower()] = self._inputs.stream(node.name)[1]
            case bound.BaseRelation():
                self._relations[node.name.lower()] = self._inputs.relation(node.name)[1]
            case RelationEvents():
                self._relations[node.relation.lower()] = self._inputs.relation(node.relation)[1]

    def _found_or_made(
        self, shape: Hashable, schema: Schema, inputs: Sequence[Operator], make: Callable[[], Operator]
    ) -> Operator:
        """A running operator that puts out what the new one would, where operators are shared; else the new one."""
        key = lineage_key(shape, schema, inputs)
        like = self._by_key.get(key) or self._running.find(key, self._is_as_new)
        if like is not None and (self._running.is_sharing or key in self._sources):
            return like
        operator = make()
        if self._keeps_apart and not operator.is_stateless and any(map(self._passes_others, inputs)):
            self._made.append(operator)
            raise _MeetsOthers
        self._adaptivity.adapt_form(operator)
        self._made.append(operator)
        if not inputs:
            self._sources.add(key)  # one for each input, so that a query reads a stream in one place
        if shape is None:
            name_lineage(operator, None, None)
        else:
            name_lineage(operator, key, like)
            self._by_key.setdefault(key, operator)
        return operator

    def _is_as_new(self, operator: Operator) -> bool:
        """A running operator is in the state of one made now, or what it holds is of other queries."""
        if self._keeps_apart:
            return self._holds_others(operator)
        if isinstance(operator, StreamSource):
            store, _, earlier = self._inputs.stream(operator.stream)
            return not self._with_history and operator.store is store and operator.is_as_new(earlier)
        if not operator.inputs:
            if not isinstance(operator, RelationSource):
                from minidsms.operators.relation_events import RelationEvents as RelationEventsSource

                assert isinstance(operator, RelationEventsSource)
            return operator.store is self._inputs.relation(operator.relation)[0] and operator.is_as_new(self._start)
        return operator.is_stateless or operator.is_fresh

    def _holds_others(self, operator: Operator) -> bool:
        """A running operator of a family is good for one more query: rows that came before it are not given to it."""
        if isinstance(operator, StreamSource):
            store, _, earlier = self._inputs.stream(operator.stream)
            return operator.store is store and operator.own is None and operator.waits_for(earlier)
        return not getattr(operator, "is_worn", False)

    def _passes_others(self, operator: Operator) -> bool:
        """Rows that other queries brought may leave it, which a new operator behind it has never seen come."""
        if isinstance(operator, StreamSource | constants.Constants | constants.Openings):
            return False
        producers = [queue.producer for queue in operator.inputs if queue.producer is not None]
        is_new = any(operator is made for made in self._made)
        holds = not (is_new or operator.is_stateless or operator.is_fresh)
        return holds or any(map(self._passes_others, producers))

    def _queue(self, node: Node) -> Queue:
        """A new queue from the node's operator to one more reader."""
        return self._connect(self._operator(node))

    def _connect(self, operator: Operator) -> Queue:
        queue = Queue(operator.schema, self._queue_size)
        queue.producer = operator
        if any(operator is made for made in self._made):
            operator.outputs.append(queue)
        else:
            self._links.append(queue)  # it runs; `Group.add` joins them
        return queue

    def _recalls(self, node: Node) -> bool:
        """The node's rows leave, in the order in which they came."""
        return node.is_fifo and not node.is_append_only

    # ------------------------------------------------------------------------------------------------ operators

    def _make(self, node: Node) -> Operator:
        match node:
            case bound.Filter():
                return self._select(node)
            case bound.Project():
                return self._project(node)
            case bound.Window():
                return self._window(node)
            case bound.Stamped():
                return arrival.Stamp(self._queue(node.input), node.refers_to_store)
            case bound.Bounds():
                from minidsms.operators.bounds import Bounds

                return Bounds(self._queue(node.input), node.spec)
            case bound.Unnest():
                from minidsms.operators.unnest import Unnest

                return Unnest(self._queue(node.input), node.schema, self._context.dictionary)
            case bound.Join():
                return self._join(node)
            case ReducedJoin():
                queues = [self._queue(stream) for stream in node.windows]
                return reduced_join(node, queues, self._adaptivity)
            case MultiJoin():
                return self._multi_join(node)
            case SemiJoin():
                return self._semi_join(node)
            case LookupJoin():
                return self._lookup_join(node)
            case ProbedStream():
                return self._probing_select(node)
            case bound.Distinct():
                return self._distinct(node)
            case bound.Top():
                return self._top(node)
            case bound.Over():
                return self._over(node)
            case bound.SetOperation():
                return self._set_operation(node)
            case bound.RelationToStream():
                return self._to_stream(node)
            case Panes():
                return self._panes(node)
            case Netted():
                return self._net(node.input, False)
            case Entering():
                from minidsms.operators.entering import Entering as EnteringOperator

                return EnteringOperator(self._queue(node.input))
            case NewRows():
                from minidsms.operators.new_rows import NewRows as NewRowsOperator

                return NewRowsOperator(self._queue(node.input))
            case KeepArrival():
                return arrival.KeepArrival(self._queue(node.input))
            case RestoreArrival():
                return arrival.RestoreArrival(self._queue(node.input))
            case _:
                return self._beginning(node)

    def _distinct(self, node: bound.Distinct) -> Operator:
        from minidsms.operators.distinct import DuplicateEliminate

        return DuplicateEliminate(self._queue(node.input), self._recalls(node.input))

    def _lookup_join(self, node: LookupJoin) -> Operator:
        stream, relation = map(self._queue, node.inputs)
        if not node.keys and node.right.has_one_row:
            from minidsms.operators.lookup_row import LookupRow

            return LookupRow(stream, relation, node.columns, node.schema, node.outer)
        from minidsms.operators.lookup_join import LookupJoin as LookupJoinOperator

        is_fifo = node.right.is_fifo
        return LookupJoinOperator(stream, relation, node.keys, node.columns, node.schema, node.outer, is_fifo)

    def _top(self, node: bound.Top) -> Operator:
        from minidsms.operators.top import Top

        queue, texts = self._queue(node.input), self._context.dictionary
        return Top(queue, node.order, node.limit, node.offset, texts, node.input.is_append_only)

    def _panes(self, node: Panes) -> Operator:
        from minidsms.operators.panes import Panes as PanesOperator

        queue, detail = self._queue(node.input), node.text().removeprefix("Panes ")
        return PanesOperator(queue, node.keys, node.measures, node.slide, node.lag, node.schema, detail)

    def _over(self, node: bound.Over) -> Operator:
        queue, call, schema, texts = self._queue(node.input), node.call, node.schema, self._context.dictionary
        spec = self._calls.of_frames(node)
        if node.is_append_only:
            from minidsms.operators.stream_over import StreamOver

            return StreamOver(queue, call, schema, texts, node.at_most, spec)
        from minidsms.operators.over import Over

        return Over(queue, call, schema, texts, node.at_most, node.input.is_append_only, node.in_order, spec)

    def _beginning(self, node: Node) -> Operator:
        """What reads an input, or only when something comes of it, and what a family begins with."""
        match node:
            case bound.BaseStream():
                stream_store, _, earlier = self._inputs.stream(node.name)
                own = None if self._running.is_sharing else StreamStore(stream_store.schema)
                if self._with_history:
                    earlier = earlier[:0]
                return StreamSource(node.name, stream_store, earlier, self._with_history, own)
            case bound.BaseRelation():
                relation_store, _ = self._inputs.relation(node.name)
                return RelationSource(node.name, relation_store, self._start)
            case RelationEvents():
                from minidsms.operators.relation_events import RelationEvents as RelationEventsSource

                relation_store, _ = self._inputs.relation(node.relation)
                return RelationEventsSource(node.relation, relation_store, self._start)
            case FirstArrival():
                from minidsms.operators.first_arrival import FirstArrival as FirstArrivalOperator

                return FirstArrivalOperator([self._queue(source) for source in node.sources])
            case bound.Constant():
                return self._constant(node)
            case WindowEvents():
                from minidsms.operators.window_events import WindowEvents as WindowEventsOperator

                return WindowEventsOperator(self._queue(node.input), node.spec)
            case Constants():
                assert isinstance(node.input, bound.BaseStream)
                screening = Screening(self._context.dictionary, self._adaptivity.settings, self._adaptivity)
                return constants.Constants(
                    self._queue(node.input), node.input.name, node.family, node.schema, screening
                )
            case Openings():
                names = [source.name for source in node.sources if isinstance(source, bound.BaseStream)]
                queues = [self._queue(source) for source in node.sources]
                return constants.Openings(queues, names, node.schema, node.number)
            case _:
                raise AssertionError(f"no operator for {type(node).__name__}")

    def _constant(self, node: bound.Constant) -> Operator:
        """Rows that are written out. Of a query that reads nothing they are there from the instant 0 on."""
        from minidsms.operators.first_arrival import FirstArrival as FirstArrivalOperator
        from minidsms.operators.window_events import NO_COLUMNS, instants_only

        queues = [self._queue(source) for source in node.sources]
        if not queues:
            beginning = Queue(NO_COLUMNS, 1)
            beginning.put(instants_only(np.zeros(1, np.int64)))
            beginning.progress = 0
            queues = [beginning]
        columns = [
            constant_column([row[i] for row in node.rows], type_, self._context)
            for i, type_ in enumerate(node.schema.types)
        ]
        return FirstArrivalOperator(queues, columns, node.schema, len(node.rows))

    def _select(self, node: bound.Filter) -> Select:
        condition = node.condition
        text = print_expression(condition)
        filters = self._adaptivity.condition(
            filters_of(condition, self._context), f"Select {text}", self._attributes(node.input.schema)
        )
        explain = functools.partial(self._explain, (condition,))
        return Select(self._queue(node.input), filters, explain, text, box_of(condition))

    def _attributes(self, schema: Schema) -> Attributes:
        """By which the tuples of a Select may be told apart."""
        return Attributes(schema, self._context.dictionary, self._context.tick_ns)

    def _project(self, node: bound.Project) -> Project:
        exprs = node.exprs
        chosen = [e.index for e in exprs if isinstance(e, bound.ColumnRef)]
        return Project(
            self._queue(node.input),
            Projection(exprs, self._context),
            functools.partial(self._explain, exprs),
            node.schema,
            ", ".join(print_expression(e) for e in exprs),
            chosen if len(chosen) == len(exprs) else None,
        )

    def _explain(self, exprs: Sequence[Expr], batch: Batch, row: int) -> str:
        """The first of the expressions that failed in a row, in words."""
        for expr in exprs:
            _, failed = Projection((expr,), self._context)(batch.slice(row, row + 1))
            if failed is not None and failed.any():
                culprit, reason = explain_failure(expr, self._context, batch.column, row)
                return f"{culprit}: {reason}"
        return "an expression failed"

    def _window(self, node: bound.Window) -> Operator:
        spec = node.spec
        copies = not node.input.refers_to_store
        if spec.kind is WindowKind.UNBOUNDED:
            from minidsms.operators.unbounded_window import UnboundedWindow

            return UnboundedWindow(self._queue(node.input), numbers=copies)
        if spec.is_by_key:
            from minidsms.operators.partition_window import PartitionWindow

            return PartitionWindow(self._queue(node.input), spec)
        if spec.kind is WindowKind.ROWS:
            from minidsms.operators.rows_window import RowsWindow

            assert spec.rows is not None
            # Rows that a filter lets through may be as far apart in the store as the stream is long.
            copies = copies or any(isinstance(below, bound.Filter) for below in nodes(node.input))
            return RowsWindow(self._queue(node.input), spec.rows, spec.slide, copies=copies)
        from minidsms.operators.range_window import RangeWindow

        assert spec.range_ is not None
        return RangeWindow(self._queue(node.input), spec.range_, spec.slide, copies=copies, lag=spec.lag)

    def _keyed(self, node: Node, keys: Sequence[Expr]) -> tuple[Node, list[int]]:
        """The node, widened by a projection where a key is computed, and the keys' column numbers."""
        places: list[int] = []
        extra: list[Expr] = []
        for key in keys:
            if isinstance(key, bound.ColumnRef):
                places.append(key.index)
            else:
                places.append(len(node.schema) + len(extra))
                extra.append(key)
        if not extra:
            return node, places
        names = [*node.schema.names, *(f"key{i + 1}" for i in range(len(extra)))]
        wide = projected(node, [*column_refs(node.schema), *extra], names)
        return wide, places

    def _join(self, node: bound.Join) -> Operator:
        from minidsms.joins.join import Join
        from minidsms.joins.spec import Condition, JoinSpec

        width = len(node.left.schema)
        pairs, rest = equal_pairs(conjuncts(node.condition), width)
        left, left_keys = self._keyed(node.left, [a for a, _ in pairs])
        right, right_keys = self._keyed(node.right, [b for _, b in pairs])
        shift = len(left.schema) - width

        def moved(e: Expr) -> Expr | None:
            if isinstance(e, bound.ColumnRef) and e.index >= width:
                return dataclasses.replace(e, index=e.index + shift)
            return e if isinstance(e, bound.ColumnRef) else None

        condition = conjunction([rewrite(part, moved) for part in rest])
        predicate = None if condition is None else compile_predicate(condition, self._context)

        def reason(row: Batch) -> str:
            return self._explain((condition,) if condition is not None else (), row, 0)

        kept = [*((0, c) for c in range(width)), *((1, c) for c in range(len(node.right.schema)))]
        spec = JoinSpec(
            [((0, l), (1, r)) for l, r in zip(left_keys, right_keys)],
            kept,
            node.schema,
            fifo=[left.is_fifo, right.is_fifo],
            condition=None if predicate is None else Condition(predicate, reason),
            outer=node.join is JoinKind.LEFT,
            only_enters=node.only_enters,
        )
        return Join([self._queue(left), self._queue(right)], spec)

    def _multi_join(self, node: MultiJoin) -> Operator:
        from minidsms.plan.n_way_joins import n_way_join

        fifo = None if node.specs is not None else [window.is_fifo for window in node.windows]
        queues = [self._queue(window) for window in node.windows]
        reducing = functools.partial(reduced_from, node, self._catalog, self._adaptivity)
        return n_way_join(node, queues, fifo, self._adaptivity, self._attributes, reducing)

    def _semi_join(self, node: SemiJoin) -> Operator:
        from minidsms.operators.semi_join import SemiJoin as SemiJoinOperator

        pairs: Sequence[tuple[Expr, Expr]] = node.pairs
        if node.null_safe:
            pairs = [pair for a, b in pairs for pair in zip(never_null(a), never_null(b))]
        left, left_keys = self._keyed(node.left, [a for a, _ in pairs])
        keys = [b for _, b in pairs]
        right = projected(node.right, keys, [f"key{i + 1}" for i in range(len(keys))])

        def made() -> Operator:
            return SemiJoinOperator(
                self._queue(left),
                self._queue(right),
                left_keys,
                list(range(len(keys))),
                anti=node.anti,
                left_fifo=left.is_fifo,
            )

        if left is node.left:
            return made()
        width = len(node.schema)
        sides = [self._operator(left), self._operator(right)]
        joined = self._found_or_made(("wide", node.shape), left.schema, sides, made)

        def no_failure(batch: Batch, row: int) -> str:
            return ""

        return Project(
            self._connect(joined),
            lambda batch: (batch.columns[:width], None),
            no_failure,
            node.schema,
            ", ".join(node.schema.names),
            list(range(width)),
        )

    def _probing_select(self, node: ProbedStream) -> Operator:
        from minidsms.operators.probing_select import ProbeFilter, ProbingSelect
        from minidsms.synopses.instant_counts import InstantCounts

        conditions = conjuncts(node.condition)
        filters: list[TupleFilter] = [Filter(part, self._context) for part in conditions]
        probes = [
            ProbeFilter(
                node.probe_text(i),
                probe.keys,
                InstantCounts(probe.right.schema, probe.null_safe),
                probe.anti,
                len(node.schema),
                probe.of_nulls,
            )
            for i, probe in enumerate(node.probes)
        ]
        text = " AND ".join(each.text for each in (*filters, *probes))
        return ProbingSelect(
            self._queue(node.input),
            [self._queue(probe.right) for probe in node.probes],
            self._adaptivity.condition([*filters, *probes], f"Select {text}", self._attributes(node.schema)),
            probes,
            functools.partial(self._explain, conditions),
            text,
        )

    def _aggregate(self, node: bound.Aggregate, inputs: Sequence[Operator]) -> Operator:
        """Over the operators of the node's inputs, or by panes: then it is found by what it reads in their place."""
        from minidsms.operators.aggregate import Aggregate

        exprs: list[Expr] = list(node.keys)
        places: dict[Expr, int] = {}

        def place(expr: Expr) -> int:
            if expr not in places:
                places[expr] = len(exprs)
                exprs.append(expr)
            return places[expr]

        specs = [self._calls.spec(call, place, node.input.is_append_only) for call in node.aggregates]
        parts, shape = by_panes(node.input, exprs, len(node.keys), specs), node.shape
        if parts is None:
            names = [f"column{i + 1}" for i in range(len(exprs))]
            source = projected(node.input, exprs, names)
            keys = tuple(range(len(node.keys)))
        else:
            source, keys, specs = parts.input, parts.keys, list(parts.calls)
            self._instead[parts.window] = [parts.of_panes.input, parts.of_panes]
            inputs = [self._operator(source), *inputs[1:]]
            shape = shape, keys, tuple((call.function, call.arg, call.times) for call in specs)

        def make() -> Operator:
            return Aggregate(
                self._queue(source),
                keys=keys,
                calls=specs,
                is_global=node.start is not None,
                input_fifo=source.is_fifo,
                groups_fifo=source.fifo_by is not None and source.fifo_by <= set(keys),
                input_append_only=source.is_append_only,
                start=None if node.start is None else self._queue(node.start),
                texts=self._context.dictionary,
                schema=node.schema,
            )

        return self._found_or_made(shape, node.schema, inputs, make)

    def _set_operation(self, node: bound.SetOperation) -> Operator:
        left, right = self._queue(node.left), self._queue(node.right)
        if node.op is SetKind.UNION and node.all:
            from minidsms.operators.union_all import UnionAll

            return UnionAll(left, right, node.schema)
        from minidsms.operators.set_operation import Except, Intersect, Union

        fifo = [self._recalls(side) for side in (node.left, node.right)]
        if node.op is SetKind.UNION:
            return Union(left, right, node.schema, fifo)
        if node.op is SetKind.EXCEPT:
            return Except(left, right, node.all, node.schema, fifo)
        return Intersect(left, right, node.all, node.schema, fifo)

    def _to_stream(self, node: bound.RelationToStream) -> Operator:
        ranks = self._context.dictionary.ranks if node.ordered else None
        queue = self._queue(node.input)
        is_netted = node.input.is_netted
        if node.op is StreamKind.ISTREAM:
            from minidsms.operators.istream import IStream

            return IStream(queue, order_by_value=node.ordered, ranks=ranks, input_netted=is_netted)
        if node.op is StreamKind.DSTREAM:
            from minidsms.operators.dstream import DStream

            return DStream(queue, order_by_value=node.ordered, ranks=ranks, input_netted=is_netted)
        from minidsms.operators.rstream import RStream

        events = [self._queue(event) for event in node.instants]
        return RStream(queue, events, ticks=node.ticks, order_by_value=node.ordered, ranks=ranks)
