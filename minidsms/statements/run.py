"""What each statement does to a connection. docs/semantics, "Statements"."""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from os.path import realpath
from typing import TYPE_CHECKING, Any

from minidsms.answers.shown_order import order_of
from minidsms.answers.table import Table
from minidsms.archive.connected import is_archived_in
from minidsms.counted import counted
from minidsms.cql import syntax
from minidsms.cql.binder import Bound, bind, relation_def, stream_def, view_def
from minidsms.cql.catalog import RelationDef, StreamDef, ViewDef
from minidsms.cql.declarations import option_values
from minidsms.cql.errors import CqlError, Error, one_line, quoted
from minidsms.cql.parser import parse, parse_query
from minidsms.cql.printer import print_query
from minidsms.cql.session import tables_named
from minidsms.cql.views import check_views
from minidsms.elements import MIN_INSTANT
from minidsms.limits.allowance import TOO_MANY_ANSWERS
from minidsms.operators.operator import Failure
from minidsms.plan.explain import Plan, start_text
from minidsms.plan.planner import plan_under
from minidsms.plan.sharing import RunningOperators
from minidsms.process.interrupts import let_through
from minidsms.query import Query
from minidsms.sinks.sink import asked_of
from minidsms.statements.altering import add_column, alter_query, alter_stream
from minidsms.statements.changing_rows import change_rows
from minidsms.statements.connectors import open_declared, open_into, placed_at
from minidsms.statements.constant_rows import bind_continuous, bind_written, constant_rows, insert, is_constant
from minidsms.statements.history import HistoryGate
from minidsms.statements.registering import family_of, planner_of, stored, tail_of
from minidsms.statements.show import schema_of_view, show
from minidsms.streamon.loop import name_places

if TYPE_CHECKING:
    from minidsms.archive.backfill import Backfill
    from minidsms.connection import Connection
    from minidsms.sinks.sink import Sink


def execute(db: Connection, text: str) -> Any:
    """Carry out every statement of the text; the last one's result."""
    result: Any = None
    for statement in parse(text):
        let_through()
        with _deep_enough(text):
            result = carry_out(db, statement, text)
    return result


@contextlib.contextmanager
def _deep_enough(text: str) -> Iterator[None]:
    """Rules and printers recurse over a plan; one that is deeper than Python's stack is refused."""
    try:
        yield
    except RecursionError:
        hint = "join fewer inputs, or let a first query write what a second one reads"
        raise CqlError("the query nests too deeply to be planned", text, hint=hint) from None


def carry_out(db: Connection, statement: syntax.Statement, text: str) -> Any:
    """Carry out one statement of a text."""
    try:
        db.safety.check_statement(statement)
    except Error as error:
        raise placed_at(error, text, statement) from None
    match statement:
        case syntax.QueryStatement():
            if is_constant(statement.query, db.catalog):
                return Table(*constant_rows(db, statement.query, text))
            return register(db, statement.query, text, None)
        case syntax.Insert():
            return insert(db, statement, text)
        case syntax.Delete() | syntax.Update():
            return change_rows(db, statement, text)
        case syntax.CreateStream() | syntax.CreateRelation():
            return _create_input(db, statement, text)
        case syntax.CreateView():
            _create_view(db, statement, text)
            return None
        case syntax.CreateQuery():
            if statement.replaces and statement.name.lower() in db.queries:
                return replace_query(db, statement, text)
            return _create_query(db, statement, text)
        case syntax.Drop():
            return _drop(db, statement, text)
        case syntax.AlterQuery():
            alter_query(db, _registered(db, statement.name, text, statement.name_span), statement, text)
            return None
        case syntax.AlterStream() | syntax.AddColumn():
            if statement.name.lower() not in db.catalog.streams:
                names = _own_names(db, db.catalog.streams)
                is_other = statement.name.lower() in db.catalog.relations
                note = "it is a relation, whose columns stay as they are declared" if is_other else ""
                raise _no_such(statement.name, "stream", names, text, statement.name_span, note)
            if isinstance(statement, syntax.AddColumn):
                add_column(db, statement, text)
            else:
                alter_stream(db, statement, text)
            return None
        case syntax.Checkpoint():
            db.checkpoint()
            return None
        case syntax.Show():
            return show(db, statement.what)
        case syntax.Describe():
            return _describe(db, statement, text)
        case syntax.Explain():
            return _explain(db, statement, text)
        case syntax.SetSetting():
            try:
                db.set(statement.name, statement.value)
            except CqlError:
                raise  # it shows the place in the value
            except Error as error:
                raise CqlError(str(error), text, statement.name_span) from None
            return None
        case _:
            raise CqlError("this statement is not supported", text, statement.span)


# ------------------------------------------------------------------------------------------------------- declarations


def is_settled(db: Connection, statement: syntax.Statement) -> bool:
    """IF NOT EXISTS finds what it names, or IF EXISTS does not: the statement changes nothing."""
    kinds = (syntax.CreateStream, syntax.CreateRelation, syntax.CreateView, syntax.CreateQuery)
    if not isinstance(statement, (*kinds, syntax.Drop)) or not statement.is_optional:
        return False
    key = statement.name.lower()
    match statement:
        case syntax.Drop():
            return key not in db.queries if statement.kind == "query" else db.catalog.kind_of(key) is None
        case syntax.CreateQuery():
            return key in db.queries
        case syntax.CreateView():
            return db.catalog.kind_of(key) == "view"
    return db.catalog.kind_of(key) == ("stream" if isinstance(statement, syntax.CreateStream) else "relation")


def _create_input(db: Connection, statement: syntax.CreateStream | syntax.CreateRelation, text: str) -> None:
    if is_settled(db, statement):
        return
    _check_new_name(db, statement.name, text, statement.name_span)
    source = None
    if isinstance(statement, syntax.CreateStream):
        stream = stream_def(statement, db.catalog, text)
        if stream.source is not None:
            source = open_declared(db, stream.source, stream.schema, statement, text)
        db.add_stream(stream, source)
    else:
        relation = relation_def(statement, db.catalog, text)
        if relation.source is not None:
            source = open_declared(db, relation.source, relation.schema, statement, text)
        db.add_relation(relation, source)
    if statement.archive is not None:
        try:
            db.archive(statement.name, statement.archive)
        except Error:
            db.drop_input(statement.name)
            raise


def _create_view(db: Connection, statement: syntax.CreateView, text: str) -> None:
    """Queries that run keep the view they were registered with; the views that stand on a new one must allow it."""
    there = db.catalog.views
    is_there = statement.name.lower() in there
    if is_settled(db, statement):
        return
    if not (statement.replaces and is_there):
        _check_new_name(db, statement.name, text, statement.name_span)
    others = {key: view for key, view in there.items() if key != statement.name.lower()}
    view = view_def(statement, replace(db.catalog, views=others), text)
    new = replace(db.catalog, views={**others, statement.name.lower(): view})
    if is_there:
        check_views(others.values(), new, text, statement.span)
    db.catalog.views[statement.name.lower()] = view
    db.templates.forget()


def _check_new_name(db: Connection, name: str, text: str, span: tuple[int, int]) -> None:
    kind = db.catalog.kind_of(name)
    if kind is not None:
        is_system = name.lower() in db.system_streams.definitions()
        hint = (
            f"{name} is written by the engine; choose another name"
            if is_system
            else f"DROP {kind.upper()} {name} first"
        )
        raise CqlError(f"there is a {kind} {quoted(name)} already", text, span, "", hint)


def _drop(db: Connection, statement: syntax.Drop, text: str) -> None:
    key = statement.name.lower()
    if is_settled(db, statement):
        return
    if statement.kind == "query":
        _registered(db, statement.name, text, statement.name_span).close()
        return
    kind = db.catalog.kind_of(key)
    if kind != statement.kind:
        note = "" if kind is None else f"{statement.name} is a {kind}"
        table = {"stream": db.catalog.streams, "relation": db.catalog.relations, "view": db.catalog.views}
        names = _own_names(db, table[statement.kind])  # type: ignore[arg-type]
        raise _no_such(statement.name, statement.kind, names, text, statement.name_span, note)
    users = [v.name for k, v in db.catalog.views.items() if k != key and key in tables_named(v.query)]
    if users:
        reason = f"{statement.name} is used by view {users[0]}"
        raise CqlError(reason, text, statement.name_span, "", f"DROP VIEW {users[0]} first")
    if kind == "view":
        del db.catalog.views[key]
        return
    if key in db.system_streams.definitions():
        raise CqlError(f"{statement.name} is written by the engine and stays", text, statement.name_span)
    readers = db.readers_of(key)
    if readers:
        reason = f"{statement.name} is read by query {readers[0]}"
        raise CqlError(reason, text, statement.name_span, "", f"DROP QUERY {readers[0]} first")
    if db.is_followed(key):
        raise CqlError(f"query_each follows {statement.name}", text, statement.name_span, "", "close its queries first")
    db.drop_input(key)


def _own_names(db: Connection, definitions: Mapping[str, StreamDef | RelationDef | ViewDef]) -> list[str]:
    """The names of those that users have declared."""
    return [d.name for key, d in definitions.items() if key not in db.system_streams.definitions()]


def _registered(db: Connection, name: str, text: str, span: tuple[int, int] | None) -> Query:
    """The query of this name."""
    query = db.queries.get(name.lower())
    if query is None:
        raise _no_such(name, "query", [q.name for q in db.queries.values()], text, span)
    return query


def _no_such(
    name: str, kind: str, names: list[str], text: str, span: tuple[int, int] | None, note: str = ""
) -> CqlError:
    near = difflib.get_close_matches(name, names, 1)
    there = note or (f"there are: {', '.join(map(one_line, names))}" if names else f"no {kind} has been created")
    return CqlError(f"no {kind} {quoted(name)}", text, span, there, f"did you mean {quoted(near[0])}?" if near else "")


# ------------------------------------------------------------------------------------------------------------ queries


def register_text(db: Connection, cql: str, name: str | None) -> Query:
    """Register the one query of a text."""
    with _deep_enough(cql):
        return register(db, parse_query(cql), cql, name)


def _create_query(db: Connection, statement: syntax.CreateQuery, text: str) -> Query:
    _check_one_past(statement, text)
    if statement.name.lower() in db.queries:
        if is_settled(db, statement):
            return db.queries[statement.name.lower()]
        reason = f"there is a query {quoted(statement.name)} already"
        raise CqlError(reason, text, statement.name_span, "", f"DROP QUERY {statement.name} first")
    sink = open_into(db, statement, text)
    query, past = _register(db, statement.query, text, statement.name, statement.with_history, statement.backfill)
    try:
        if statement.archive is not None:
            db.archive(statement.name, statement.archive, is_new=True)
        if sink is not None:
            _begin_to_write(db, query, sink, statement, text)
        if past is not None:
            past.run(query)
    except BaseException:
        query.discard_sink()
        query.close()
        raise
    return query


def _begin_to_write(db: Connection, query: Query, sink: Sink, statement: syntax.CreateQuery, text: str) -> None:
    try:
        db.add_sink(query, sink)
    except Error as error:
        raise placed_at(error, text, statement) if type(error) is Error else error from None


def _check_one_past(statement: syntax.CreateQuery, text: str) -> None:
    if statement.backfill is not None and statement.with_history:
        reason = "BACKFILL and WITH HISTORY both say where the past comes from"
        raise CqlError(reason, text, statement.span, "", "leave one of them out")


def replace_query(db: Connection, statement: syntax.CreateQuery, text: str) -> Query:
    """Let a query that runs answer what the statement asks, and say what of its state is not kept. CqlError where the
    statement cannot be carried out; then nothing has changed.
    """
    query = db.queries[statement.name.lower()]
    _check_one_past(statement, text)
    bound = bind(statement.query, db.catalog, text)
    sink = open_into(db, statement, text)
    is_same = print_query(bound.expanded) == query.expanded and statement.backfill is None
    if is_same and (statement.archive is None or (not db.is_replayed and is_archived_in(query, statement.archive))):
        _let_write(db, query, sink, statement, text)
        return query
    explain(db, bound, text)  # it can be planned
    if sink is not None:
        db.try_sink(sink, bound.node.schema, query)
    db.check_registration(bound.streams, statement.with_history)
    if statement.backfill is not None:
        _backfill(db, statement.backfill, bound)
    if statement.archive is not None and not db.is_replayed:
        schema = bound.node.schema
        db.check_archive_instead_of(query, statement.archive, statement.name, bound.node.kind, schema)
    waiting = query.figures()["waiting"]
    stores = [db.stream_store(name)[0] for name in bound.streams] if statement.with_history else []
    if statement.with_history:
        db.gather_history(bound.streams)
    claims = [store.reader(store.tail) for store in stores]
    db.system_streams.held = bound.streams if statement.with_history else ()
    try:
        with db.replacing(query, sink, statement, text):
            made = _create_query(db, replace(statement, replaces=False), text)
    finally:
        db.system_streams.held = ()
        for store, claim in zip(stores, claims):
            store.release(claim)
    gone = f"; {counted(waiting, 'waiting answer')} {'is' if waiting == 1 else 'are'} gone" if waiting else ""
    begins = "what the windows before it held" if statement.with_history else "what comes from now on"
    begins = begins if statement.backfill is None else "the past that the archives hold, and what comes from now on"
    db.warnings.append(f"query {made.name} is another one: it sees {begins}{gone}")
    return made


def _let_write(db: Connection, query: Query, sink: Sink | None, statement: syntax.CreateQuery, text: str) -> None:
    """Let a query that goes on write where the statement says. CqlError where it writes there in another way."""
    if sink is None and query.sink is not None:
        db.end_sink(query)
    if sink is None:
        return
    if query.sink is None or realpath(query.sink.path) != realpath(sink.path):
        query.into(sink.path, statement.format, **dict(option_values(statement.options)))
    elif asked_of(query.sink) != asked_of(sink):
        reason = f"query {query.name} writes {quoted(sink.path)} already, in another FORMAT or WITH other options"
        raise CqlError(reason, text, statement.span, "", "name another place, or DROP QUERY first")


def register(db: Connection, tree: syntax.Query, text: str, name: str | None, with_history: bool = False) -> Query:
    """Bind, plan and start a query; with_history: begin with what the windows before it still hold."""
    return _register(db, tree, text, name, with_history, None)[0]


def _register(
    db: Connection, tree: syntax.Query, text: str, name: str | None, with_history: bool, backfill: str | None
) -> tuple[Query, Backfill | None]:
    """`register`; backfill: the folder of archives where the query's past is, which is to be run once it is wired."""
    bound = _bound(db, tree, text, name)
    logical = plan_under(bound.node, text, db.catalog, db.settings, db.memory.is_short)
    db.system_streams.open(bound.streams)
    if with_history:
        db.gather_history(bound.streams)
        _tell_forgotten(db, bound.streams)
    db.check_registration(bound.streams, with_history)
    frontier = db.frontier(bound.streams, bound.relations)
    query = _query(db, bound, name, text[tree.span[0] : tree.span[1]] or text)
    if with_history:
        query.past_until = frontier
    start = frontier + 1 if frontier > MIN_INSTANT and not with_history else MIN_INSTANT
    past = None
    inputs = stored(db)
    if backfill is not None:
        past = _backfill(db, backfill, bound)
        inputs, with_history, start = past.inputs, True, MIN_INSTANT
    family, constant = (None if with_history else family_of(db, logical)) or (None, None)
    root = logical.root
    if family is not None:
        root, logical = family.root, family.of(logical)
    group = db.groups.for_plan(root, inputs, frontier, with_history)
    group.is_behind = past is not None
    planner = planner_of(db, inputs, group.running, start, with_history)
    gate = HistoryGate(query.deliver, query.kind == "relation", db.codec(query.schema).net, frontier)
    deliver = query.deliver if past is None else past.deliver(query.deliver)
    tail = None if with_history else tail_of(db, query, logical, family)
    network = planner.network(root, gate if with_history and past is None else deliver, tail, constant)
    name_places(query.name, network.operators)
    began = "" if past is not None else start_text(network, frontier, with_history)
    query.attach(network, Plan(query.expanded, logical, network, began))
    db.start(query, network, group, (*bound.streams, *bound.relations))
    if network.failure is None or network.failure.ts > frontier:  # else it has no answer there
        refused = gate.open()
        if refused is not None:
            group.fail(network, Failure(refused, TOO_MANY_ANSWERS))
    return query, past


def _bound(db: Connection, tree: syntax.Query, text: str, name: str | None) -> Bound:
    """What a query says. Error where its name is taken, CqlError where it can never change."""
    if name is not None and name.lower() in db.queries:
        raise Error(f"there is a query {quoted(name)} already; close it first")
    bound = bind_continuous(tree, db.catalog, text)
    db.warnings.extend(bound.warnings)
    return bound


def _tell_forgotten(db: Connection, streams: Sequence[str]) -> None:
    """Warn of streams of whose past WITH HISTORY finds nothing."""
    for name in streams:
        store = db.stream_store(name)[0]
        if store.head and not len(store) and not db.is_replayed:
            db.warnings.append(
                f"WITH HISTORY finds nothing of {name}: no RANGE or ROWS window of another query holds elements of it; "
                "BACKFILL reads the past from an archive"
            )


def _query(db: Connection, bound: Bound, name: str | None, text: str) -> Query:
    """Not started."""
    schema = bound.node.schema
    expanded = print_query(bound.expanded)
    codec = db.codec(schema, bound.streams)
    query = Query(db, name or db.next_name(), text, bound.node.kind, schema, expanded, codec)
    query.order = order_of(bound.node)
    return query


def _backfill(db: Connection, folder: str, bound: Bound) -> Backfill:
    """The past of a query, from archives. Error where they do not have it."""
    from minidsms.archive.backfill import Backfill

    if db.settings["backfill"] != "local":
        db.safety.check_spark()
    return Backfill(db, folder, bound.streams, bound.relations, db.settings["backfill"])


def _explain(db: Connection, statement: syntax.Explain, text: str) -> Table:
    if isinstance(statement.target, str):
        query = _registered(db, statement.target, text, statement.name_span)
        shown = query.explain(statement.analyze, statement.format, statement.rules)
    elif statement.analyze:
        hint = "CREATE QUERY q AS .., then EXPLAIN ANALYZE q"
        raise CqlError("EXPLAIN ANALYZE needs a running query", text, statement.span, "", hint)
    else:
        bound = bind_written(statement.target, db.catalog, text)
        shown = explain(db, bound, text, statement.rules, statement.format)
    return Table(("plan",), tuple((line,) for line in shown.splitlines()))


def explain(db: Connection, bound: Bound, text: str, rules: bool = False, format: str = "text") -> str:
    """The plan of a query that is not registered. rules, format: as `Query.explain`."""
    if format == "spark":
        from minidsms.spark.running import explain_connected

        return explain_connected(db, print_query(bound.expanded))
    logical = plan_under(bound.node, text, db.catalog, db.settings, db.memory.is_short)
    db.system_streams.open(bound.streams)
    running = RunningOperators(db.groups.is_sharing)
    network = planner_of(db, stored(db), running).network(logical.root, lambda batch: None)
    try:
        return Plan(print_query(bound.expanded), logical, network).render(format, rules=rules)
    finally:
        network.close()
        db.system_streams.close_unread(db.readers_of)


# ---------------------------------------------------------------------------------------------------------- catalog


def _describe(db: Connection, statement: syntax.Describe, text: str) -> Table:
    key = statement.name.lower()
    kind = db.catalog.kind_of(key)
    if kind in ("stream", "relation"):
        table = db.catalog.streams if kind == "stream" else db.catalog.relations
        schema = table[key].schema
    elif kind == "view":
        schema = schema_of_view(db, db.catalog.views[key])
    elif key in db.queries:
        schema = db.queries[key].schema
    else:
        names = [*db.catalog.names(), *(q.name for q in db.queries.values())]
        raise _no_such(statement.name, "stream, relation, view or query", names, text, statement.name_span)
    return Table(("column", "type"), tuple((f.name, str(f.type)) for f in schema))
