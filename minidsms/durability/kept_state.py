"""State that a checkpoint keeps as arrays, in place of the elements it came from.

That of the operators whose past is not among the elements that a plan reaches back to (`archive/horizon.py`): windows
by key and by session, aggregates and DISTINCT over all that has come, windows over derived streams, and so on. The rows
they put out follow from it, and so does the state of all that reads these.

Of an operator there is one entry of the log, `synopsis`, behind the one that creates its query: its header names the
arrays, their types and shapes, and after it they stand one behind the other, little-endian, in the order of C, cut
such that pieces do not change where they need not (`blocks.py`). Texts stand in them by their codes; the entry `texts`,
before all others, says which text has which.

Invariant: an operator goes on from kept state, and from what came later, or from elements, never from both.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from minidsms.archive.horizon import Reach, reach_of
from minidsms.cql.bound import Node, walk
from minidsms.cql.errors import Error
from minidsms.cql.stand_ins import are_digits
from minidsms.durability.blocks import Content, Piece
from minidsms.durability.copying import Copying, KeptArray, kept_arrays, nbytes_of
from minidsms.durability.entry import Fields
from minidsms.elements import MIN_INSTANT, AnyArray, words_width
from minidsms.engine.network import Network
from minidsms.operators.aggregate import Aggregate, GroupStates
from minidsms.operators.counting import CountingOperator
from minidsms.operators.lookup_join import LookupJoin
from minidsms.operators.lookup_row import LookupRow
from minidsms.operators.new_rows import NewRows
from minidsms.operators.operator import Operator
from minidsms.operators.over import Over
from minidsms.operators.resuming import Resuming
from minidsms.operators.stream_source import StreamSource
from minidsms.plan.copying import CannotCopy
from minidsms.plan.dividing import own
from minidsms.plan.logical import nodes
from minidsms.values.coded import code_of_digits, digits_of
from minidsms.values.dictionary import TextDictionary
from minidsms.values.types import MOST_DIGITS

if TYPE_CHECKING:
    from minidsms.query import Query

VERSION = 10
"""Of the arrays: what they are called and what stands in them. In version 1 they were those of one synopsis, called as
it calls them; in version 2 quantiles had none; in version 3 those of OVER on a stream were rows in order, and no
code of a text was computed; in version 4 a plan had other operators in the place of lookup
joins and of ISTREAM over NOW windows; in version 5 sums of DECIMAL and rows that look ahead were objects of Python in
OVER on a stream; in version 6 plans of correlated subqueries had one more projection, and one more key; in version 7
they had no expressions that are NULL where an operand fails; in version 8 MIN and MAX had deques by group in all
windows; in version 9 means of DECIMALs were computed of FLOATs.
"""
_CODES_AT_ONCE = 1 << 16
"""Texts stand together by their codes: each so many, used or not."""
_WORDS_OF_FEW_KEYS = 62
"""Keys of as many words and fewer have one for NULLs."""
_TEXTS = pa.schema([("code", pa.int64()), ("text", pa.string())])


class NoSuchOperator(Error):
    """A plan has none that could take a state. query: whose it is."""

    def __init__(self, message: str, query: str) -> None:
        super().__init__(
            f"{message}\nhelp: open the folder with the minidsms that wrote it, drop {query}, and CHECKPOINT"
        )
        self.query = query


@dataclass(frozen=True)
class KeptState:
    """What a query can go on from in place of its past. reach: the elements that are left to be kept beside it.

    operators: (which of the plan's operators, what it is called, its arrays) of those that have kept their state up to
    an instant, until.  held: codes of the texts in them, by operator.
    """

    query: str
    until: int
    reach: Reach
    operators: tuple[tuple[int, str, Mapping[str, KeptArray]], ...] = ()
    held: Sequence[Sequence[AnyArray]] = ()

    @property
    def codes(self) -> list[AnyArray]:
        """Of the texts in the arrays."""
        return [codes for each in self.held for codes in each]

    def entries(self) -> Iterator[tuple[Fields, list[Piece]]]:
        """What stands in the log: headers, and what follows them."""
        for place, name, arrays in self.operators:
            shapes = [(key, array.dtype, array.shape) for key, array in arrays.items()]
            told = {"version": VERSION, "query": self.query, "operator": place, "is": name, "until": self.until}
            yield (
                {"kind": "synopsis", **told, "arrays": shapes},
                [piece for array in arrays.values() for piece in array.pieces],
            )


def reach(query: Query, late: Collection[str]) -> Reach:
    """What a query has to be given to go on. late: see `reach_of`."""
    found = reach_of(query.logical, late=late)
    return reach_of(query.logical, lambda node: _keeps(query, node), late) if found.whole else found


def kept_state(query: Query, late: Collection[str] = (), copying: Copying | None = None) -> KeptState:
    """What a query can go on from in place of its past. late: see `reach_of`.  copying: has the arrays when it has
    finished.
    """
    if query.failure is not None:
        return KeptState(query.name, query.closed_until, Reach(whole="it failed, and was created with others"))
    found = Reach() if query.closed_until == MIN_INSTANT else reach(query, late)
    operators = _operators(query, found.kept) if not found.whole else []
    for operator in operators:
        if not operator.has_arrays:
            found.whole = found.whole or _named(operator)
    if (
        operators
        and query.past_until > MIN_INSTANT
        and (found.is_of_elements or query.closed_until <= query.past_until)
    ):
        found.whole = found.whole or "it began with a past"  # elements of it would come before the state is there
    if operators and query.began_with_archives and query.network.relations:
        found.whole = found.whole or "it began with a past of relations"
    if found.whole:
        return KeptState(query.name, query.closed_until, found)
    places = map(query.network.operators.index, operators)
    states = [kept_arrays(each) if copying is None else copying.state_of(each) for each in operators]
    held = [
        copying.codes_of(each) if copying is not None else [np.array(codes) for codes in each.codes()]
        for each in operators
    ]
    told = zip(places, map(_named, operators), states)
    return KeptState(query.name, query.closed_until, found, tuple(told), held)


def state_nbytes(query: Query, late: Collection[str] = ()) -> int:
    """About how much there is to copy of it."""
    operators = _operators(query, reach(query, late).kept) if query.failure is None else []
    return sum(each.nbytes for operator in operators for each in operator.synopses())


def _keeps(query: Query, node: Node) -> bool | None:
    operators = _operators(query, [node])
    return operators[-1].knows_rows if operators else None


def _operators(query: Query, nodes: Sequence[Node]) -> list[Resuming]:
    """Those that are the nodes, where they can go on from state."""
    network = query.network
    places = [place for node in nodes for place in network.places.get(node, ())]
    found = [network.operators[place] for place in places if place < len(network.operators)]
    return [operator for operator in found if isinstance(operator, Resuming)]


def _named(operator: Operator) -> str:
    description = operator.describe()
    return f"{description.name} {description.detail}".strip()


def resume(query: Query, fields: Fields, data: Content, where: str) -> None:
    """Let an operator of a query go on from what an entry holds. Error where this minidsms cannot read it."""
    if not 1 <= fields["version"] <= VERSION:
        told = f"version {fields['version']} of kept state; this minidsms reads up to {VERSION}"
        raise Error(f"{where}: {told}: open the folder with a later minidsms")
    network = query.network
    group = network.group
    assert group is not None
    is_first = fields["version"] == 1
    if is_first:
        place = _place_by_version_1(network, fields["operator"])
    elif fields["version"] < VERSION:
        place = _place_in_older_plan(query, fields)
    else:
        place = fields["operator"]
    if place < len(network.operators) and group.users(network.operators[place]) > 1:
        try:
            own(group, network)
        except CannotCopy:
            raise NoSuchOperator(
                f"{where}: another query is to have its past from elements", query.name.lower()
            ) from None
    operator = network.operators[place] if place < len(network.operators) else None
    if not isinstance(operator, Resuming) or not (
        _is_of(operator, fields) or _takes_numbered_rows(operator, network, fields)
    ):
        has = f"query {query.name} has no operator {fields['is']!r} any more, whose state this is"
        raise NoSuchOperator(f"{where}: {has}", query.name.lower())
    if _is_other_over(operator, fields) or _has_other_rows(operator, network, fields):
        raise NoSuchOperator(f"{where}: this minidsms keeps other state of {fields['is']!r}", query.name.lower())
    arrays: dict[str, Any] = {}
    for name, dtype, shape in fields["arrays"]:
        name = f"0.{name}" if is_first else name
        array = np.frombuffer(data.take(nbytes_of(dtype, shape)), np.uint8)
        array = array if array.flags.writeable else array.copy()
        arrays[name] = array.view(dtype).reshape(shape)
    if _had_constant_key(operator, fields):
        arrays = _without_constant_key(arrays, operator)
    operator.resume(arrays, fields["until"])
    group.refit()  # it acts on time now


def _is_other_over(operator: Resuming, fields: Fields) -> bool:
    """It is of an OVER on a stream that another operator has computed."""
    if operator.name != "Over" or operator.knows_rows:
        return False
    is_in_python = any(name == "1.partitions" and dtype == "|u1" for name, dtype, _ in fields["arrays"])
    return bool(fields["version"] < 4 or (fields["version"] < 6 and is_in_python) or _counts_equal(operator, fields))


def _has_other_rows(operator: Resuming, network: Network, fields: Fields) -> bool:
    """It is of an OVER whose rows had FLOATs where digits of DECIMALs are now, of which it computes a mean."""
    if fields["version"] >= 10 or operator.name != "Over":
        return False
    place = network.operators.index(operator)
    found = (below for node, places in network.places.items() if place in places for below in nodes(node))
    return any(are_digits(each) for below in found for expr in below.expressions for each in walk(expr))


def _takes_numbered_rows(operator: Resuming, network: Network, fields: Fields) -> bool:
    """It computes an aggregate of frames, and the state is of the same rows, as they were numbered to be joined with
    those of their frames. Up to the first such operator plans have the operators that they had then.
    """
    first = next((each for each in network.operators if isinstance(each, Over) and each.has_states), None)
    width = words_width(len(operator.inputs[0].schema))
    is_as_wide = any(name == "0.words" and shape[1] == width for name, _, shape in fields["arrays"])
    return operator is first and fields["is"] == "Over row_number" and is_as_wide


def _counts_equal(operator: Resuming, fields: Fields) -> bool:
    """It is of COUNT_DISTINCT with OVER, where equal values still counted again and again."""
    groups = operator.synopses()[0]
    is_distinct = any(".distinct" in name for name, _, _ in fields["arrays"])
    return isinstance(groups, GroupStates) and bool(groups.distinct) and not is_distinct


def _place_by_version_1(network: Network, n: int) -> int:
    """Which of the operators version 1 of kept state called the n-th: it had those of aggregates and DISTINCT that
    read a stream by operators without state.
    """
    found = [i for i, each in enumerate(network.operators) if isinstance(each, Aggregate | CountingOperator)]
    found = [i for i in found if _is_over_stream(network.operators[i])]
    return found[n] if n < len(found) else len(network.operators)


def _place_in_older_plan(query: Query, fields: Fields) -> int:
    """That of the first operator whose state it can be and that has none yet: others stood between, but the order is
    the same. Before there were look-ups it was not: only one may be in question there.
    """
    operators = query.network.operators
    if fields["version"] < 5 and any(isinstance(each, LookupJoin | LookupRow | NewRows) for each in operators):
        found = [i for i, each in enumerate(operators) if isinstance(each, Resuming) and _is_of(each, fields)]
        return found[0] if len(found) == 1 else len(operators)
    for each in _operators(query, reach(query, ()).kept):
        if each.counted_until == MIN_INSTANT and _is_of(each, fields):
            return operators.index(each)
    return int(fields["operator"])


def _is_of(operator: Resuming, fields: Fields) -> bool:
    """The state may be the operator's."""
    return _named(operator) == fields["is"] or _had_constant_key(operator, fields)


def _had_constant_key(operator: Resuming, fields: Fields) -> bool:
    """It is of a correlated subquery's groups that had the constant 1 as their first key."""
    if fields["version"] == 1 or fields["version"] >= 7 or not isinstance(operator, Aggregate):
        return False
    table, (_, _, calls) = operator.groups.table, operator.describe().detail.partition(": ")
    widths = [shape[1] for name, _, shape in fields["arrays"] if name == "0.keys"]
    had_one_more = table is not None and widths == [table.width + 1] and table.width < _WORDS_OF_FEW_KEYS
    return had_one_more and fields["is"].startswith("Aggregate by ") and fields["is"].endswith(f": {calls}")


def _without_constant_key(arrays: Mapping[str, Any], operator: Resuming) -> dict[str, Any]:
    """The state of such groups without that key: its word, its bit among the NULLs, and a column before the others."""
    assert isinstance(operator, Aggregate)
    keys = arrays["0.keys"]
    distinct = dict.fromkeys(name.split(".")[1] for name in arrays if name.startswith("0.distinct"))
    names = {old: f"distinct{column}" for old, column in zip(distinct, operator.groups.distinct)}
    parts = {name: name.split(".") for name in arrays}
    moved = {".".join(names.get(part, part) for part in parts[name]): array for name, array in arrays.items()}
    return {**moved, "0.keys": np.column_stack((keys[:, 1:-1], keys[:, -1] >> 1))}


def _is_over_stream(operator: Operator) -> bool:
    below = operator.inputs[0].producer
    while below is not None and below.is_stateless and len(below.inputs) == 1:
        below = below.inputs[0].producer
    return isinstance(below, StreamSource)


def texts_entry(dictionary: TextDictionary, codes: Sequence[AnyArray]) -> tuple[Fields, list[Piece]] | None:
    """The entry that says which texts the codes stand for; None where there are none."""
    held = np.unique(np.concatenate(codes)) if codes else np.zeros(0, np.int64)
    held = held[held > 0]
    if not len(held):
        return None
    batches = []
    for part in np.split(held, np.flatnonzero(np.diff(held // _CODES_AT_ONCE)) + 1):
        texts = [dictionary.text(code) for code in part.tolist()]
        batches.append(memoryview(pa.record_batch([pa.array(part), pa.array(texts, pa.string())], _TEXTS).serialize()))
    return {"kind": "texts", "version": VERSION, "batches": list(map(len, batches))}, [(batch,) for batch in batches]


def take_texts(dictionary: TextDictionary, fields: Fields, data: Content) -> None:
    """Let the texts of an entry have the codes they had."""
    parts = map(data.take, fields["batches"]) if "batches" in fields else [data.whole()]
    batches = [pa.ipc.read_record_batch(pa.py_buffer(part), _TEXTS) for part in parts]
    codes, texts = ([value for batch in batches for value in batch.column(i).to_pylist()] for i in (0, 1))
    if fields.get("version", 3) < 4 and any(map(_is_computed, texts)):
        told = "state with values of DECIMAL that an older minidsms has kept"
        raise Error(f"{told}: open the folder with that one, end the queries that hold them, and make a checkpoint")
    dictionary.take(codes, texts)


def _is_computed(text: str) -> bool:
    """It may be a DECIMAL whose code is computed by now."""
    return len(text) == MOST_DIGITS + 1 and text.isascii() and text.isdigit() and code_of_digits(digits_of(text)) != 0
