"""Elements and answers as bytes, on their way through Spark: whole numbers beside NULL stay what they are.

Spark's workers load this for every input and output of a streaming query, so it needs Arrow and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

AT = "_at"
PACKED = f"part int, input int, {AT} timestamp_ltz, payload binary"
_ROWS_AT_ONCE = 1_000_000


def packed(table: pa.Table) -> bytes:
    """Elements as bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def unpacked(payload: bytes) -> pa.Table:
    """The inverse of `packed`."""
    with pa.ipc.open_stream(payload) as reader:
        return reader.read_all()


def packer(index: int) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function a task applies to the elements of an input."""

    def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        waiting: list[pa.RecordBatch] = []
        for batch in batches:
            waiting.append(batch)
            if sum(map(len, waiting)) >= _ROWS_AT_ONCE:
                yield from _pieces(waiting, index)
                waiting = []
        if waiting:
            yield from _pieces(waiting, index)

    return pack


def _pieces(batches: list[pa.RecordBatch], index: int) -> Iterator[pa.RecordBatch]:
    for part, table in by_part(pa.Table.from_batches(batches)):
        latest = pc.max(table[AT])
        row = {
            "part": pa.array([part], pa.int32()),
            "input": pa.array([index], pa.int32()),
            AT: pa.array([latest.as_py()], latest.type),
            "payload": pa.array([packed(table.drop_columns([AT]))], pa.binary()),
        }
        yield pa.RecordBatch.from_pydict(row)


def by_part(table: pa.Table) -> Iterator[tuple[int, pa.Table]]:
    """The rows of each part, without the number of the part."""
    for part in pc.unique(table["part"]).to_pylist():
        yield part, table.filter(pc.equal(table["part"], part)).drop_columns(["part"]).combine_chunks()


def unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Packed answers as rows."""
    for batch in batches:
        for payload in batch.column(0).to_pylist():
            table = unpacked(payload)
            columns = [name for name in table.column_names if name not in ("_failed_ts", "_reason")]
            yield from table.select(columns).to_batches()
