"""Random samples of archives: what a join's inputs would let through of them, and how their keys are spread.

A sample is a few spans of random instants, so that little of a file is read; filters and projections are applied to it
by the engine's own evaluator, so that conditions that go together are counted together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from minidsms.archive.files import read_files, within
from minidsms.archive.format import Archive, ArchiveFile
from minidsms.cql import bound
from minidsms.cql.bound import Node
from minidsms.cql.catalog import Catalog
from minidsms.cql.window_spec import WindowKind
from minidsms.spark.batches import over_used
from minidsms.values.arrow_types import words_of_array

SPANS = 8
"""Spans of time that a sample is read from."""


@dataclass(frozen=True)
class Sample:
    """Of a join's input. columns: of the rows that pass.  drawn: how many were looked at, of `total`.  life: ticks that
    a row is there on average; None: for ever.
    """

    columns: tuple[Any, ...]
    passed: int
    drawn: int
    total: int
    life: float | None


class Sampler:
    """Draws samples of the archives that a plan reads; each is drawn once. rows: about how many of each."""

    def __init__(self, archives: Sequence[Archive], catalog: Catalog, rows: int) -> None:
        self._archives = {archive.metadata.name.lower(): archive for archive in archives}
        self._catalog = catalog
        self._rows = rows
        self._drawn: dict[str, tuple[list[Any], int, int]] = {}

    def of(self, node: Node) -> Sample | None:
        """What an input of a join gives; None where it is more than filters and projections of an archive, or the log
        does not tell how many rows there are.
        """
        match node:
            case bound.Declared(name=name):
                if any(file.statistics is None for file in self._archives[name.lower()].files()):
                    return None
                columns, drawn, total = self._base(name.lower())
                return Sample(tuple(columns), drawn, drawn, total, None)
            case bound.Window():
                below = self.of(node.input)
                return None if below is None else self._windowed(node, below)
            case bound.Filter():
                below = self.of(node.input)
                return None if below is None else self._filtered(node, below)
            case bound.Project():
                below = self.of(node.input)
                if below is None:
                    return None
                columns = [self._value(e, below) for e in node.exprs]
                return Sample(tuple(columns), below.passed, below.drawn, below.total, below.life)
        return None

    def span(self) -> int:
        """The ticks from the first element of any archive to the last."""
        files = [file for archive in self._archives.values() for file in archive.files()]
        return max((f.last_ts for f in files), default=0) - min((f.first_ts for f in files), default=0) + 1

    def _base(self, name: str) -> tuple[list[Any], int, int]:
        if name not in self._drawn:
            archive = self._archives[name]
            tables = list(_drawn(archive, self._rows, Random(f"{name} 0")))
            total = sum(file.statistics.rows for file in archive.files() if file.statistics is not None)
            metadata = archive.metadata
            columns = [
                words_of_array(_whole(tables, field, type_), kind)
                for field, type_, kind in zip(metadata.fields, metadata.arrow_schema.types[3:], metadata.schema.types)
            ]
            self._drawn[name] = columns, sum(map(len, tables)), total
        return self._drawn[name]

    def _windowed(self, node: bound.Window, below: Sample) -> Sample:
        spec, life = node.spec, None
        if spec.range_ is not None:
            life = max(spec.range_, 1) + (spec.slide or 0) / 2
        elif spec.kind is WindowKind.ROWS and spec.rows is not None:
            life = spec.rows * self.span() / max(below.total * below.passed / max(below.drawn, 1), 1)
        return Sample(below.columns, below.passed, below.drawn, below.total, life)

    def _filtered(self, node: bound.Filter, below: Sample) -> Sample:
        kept = self._value(node.condition, below).fill_null(False)
        columns = [column.filter(kept) for column in below.columns]
        return Sample(tuple(columns), pc.sum(kept).as_py() or 0, below.drawn, below.total, below.life)

    def _value(self, expr: bound.Expr, below: Sample) -> Any:
        if isinstance(expr, bound.ColumnRef):
            return below.columns[expr.index]
        used, evaluate = over_used(expr, self._catalog.tick_ns, self._catalog.functions)
        arrays = tuple(below.columns[i] for i in used) or (pa.nulls(below.passed),)
        return evaluate(arrays).field("value")


def _drawn(archive: Archive, rows: int, rng: Random) -> Iterator[pa.Table]:
    """Elements of spans at random instants, each once; all, where there are no more. Each file is read once."""
    files = [(file, file.statistics.rows) for file in archive.files() if file.statistics is not None]
    if sum(n for _, n in files) <= rows:
        yield from read_files(archive, [file for file, _ in files])
        return
    spans: dict[ArchiveFile, pc.Expression] = {}
    for file, n in rng.choices(files, [n for _, n in files], k=SPANS):
        ticks = file.last_ts - file.first_ts + 1
        length = max(ticks * rows // (SPANS * n), 1)
        begin = file.first_ts + rng.randrange(max(ticks - length, 0) + 1)
        span = within("_ts", begin, begin + length - 1)
        spans[file] = spans[file] | span if file in spans else span
    for file, inside in spans.items():
        yield from read_files(archive, [file], where=inside)


def _whole(tables: Sequence[Any], field: str, type_: pa.DataType) -> Any:
    """A column of all tables in one piece, of the type that files have."""
    chunks = [chunk.cast(type_) for table in tables for chunk in table.column(field).chunks]
    return pa.concat_arrays(chunks) if chunks else pa.array([], type_)
