"""Elements in columns: what travels between operators.

An element is (row, ts, sign): a row that enters (+1) or leaves (-1) a relation at the instant ts; streams carry only
+1. A `Batch` is a run of elements in nondecreasing ts, one numpy array per column.

Invariants, relied on by every kernel:
  - within a batch ts is nondecreasing; within one instant deletions stand before insertions, and no single element is
    both inserted and deleted (transients are netted where they arise);
  - a NULL has `valid` False and value 0, so that equal rows have equal words;
  - a FLOAT is never NaN (NaN is NULL) and never -0.0, so that equal floats have equal bits (docs/semantics R4).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from minidsms.values.types import Type as Type

Int64Array = npt.NDArray[np.int64]
Int8Array = npt.NDArray[np.int8]
Int16Array = npt.NDArray[np.int16]
Int32Array = npt.NDArray[np.int32]
BoolArray = npt.NDArray[np.bool_]
AnyArray = npt.NDArray[np.generic]

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
MIN_INSTANT = INT64_MIN + 1
"""Progress of an input that has shown nothing yet: before every instant."""
MAX_INSTANT = INT64_MAX
"""Progress of an input that has ended: after every instant."""


def has_true(mask: BoolArray) -> bool:
    """As `mask.any()`, in a tenth of the time where there are few rows."""
    return 1 in mask.tobytes()


def is_all_true(mask: npt.NDArray[np.bool_] | npt.NDArray[np.uint8] | npt.NDArray[np.int8]) -> bool:
    """As `mask.all()`, likewise; also of bytes."""
    return 0 not in mask.tobytes()


@dataclass(frozen=True, slots=True)
class Field:
    """A named, typed column of a schema."""

    name: str
    type: Type

    def __str__(self) -> str:
        return f"{self.name} {self.type}"


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns of a stream or relation, in order. Names may repeat in a derived relation."""

    fields: tuple[Field, ...]
    types: tuple[Type, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Asked for by what works on every slice.
        object.__setattr__(self, "types", tuple(each.type for each in self.fields))

    @classmethod
    def of(cls, *columns: tuple[str, Type]) -> Schema:
        """A schema from (name, type) pairs.

        >>> str(Schema.of(("car", Type.INTEGER), ("speed", Type.FLOAT)))
        'car INTEGER, speed FLOAT'
        """
        return cls(tuple(Field(name, type_) for name, type_ in columns))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(each.name for each in self.fields)

    def unique_names(self, taken: Iterable[str]) -> tuple[str, ...]:
        """The names, whatever their case; one that repeats, or is taken, gets a number. taken: in lower case.

        >>> Schema.of(("k", Type.INTEGER), ("K", Type.INTEGER), ("ts", Type.INTEGER)).unique_names(["ts"])
        ('k', 'K_2', 'ts_2')
        """
        seen, unique = set(taken), []
        for name in self.names:
            new, n = name, 2
            while new.lower() in seen:
                new, n = f"{name}_{n}", n + 1
            seen.add(new.lower())
            unique.append(new)
        return tuple(unique)

    @property
    def coded(self) -> tuple[int, ...]:
        """The columns of codes, by their numbers."""
        return tuple(i for i, type_ in enumerate(self.types) if type_.is_coded)

    def __len__(self) -> int:
        return len(self.fields)

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields)

    def __getitem__(self, index: int) -> Field:
        return self.fields[index]

    def __add__(self, other: Schema) -> Schema:
        return Schema(self.fields + other.fields)

    def __str__(self) -> str:
        return ", ".join(map(str, self.fields))


class Column:
    """One column of n values.

    values: (n,) of the type's dtype.  valid: (n,) bool, or None when no value is NULL.
    """

    __slots__ = ("valid", "values")

    def __init__(self, values: AnyArray, valid: BoolArray | None = None) -> None:
        self.values = values
        self.valid = valid

    def __len__(self) -> int:
        return len(self.values)

    def copy(self) -> Column:
        """The same values in arrays of its own."""
        return Column(self.values.copy(), None if self.valid is None else self.valid.copy())

    def owned(self) -> Column:
        """The same values in arrays that are no views."""
        values, valid = self.values, self.valid
        if values.base is None and (valid is None or valid.base is None):
            return self
        return self.copy()

    def take(self, rows: Int64Array) -> Column:
        """The values at the given positions, (m,), in that order; also accepts a bool mask of n."""
        return Column(self.values[rows], None if self.valid is None else self.valid[rows])

    def slice(self, start: int, stop: int) -> Column:
        """The values from start to stop, without a copy."""
        return Column(self.values[start:stop], None if self.valid is None else self.valid[start:stop])

    def words(self) -> Int64Array:
        """The values as int64 words: equal values have equal words and unequal ones do not; NULL is 0."""
        kind = self.values.dtype.kind
        if kind == "f":
            return self.values.view(np.int64)
        if kind == "b":
            return self.values.astype(np.int64)
        return self.values  # type: ignore[return-value]

    @classmethod
    def from_words(cls, words: Int64Array, valid: BoolArray | None, type_: Type) -> Column:
        """The inverse of `words`."""
        if type_ is Type.FLOAT:
            return cls(np.ascontiguousarray(words).view(np.float64), valid)
        if type_ is Type.BOOLEAN:
            return cls(words.astype(np.bool_), valid)
        return cls(words, valid)

    @classmethod
    def concat(cls, columns: Sequence[Column]) -> Column:
        """The given columns, one after the other."""
        values = np.concatenate([column.values for column in columns])
        if all(column.valid is None for column in columns):
            return cls(values)
        masks = [np.ones(len(c), np.bool_) if c.valid is None else c.valid for c in columns]
        return cls(values, np.concatenate(masks))

    @classmethod
    def nulls(cls, n: int, type_: Type) -> Column:
        """n NULLs of the type."""
        return cls(np.zeros(n, type_.dtype), np.zeros(n, np.bool_))


class ColumnSource(Protocol):
    """Something columns can be gathered from by sequence number: a stream's store."""

    def gather(self, column: int, seq: Int64Array) -> Column:
        """The column's values of the elements with these sequence numbers."""


class RunSource(ColumnSource, Protocol):
    """One in which elements stand one after the other."""

    def view(self, column: int, start: int, stop: int) -> Column:
        """The column's values of the elements [start, stop)."""


class Choice:
    """Columns of batches, by their numbers.

    Batches of one operator name their columns of a store by one and the same sequence, push after push. So does what is
    chosen of them: whoever prepares something for a sequence need not do it again.
    """

    __slots__ = ("_known", "columns")

    def __init__(self, columns: Sequence[int]) -> None:
        self.columns = columns
        self._known: tuple[Sequence[int], Sequence[int]] | None = None

    def numbers(self, among: Sequence[int]) -> Sequence[int]:
        """Of the columns chosen, the numbers in the store that the batch's columns have there."""
        known = self._known
        if known is None or known[0] is not among:
            known = self._known = among, [among[i] for i in self.columns]
        return known[1]


class Batch:
    """A run of elements.

    ts: (n,) int64 instants, nondecreasing.
    sign: (n,) int8 of +1 and -1, or None when every sign is +1.
    seq: (n,) int64 arrival numbers in the windowed stream the rows come from, or None.  They identify an element (its
        deletion carries the number of its insertion); FIRST and LAST, and stores that keep references, live on them.
    columns: given as arrays, or left in `source` and gathered by seq when first read (references, not copies).
    words: (1 + columns, n) the instants, and behind them the columns, where these are words without NULLs that stand in
        one array, or None.
    is_run: the elements of the source as they stand there: they follow one another without a gap, under its instants.
    is_own: said by whoever makes it: its arrays are views of nothing that is written again, nor of much more than they
        hold, so that they may be kept as they are. Not passed on to what is made of it.
    is_netted: said by whoever makes it: no row is both deleted and inserted at an instant. Passed on to parts alone.
    """

    __slots__ = (
        "_columns",
        "_first",
        "_seq",
        "_source",
        "_source_columns",
        "is_netted",
        "is_own",
        "is_run",
        "sign",
        "ts",
        "words",
    )

    _first: int
    """Of a run, the number of its first element."""

    def __init__(
        self,
        ts: Int64Array,
        sign: Int8Array | None,
        columns: Sequence[Column],
        seq: Int64Array | None = None,
        is_own: bool = False,
    ) -> None:
        self.ts = ts
        self.sign = sign
        self._seq = seq
        self.is_own = is_own
        self.is_netted = False
        self._columns: list[Column | None] = list(columns)
        self._source: ColumnSource | None = None
        self._source_columns: Sequence[int] = ()
        self.is_run = False
        self.words: Int64Array | None = None

    @classmethod
    def of_words(cls, words: Int64Array, sign: Int8Array | None, is_own: bool = False) -> Batch:
        """A batch of such words; columns are made of them when read."""
        batch = cls.__new__(cls)
        batch.ts, batch.sign, batch._seq, batch.is_own, batch.is_netted = words[0], sign, None, is_own, False
        batch._columns, batch.words = [None] * (len(words) - 1), words
        batch._source, batch._source_columns, batch.is_run = None, (), False
        return batch

    @classmethod
    def referring(
        cls,
        ts: Int64Array,
        sign: Int8Array | None,
        seq: Int64Array,
        source: ColumnSource,
        source_columns: Sequence[int],
    ) -> Batch:
        """A batch whose column i is column source_columns[i] of the source, at seq; gathered when read.

        The source keeps these elements as long as the engine is not at rest (ARCHITECTURE.md, "References").
        """
        batch = cls.__new__(cls)
        batch.ts, batch.sign, batch._seq, batch.is_own, batch.is_netted = ts, sign, seq, False, False
        batch._columns, batch.words = [None] * len(source_columns), None
        batch._source, batch._source_columns, batch.is_run = source, source_columns, False
        return batch

    @classmethod
    def run(cls, ts: Int64Array, first: int, source: RunSource, source_columns: Sequence[int]) -> Batch:
        """A batch of insertions that refers to the elements of the source from `first` on, as they stand there; seq is
        written out when first read.
        """
        batch = cls.__new__(cls)
        batch.ts, batch.sign, batch._seq, batch.is_own, batch.is_netted = ts, None, None, False, False
        batch._first, batch._columns = first, [None] * len(source_columns)
        batch._source, batch._source_columns, batch.is_run, batch.words = source, source_columns, True, None
        return batch

    @property
    def seq(self) -> Int64Array | None:
        """See above. A property: where a class has `__getattr__` every attribute is looked up anew, for 30 ns."""
        seq = self._seq
        if seq is None and self.is_run:
            seq = self._seq = np.arange(self._first, self._first + len(self.ts), dtype=np.int64)
        return seq

    def __len__(self) -> int:
        return len(self.ts)

    @property
    def width(self) -> int:
        """How many columns there are."""
        return len(self._columns)

    @property
    def row_nbytes(self) -> int:
        """Bytes an element takes; the columns of references stand in their store. NULL masks are left out."""
        nbytes = 8 if self._source is not None else 8 + 8 * len(self._columns)
        if self.is_run or self._seq is not None:
            nbytes += 8
        return nbytes if self.sign is None else nbytes + 1

    @property
    def reference(self) -> tuple[ColumnSource, Sequence[int]] | None:
        """(store, column numbers in it) when the rows still stand in a store under `seq`, else None."""
        return None if self._source is None else (self._source, self._source_columns)

    @property
    def first_seq(self) -> int:
        """The arrival number of the first element, of which there is one."""
        return self._first if self.is_run else self.seq.item(0)  # type: ignore[union-attr]

    @property
    def signs(self) -> Int8Array:
        """The signs, written out."""
        if self.sign is not None:
            return self.sign
        signs: Int8Array = np.empty(len(self.ts), np.int8)
        signs.fill(1)  # `np.ones` takes three times as long for few
        return signs

    def column(self, index: int) -> Column:
        """One column, gathered on first use."""
        column = self._columns[index]
        if column is None:
            source = self._source
            if source is None:
                column = Column(self.words[1 + index])  # type: ignore[index]
            elif self.is_run:
                first, number = self._first, self._source_columns[index]
                column = source.view(number, first, first + len(self.ts))  # type: ignore[attr-defined]
            else:
                column = source.gather(self._source_columns[index], self.seq)  # type: ignore[arg-type]
            self._columns[index] = column
        return column

    @property
    def columns(self) -> Sequence[Column]:
        """All columns, gathered."""
        columns = self._columns
        if None in columns:
            for i in range(len(columns)):
                self.column(i)
        return columns  # type: ignore[return-value]

    def columns_at(self, indexes: Sequence[int], rows: Int64Array) -> list[Column]:
        """These columns of the elements at these positions (ascending), in arrays of their own: `select`, `take`, and
        no batch between.
        """
        source, numbers = self._source, self._source_columns
        if source is None or not (self.is_run or self.seq is not None):
            return [self.column(i).take(rows) for i in indexes]
        seq: Int64Array = self._first + rows if self.is_run else self.seq[rows]  # type: ignore[index]
        # Of elements that follow one another a store gives views, which are written again.
        gathered = [source.gather(numbers[i], seq) for i in indexes]
        return [column if column.values.base is None else column.copy() for column in gathered]

    def take(self, rows: Int64Array | BoolArray) -> Batch:
        """The elements at these positions (ascending) or where the mask is True; references stay references."""
        referring = self._source is not None
        seq: Int64Array | None
        if self.is_run and rows.dtype != np.bool_:
            seq = self._first + rows
        else:
            seq = None if self.seq is None else self.seq[rows]
        # Of a reference, what is not read again need not be copied.
        columns = [None] * self.width if referring else [c.take(rows) for c in self.columns]  # type: ignore[arg-type]
        batch = Batch(self.ts[rows], None if self.sign is None else self.sign[rows], columns, seq)  # type: ignore[arg-type]
        batch._source, batch._source_columns = self._source, self._source_columns
        return batch

    def slice(self, start: int, stop: int) -> Batch:
        """The elements from start to stop, without a copy."""
        if self.is_run:
            batch = Batch.run(self.ts[start:stop], self._first + start, self._source, self._source_columns)  # type: ignore[arg-type]
        else:
            seq = None if self.seq is None else self.seq[start:stop]
            batch = Batch(self.ts[start:stop], None if self.sign is None else self.sign[start:stop], (), seq)
            batch._source, batch._source_columns = self._source, self._source_columns
        columns = self.columns if self._source is None else self._columns
        batch._columns = [None if c is None else c.slice(start, stop) for c in columns]
        batch.is_netted = self.is_netted
        return batch

    def select(self, choice: Choice) -> Batch:
        """The same elements with only these columns, in this order; references stay references."""
        if self._source is None:
            return Batch(self.ts, self.sign, [*map(self.columns.__getitem__, choice.columns)], self._seq)
        columns = [*map(self._columns.__getitem__, choice.columns)]
        return self._referring(choice.numbers(self._source_columns), columns)

    def stamped(self) -> Batch:
        """The same references into a stream's store, and to the instants it has of the elements as a last column."""
        numbers = self._source.stamped(self._source_columns)  # type: ignore[union-attr]
        return self._referring(numbers, [*self._columns, Column(self.ts)])

    def _referring(self, numbers: Sequence[int], columns: list[Column | None]) -> Batch:
        """The same elements with other columns of the source. columns: those that have been gathered."""
        if self.is_run:
            batch = Batch.run(self.ts, self._first, self._source, numbers)  # type: ignore[arg-type]
        else:
            batch = Batch.referring(self.ts, self.sign, self.seq, self._source, numbers)  # type: ignore[arg-type]
        batch._columns = columns
        return batch

    def with_columns(self, columns: Sequence[Column]) -> Batch:
        """The same elements with computed columns."""
        return Batch(self.ts, self.sign, columns, self.seq)

    def owned(self) -> Batch:
        """The same rows in arrays of their own, which may be kept; their arrival numbers are left behind."""
        if self.is_own:
            return self
        ts, sign = self.ts, self.sign
        if sign is not None and sign.base is not None:
            sign = sign.copy()
        if self.words is not None:
            return Batch.of_words(self.words.copy(), sign, is_own=True)
        return Batch(ts if ts.base is None else ts.copy(), sign, [c.owned() for c in self.columns], is_own=True)

    @classmethod
    def concat(cls, batches: Sequence[Batch]) -> Batch:
        """Batches of one schema, one after the other; all ts must be nondecreasing across them."""
        if len(batches) == 1:
            return batches[0]
        ts = np.concatenate([b.ts for b in batches])
        sign = None if all(b.sign is None for b in batches) else np.concatenate([b.signs for b in batches])
        seq = None
        if all(b.seq is not None for b in batches):
            seq = np.concatenate([b.seq for b in batches if b.seq is not None])
        first = batches[0]
        if first._source is not None and all(
            b._source is first._source and list(b._source_columns) == list(first._source_columns) for b in batches
        ):
            assert seq is not None
            return cls.referring(ts, sign, seq, first._source, first._source_columns)
        columns = [Column.concat([b.column(i) for b in batches]) for i in range(first.width)]
        return cls(ts, sign, columns, seq)

    @classmethod
    def empty(cls, schema: Schema) -> Batch:
        """No elements of the schema."""
        return cls(
            np.zeros(0, np.int64), None, [Column(np.zeros(0, t.dtype)) for t in schema.types], np.zeros(0, np.int64)
        )


def valid_in_all(masks: Iterable[BoolArray | None]) -> BoolArray | None:
    """Where each of the masks, None for one that is everywhere true, is true; None: everywhere."""
    result: BoolArray | None = None
    for valid in masks:
        if valid is not None:
            result = valid if result is None else result & valid
    return result


def arrays_of_columns(columns: Iterable[Column]) -> dict[str, AnyArray]:
    """Copies of what columns are made of, by names, as a state is kept."""
    state: dict[str, AnyArray] = {}
    for i, column in enumerate(columns):
        state[f"values{i}"] = column.values.copy()
        if column.valid is not None:
            state[f"valid{i}"] = column.valid.copy()
    return state


def columns_of_arrays(state: Mapping[str, AnyArray], count: int) -> list[Column]:
    """The inverse of `arrays_of_columns`, of so many columns."""
    masks = [state.get(f"valid{i}") for i in range(count)]
    return [Column(state[f"values{i}"], None if m is None else m.astype(np.bool_)) for i, m in enumerate(masks)]


def row_words(columns: Sequence[Column]) -> Int64Array:
    """Rows as words, (n, k + 1) C-contiguous int64: the k columns' words, then a bit mask of the NULLs.

    Two rows are equal (NULL equal to NULL, as groups, DISTINCT and set operators want it) when their words are. More
    than 62 columns spread the mask over further words.
    """
    k = len(columns)
    n = len(columns[0]) if columns else 0
    words = np.zeros((n, words_width(k)), np.int64)
    for i, column in enumerate(columns):
        words[:, i] = column.words()
        if column.valid is not None:
            words[:, k + i // 62] |= (~column.valid).astype(np.int64) << (i % 62)
    return words


def words_width(columns: int) -> int:
    """How many words `row_words` makes of a row of so many columns."""
    return columns + columns // 62 + 1


def columns_of_words(words: Int64Array, schema: Schema) -> list[Column]:
    """The inverse of `row_words`."""
    k = len(schema)
    has_nulls = np.count_nonzero(words[:, k:]) > 0
    columns = []
    for i, type_ in enumerate(schema.types):
        valid: BoolArray | None = None
        if has_nulls:
            valid = (words[:, k + i // 62] >> (i % 62)) & 1 == 0
            valid = None if valid.all() else valid
        columns.append(Column.from_words(words[:, i].copy(), valid, type_))
    return columns
