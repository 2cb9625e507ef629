"""KMonJoin: the equi-join of windows along a tree of joins, which keeps only the rows that can still matter.

Where no two rows of a stream agree in the columns it is joined by (its key), a row that has met its child meets no
other: a row at the root of the tree goes as soon as it has made its result, and whoever waits for a row that will never
be part of one goes with it (Babu 2005, sections 6.3 to 6.3.2). What is not needed goes in bulk, when room for new rows
is made. Without that (`reduces` False) this is SWJ, the baseline of the thesis: a sliding-window join that drops only
what filters exclude, and the columns that no one reads (section 6.1.5).

The join takes streams, not windows, and holds rows of its own, so that no window need hold them. Of a relation it
takes the changes, and holds its rows until they are deleted: they may be updated, and then whoever has met the old
version meets the new one. The contract is that of `joins.join`: at every instant the answer is the join of what
the windows and relations hold.

Invariant: what is held, and the results that hold, decide every answer to come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import numpy as np

from minidsms.cql.window_spec import WindowKind, WindowSpec
from minidsms.elements import MAX_INSTANT, Batch, BoolArray, Column, Int8Array, Int64Array, Schema
from minidsms.expressions.failures import short
from minidsms.joins import answer
from minidsms.joins.directed_graph import Edge, orientation, pipelines
from minidsms.kernels import k_mon_reduction as reduction
from minidsms.kernels.arrays import normal
from minidsms.kernels.join_layout import CROWDED, DONE, FILL, FULL, PAUSED, START, JoinRun, JoinState, Output, Walk
from minidsms.kernels.k_mon_elements import VIOLATED
from minidsms.kernels.k_mon_keys import Progress, Reduced
from minidsms.kernels.k_mon_results import KEPT, NO_DELETIONS, PROBED
from minidsms.kernels.k_mon_rows import CHANGES, RANGE, ROWS, UNBOUNDED
from minidsms.kernels.mjoin import reduced_mjoin
from minidsms.machine_code import rows_of
from minidsms.operators.k_mon.contracts import KConstraint, Watches
from minidsms.operators.k_mon.execution import StateReduction
from minidsms.operators.k_mon.returning import Found
from minidsms.operators.operator import Description, Operator
from minidsms.queues import Queue
from minidsms.synopses.k_mon_results import KeptResults
from minidsms.synopses.k_mon_rows import KMonRows, Window, key_hash
from minidsms.values.dictionary import TextDictionary

_PART = 1 << 11
"""Elements of one input for which there is room, at least, when a part is taken in: so many rows stand there that may
not be needed."""

_TUPLES = 1 << 14
"""Rows of output in a batch."""


@dataclass(frozen=True)
class _Arrival:
    """Elements of an input: their instants and numbers, which are kept, and the columns of those; which of the kept are
    deletions (None: none).
    """

    ts: Int64Array
    numbers: Int64Array
    kept: BoolArray
    columns: list[Column]
    leaving: BoolArray | None = None


@dataclass(frozen=True, eq=False)
class KMonSpec:
    """What a join of windows is asked for, and which rows it may let go.

    edges: a tree over the inputs.  windows: how long rows of each stay; of a relation, its changes.
    columns: the (input, column) of each output column; schema: theirs.
    passes: of each input, a BOOLEAN column that is TRUE for the rows that pass its filter, which is none of the
    answer's; None: all pass. A window that counts rows counts the others, too.
    for_istream: the consumer is ISTREAM, so that deletions are wanted only where something is inserted.
    unique: where ISTREAM shows a declared key of each root, so that its rows are never equal: the columns of these,
    by input.
    reduces: k-Mon; else SWJ.  is_lossy, trusts_keys: see `SET k_mon`.  names: of the inputs, in words.
    """

    edges: Sequence[Edge]
    windows: Sequence[Window]
    columns: Sequence[tuple[int, int]]
    schema: Schema
    passes: Sequence[int | None] | None = None
    for_istream: bool = False
    unique: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    reduces: bool = True
    is_lossy: bool = False
    trusts_keys: bool = False
    names: Sequence[str] | None = None


@dataclass(frozen=True, eq=False)
class Surroundings:
    """Whom a reduced join asks and tells.

    watch: gives the constraints of the join; without, keys alone are used.  may_adapt: asked whenever constraints are
    to be used.  texts: to name rows that violate a key.  tell: told of the instant and the rows when one is violated.
    warn: told what goes wrong beside the answer.
    forced, collects_always: for tests: rows that are not needed go after every slice, and k of every constraint is
    drawn at random.
    """

    watch: Callable[[KMonJoin], Watches] | None = None
    may_adapt: Callable[[], bool] | None = None
    texts: TextDictionary | None = None
    tell: Callable[[Operator, int, str], None] | None = None
    warn: Callable[[str], None] | None = None
    forced: Random | None = None
    collects_always: bool = False


ALONE = Surroundings()


class KMonJoin(Operator):
    """The rows of all inputs, streams or relations, side by side where every equality holds."""

    name = "KMonJoin"

    def __init__(self, inputs: Sequence[Queue], spec: KMonSpec, around: Surroundings = ALONE) -> None:
        edges, windows, reduces, is_lossy = spec.edges, spec.windows, spec.reduces, spec.is_lossy
        forced = around.forced
        super().__init__(inputs, spec.schema)
        n = len(inputs)
        self.edges, self.windows = tuple(edges), tuple(windows)
        self.outputs_of = tuple(spec.columns)
        self.passes = tuple(spec.passes) if spec.passes is not None else (None,) * n
        self.for_istream = spec.for_istream
        self.unique = dict(spec.unique) if spec.for_istream and reduces else {}
        self.texts, self.tell, self.warn = around.texts, around.tell, around.warn
        self.stands_for: Operator = self
        """Whose violations it tells of: those of the join that it works for."""
        self.trusts_keys = spec.trusts_keys or is_lossy
        self.reduces, self.is_lossy = reduces, is_lossy
        self.collects_always = around.collects_always or forced is not None
        self.names = tuple(spec.names) if spec.names is not None else tuple(f"input {i}" for i in range(n))
        needed = [[c for k, c in self.outputs_of if k == i] for i in range(n)]
        schemas = [q.schema for q in inputs]
        self.rows = KMonRows(schemas, edges, windows, needed, reduces, reduces and around.watch is not None)
        self.down, self.roots = orientation(n, edges)
        single = len(self.roots) == 1
        has_changes = any(w.clock == CHANGES for w in windows)
        self._probes_later = spec.for_istream and not has_changes
        if self.unique:
            # Rows that are equal after all come back, and are told apart by what leaves. So are those of a row that
            # joins another version of the same row of a relation.
            self.deletions = NO_DELETIONS if self.trusts_keys and not has_changes else PROBED
        else:
            self.deletions = KEPT if reduces and single and not has_changes else PROBED
        if reduces and single and self.trusts_keys and self.deletions != PROBED:
            self._let_leave_at_once(self.roots[0])
        self._pipelines = self.rows.pipelines(pipelines(n, edges))
        self.results = KeptResults(self.schema, self.rows.heaps)
        self.reduction: StateReduction | None = None
        if reduces:
            watching = None if around.watch is None else around.watch(self)
            keeps_full = self.deletions == PROBED and not self.unique
            relied_on = {} if self.trusts_keys else self.unique
            self.reduction = StateReduction(
                self.rows, edges, keeps_full, watching, self.trusts_keys, is_lossy, relied_on
            )
            self.reduction.may_adapt = around.may_adapt
            if not is_lossy:
                self.reduction.forced = forced
        self._follows_keys = (
            self.deletions == PROBED and self.reduction is not None and not (has_changes or self.unique)
        )
        """How deletions come depends on keys that are found."""
        self.notices: list[str] = []
        """What has turned out about the inputs that their declarations deny."""
        self._told_of: set[int] = set()
        self._told_trouble = ""
        self._run = _beginning(n, self.for_istream)
        self._state, self._progress = self._run.state, Progress(waiting=-1)
        self._runs: Int64Array = np.zeros((64, 3), np.int64)
        self._buffers = _buffers(64, len(self.outputs_of))
        self._outs = self._output_places()
        self._closed = int(self.progress)

    def _let_leave_at_once(self, root: int) -> None:
        """Rows of the root that yield a result are not kept where keys say that they yield no other."""
        sides = self.rows.sides
        own = [s for s in range(len(sides)) if sides["stream"][s] == root]
        all_keys = all(sides["unique"][s ^ 1] for s in self.down)
        self.rows.figures["leaves_at_once"][root] = all_keys and not any(sides["unique"][s] for s in own)

    # ------------------------------------------------------------------------------------------------ the slice

    def process(self, batches: Sequence[Batch | None], until: int) -> Iterable[Batch]:
        """Join the batches' elements; one batch of output per full buffer."""
        try:
            yield from self._process(batches, until)
        except OSError as error:
            reason, names = error.strerror or str(error), ", ".join(self.names)
            self.fail(self._closed + 1, f"what is out of memory of {names} cannot be read or written: {reason}")

    def _process(self, batches: Sequence[Batch | None], until: int) -> Iterable[Batch]:
        for part, last in _parts(batches, self._room_for):
            self._arrive(part)
            yield from self._join(min(last, until))
            if self.failure is not None:
                return
        if until > self._closed:
            self._quiet()
            yield from self._join(until)
        if self.collects_always:
            self.collect(self._closed)
        self.results.settle()

    def _room_for(self, needs: Sequence[int]) -> list[int]:
        """Make room for so many rows of each input, where there is none; returns for how many there is."""
        rooms = self.rows.rooms()
        if any(room < need for room, need in zip(rooms, needs)):
            self.collect(self._closed, needs)
            rooms = self.rows.rooms()
        return rooms

    def _join(self, until: int) -> Iterator[Batch]:
        state = self._state
        state.closed = until
        found, status = 0, -1
        while status != DONE:
            found = self._find(self.deletions, found)
            status = state.status
            if status in (CROWDED, PAUSED):
                pass
            elif status == FULL and state.leaving:
                begun = state.first
                if begun:
                    yield self._output(begun)
                self._keep_instant(begun, found)
                found -= begun
            elif found and not (status == VIOLATED and state.leaving):
                yield self._output(found)
                found = 0
                state.first = -1
                if status == FULL and len(self._buffers[1]) < _TUPLES:
                    self._buffers = _buffers(_TUPLES, len(self.outputs_of))
            if status == VIOLATED:
                self._violated()
                if self.failure is not None:
                    if state.leaving and state.first > 0:
                        yield self._output(state.first)
                    return
        if len(self._buffers[1]) > _TUPLES:
            self._buffers = _buffers(_TUPLES, len(self.outputs_of))
        self._closed = max(self._closed, until)

    def _find(self, deletions: int, found: int) -> int:
        """Go on, behind so many rows found; returns how many there are, the state how the call ended."""
        results, progress, later = self.results, self._progress, self._probes_later and deletions == PROBED
        progress.top = results.top
        reduced = Reduced(self.rows.bundle, self._runs, self._outs, results.bundle, progress, deletions, later)
        found = reduced_mjoin(reduced, self._pipelines, self._run, Output(*self._buffers), found)
        results.top = progress.top
        if self._state.status == CROWDED:
            self.claim(2 * results.nbytes)
            results.grow()
        elif self._state.status == PAUSED:
            self.claim(0)  # the call may have taken too long
        return found

    def _keep_instant(self, first: int, found: int) -> None:
        """The buffer is full, and what stands there from `first` on is of an instant that is not complete."""
        held = found - first
        self.claim(2 * held * 8 * (len(self.outputs_of) + 3))
        out, ts, sign = _buffers(max(_TUPLES, 2 * held), len(self.outputs_of))
        old_out, old_ts, old_sign = self._buffers
        out[:held], ts[:held], sign[:held] = old_out[first:found], old_ts[first:found], old_sign[first:found]
        self._buffers = out, ts, sign
        self._state.first -= first
        self._state.middle -= first

    def _arrive(self, part: Sequence[Batch | None]) -> None:
        """Write a part's rows behind those held."""
        rows = self.rows
        total = sum(len(b) for b in part if b is not None)
        if total > len(self._runs):
            self._runs = np.zeros((total, 3), np.int64)
        if self.reduction is not None and self.reduction.watching is not None:
            is_forced = self.reduction.forced is not None
            self.reduction.watching.observe(part, rows.figures["total"].tolist(), is_forced)
        arrivals = [None if batch is None else self._arrival(i, batch) for i, batch in enumerate(part)]
        for i, arrival in enumerate(arrivals):
            # Moves what is held, and so comes before any row waits.
            if arrival is not None and any(c.valid is not None and not c.valid.all() for c in arrival.columns):
                rows.take_nulls(i)
                self._outs = self._output_places()
        waiting = rows.figures["end"].tolist()
        for i, arrival in enumerate(arrivals):
            if arrival is not None and len(arrival.columns[0]):
                ts, numbers = arrival.ts[arrival.kept], arrival.numbers[arrival.kept]
                rows.append(i, ts, numbers, arrival.columns, arrival.leaving)
        if self.reduction is not None:
            first = min((int(a.ts[0]) for a in arrivals if a is not None and len(a.ts)), default=self._closed)
            found = self.reduction.recall(waiting, first)
            if found is not None and (found.repeated or found.repeated_roots):
                self._repeated(found, arrivals)
        at = 0
        for i, arrival in enumerate(arrivals):
            rows.records[i].run = rows.records[i].runs_end = at
            if arrival is not None:
                at = rows.arrive(i, arrival.ts, arrival.kept, self._runs, at)
                if rows.figures["clock"][i] != ROWS:
                    rows.figures["total"][i] += len(arrival.ts)

    def _arrival(self, i: int, batch: Batch) -> _Arrival:
        """What is kept of a part of an input; the keys of what its filter drops are dead."""
        kept = self._kept(i, batch)
        ts = normal(batch.ts)
        first = int(self.rows.figures["total"][i])
        numbers = np.arange(first, first + len(batch), dtype=np.int64)
        if self.reduction is not None and not kept.all():
            clock = numbers if self.rows.figures["clock"][i] == ROWS else ts
            self.reduction.bury(i, clock, batch.column, ~kept, batch.sign)
        chosen = batch if kept.all() else batch.take(kept)
        leaving = None if chosen.sign is None else chosen.sign < 0
        return _Arrival(ts, numbers, kept, [chosen.column(c) for c in self.rows.columns[i]], leaving)

    def _kept(self, i: int, batch: Batch) -> BoolArray:
        """The rows that pass the filter and have no NULL in a column of a join: the others join nothing, ever."""
        kept = np.ones(len(batch), np.bool_)
        place = self.passes[i]
        if place is not None:
            flag = batch.column(place)
            kept = flag.values.astype(np.bool_)
            if flag.valid is not None:
                kept &= flag.valid
        for c in self._joined(i):
            valid = batch.column(c).valid
            if valid is not None:
                kept &= valid
        return kept

    def _joined(self, i: int) -> set[int]:
        """The columns by which an input is joined."""
        return {pair[k] for edge in self.edges for k in (0, 1) if edge.ends[k] == i for pair in edge.columns}

    def _quiet(self) -> None:
        """No arrivals: time alone passes."""
        self.rows.inputs["run"] = self.rows.inputs["runs_end"] = 0

    def _output_places(self) -> Int64Array:
        places = []
        for i, c in self.outputs_of:
            mask_at = int(self.rows.figures["mask_at"][i])
            places.append((i, self.rows.places[i][c], mask_at, self.rows.bits[i][c]))
        return np.array(places, np.int64).reshape(-1, 4)

    def _output(self, found: int) -> Batch:
        out, ts, sign = self._buffers
        masks = out[:found, -1]
        has_nulls = bool(masks.any())
        columns = []
        for c, each in enumerate(self.schema):
            valid = (masks >> c) & 1 == 0 if has_nulls else None
            columns.append(Column.from_words(out[:found, c].copy(), valid, each.type))
        signs = sign[:found]
        return Batch(ts[:found].copy(), signs.copy() if (signs < 0).any() else None, columns)

    def collect(self, until: int, needs: Sequence[int] | None = None) -> None:
        """Let go what is not needed at `until`, and make room."""
        needs = [0] * len(self.inputs) if needs is None else needs
        if self.reduction is not None:
            self.reduction.collect(until, needs)
            self._doubt(until)
            if self.reduction.trouble not in ("", self._told_trouble):
                self._tell_trouble(self.reduction.trouble)
            if self._follows_keys:
                self._follow_keys()
                if any(self.rows.room(i) < need for i, need in enumerate(needs)):
                    self.rows.make_room(needs)  # what has come back has taken it
        else:
            reduction.expire(self.rows.bundle, until)
            self.rows.make_room(needs)

    def _follow_keys(self) -> None:
        """Where keys that were found leave one root, keep the results that hold, no more of them than its rows, and let
        go the rows that they were made of; else keep those rows. What has gone for good forbids the way back.
        """
        assert self.reduction is not None
        keys = self.rows.sides["unique"].astype(bool).tolist()
        edges = [replace(e, left_key=keys[2 * n], right_key=keys[2 * n + 1]) for n, e in enumerate(self.edges)]
        roots = orientation(len(self.inputs), edges)[1]
        if len(roots) == 1 and self.deletions == PROBED:
            self._keep_results(roots[0])
            self.deletions, self.reduction.keeps_full = KEPT, False
        elif len(roots) > 1 and self.deletions == KEPT and not self.trusts_keys:
            self.reduction.bring_back()
            self.results = KeptResults(self.schema, self.rows.heaps)
            self.deletions, self.reduction.keeps_full = PROBED, True

    def _keep_results(self, root: int) -> None:
        """Keep those that hold now; their rows are all in memory."""
        inputs, state = self.rows.inputs, self._state
        inputs["probe_lo"] = inputs["lo"]
        state.phase, state.input, state.slot = FILL, root, self.rows.records[root].lo - 1
        while state.phase != START:
            self._find(KEPT, 0)
            self.claim(0)  # where many are found, the buffer fills before as many slots are inspected as a call may

    def _tell_trouble(self, trouble: str) -> None:
        """Rows that are not needed stay all the same."""
        self._told_trouble = trouble
        message = (
            f"rows of {', '.join(self.names)} stay in memory, for they cannot be written to the temporary folder: "
            f"{trouble}; make room there, or name another by TMPDIR"
        )
        self.notices.append(message)
        if self.warn is not None:
            self.warn(message)

    # ------------------------------------------------------------------------------------------------- violations

    def _violated(self) -> None:
        """The kernel has met two rows of a stream that agree in what is taken for a key of it; it may go on."""
        state, rows, reduction = self._state, self.rows, self.reduction
        assert reduction is not None
        i = state.input
        pair = [rows.view(i, int(s), int(s) + 1) for s in (self._progress.other, state.slot)]
        names = self.inputs[i].schema.names
        first, second = (f"({'; '.join(self._row_text(i, row, names))}) at {row[0, 0]}" for row in pair)
        sides = [s for s in reduction.sides_of[i] if rows.sides["unique"][s]]
        sides = [s for s in sides if (pair[0][:, rows.parts_of(s)] == pair[1][:, rows.parts_of(s)]).all()]
        self._give_up(state.instant, sides, i, f"the rows {first} and {second} have the same")

    def _repeated(self, found: Found, arrivals: Sequence[_Arrival | None]) -> None:
        """Rows are about to come that have the keys of others of their streams, whether those are still held or not."""
        assert self.reduction is not None
        for s, key in found.repeated.items():
            i = int(self.rows.sides["stream"][s])
            self._give_up(*self._came(i, [pair[s % 2] for pair in self.edges[s // 2].columns], key, arrivals, [s]))
        for i, key in found.repeated_roots.items():
            # From now on its rows may be equal, and what leaves tells which are.
            self.reduction.keeps_full = True
            if i not in self._told_of:
                self._told_of.add(i)
                instant, _, _, text = self._came(i, self.unique[i], key, arrivals, [])
                self._tell(instant, i, text)

    def _came(
        self, i: int, columns: Sequence[int], key: int, arrivals: Sequence[_Arrival | None], sides: list[int]
    ) -> tuple[int, list[int], int, str]:
        """The row with this key that is about to come, in words; see `_give_up`."""
        arrival = arrivals[i]
        assert arrival is not None
        kept = self.rows.columns[i]
        words = np.stack([arrival.columns[kept.index(c)].words() for c in columns], axis=1)
        at = int(np.argmax(key_hash(words) == key))
        instant = int(arrival.ts[arrival.kept][at])
        names = self.inputs[i].schema.names
        cells = [self._text(i, c, column, at, names) for c, column in zip(kept, arrival.columns)]
        return instant, sides, i, f"the row ({'; '.join(cells)}) at {instant} has that of an earlier one"

    def _give_up(self, instant: int, sides: Sequence[int], i: int, text: str) -> None:
        """Rely on the columns of these sides no more; tell, where they were declared a key."""
        assert self.reduction is not None
        reduction = self.reduction
        broken = [s for s in sides if reduction.declared[s] and s not in reduction.violated]
        self.rows.sides["unique"][list(sides)] = 0
        reduction.violated |= set(broken)
        if reduction.watching is not None:
            reduction.watching.refute_keys(sides)
        if broken:
            self._tell(instant, i, text)

    def _tell(self, instant: int, i: int, text: str) -> None:
        """A declared key of an input is violated."""
        message = f"KEY of {self.names[i]}{_window_text(self.windows[i])} is violated: {text}"
        if self.trusts_keys and not self.is_lossy and self.windows[i].clock != CHANGES:
            self.fail(instant, f"{message}; declare the stream without it, or SET k_mon = 'exact'")
            return
        self.notices.append(message)
        if self.tell is not None:
            self.tell(self.stands_for, instant, message)

    def _doubt(self, instant: int) -> None:
        """Whoever watches declared keys has seen that some are none, by rows of which nothing is held."""
        assert self.reduction is not None
        violated, sides = self.reduction.violated, self.rows.sides
        for s in self.reduction.doubted - violated:
            i = int(sides["stream"][s])
            is_known = any(sides["stream"][t] == i for t in violated)
            violated.add(s)
            if not is_known:
                self._tell(instant, i, "a value of it has come a second time, after its first row had left the window")

    def _row_text(self, i: int, row: Int64Array, names: Sequence[str]) -> list[str]:
        return [self._text(i, c, self.rows.column(i, row, c), 0, names) for c in self.rows.columns[i]]

    def _text(self, i: int, c: int, column: Column, at: int, names: Sequence[str]) -> str:
        """A column and its value in a row."""
        value = column.values[at]
        if column.valid is not None and not column.valid[at]:
            return f"{names[c]} NULL"
        if self.rows.schemas[i][c].type.is_coded and self.texts is not None:
            return f"{names[c]} {short(self.texts.text(int(value)))}"
        return f"{names[c]} {value}"

    def describe(self) -> Description:
        """The tree, what is held, and what went early."""
        names = self.names
        texts = []
        for edge in self.edges:
            schemas = self.inputs[edge.left].schema, self.inputs[edge.right].schema
            on = " AND ".join(f"{schemas[0][c].name} = {schemas[1][d].name}" for c, d in edge.columns)
            arrow = {(True, True): "<->", (True, False): "<-", (False, True): "->"}.get(
                (edge.left_key, edge.right_key), "--"
            )
            texts.append(f"{names[edge.left]} {arrow} {names[edge.right]} on {on}")
        figures: dict[str, Any] = {f"rows_of_{name}": self.rows.held(i) for i, name in enumerate(names)}
        if self.deletions == KEPT:
            figures["results"] = len(self.results)
        if self.reduction is not None:
            figures["dead_keys"] = len(self.reduction.dead)
            figures["dropped"] = self.reduction.dropped
            if self.reduction.watching is not None:
                figures |= self._spilled()
        figures["bytes"] = sum(s.nbytes for s in self.synopses())
        figures["inspected"] = self._state.inspected
        return Description("KMonJoin" if self.reduces else "SWJ", "; ".join(texts), figures, tuple(self.notices))

    def synopses(self) -> tuple[Any, ...]:
        """Rows, results, and what has gone."""
        return (self.rows, self.results, *(() if self.reduction is None else self.reduction.synopses()))

    def _spilled(self) -> dict[str, Any]:
        assert self.reduction is not None
        if self.is_lossy:
            return {"discarded": self.reduction.discarded, "may_be_lost": self.reduction.may_be_lost}
        spill = self.reduction.spill
        return {"spilled": len(spill), "came_back": spill.returned, "file_bytes": spill.file_nbytes}

    def name_of_user(self) -> str:
        """As SHOW CONSTRAINTS calls it."""
        return f"{self.name} {', '.join(self.names)}"

    def tell_monitors(self) -> None:
        """Show them what has come."""
        if self.reduction is not None and self.reduction.watching is not None:
            self.reduction.watching.tell()

    def saved_nbytes(self, constraint: KConstraint) -> int:
        """Bytes of the rows out of memory for which the constraint, maybe with others, closes a way."""
        if self.reduction is None or self.reduction.watching is None:
            return 0
        returning, strides = self.reduction.returning, self.rows.strides
        closed = self.reduction.watching.sides_closed_by(constraint)
        return sum(
            8 * int(strides[self.rows.sides["stream"][s]]) * returning.closed(s, constraint.kind) for s in closed
        )

    def close(self) -> None:
        """Ask no monitor any more, and give up files."""
        if self.reduction is not None:
            self.reduction.close()


def _window_text(window: Window) -> str:
    return {RANGE: f" [RANGE {window.length}]", ROWS: f" [ROWS {window.length}]"}.get(window.clock, "")


def windows_of(specs: Sequence[WindowSpec | None]) -> list[Window]:
    """Windows as a query writes them; NOW is a range of one tick, None a relation."""
    return [
        Window(CHANGES)
        if spec is None
        else Window(ROWS, spec.rows or 0)
        if spec.kind is WindowKind.ROWS
        else Window(UNBOUNDED)
        if spec.range_ is None
        else Window(RANGE, max(spec.range_, 1))
        for spec in specs
    ]


def _parts(
    batches: Sequence[Batch | None], room_for: Callable[[list[int]], list[int]]
) -> Iterator[tuple[Sequence[Batch | None], int]]:
    """The batches cut at instants into parts, of about as many elements of each input as there is room for, and the
    last instant of each. room_for: makes room for so many elements of each input; gives for how many there is.
    """
    starts = [0] * len(batches)
    ends = [0 if b is None else len(b.ts) for b in batches]
    if 0 < max(ends) <= _PART:
        room_for(ends)
        yield batches, max(int(b.ts[-1]) for b, end in zip(batches, ends) if b is not None and end)
        return
    while starts != ends:
        rooms = room_for([min(end - at, _PART) for at, end in zip(starts, ends)])
        full = [
            int(b.ts[at + room - 1])
            for b, at, room in zip(batches, starts, rooms)
            if b is not None and at + room < len(b)
        ]
        last = min(full, default=MAX_INSTANT)
        stops = [
            end if b is None or last == MAX_INSTANT else int(b.ts.searchsorted(last, side="right"))
            for b, end in zip(batches, ends)
        ]
        needs = [stop - at for at, stop in zip(starts, stops)]
        if any(need > room for need, room in zip(needs, rooms)):
            room_for(needs)  # an instant has more
        part = [
            b.slice(at, stop) if b is not None and stop > at else None for b, at, stop in zip(batches, starts, stops)
        ]
        starts = stops
        yield part, max(int(b.ts[-1]) for b in part if b is not None)


def _beginning(n: int, for_istream: bool) -> JoinRun:
    """How far a join of n inputs is at first."""
    state, nothing = JoinState(depth=-1, most=answer.MOST_INSPECTED), np.zeros(0, np.int64)
    chosen: Int64Array = np.zeros(n, np.int64)
    return JoinRun(state, nothing.reshape(0, 0), nothing, rows_of(Walk, n), chosen, int(for_istream), 0)


def _buffers(capacity: int, width: int) -> tuple[Int64Array, Int64Array, Int8Array]:
    return np.zeros((capacity, width + 1), np.int64), np.zeros(capacity, np.int64), np.zeros(capacity, np.int8)
