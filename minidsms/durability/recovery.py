"""From the log of the inputs to the connection as it was: every entry is carried out again, in order.

The engine is deterministic in its inputs, so the answers are those that were given, up to their order within an
instant (docs/semantics, "Comparing answers"); those that have been taken are known by their number, and dropped.

Invariant: an entry that had been carried out is carried out, or the folder is not opened. What fails and is the last
entry was under way when the process ended, and is as if it had not been called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, cast

from minidsms.archive.connected import target_of
from minidsms.cql.errors import Error, shown
from minidsms.cql.parser import parse
from minidsms.durability.blocks import Content
from minidsms.durability.entry import Fields, Rows, kept_of, read
from minidsms.durability.kept_archives import KeptRecorder
from minidsms.durability.kept_file import Mark
from minidsms.durability.kept_state import NoSuchOperator, resume, take_texts
from minidsms.durability.meaning import about
from minidsms.durability.places import found_at
from minidsms.durability.segments import Found, entries
from minidsms.inputs.stream_input import StreamInput
from minidsms.operators.operator import Failure
from minidsms.statements.query_each import QueryEach
from minidsms.statements.run import carry_out
from minidsms.statements.user_definitions import define_aggregate, define_function
from minidsms.system_streams.system_input import SystemInput

if TYPE_CHECKING:
    from minidsms.durability.connection import DurableConnection
    from minidsms.inputs.relation_input import RelationInput


def replay(
    db: DurableConnection, log_folder: str, until: int | None = None, go_on: Callable[[], None] | None = None
) -> int | None:
    """Carry out what the log says; the number of its last entry where that is to be removed, else None.

    until: leave out the entries from this number on.  go_on: called between entries; it may raise.
    """
    try:
        return _replay(db, log_folder, until, go_on)
    finally:
        db.dictionary.keeps_all = False


def _replay(db: DurableConnection, log_folder: str, until: int | None, go_on: Callable[[], None] | None) -> int | None:
    held: tuple[Found, Fields, Content] | None = None
    came_of_it: list[Fields] = []
    db.archives.may_begin = False
    for found in entries(log_folder, until):
        if go_on is not None:
            go_on()
        fields, rows = read(found)
        if fields["kind"] in ("failed", "undone", "shed", "done"):
            came_of_it.append(fields)
            continue
        if held is not None:
            _carry_out_whole(db, held, came_of_it)
        held, came_of_it = (found, fields, rows), []
    if held is None:
        return None
    db.files.is_at_end = True
    if came_of_it:
        # A query that replaces another begins, and its archive, once the log says that the other has ended.
        db.archives.may_begin = "replaces" in held[1] or "of" not in came_of_it[-1]
        _carry_out_whole(db, held, came_of_it)
        return None
    found, fields, rows = held
    if any(map(db.files.is_unpublished, _writers_ended(db, fields))):
        return found.number
    db.archives.may_begin = True
    try:
        _carry_out(db, fields, rows, found.where)
    except Error:
        return found.number
    return None


def _writers_ended(db: DurableConnection, fields: Fields) -> list[str]:
    """The queries, in lower case, whose files are to take their places by an entry."""
    match about(fields):
        case ("query", name), ends if ends or fields.get("method") == "close_sink" or "replaces" in fields:
            return [name]
        case ("rules", name), True:
            return [each[key].name.lower() for each in db.rules if each.name.lower() == name for key in each]
    return []


def _carry_out_whole(db: DurableConnection, held: tuple[Found, Fields, Content], came_of_it: Sequence[Fields]) -> None:
    """Carry out an entry that is not the last one. came_of_it: the entries that tell what came of it."""
    found, fields, rows = held
    failed = [each for each in came_of_it if each["kind"] == "failed"]
    if fields["kind"] == "push":
        fields["shed"] = [each for each in came_of_it if each["kind"] == "shed"]
    for each in came_of_it:
        if each["kind"] == "done" and "query" in each:
            db.files.endings[each["query"].lower()].append(_but(each, "kind", "query"))
    for each in failed:
        ending = Failure(each["ts"], each["reason"]), each["results"]
        db.journal.endings[each["query"].lower()] = ending
        if each["query"].lower() in db.queries:
            db.queries[each["query"].lower()].end_at(*ending)
    try:
        if not any(each["kind"] == "undone" for each in came_of_it):
            _carry_out(db, fields, rows, found.where)
    except NoSuchOperator:
        raise
    except Error as error:
        raise Error(f"{found.where}: {_named(fields)} cannot be carried out again: {error}") from None
    finally:
        db.journal.endings.clear()
        db.files.endings.clear()
    for each in failed:
        query = db.queries.get(each["query"].lower())
        if query is not None and not each.get("is_ahead"):
            query.fail_now()


def _named(fields: Fields) -> str:
    """What an entry asks for, in a few words."""
    text = fields.get("cql") or fields.get("place")
    return f"the {fields['kind']} {shown(text)}" if text else f"a {fields['kind']}"


def _carry_out(db: DurableConnection, fields: Fields, rows: Content, where: str) -> None:
    try:
        db.archives.id, db.archives.is_restored = fields.get("archive", ""), fields.get("restored", False)
        if not any(kinds(db, fields, rows, where) for kinds in (_is_of_input, _is_of_query, _is_declaration)):
            raise Error(f"{where}: this minidsms knows no such entry, a {fields['kind']}")
        if "mark" in fields:
            (_, name), _ = about(fields)  # type: ignore[misc]
            db.files.marks[name] = Mark(**fields["mark"])
        if "script" in fields:
            number, digest = fields["script"]
            db.statements.script[number] = digest
    except (KeyError, TypeError, ValueError) as error:
        raise Error(f"{where}: not what minidsms writes ({type(error).__name__}: {error})") from error


def _is_of_input(db: DurableConnection, fields: Fields, rows: Content, where: str) -> bool:
    """Whether the entry tells what came, or that time passed; then that is carried out."""
    match fields:
        case {"kind": "push" | "passed", "to": str(name)} if db.system_streams.is_unread(name):
            pass  # it was written for a query that is gone
        case {"kind": "push", "to": str(name), "left": bool(is_left)}:
            _push(db, name, fields, rows, is_left)
        case {"kind": "ended", "to": str(name)}:
            _read_until(db, name, fields["from"], True)
            db.stream_input(name).finish()
            db.process()
        case {"kind": "source", "to": str(name), "from": dict(told), "ended": bool(has_ended)}:
            _read_until(db, name, told, has_ended)
            if "replay" in fields:
                db.stream_input(name).journal.sources[told["source"]].replay = fields["replay"]  # type: ignore[union-attr]
        case {"kind": "replay", "to": str(name), **given}:
            target = db.stream_input(name)
            assert target.journal is not None
            target.journal.replay(_but(given, "kind"))
        case {"kind": "replayed", "ended": list(ended)}:
            for name, number in ended:
                db.stream_input(name).journal.sources[number].has_ended = True  # type: ignore[union-attr]
        case {"kind": "feed", "to": str(name), "place": str(place), "format": format, "options": dict(options)}:
            db.feed(name, place, format, **options)
        case {"kind": "advance", "ts": int(instant), "stream": str() | None as stream}:
            db.advance(instant, stream)
        case {"kind": "passed", "to": str(name), "ts": int() | None as instant, "n": int(n)}:
            _pass_over(db, name, instant, n)
        case {"kind": "input", "name": str(name), "counters": dict(counters), "greatest_ts": greatest}:
            target = db.stream_input(name)
            vars(target.counters).update(counters)
            if isinstance(target, StreamInput):
                # A row that was late by a heartbeat may be later than all that were taken.
                target.greatest_ts = greatest
        case {"kind": "windows"}:
            db.end_windows()
            db.process()
        case {"kind": "process"}:
            db.process()
        case {"kind": "finish"}:
            db.finish_unfed()
        case _:
            return False
    return True


def _push(db: DurableConnection, name: str, fields: Fields, rows: Content, is_left: bool) -> None:
    """Rows that came, and so far has their source been read."""
    target = db.stream_input(name)
    ts, sign, columns = target.journal.rows.decoded(rows.whole())  # type: ignore[union-attr]
    with (
        _repeating(db, 1 if isinstance(ts, int) else len(ts), fields.get("shed")),
        nullcontext() if fields.get("recorded", True) else _unrecorded(target),
    ):
        if isinstance(target, SystemInput):
            with db.lock:
                target.publish_again(columns, ts if isinstance(ts, int) else ts[-1].as_py())
            db.process()
        else:
            db.push(name, columns, ts=ts, sign=sign, block=not is_left)
    _read_until(db, name, fields.get("from"))


def _is_of_query(db: DurableConnection, fields: Fields, rows: Content, where: str) -> bool:
    """Whether the entry registers a query, or tells what became of one or of its rules; then that is carried out."""
    match fields:
        case {"kind": "query", "cql": str(text), "name": str(name)}:
            db.query(text, name)
        case {"kind": "taken", "query": str(name), "until": int(until)}:
            db.queries[name.lower()].acknowledge(until)
        case {"kind": "state", "query": str(name), "results": int(results)}:
            query = db.queries[name.lower()]
            waiting = Rows(query.schema, db.dictionary, True).elements(rows.whole(), db.tick_ns)
            query.restore(results, waiting)
            query.shed = fields.get("shed", {})
        case {"kind": "synopsis", "query": str(name)}:
            resume(db.queries[name.lower()], fields, rows, where)
        case {"kind": "into", "query": str(name), "place": str(place), "format": format, "options": dict(options)}:
            db.queries[name.lower()].into(place, format, **options)
        case {"kind": "written", "query": str(name), **mark}:
            made = Mark(**_but(mark, "kind"))
            db.files.marks[name.lower()] = made
            db.queries[name.lower()].acknowledge(made.until)
        case {"kind": "rules", "template": str(template), "table": str(table), "name": name}:
            with db.lock:
                db.keep_each(QueryEach(db, template, table, name, has_decimals="decimals" in fields))
        case {"kind": "rules ended" | "left taken" as kind, "name": str(name)}:
            each = next(each for each in db.rules if each.name == name)
            (each.close if kind == "rules ended" else each.forget_left)()
        case {"kind": "call", "query": str(name), "method": str(method), "arguments": list(arguments)}:
            if method not in _METHODS:
                raise Error(f"{where}: this minidsms knows no such call of a query, {method!r}")
            getattr(db.queries[name.lower()], method)(*arguments)
            if method == "close_sink":
                db.files.forget(name.lower())
        case _:
            return False
    return True


def _is_declaration(db: DurableConnection, fields: Fields, rows: Content, where: str) -> bool:
    """Whether the entry is of the connection as a whole: declarations, settings, archives, texts; then likewise."""
    match fields:
        case {"kind": "statement", "cql": str(text)}:
            with db.lock, db.history.beginning_with(fields, (rows.whole(),)):
                for statement in parse(text):
                    carry_out(db, statement, text)
        case {"kind": "setting", "name": str(name), "value": value}:
            db.set(name, tuple(value) if isinstance(value, list) else value)
        case {"kind": "function", "place": str(place), **given}:
            define_function(db.catalog, fn=_found(place, given), hides=True, **_but(given, "kind"))
            db.templates.forget()
        case {"kind": "aggregate", "place": str(place), **given}:
            define_aggregate(db.catalog, cls=_found(place, given), hides=True, **_but(given, "kind"))
        case {"kind": "script", "steps": list(steps)}:
            db.statements.script = dict(steps)
        case {"kind": "texts"}:
            take_texts(db.dictionary, fields, rows)
        case {"kind": "archive", "to": str(name), "folder": folder} | {
            "kind": "archive",
            "query": str(name),
            "folder": folder,
        }:
            db.archive(name, folder, fields["partition"])
        case {"kind": "archived", "to": str(name), "n": int(n)} | {
            "kind": "archived",
            "query": str(name),
            "n": int(n),
        }:
            recorder = cast(KeptRecorder, target_of(db, name).recorder)
            recorder.count, recorder.is_restored = n, False
        case _:
            return False
    return True


_METHODS = ("set", "pause", "resume", "pin_plan", "unpin_plan", "close_sink", "close")
"""Of a query, those that are in the log."""


def _read_until(db: DurableConnection, name: str, told: Fields | None, has_ended: bool = False) -> None:
    """So far a source of an input has been read, and so many of its rows rejected."""
    if told is not None:
        target = db.stream_input(name)
        assert target.journal is not None
        target.counters.rejected += target.journal.take(told, has_ended)


def _pass_over(db: DurableConnection, name: str, instant: int | None, n: int) -> None:
    """Elements have come that are not in the log any more: time passes as it did with them."""
    target = db.stream_input(name)
    assert target.journal is not None
    target.journal.pass_over(n)
    key: str | None = None  # a change of a relation processes everything
    if isinstance(target, StreamInput):
        key = name.lower()  # what is left of other streams stays so: a query may be paused before it is processed
        if instant is not None:
            target.pass_over(instant)
    elif instant is not None:
        target.last_ts = instant if target.last_ts is None else max(target.last_ts, instant)
    with db.lock:
        db.settle(key)


@contextmanager
def _unrecorded(target: StreamInput | RelationInput) -> Iterator[None]:
    """What the context pushes is in the archive that the input writes: it came from there."""
    recorder = target.recorder
    if recorder is not None:
        recorder.is_suspended = True
    try:
        yield
    finally:
        if recorder is not None:
            recorder.is_suspended = False


@contextmanager
def _repeating(db: DurableConnection, n: int, told: Sequence[Fields] | None) -> Iterator[None]:
    """What the context pushes, n rows, is shed as it was when it came."""
    if not told:
        yield
        return
    db.admission.repeat(kept_of(n, told))
    try:
        yield
    finally:
        db.admission.repeat(None)


def _but(given: Fields, *names: str) -> Fields:
    return {name: value for name, value in given.items() if name not in names}


def _found(place: str, given: dict[str, Any]) -> Any:
    try:
        return found_at(place)
    except (ImportError, AttributeError, ValueError) as error:
        raise Error(
            f"{given.get('name')} is not there any more: {error}\n"
            f"help: let {place} be importable before the folder is opened"
        ) from None
