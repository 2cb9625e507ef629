"""What a connection is at an entry of its log, as a checkpoint needs to know it while the connection goes on.

Taken under the connection's lock while the engine rests: it holds what does not change, and copies of what does. Codes
of texts stay what they are as long as the dictionary keeps all (`TextDictionary.keeps_all`).
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from minidsms.durability.copying import IS_POSSIBLE, Copying
from minidsms.durability.entry import Fields
from minidsms.durability.kept_archives import archived_of
from minidsms.durability.kept_state import KeptState, kept_state, state_nbytes
from minidsms.elements import MAX_INSTANT, MIN_INSTANT, Batch
from minidsms.inputs.stream_input import StreamInput
from minidsms.system_streams.system_input import SystemInput

if TYPE_CHECKING:
    from minidsms.durability.connection import DurableConnection
    from minidsms.durability.input_journal import InputJournal
    from minidsms.durability.kept_file import Mark
    from minidsms.inputs.relation_input import RelationInput
    from minidsms.query import Query

Figures = tuple[Any, ...]
_FEW_BYTES = 1 << 20
"""Of queries that hold no more the rows of the relation are compared, too."""
_COPIED_BYTES = 1 << 24
"""So much state is copied while calls wait, some tens of milliseconds; more by a child (`copying.py`)."""


class InputMoment:
    """Of a stream or relation: progress, counts, how far its sources have been read."""

    def __init__(self, target: StreamInput | RelationInput, journal: InputJournal) -> None:
        self.name = target.definition.name
        self.journal = copy.copy(journal)
        self.progress = target.progress
        self.sources: list[Fields] = [
            {"from": kept.fields(kept.until), "ended": kept.has_ended, "replay": kept.replay}
            for kept in journal.sources
        ]
        self.counters = dict(vars(target.counters))
        if any(kept.replay is None for kept in journal.sources):  # rows rejected of what has not been pushed come again
            of_sources = sum(kept.until.rejected for kept in journal.sources)
            self.counters["rejected"] = of_sources + target.counters.late_dropped
        self.greatest_ts = target.greatest_ts
        self.archived = archived_of(target.recorder)
        self.drops_late = isinstance(target, StreamInput) and target.definition.late_drop
        """Elements may be dropped because of those that came before them."""
        self.is_system = isinstance(target, SystemInput)
        """A push closes its instant."""

    @property
    def figures(self) -> Figures:
        """What must come out of the checkpoint."""
        return self.progress, self.greatest_ts, self.journal.position, self.counters


class QueryMoment:
    """Of a query: its plan, what it has answered, and which answers wait.

    reads: the names of its inputs.  state: what it can go on from.
    """

    def __init__(self, query: Query, names: dict[int, str], mark: Mark | None) -> None:
        self.name, self.text, self.schema = query.name, query.text, query.schema
        self.failure = query.failure
        self.results = query.results
        self.shed = dict(query.shed)
        self.closed_until = query.closed_until
        self.has_begun = self.closed_until != MIN_INSTANT
        self.reads = [names[id(read)] for read in (*query.network.streams, *query.network.relations)]
        self.waiting: list[Batch] = query.waiting_batches()
        self.figures = _figures(query, self.waiting)
        self.mark = mark
        self.archived = archived_of(query.recorder)
        self.state: KeptState
        self.rows = _rows(query)

    def failed(self, is_ahead: bool) -> Fields:
        """What the log says of its failure. is_ahead: as soon as it is created, before what makes it fail comes."""
        assert self.failure is not None
        ts, reason = self.failure
        told = {"ts": ts, "reason": reason, "results": MAX_INSTANT, "is_ahead": is_ahead}
        return {"kind": "failed", "query": self.name, **told}

    def is_like(self, query: Query) -> bool:
        """Whether a query goes on as this one would."""
        if self.figures != _figures(query, query.waiting_batches()):
            return False
        return self.rows is None or self.rows == _counted(query)


def _figures(query: Query, waiting: Sequence[Batch]) -> Figures:
    return query.results, sum(map(len, waiting)), query.failure, query.closed_until, query.state


def _rows(query: Query) -> Counter[str] | None:
    """Those of its relation, where they are few."""
    is_asked = query.kind == "relation" and query.failure is None and query.nbytes <= _FEW_BYTES
    return _counted(query) if is_asked else None


def _counted(query: Query) -> Counter[str]:
    """By their texts: a STRUCT cannot be hashed, and NaN is not equal to itself."""
    return Counter(map(repr, query.snapshot()))


class Moment:
    """Of a connection. By lower-case name: its inputs that the log knows, and its queries."""

    def __init__(self, db: DurableConnection) -> None:
        self.inputs = {
            each.definition.name.lower(): InputMoment(each, each.journal)
            for each in db.inputs
            if each.journal is not None
        }
        names = {id(each): each.definition.name.lower() for each in db.inputs}
        marks = db.files.marks
        self.queries = {key: QueryMoment(query, names, marks.get(key)) for key, query in db.queries.items()}
        self.script = dict(db.statements.script)
        self.left = [(each.left, each.table) for each in db.rules if each.left]
        """(how many answers of queries whose rows are gone wait, the table's name)."""
        self.rules = [each.name for each in db.rules]
        self.followed = {each.table.lower(): each.key for each in db.rules}
        self.dropped = [name for each in db.rules for name in each.dropped]
        """Queries of tables of rules whose rows are there."""
        self.dictionary = self.dictionary_of_states = db.dictionary.beside()
        self.late = [key for key, each in self.inputs.items() if each.drops_late]
        nbytes = sum(state_nbytes(query, self.late) for query in db.queries.values())
        self._copying: Copying | None = None
        self._has_states = nbytes <= _COPIED_BYTES
        """The queries' `state` is taken."""
        if self._has_states:
            self.take_states(db)
        elif IS_POSSIBLE:
            self._copying = Copying()
            self.take_states(db, self._copying)
            self._copying.begin(db.folder, db.log_folder)

    def take_states(self, db: DurableConnection, copying: Copying | None = None) -> None:
        """Take the state of the queries from the connection, or from another one at the same entry."""
        for key, query in self.queries.items():
            query.state = kept_state(db.queries[key], self.late, copying)
        self.dictionary_of_states = db.dictionary.beside()

    def have_states(self, go_on: Callable[[], None]) -> bool:
        """Wait until the queries' `state` is there; False where it has to be taken from another connection. go_on:
        called meanwhile; it may raise.
        """
        return self._has_states or (self._copying is not None and self._copying.finish(go_on))

    def close(self) -> None:
        """Let go of what is needed no more."""
        if self._copying is not None:
            self._copying.end()
