"""State that a checkpoint keeps as arrays, in place of the elements it came from.

That of aggregates and DISTINCT over all that a stream has brought: it is as large as their groups are many, however
much has come. The rows they put out follow from it, and so does the state of all that reads these.

Of an operator there is one entry of the log, `synopsis`, behind the one that creates its query: its header names the
arrays, their types and shapes, and after it they stand one behind the other, little-endian, in the order of C. Texts
stand in them by their codes; the entry `texts`, before all others, says which text has which.

Invariant: a query goes on from kept state, and from what came later, or from elements, never from both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from minidsms.archive.horizon import Reach, reach_of
from minidsms.cql import bound
from minidsms.cql.bound import Node, WindowKind
from minidsms.cql.errors import Error
from minidsms.durability.copying import Copying
from minidsms.durability.entry import Fields, encoded
from minidsms.elements import AnyArray
from minidsms.operators.operator import Operator
from minidsms.operators.resuming import Resuming
from minidsms.operators.stream_source import StreamSource
from minidsms.plan.logical import nodes
from minidsms.values.dictionary import TextDictionary

if TYPE_CHECKING:
    from minidsms.query import Query

VERSION = 1
"""Of the arrays: what they are called and what stands in them."""
_TEXTS = pa.schema([("code", pa.int64()), ("text", pa.string())])


class NoSuchOperator(Error):
    """A plan has none that could take a state. query: whose it is."""

    def __init__(self, message: str, query: str) -> None:
        super().__init__(message)
        self.query = query


@dataclass(frozen=True)
class KeptState:
    """The state of a query's operators up to an instant: (what one is called, its arrays) of each.

    held: codes of the texts in them, by operator.  reach: what is left to be kept of the query's past beside it.
    """

    query: str
    until: int
    operators: tuple[tuple[str, dict[str, AnyArray]], ...]
    held: Sequence[Sequence[AnyArray]]
    reach: Reach

    @property
    def codes(self) -> list[AnyArray]:
        """Of the texts in the arrays."""
        return [codes for each in self.held for codes in each]

    def payloads(self) -> Iterator[tuple[bytes | memoryview, ...]]:
        """The entries."""
        for i, (name, arrays) in enumerate(self.operators):
            shapes = [(key, array.dtype.str, array.shape) for key, array in arrays.items()]
            told = {"version": VERSION, "query": self.query, "operator": i, "is": name, "until": self.until}
            header = encoded({"kind": "synopsis", **told, "arrays": shapes})
            yield header, *(_bytes(array) for array in arrays.values() if array.size)


def _bytes(array: AnyArray) -> memoryview:
    data: memoryview = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
    return data


def kept_state(query: Query, copying: Copying | None = None) -> KeptState | None:
    """What a query can go on from in place of its past; None where it needs that, or its windows' rows are enough.
    copying: has the arrays when it has finished.
    """
    operators = _operators(query)
    if not operators or query.closed_until <= query.past_until:
        return None  # its rows would come behind the instant they are of
    kept = [node for node in nodes(query.logical) if _counts_all(node)]
    reach = reach_of(query.logical, kept)
    if len(kept) != len(operators) or reach is None:
        return None
    states = []
    for operator in operators:
        arrays = operator.state() if copying is None else copying.state_of(operator)
        if arrays is None:
            return None
        states.append((_named(operator), arrays))
    held = [op.codes() if copying is None else copying.codes_of(op) for op in operators]
    return KeptState(query.name, query.closed_until, tuple(states), held, reach)


def state_nbytes(query: Query) -> int:
    """About how much there is to copy of it."""
    return sum(each.nbytes for operator in _operators(query) for each in operator.synopses())


def _counts_all(node: Node) -> bool:
    """It aggregates, or tells apart, all rows of a stream so far."""
    if not isinstance(node, bound.Aggregate | bound.Distinct):
        return False
    windows, below = 0, node.input
    while isinstance(below, bound.ByRow | bound.Stamped | bound.Unnest | bound.Window):
        if isinstance(below, bound.Window):
            windows += 1
            if below.spec.kind is not WindowKind.UNBOUNDED:
                return False
        below = below.inputs[0]
    return windows == 1 and isinstance(below, bound.BaseStream)


def _operators(query: Query) -> list[Resuming]:
    """Those that do it."""
    return [op for op in query.network.operators if isinstance(op, Resuming) and _is_over_stream(op)]


def _is_over_stream(operator: Operator) -> bool:
    below = operator.inputs[0].producer
    while below is not None and below.is_stateless and len(below.inputs) == 1:
        below = below.inputs[0].producer
    return isinstance(below, StreamSource)


def _named(operator: Operator) -> str:
    description = operator.describe()
    return f"{description.name} {description.detail}".strip()


def resume(query: Query, fields: Fields, data: memoryview, where: str) -> None:
    """Let an operator of a query go on from what an entry holds. Error where this minidsms cannot read it."""
    if fields["version"] != VERSION:
        raise Error(f"{where}: version {fields['version']} of kept state; this minidsms reads {VERSION}")
    operators = _operators(query)
    operator = operators[fields["operator"]] if fields["operator"] < len(operators) else None
    if operator is None or _named(operator) != fields["is"]:
        has = f"query {query.name} has no operator {fields['is']!r} any more, whose state this is"
        raise NoSuchOperator(f"{where}: {has}", query.name.lower())
    group = query.network.group
    assert group is not None
    if group.users(operator) > 1:
        raise NoSuchOperator(f"{where}: another query is to have its past from elements", query.name.lower())
    arrays: dict[str, Any] = {}
    at = 0
    for name, dtype, shape in fields["arrays"]:
        n = int(np.prod(shape, dtype=np.int64))
        arrays[name] = np.frombuffer(data, dtype, n, at).reshape(shape).copy() if n else np.empty(shape, dtype)
        at += n * np.dtype(dtype).itemsize
    operator.resume(arrays, fields["until"])
    group.refit()  # it acts on time now


def texts_payload(dictionary: TextDictionary, codes: Sequence[AnyArray]) -> tuple[bytes | memoryview, ...] | None:
    """The entry that says which texts the codes stand for; None where there are none."""
    held = np.unique(np.concatenate(codes)) if codes else np.zeros(0, np.int64)
    held = held[held > 0]
    if not len(held):
        return None
    texts = [dictionary.text(code) for code in held.tolist()]
    batch = pa.record_batch([pa.array(held), pa.array(texts, pa.string())], _TEXTS)
    return encoded({"kind": "texts"}), memoryview(batch.serialize())


def take_texts(dictionary: TextDictionary, data: memoryview) -> None:
    """Let the texts of an entry have the codes they had."""
    batch = pa.ipc.read_record_batch(pa.py_buffer(data), _TEXTS)
    dictionary.take(batch.column(0).to_pylist(), batch.column(1).to_pylist())
