"""A checkpoint: another log, which leads to the same connection by fewer entries.

It is the log, up to an entry, without the elements that matter to no query any more (`retention.py`), without what was
said of queries that are gone and of settings that have changed since, and with the answers that wait and all positions
at its end; of operators that remember more than they need the elements for, it holds the state (`kept_state.py`). It is
read like any log.

What the connection was at that entry is taken from it while it rests (`moment.py`). A twin carries out the checkpoint,
and what comes of it is compared: progress, positions, answers, failures, the rows of small relations. A query that
would not be the same keeps its whole past.

Invariant: `minidsms.json` names the log that counts; until it names the new one, the old one is whole.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa

from minidsms.counted import counted
from minidsms.cql import syntax
from minidsms.cql.errors import Error
from minidsms.cql.parser import parse
from minidsms.cql.printer import print_query
from minidsms.durability.blocks import BlockWriter, Content, Piece
from minidsms.durability.entry import Fields, Rows, kept_of, placed, read
from minidsms.durability.folder import FIRST_LOG, create
from minidsms.durability.history import parts
from minidsms.durability.input_journal import InputJournal
from minidsms.durability.kept_state import KeptState, NoSuchOperator, texts_entry
from minidsms.durability.log import Log
from minidsms.durability.meaning import about, setting_of
from minidsms.durability.moment import InputMoment, Moment, QueryMoment
from minidsms.durability.retention import Retention
from minidsms.durability.segments import Found, entries
from minidsms.elements import MIN_INSTANT, Batch, Int64Array
from minidsms.statements.query_each import folded

if TYPE_CHECKING:
    from minidsms.durability.connection import DurableConnection
    from minidsms.query import Query


ROWS_AT_ONCE = 65_536
"""Elements of a stream that come as one push, at most."""
_OF_PUSHES = ("width", "recorded")
"""What those that come as one have in common, beside their stream."""

Entry: TypeAlias = tuple[Fields, Sequence[Piece]]
"""Header, and what follows it."""


def write_checkpoint(
    place: str, settings: dict[str, Any], log_folder: str, until: int, moment: Moment, go_on: Callable[[], None]
) -> tuple[dict[str, str], Found, int]:
    """Write a checkpoint of the log up to an entry into a folder, and prove it; (the queries that keep their whole
    past, and why, the last entry, how many bytes of it stood in blocks of that log).

    moment: of the connection at that entry.  go_on: called between entries; it may raise.  Error where the checkpoint
    cannot be written.
    """
    from minidsms.durability.twin import Twin

    if not moment.have_states(go_on):
        with contextlib.closing(Twin(settings, log_folder, until, go_on)) as twin:
            moment.take_states(twin)
    whole: dict[str, str] = {}
    while True:
        shutil.rmtree(place, ignore_errors=True)
        create(place, settings)
        log = Log(os.path.join(place, FIRST_LOG), "os")
        writer = BlockWriter(log.folder, log_folder)
        try:
            shortened = _Shortened(moment, log_folder, until, whole, go_on)
            for fields, pieces in shortened.entries():
                log.append(*placed(writer, fields, pieces))
            writer.sync()
        finally:
            log.close()
        try:
            with contextlib.closing(Twin(settings, log.folder, None, go_on)) as twin:
                there = twin.queries
                unlike = (k for k, q in moment.queries.items() if k not in there or not q.is_like(there[k]))
                different = {k: _failing(there.get(k), moment.queries[k]) for k in unlike}
                _check_inputs(moment, twin)
        except NoSuchOperator as error:
            different = {error.query: ""}
        if not different:
            return shortened.whole, shortened.last, writer.linked_bytes
        if different.keys() <= whole.keys():
            name, failing = min(different.items())
            raise Error(f"no checkpoint was made: query {name} does not come out of it as it is{failing}")
        whole |= dict.fromkeys(different, "it does not come out as it is of less")


def _failing(query: Query | None, ours: QueryMoment) -> str:
    """How it failed where ours did not, as for want of memory, to be told behind what follows from it."""
    return f": {query.failure[1]}" if query and query.failure and query.failure != ours.failure else ""


def _check_inputs(moment: Moment, twin: DurableConnection) -> None:
    for name, ours in moment.inputs.items():
        target = twin.stream_input(name)
        assert target.journal is not None
        if ours.figures != InputMoment(target, target.journal).figures:
            raise Error(f"no checkpoint was made: {ours.name} does not come out of the log as it is")


class _RowsOfKeys:
    """How many rows a relation of rules has of each key, as these tell them apart. key: the places of its columns."""

    def __init__(self, key: Sequence[int]) -> None:
        self._key = key
        self._rows: Counter[str] = Counter()

    def several(self, changes: Sequence[tuple[Any, ...]], signs: Sequence[int]) -> list[bool]:
        """Take those of a push; of each, whether there were several rows of its key before all of them, or are then."""
        keys = [folded(row, self._key) for row in changes]
        before = [self._rows[key] > 1 for key in keys]
        for key, sign in zip(keys, signs):
            self._rows[key] += sign
        found = [was or self._rows[key] > 1 for was, key in zip(before, keys)]
        for key in keys:
            if not self._rows[key]:
                del self._rows[key]
        return found


class _Shortened:
    """The entries of a log that still matter."""

    def __init__(
        self, moment: Moment, log_folder: str, until: int, whole: Mapping[str, str], go_on: Callable[[], None]
    ) -> None:
        self._moment = moment
        self._log_folder, self._until = log_folder, until
        self._go_on = go_on
        self.last: Found
        """The one that was read last."""
        self._named = self._views_named()
        self._shed: dict[int, list[Fields]] = defaultdict(list)
        """By push, what says which of its rows were shed."""
        self._created: dict[int, str] = {}
        """By entry, the query it creates, where no other entry does."""
        self._moves: dict[int, dict[str, int]] = {}
        """By entry that creates a query WITH BACKFILL, which instants it has told inputs that are still there."""
        self._gone = self._entries_gone()
        retention = Retention(moment, whole, self._created.values(), self._instants)
        self._states = retention.states
        self._past, self.whole = retention.past, retention.whole
        self._netted = self._changes_netted()
        self._passed: dict[str, tuple[int | None, int]] = {}
        self._advanced: dict[str | None, int] = {}
        self._gathered: dict[str, tuple[Fields, list[pa.RecordBatch]]] = {}
        self._left: set[str] = set()
        """Streams of which a push waits to be processed."""
        self._settings: dict[tuple[str, str], Fields] = {}
        """By setting, the entry that changed it last, since what depends on settings: what is pushed does not."""

    def _read(self) -> Iterator[tuple[int, Fields, Content]]:
        """(number, fields, what follows them) of every entry."""
        for found in entries(self._log_folder, self._until):
            self._go_on()
            self.last = found
            yield found.number, *read(found)

    def _instants(self, key: str, query: str) -> Int64Array:
        """Those of the elements of an input that a query sees: its own past, and what has come since, with BACKFILL."""
        found = [np.zeros(0, np.int64)]
        for number, fields, rows in self._read():
            if "past" in fields and self._created.get(number) == query:
                form = self._journal(key).rows
                held = [form.batch(part, k) for name, k, part in parts(fields, rows.whole()) if name.lower() == key]
                found = [np.zeros(0, np.int64), *(batch.column(0).to_numpy() for batch in held)]
            if fields["kind"] == "push" and fields["to"].lower() == key and number not in self._gone:
                instants = self._journal(key).batch(fields, rows.whole()).column(0).to_numpy()
                found.append(instants[kept_of(len(instants), self._shed.get(number, ()))])
        return np.concatenate(found)

    def entries(self) -> Iterator[Entry]:
        """Those of the checkpoint."""
        codes = [codes for each in self._states.values() for codes in each.codes]
        texts = texts_entry(self._moment.dictionary_of_states, codes)
        if texts is not None:
            yield texts
        for number, fields, rows in self._read():
            match fields:
                case {"kind": "taken" | "written" | "done" | "state" | "input" | "source" | "script" | "archived"}:
                    continue
                case {"kind": "texts" | "synopsis" | "failed" | "undone" | "replayed" | "shed"}:
                    continue
                case _ if number in self._gone:
                    yield from self._moved(self._moves.get(number, {}))
                    continue
                case {"kind": "replay", "begin": int(begin)} if begin:
                    continue  # it goes on with one before, and `source` says so
                case {"kind": "left taken"}:
                    continue
                case {"query": str(name)} if name.lower() not in self._moment.queries:
                    continue  # its row of a table of rules is gone
                case {"kind": "process"}:
                    if self._left:
                        yield from self._flushed()
                        self._left.clear()
                        yield fields, ()
                case {"kind": "advance", "ts": ts, "stream": stream}:
                    self._advanced[stream] = max(ts, self._advanced.get(stream, ts))
                case {"kind": "passed", "to": name, "ts": ts, "n": 0}:
                    yield from self._flushed()  # it is later than what came before
                    yield fields, ()
                case {"kind": "passed", "to": name, "ts": ts, "n": n}:
                    self._pass(name, ts, n)
                case {"kind": "push", "to": name}:
                    yield from self._pushed(name, number, fields, rows)
                case _ if (setting := setting_of(fields)) is not None:
                    self._settings.pop(setting, None)  # in the order in which they were changed last
                    self._settings[setting] = fields
                case _:
                    yield from self._flushed()
                    yield from self._set()
                    if "archive" in fields:
                        fields = {**fields, "restored": True}
                    state = self._states.get(self._created.get(number, ""))
                    yield (fields, rows.pieces) if "history" not in fields else self._history(fields, rows, state)
                    if state is not None:
                        yield from state.entries()
                    failed = self._moment.queries.get(self._created.get(number, ""))
                    if failed is not None and failed.failure is not None:
                        yield failed.failed(True), ()
        yield from self._flushed()
        yield from self._set()
        yield from self._ends()
        for name in self._moment.rules:  # there may be changes left of which such answers come once more
            yield {"kind": "left taken", "name": name}, ()
        for name in self._moment.dropped:  # the row makes the query again
            yield {"kind": "call", "query": name, "method": "close", "arguments": []}, ()

    def _history(self, fields: Fields, rows: Content, state: KeptState | None) -> Entry:
        """An entry with what its query begins with, of which that is left which matters to it."""
        told: list[tuple[str, int, int]] = []
        data: list[Piece] = []
        for name, width, part in parts(fields, rows.whole()):
            form = self._journal(name).rows
            if form.has_signs:  # its rows follow from all of them
                told.append((name, width, len(part)))
                data.append((part,))
                continue
            batch = form.batch(part, width)
            past = max(self._past[name.lower()], MIN_INSTANT if state is None else state.until)
            batch = batch.filter(pa.array(batch.column(0).to_numpy() > past))
            if not len(batch):
                continue
            kept = form.encoded_batch(batch)
            told.append((name, width, sum(map(len, kept))))
            data.append(kept)
        return {**fields, "history": told}, data

    def _pushed(self, name: str, number: int, fields: Fields, rows: Content) -> Iterator[Entry]:
        """What is kept of the rows of a push."""
        kept, left_out = self._kept(number, fields, rows)
        is_stream = not self._journal(name).rows.has_signs
        if kept is not None and fields["left"]:
            self._left.add(name)
        elif kept is not None:
            self._left.discard(name)
        if kept is not None and number in self._shed:  # what is shed makes time pass
            yield from self._flushed()
            yield fields, rows.pieces
            for told in self._shed[number]:
                yield told, ()
            return
        if is_stream:  # what is left out is older than what is kept
            self._pass(name, *left_out)
        if kept is not None:
            pieces = rows.pieces if not left_out[1] and rows.stands_apart else None
            if is_stream and not self._left and not self._moment.inputs[name.lower()].drops_late:
                yield from self._gather(name, fields, kept, pieces)
            else:
                yield from self._flushed()
                yield fields, pieces or [self._journal(name).rows.encoded_batch(kept)]
        if not is_stream:  # changes come in order
            self._pass(name, *left_out)

    def _moved(self, moves: Mapping[str, int]) -> Iterator[Entry]:
        """Inputs go on where the archives end with which a query began that is gone."""
        for name, ts in moves.items():
            if self._journal(name).rows.has_signs:
                yield from self._flushed()
                yield {"kind": "passed", "to": name, "ts": ts, "n": 0}, ()
            else:
                self._advanced[name] = max(ts, self._advanced.get(name, ts))

    def _pass(self, name: str, ts: int | None, n: int) -> None:
        if not n:
            return
        before, count = self._passed.get(name, (None, 0))
        latest = max((t for t in (before, ts) if t is not None), default=None)
        self._passed[name] = latest, count + n

    def _gather(self, name: str, fields: Fields, batch: pa.RecordBatch, pieces: list[Piece] | None) -> Iterator[Entry]:
        """Let the elements of a stream be pushes of about so many at once: which are pushed together does not matter.

        What is large stays as it is, so that the next checkpoint finds it as a block again. pieces: where it is one.
        """
        most = len(batch) if self._moment.inputs[name.lower()].is_system else ROWS_AT_ONCE  # an instant comes at once
        pieces = pieces if len(batch) <= most else None
        while len(batch) >= ROWS_AT_ONCE // 2:
            yield from self._flushed()
            part, batch = batch.slice(0, most), batch.slice(most)
            yield _of_push(fields), pieces or [self._journal(name).rows.encoded_batch(part)]
        if not len(batch):
            return
        told, batches = self._gathered.setdefault(name, (fields, []))
        if (
            any(told.get(key) != fields.get(key) for key in _OF_PUSHES)
            or sum(map(len, batches)) + len(batch) > ROWS_AT_ONCE
        ):
            yield from self._flushed()
            batches = self._gathered.setdefault(name, (fields, []))[1]
        batches.append(batch)

    def _flushed(self) -> Iterator[Entry]:
        """What came of the elements left out since: time has passed; and what has been gathered."""
        for name, (ts, n) in self._passed.items():
            yield {"kind": "passed", "to": name, "ts": ts, "n": n}, ()
        for fields, batches in self._gathered.values():
            (batch,) = pa.Table.from_batches(batches).combine_chunks().to_batches()
            yield _of_push(fields), [self._journal(fields["to"]).rows.encoded_batch(batch)]
        self._gathered = {}
        for stream, ts in self._advanced.items():
            yield {"kind": "advance", "ts": ts, "stream": stream}, ()
        self._passed, self._advanced = {}, {}

    def _set(self) -> Iterator[Entry]:
        """The settings that are in force."""
        for fields in self._settings.values():
            yield fields, ()
        self._settings = {}

    def _journal(self, name: str) -> InputJournal:
        return self._moment.inputs[name.lower()].journal

    def _kept(self, number: int, fields: Fields, rows: Content) -> tuple[pa.RecordBatch | None, tuple[int | None, int]]:
        """(what is left of a push, or None, (greatest instant, number) of what is left out)."""
        journal = self._journal(fields["to"])
        form, batch = journal.rows, journal.batch(fields, rows.whole())
        ts = batch.column(0).to_numpy()
        keeps = ts > self._past[fields["to"].lower()]
        if form.has_signs:
            keeps = np.ones(len(ts), np.bool_)
            keeps[self._netted.get(number, [])] = False
        if keeps.all():
            return batch, (None, 0)
        left_out = int(ts[~keeps].max()), int((~keeps).sum())
        if not keeps.any():
            return None, left_out
        return batch.filter(keeps), left_out

    def _changes_netted(self) -> dict[int, list[int]]:
        """By entry, the changes of relations of which insertion and deletion both lie in the past. Where queries are
        registered for rows, not those of a key of several rows: of these the first has the query.
        """
        of_keys = {name: _RowsOfKeys(key) for name, key in self._moment.followed.items()}
        there: dict[str, dict[Any, list[tuple[int, int]]]] = defaultdict(lambda: defaultdict(list))
        netted: dict[int, list[int]] = defaultdict(list)
        if not any(each.journal.rows.has_signs for each in self._moment.inputs.values()):
            return netted
        for number, fields, rows in self._read():
            key = str(fields.get("to", "")).lower()
            if "past" in fields and number not in self._gone:
                there.clear()  # the query has rows of its own, and sees only the deletion
            if fields["kind"] != "push" or number in self._gone:
                continue
            form = self._journal(key).rows
            if not form.has_signs:
                continue
            batch = form.batch(rows.whole())
            ts, signs = batch.column(0).to_pylist(), batch.column(1).to_pylist()
            columns = [column.to_pylist() for column in batch.columns[2:]]
            changes = list(zip(*columns)) if columns else [()] * len(ts)
            changes = changes[: bisect_right(ts, self._past[key])]
            several = of_keys[key].several(changes, signs) if key in of_keys else [False] * len(changes)
            for i, (row, are_several) in enumerate(zip(changes, several)):
                if signs[i] > 0:
                    there[key][row].append((number, i))
                elif there[key][row] and are_several:
                    there[key][row].pop()
                elif there[key][row]:
                    inserted = there[key][row].pop()
                    netted[inserted[0]].append(inserted[1])
                    netted[number].append(i)
        return netted

    def _views_named(self) -> set[str]:
        """The views that running queries name, and views that these name: queries go on when a view is dropped."""
        texts: dict[str, str] = {}
        for _, fields, _ in self._read():
            if fields["kind"] == "statement":
                match parse(fields["cql"]):
                    case [syntax.CreateView(name=name, query=query)]:
                        texts[name.lower()] = texts.get(name.lower(), "") + " " + print_query(query)
        found: set[str] = set()
        waiting = [query.text for query in self._moment.queries.values()]
        while waiting:
            words = {word.lower() for word in re.findall(r"\w+", waiting.pop())}
            new = (words & texts.keys()) - found
            found |= new
            waiting += [texts[name] for name in new]
        return found

    def _entries_gone(self) -> set[int]:
        """The entries about queries, inputs and views which are there no more, from their creation to their end."""
        of: dict[tuple[str, str], list[int]] = defaultdict(list)
        creations: dict[str, list[int]] = defaultdict(list)
        gone: set[int] = set()
        before = -1  # the last entry that was carried out
        for number, fields, _ in self._read():
            if fields["kind"] == "undone":
                gone.add(before)
                self._moves.pop(before, None)
            elif fields["kind"] == "shed":
                self._shed[before].append(fields)
            elif fields["kind"] not in ("failed", "done"):
                before = number
            what, ends = about(fields)
            if what is None:
                continue
            if ends and what[0] == "rules":
                for name in fields.get("queries", ()):
                    gone.update(of.pop(("query", name.lower()), ()))
            if "replaces" in fields:
                gone.update(of.pop(what, ()))
                creations.pop(what[1], None)
            of[what].append(number)
            if "moves" in fields:
                self._moves[number] = dict(fields["moves"])
            if ends and what[0] == "input":
                for moves in self._moves.values():
                    moves.pop(what[1], None)
            if ends and not (what[0] == "view" and what[1] in self._named):
                gone.update(of.pop(what))
                if what[0] == "query":
                    creations.pop(what[1], None)
            elif what[0] == "query" and _creates(fields, bool(creations[what[1]])):
                creations[what[1]].append(number)
        for (kind, name), numbers in of.items():
            if kind == "input" and name not in self._moment.inputs:  # a system stream that nobody reads any more
                gone.update(numbers)
        self._created = {numbers[0]: key for key, numbers in creations.items() if len(numbers) == 1}
        return gone

    def _ends(self) -> Iterator[Entry]:
        """What the connection has come to: counts of its inputs, and the answers that wait."""
        for left, table in self._moment.left:
            wait = f"{counted(left, 'answer')} of queries whose rows of {table} are gone"
            raise Error(f"no checkpoint was made: {wait} {'waits' if left == 1 else 'wait'}\nhelp: fetch them")
        if self._moment.script:
            yield {"kind": "script", "steps": list(self._moment.script.items())}, ()
        for each in self._moment.inputs.values():
            for told in each.sources:
                yield {"kind": "source", "to": each.name, **told}, ()
            fields = {"name": each.name, "counters": each.counters, "greatest_ts": each.greatest_ts}
            yield {"kind": "input", **fields}, ()
            if each.archived is not None:
                yield {"kind": "archived", "to": each.name, "n": each.archived}, ()
        for query in self._moment.queries.values():
            if query.failure is not None:
                yield query.failed(False), ()
            batch = Batch.concat(query.waiting) if query.waiting else Batch.empty(query.schema)
            columns = [batch.column(i) for i in range(len(query.schema))]
            rows = Rows(query.schema, self._moment.dictionary, True)
            fields = {"kind": "state", "query": query.name, "results": query.results, "shed": query.shed}
            yield fields, [rows.encoded(batch.ts, batch.signs, columns)]
            if query.archived is not None:
                yield {"kind": "archived", "query": query.name, "n": query.archived}, ()
            if query.mark is not None:
                yield {"kind": "written", "query": query.name, **vars(query.mark)}, ()


def _of_push(fields: Fields) -> Fields:
    """What is still to be said of a push, whose rows may have become others'."""
    return {key: value for key, value in fields.items() if key in ("kind", "to", "left", *_OF_PUSHES)}


def _creates(fields: Fields, is_there: bool) -> bool:
    """Whether an entry about a query creates it, or takes its place."""
    if fields["kind"] == "query":
        return True
    match parse(fields["cql"]) if fields["kind"] == "statement" else []:
        case [syntax.CreateQuery(is_optional=is_optional)]:
            return not (is_optional and is_there)
    return False
