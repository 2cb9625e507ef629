"""A join of streams through the engine, with what it holds measured as it goes."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

import minidsms
from experiments.k_mon.workload import Int64Array, Streams
from minidsms.operators.k_mon.contracts import Kind

SLICE = 4000
"""Ticks that are pushed between two looks at the memory."""


@dataclass(frozen=True)
class Query:
    """declared: of each stream its columns and clauses.  text: CQL."""

    declared: Mapping[str, str]
    text: str


@dataclass
class Run:
    """rows, nbytes: (looks,) rows pushed and bytes held then, but for the answer that a reader may ask for.

    spent_ns: processor time per row in the second half of the run.  answers: rows put out.  plan: EXPLAIN ANALYZE at
    the end.
    """

    rows: list[int] = field(default_factory=list)
    nbytes: list[int] = field(default_factory=list)
    spent_ns: float = 0.0
    answers: int = 0
    plan: str = ""

    @property
    def steady_nbytes(self) -> float:
        """Mean bytes held over the last quarter."""
        return float(np.mean(self.nbytes[-max(1, len(self.nbytes) // 4) :]))


def run(
    query: Query,
    streams: Streams,
    settings: Mapping[str, object],
    slice_ticks: int = SLICE,
    kinds: Collection[Kind] = tuple(Kind),
) -> Run:
    """Push the streams in the order of their instants. kinds: of the constraints that may be used."""
    found = Run()
    with minidsms.connect(**settings) as db:
        db.streamon.constraints.kinds = frozenset(kinds)
        for name, declared in query.declared.items():
            db.execute(f"CREATE STREAM {name} {declared}")
        q = db.query(query.text)
        total = 1 + max(int(stream.ts[-1]) for stream in streams.values())
        spent, rows, rows_at_half = 0, 0, 0
        for first in range(0, total, slice_ticks):
            end = min(first + slice_ticks, total)
            parts = _parts(streams, first, end)
            began = time.process_time_ns()
            for name, columns, ts in parts:
                db.push(name, columns, ts=ts)
            db.advance(end - 1)
            spent += time.process_time_ns() - began
            found.answers += q.fetch_arrow().num_rows
            rows += sum(len(ts) for _, _, ts in parts)
            found.rows.append(rows)
            found.nbytes.append(db.memory.nbytes - q.answer_nbytes)
            if end * 2 <= total:
                rows_at_half, spent = rows, 0
        found.spent_ns = spent / max(1, rows - rows_at_half)
        found.plan = str(q.explain(analyze=True))
    return found


def _parts(streams: Streams, first: int, end: int) -> Sequence[tuple[str, dict[str, Int64Array], Int64Array]]:
    """The rows of each stream with instants in [first, end)."""
    parts = []
    for name, stream in streams.items():
        low, high = np.searchsorted(stream.ts, (first, end))
        if low < high:
            parts.append((name, {c: v[low:high] for c, v in stream.columns.items()}, stream.ts[low:high]))
    return parts
