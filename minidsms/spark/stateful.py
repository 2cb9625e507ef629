"""Engines in Spark's stateful tasks: each holds a part of the keys of a streaming query, from batch to batch.

What an engine must know of the past lies in Spark's state store: the elements that its windows may still hold, as far
as the plan has a reach (`archive.horizon`), and those that wait for the watermark. Where a plan has none, it is what a
checkpoint of a folder keeps, its operators' state as arrays (`durability.kept_state`), and the elements since that was
written, which is when there are as many as it is large. The engine itself stays in the
worker's process between two batches; it is taken up again only if it made the state that the store gives back, and is
built anew from that state otherwise: after a restart, on another machine, when a task is repeated.

Invariant: an element is answered when the watermark has passed its instant, in the order of (instant, values), so the
answer does not depend on how Spark cuts the stream into batches.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from minidsms.archive.horizon import Reach, reach_of
from minidsms.cql.errors import QueryError
from minidsms.durability.entry import decoded, in_one
from minidsms.durability.kept_state import kept_state, resume, state_nbytes, take_texts, texts_entry
from minidsms.durability.retention import before_last
from minidsms.elements import MIN_INSTANT
from minidsms.spark.engines import Setting, data_of, engine_of, result_of
from minidsms.spark.frames import TS
from minidsms.spark.offload import FAILED_AT
from minidsms.spark.packing import packed, unpacked

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql.streaming.stateful_processor import ExpiredTimerInfo, StatefulProcessorHandle, TimerValues

RELATIONS_SINCE = 0
"""The instant from which the rows of relations are there: 1970."""

_ELEMENTS = "input int, payload binary"
_MARK = "closed bigint, token string, timer bigint, rows bigint"
_LEAST_ROWS = 1024
"""State is written anew when more rows than this, and most of them, matter no more."""

_ROW_NBYTES = 32
"""State is written when so many bytes of it have come once more, as rows."""

_MOST_ENGINES = 64
_engines: OrderedDict[str, PartEngine] = OrderedDict()
"""Of this process, by the token of the state they made; the last used last."""


def closed_by(watermark_ms: int, tick_ns: int) -> int:
    """The last instant that no later element falls on: Spark lets those behind the watermark pass, to a microsecond.

    >>> closed_by(5000, 1_000_000), closed_by(5000, 1000), closed_by(0, 1_000_000) == MIN_INSTANT
    (4999, 5000000, True)
    """
    return MIN_INSTANT if watermark_ms <= 0 else (watermark_ms * 1_000_000 + 1000) // tick_ns - 1


def in_order(table: pa.Table) -> pa.Table:
    """Elements by instant, equal instants by their values, NULL first."""
    keys = {TS: table[TS]}
    for name in table.column_names[1:]:
        keys |= {f"{name} is there": pc.is_valid(table[name]), name: table[name]}
    return table.take(pc.sort_indices(pa.table(keys), sort_keys=[(name, "ascending") for name in keys]))


class PartEngine:
    """An engine with a part's elements. relations: by input, the rows of those that the part joins with.

    state: what `thinned` has given, of elements that do not come again.
    """

    def __init__(self, setting: Setting, relations: Mapping[int, pa.Table], state: Sequence[bytes] = ()) -> None:
        self._stack = ExitStack()
        self._db, self._query = self._stack.enter_context(engine_of(setting))
        self._setting = setting
        self._reach = reach_of(self._query.logical)
        self._fed: dict[int, pa.Table] = {}
        self._waiting: dict[int, pa.Table] = {}
        self._new_rows = 0
        """How many have come since the state was written."""
        for payload in state:
            fields, data = decoded(memoryview(payload), "Spark's state store")
            if fields["kind"] == "texts":
                take_texts(self._db.dictionary, fields, data)
            else:
                resume(self._query, fields, data, "Spark's state store")
        for i, table in relations.items():
            self._db.push(
                setting.inputs[i][0], data_of(setting.inputs[i][2], table), ts=np.full(len(table), RELATIONS_SINCE)
            )

    def close(self) -> None:
        """Forget it."""
        self._stack.close()

    def add(self, index: int, table: pa.Table) -> None:
        """Elements of an input, which wait for their instants to be closed."""
        self._waiting[index] = _behind(self._waiting.get(index), table)
        self._new_rows += len(table)

    def advance(self, closed: int) -> Iterator[pa.Table]:
        """What the query answers up to an instant. Raises QueryError."""
        for index, table in self._waiting.items():
            is_due = pc.less_equal(table[TS], closed)
            due = in_order(table.filter(is_due))
            if len(due):
                self._db.push(
                    self._setting.inputs[index][0], data_of(self._setting.inputs[index][2], due), ts=due[TS].to_numpy()
                )
                self._waiting[index] = table.filter(pc.invert(is_due))
                self._fed[index] = _behind(self._fed.get(index), due)
        self._db.advance(closed)
        while len(fetched := self._query.fetch_arrow()):
            yield result_of(self._setting, fetched)
        if not self._reach.whole:
            self._forget(closed, self._reach)

    def _forget(self, closed: int, reach: Reach) -> None:
        """Let go of the elements that matter no more."""
        for index, table in self._fed.items():
            name = self._setting.inputs[index][0].lower()
            past = max(closed - reach.ticks, MIN_INSTANT)
            if name in reach.rows:
                past = min(past, before_last(table[TS].to_numpy(), reach.rows[name], closed))
            if len(table) and table[TS][0].as_py() <= past:
                self._fed[index] = table.filter(pc.greater(table[TS], past))

    def thinned(self) -> list[bytes] | None:
        """The operators' state in place of elements, which are let go; None while that is not worth while, or cannot be
        had. The engine is at rest.
        """
        if not self._reach.whole or self._new_rows < max(_LEAST_ROWS, self.rows - self._new_rows):
            return None
        if self._new_rows < state_nbytes(self._query) // _ROW_NBYTES:
            return None
        self._new_rows = 0  # it is tried again when as much has come
        state = kept_state(self._query)
        if state.reach.whole:
            return None
        self._forget(state.until, state.reach)
        texts = texts_entry(self._db.dictionary, state.codes)
        entries = (*([] if texts is None else [texts]), *state.entries())
        return [in_one(fields, pieces) for fields, pieces in entries]

    @property
    def elements(self) -> list[tuple[int, pa.Table]]:
        """All that must be known to go on, by input."""
        held = [(i, t) for tables in (self._fed, self._waiting) for i, t in tables.items()]
        return [(i, t) for i, t in held if len(t)]

    @property
    def rows(self) -> int:
        """How many elements these are."""
        return sum(len(table) for _, table in self.elements)

    @property
    def is_at_rest(self) -> bool:
        """Nothing more is answered, however far time goes, until something comes."""
        return not self._reach.whole and not self.rows


def _behind(before: pa.Table | None, table: pa.Table) -> pa.Table:
    return table if before is None or not len(before) else pa.concat_tables([before, table])


class Engines(StatefulProcessor):
    """What Spark calls for every part. relations: by part and input, the packed rows of relations."""

    def __init__(self, setting: Setting, relations: Mapping[int, Mapping[int, bytes]], tick_ns: int) -> None:
        self._setting = setting
        self._relations = relations
        self._tick_ns = tick_ns

    def init(self, handle: StatefulProcessorHandle) -> None:
        """The state of a part: its operators', its elements, and how far it is."""
        self._handle = handle
        self._state = handle.getListState("state", "payload binary")
        self._elements = handle.getListState("elements", _ELEMENTS)
        self._mark = handle.getValueState("mark", _MARK)

    def handleInputRows(self, key: Any, rows: Any, timerValues: TimerValues) -> Iterator[pd.DataFrame]:
        """New elements of a part, packed."""
        new = [(int(i), unpacked(p)) for frame in rows for i, p in zip(frame["input"], frame["payload"])]
        yield from self._step(int(key[0]), timerValues.getCurrentWatermarkInMs(), new)

    def handleExpiredTimer(
        self, key: Any, timerValues: TimerValues, expiredTimerInfo: ExpiredTimerInfo
    ) -> Iterator[pd.DataFrame]:
        """Time has passed for a part."""
        yield from self._step(int(key[0]), timerValues.getCurrentWatermarkInMs(), [])

    def close(self) -> None:
        """The engines stay for the next batch."""

    def _step(self, part: int, watermark_ms: int, new: Sequence[tuple[int, pa.Table]]) -> Iterator[pd.DataFrame]:
        import pandas as pd

        mark = self._mark.get() if self._mark.exists() else None
        before, token, timer, rows = (MIN_INSTANT, "", None, 0) if mark is None else mark
        closed = max(closed_by(watermark_ms, self._tick_ns), before)
        engine = _engines.pop(token, None) or self._rebuilt(part, before)
        try:
            for index, table in new:
                in_time = table.filter(pc.greater(table[TS], closed))  # Spark's own late ones do not get here
                if len(in_time):
                    engine.add(index, in_time)
                    self._elements.appendValue((index, packed(in_time)))
                    rows += len(in_time)
            answers = [] if closed == before else [packed(table) for table in engine.advance(closed)]
        except QueryError as error:
            engine.close()
            raise RuntimeError(f"{FAILED_AT}{error.ts}: {error.reason}") from None
        except BaseException:
            engine.close()
            raise
        state = engine.thinned()
        if state is not None:
            self._state.put([(payload,) for payload in state])
        if not engine.rows:
            self._elements.clear()
            rows = 0
        elif state is not None or rows > max(2 * engine.rows, _LEAST_ROWS):
            self._elements.put([(i, packed(table)) for i, table in engine.elements])
            rows = engine.rows
        token = secrets.token_hex(8)
        self._mark.update((closed, token, self._timed(engine, timer, watermark_ms), rows))
        _keep(token, engine)
        for answer in answers:
            yield pd.DataFrame({"payload": [answer]})

    def _timed(self, engine: PartEngine, timer: int | None, watermark_ms: int) -> int | None:
        """Be called again when the watermark moves, if there may be something to say."""
        wanted = None if engine.is_at_rest else max(watermark_ms, 0) + 1
        if timer is not None and timer > watermark_ms and timer != wanted:
            self._handle.deleteTimer(timer)
        if wanted is not None and timer != wanted:
            self._handle.registerTimer(wanted)
        return wanted

    def _rebuilt(self, part: int, closed: int) -> PartEngine:
        """An engine that goes on from the state in the store."""
        relations = {i: unpacked(payload) for i, payload in self._relations.get(part, {}).items()}
        engine = PartEngine(self._setting, relations, [payload for (payload,) in self._state.get()])
        for index, payload in self._elements.get():
            engine.add(index, unpacked(payload))
        if closed > MIN_INSTANT:
            for _ in engine.advance(closed):  # has been said
                pass
        return engine


def forget_engines() -> None:
    """As a new process has none."""
    while _engines:
        _engines.popitem()[1].close()


def _keep(token: str, engine: PartEngine) -> None:
    """For the next batch. The oldest of others are let go."""
    _engines[token] = engine
    while len(_engines) > _MOST_ENGINES:
        _engines.popitem(last=False)[1].close()
