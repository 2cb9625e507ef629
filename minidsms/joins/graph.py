"""The join graph of an n-way join: which inputs its equalities link, by which keys, and what pipelines that allows.

Each input has a *pipeline*: the order in which an element of it visits the others. A step is a probe of one key with
the key of an input visited before; where the graph is not connected, all rows of the next component's first input
match, which is a probe of the empty key. An order is *legal* if it takes no such Cartesian step while some input is
still linked to those visited. Babu 2005, section 5.2.2.

Equality is transitive: R.a = S.a AND S.a = T.a link R and T as well. Columns that are equal in every result form a
*class*, all of whose inputs are linked with each other; a step compares only what does not follow from what was
compared before. That is exact: no equality holds for NULL, and equal values have equal words (docs/semantics R2, R4).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from minidsms.elements import Int64Array
from minidsms.joins.bands import Band
from minidsms.joins.equal_columns import EqualColumns, Equality, classes_of
from minidsms.joins.plan import Configurations, Index, Key, Orders, Patterns
from minidsms.kernels.access_methods.bit_addresses import ADDRESS, MOST_BITS, Bits
from minidsms.kernels.access_methods.cells import with_cells
from minidsms.kernels.access_methods.contract import Known, Part
from minidsms.kernels.access_methods.methods import method_of
from minidsms.kernels.join_layout import JoinStep, Path, Walk
from minidsms.machine_code import Rows, record_in, rows_of

Link = tuple[int, Key, int, Key]
"""Equal keys: input, its key, other input, its key."""
MOST_REMEMBERED = 4_096
"""Steps of pipelines of which it is remembered what they compare."""


class JoinGraph:
    """The inputs 0 .. n - 1 and their equalities.

    written: the equalities as given.  equalities: these, and those between inputs that follow from them.
    classes: the (input, column) that are equal to each other, sorted.
    keys: of each input, those of no or one column first.  is_connected: no pipeline needs a Cartesian step.
    rooms: of each input, how many patterns it has at most in any orders, or more, or its address.  has_patterns: there
    are orders in which some input has one.  bands: by which steps may go that no equality links; the key of band b is
    (~b,), of several between the same two inputs one of them all. Of two inputs that an equality links they are parts
    of a pattern.
    """

    def __init__(self, n: int, equalities: Sequence[Equality], bands: Sequence[Band] = ()) -> None:
        self.n = n
        self.bands = tuple(bands)
        self.written = tuple(equalities)
        self.classes = classes_of(self.written)
        self.equalities = (*self.written, *_implied(self.written, self.classes))
        self.keys, links = _keys(n, self.written, self.equalities)
        links += [(j, other, i, key) for i, key, j, other in links]
        self._into = [[link for link in links if link[2] == j] for j in range(n)]
        self._linked = tuple(frozenset(i for i, _, _, _ in into) for into in self._into)
        self._joining: dict[tuple[tuple[int, ...], tuple[int, ...]], list[Link]] = {}
        self._patterns: dict[tuple[tuple[int, ...], int], Key] = {}
        self._following: dict[tuple[int, ...], tuple[int, ...]] = {}
        self.is_connected = len(self._component(0)) == n
        if not self.is_connected and (n > 2 or not bands):
            for keys in self.keys:
                keys.insert(0, ())
        rooms = [self._room(j) for j in range(n)]
        self.has_patterns = any(rooms)
        self.rooms = [max(room, 1) for room in rooms] if n > 2 else rooms
        between: dict[frozenset[int], list[int]] = {}
        for number, band in enumerate(self.bands if not self.is_connected else ()):
            between.setdefault(frozenset((band.a[0], band.b[0])), []).append(~number)
        for inputs, columns in between.items():
            for i in inputs:
                self.keys[i] += [(c,) for c in columns] + [tuple(sorted(columns))] * (len(columns) > 1)

    def linked(self, i: int) -> frozenset[int]:
        """The inputs that some equality links with input i."""
        return self._linked[i]

    def equal_to(self, columns: Iterable[tuple[int, int]]) -> set[tuple[int, int]]:
        """These (input, column) and all that equalities make equal to one of them."""
        known = set(columns)
        return known.union(*(each for each in self.classes if not known.isdisjoint(each)))

    def following(self, visited: Sequence[int]) -> tuple[int, ...]:
        """The inputs that a legal pipeline may visit next, ascending."""
        asked = tuple(visited)
        if asked not in self._following:
            if len(self._following) == MOST_REMEMBERED:
                self._following.clear()
            self._following[asked] = tuple(self._may_follow(asked))
        return self._following[asked]

    def _may_follow(self, visited: Sequence[int]) -> list[int]:
        rest = [j for j in range(self.n) if j not in visited]
        linked = [j for j in rest if not self._linked[j].isdisjoint(visited)]
        return linked or [j for j in rest if self._banded(visited, j)] or rest

    def default_orders(self) -> Orders:
        """Every pipeline follows FROM as far as that is legal."""
        orders = []
        for i in range(self.n):
            visited = [i]
            while len(visited) < self.n:
                visited.append(self.following(visited)[0])
            orders.append(tuple(visited[1:]))
        return tuple(orders)

    def is_legal(self, orders: Orders) -> bool:
        """One order for each input, of all the others, without a Cartesian step that can be avoided."""
        return len(orders) == self.n and all(self.is_order(i, order) for i, order in enumerate(orders))

    def is_order(self, i: int, order: Sequence[int]) -> bool:
        """A legal one for input i."""
        if sorted((i, *order)) != list(range(self.n)):
            return False
        return all(j in self.following((i, *order[:d])) for d, j in enumerate(order))

    def legal_orders(self, i: int) -> Iterator[tuple[int, ...]]:
        """Every legal order of input i's pipeline, in ascending order."""
        unfinished: list[tuple[int, ...]] = [(i,)]
        while unfinished:
            visited = unfinished.pop()
            if len(visited) == self.n:
                yield visited[1:]
            else:
                unfinished.extend((*visited, j) for j in reversed(self.following(visited)))

    def pipelines(
        self,
        orders: Orders,
        index: Index = (),
        configurations: Configurations = (),
        more: Sequence[tuple[int, tuple[int, ...]]] = (),
    ) -> tuple[Rows[JoinStep], Int64Array]:
        """Steps, n - 1 of each pipeline, and checks (c, 4) as the kernels take them, over these patterns.

        configurations: under which rows of inputs that have bits are stored (see BY_ADDRESS).  more: inputs with orders
        of further pipelines.
        """
        place = self.places(index)
        width = self.n - 1
        steps = rows_of(JoinStep, (self.n + len(more)) * width)
        checks: list[tuple[int, int, int, int]] = []
        for number, (i, order) in enumerate([*enumerate(orders), *more]):
            self._add_steps(
                i, order, index, configurations, place, steps[number * width : (number + 1) * width], checks
            )
        return steps, np.array(checks, np.int64).reshape(-1, 4)

    def path(self, i: int, order: Sequence[int], index: Index = (), configurations: Configurations = ()) -> Path:
        """The pipeline of input i, cut short after these inputs, to be walked apart from the join."""
        steps = rows_of(JoinStep, len(order))
        checks: list[tuple[int, int, int, int]] = []
        index = index or tuple(each[0][1] if each else () for each in configurations)
        self._add_steps(i, order, index, configurations, self.places(index), steps, checks)
        table = np.array(checks, np.int64).reshape(-1, 4)
        return Path(steps, table, rows_of(Walk, len(order)), np.zeros(self.n, np.int64))

    def places(self, index: Index = ()) -> dict[tuple[int, Key], int]:
        """Where each input's keys stand among all, and behind them, where there is room, its patterns or address."""
        first = np.cumsum([0, *(len(keys) + room for keys, room in zip(self.keys, self.rooms))])
        all_keys = [[*keys, *_beside_keys(index, i)] for i, keys in enumerate(self.keys)]
        return {(i, key): int(first[i]) + k for i, keys in enumerate(all_keys) for k, key in enumerate(keys)}

    # ----------------------------------------------------------------------------------------------------- patterns

    def patterns(self, orders: Orders) -> tuple[Patterns, ...]:
        """What the steps of these orders compare with several inputs, of each input; () where that is nothing."""
        found: list[set[Key]] = [set() for _ in range(self.n)]
        for i, order in enumerate(orders):
            for d, j in enumerate(order):
                columns = self.pattern((i, *order[:d]), j)
                if len(columns) > 1:
                    found[j].add(columns)
        return tuple(tuple(sorted(each)) for each in found) if any(found) else ()

    def pattern(self, visited: Sequence[int], j: int) -> Key:
        """The columns of input j that a step compares with the inputs visited, and the cells of bands; () where a key
        has them all.
        """
        asked = tuple(visited), j
        if asked not in self._patterns:
            if len(self._patterns) == MOST_REMEMBERED:
                self._patterns.clear()
            cells = [~number for number in range(len(self.bands))] if self.has_banded_patterns else []
            columns = tuple(sorted([*cells, *self._compared(visited, j)]))
            self._patterns[asked] = () if any(set(key) == set(columns) for key in self.keys[j]) else columns
        return self._patterns[asked]

    @property
    def has_banded_patterns(self) -> bool:
        """There are two inputs, and both an equality and bands link them."""
        return self.n == 2 and self.is_connected and bool(self.bands)

    def is_index(self, index: Index, orders: Orders) -> bool:
        """Of each input these are patterns of the orders, ascending and none twice, or bits that it can have. Cells
        are of both inputs or none.
        """
        able = self.patterns(orders) or ((),) * self.n
        if self.has_banded_patterns and index not in ((), able):
            return False
        return len(index) == self.n and all(
            self.is_address(j, keys)
            if isinstance(keys, Bits)
            else list(keys) == sorted(set(keys)) and set(keys).issubset(able[j])
            for j, keys in enumerate(index)
        )

    def columns(self, j: int) -> list[int]:
        """The columns of input j that have keys of their own: those that have bits."""
        return [key[0] for key in self.keys[j] if len(key) == 1]

    def known(self, visited: Sequence[int], j: int) -> int:
        """Which of its columns a step from the inputs visited knows of a row of input j: bit k is `columns(j)[k]`."""
        compared = self._compared(visited, j)
        return sum(1 << k for k, c in enumerate(self.columns(j)) if c in compared)

    @property
    def has_addresses(self) -> bool:
        """Rows may be found by bit addresses: equalities link three inputs and more, and no step goes by a band."""
        return self.n > 2 and self.is_connected and not self.bands

    def is_address(self, j: int, bits: Bits) -> bool:
        """Input j can have these bits: it is one of three and more, and no step visits it but by columns."""
        fits = len(bits.of) == len(self.columns(j)) and min(bits.of) >= 0 and bits.total <= MOST_BITS
        return fits and self.has_addresses

    def index_under(self, orders: Orders, before: Orders, index: Index) -> Index:
        """The patterns to go on with under other orders than before: the same, and all that pipelines with other orders
        probe, where nobody has weighed them. Bits stay.
        """
        if not index:
            return ()
        fresh = self.patterns(tuple(() if order == was else order for order, was in zip(orders, before)))
        fresh = fresh or ((),) * self.n
        kept: list[Patterns | Bits] = []
        for j, keys in enumerate(self.patterns(orders) or ((),) * self.n):
            now = index[j]
            if isinstance(now, Bits):
                kept.append(now)
            else:
                kept.append(tuple(key for key in keys if key in now or key in fresh[j]))
        return tuple(kept) if any(kept) else ()

    def _compared(self, visited: Sequence[int], j: int) -> dict[int, Link]:
        """The columns of input j that a step compares with the inputs visited, and with what."""
        compared: dict[int, Link] = {}
        for link in self.joining(visited, (j,)):
            if len(link[1]) == 1:
                compared.setdefault(link[3][0], link)
        return compared

    def _room(self, j: int) -> int:
        """Several inputs give parts of a pattern only where one leads to the other without input j."""
        if self.has_banded_patterns:
            return len(self.bands) + 1
        columns = {c for key in self.keys[j] for c in key}
        for i in self._linked[j]:
            others = self._component(i, without=j)
            links = [(f, c) for f, _, _, key in self._into[j] if f in others for c in key]
            if len({f for f, _ in links}) > 1 and len({c for _, c in links}) > 1:
                return int(min(2 ** len(columns) - len(columns) - 1, self.n - 1))
        return 0

    def _add_steps(
        self,
        i: int,
        order: Sequence[int],
        index: Index,
        configurations: Configurations,
        place: dict[tuple[int, Key], int],
        steps: Rows[JoinStep],
        checks: list[tuple[int, int, int, int]],
    ) -> None:
        for d, j in enumerate(order):
            visited = (i, *order[:d])
            (source, key, _, probed), *others = self.joining(visited, (j,))
            parts: list[Part] = []
            compared = self._compared(visited, j) if index else {}
            columns = {c: Part(f, place[f, its]) for c, (f, its, _, _) in compared.items()}
            is_addressed, is_order = bool(configurations and configurations[j]), False
            able = [each for each in (*self.keys[j], *_beside_keys(index, j)) if compared.keys() >= set(each)]
            best = tuple(compared) if is_addressed else max(able, key=len, default=())
            if is_addressed or len(best) > len(probed):
                links = [compared[c] for c in best]
                probed, parts = ADDRESS if is_addressed else best, [columns[c] for c in best]
                source, key = max(((f, its) for f, its, _, _ in links), key=lambda part: visited.index(part[0]))
                others = links + [
                    link for link in self.joining(visited, (j,)) if len(link[1]) == 1 and link not in links
                ]
            if not probed or self.has_banded_patterns:
                by, cells = self._cells_to(visited, j, index)
                if cells:
                    # Equal hashes prove nothing.
                    probed, (source, key, _), others = by, cells[0], list(compared.values())
                    parts = [Part(f, place[f, its], way) for f, its, way in cells]
                    is_order = self.bands[~by[0]].is_order
            begin = len(checks)
            checks.extend((f, place[f, its], j, place[j, other]) for f, its, _, other in others)
            end, ways = len(checks), configurations[j] if is_addressed else ()
            asked = method_of(probed).ask(Known(parts, columns, ways, self.columns(j), is_order))
            checks.extend(asked.rows)
            step = record_in(JoinStep, steps, d)
            step.target, step.probed, step.source, step.source_key = j, place[j, probed], source, place[source, key]
            step.check, step.checks_end, step.asked, step.kept = begin, end, visited.index(source), -1
            step.hashed, step.reach = asked.hashed, asked.reach

    def _cells_to(self, visited: Sequence[int], j: int, index: Index) -> tuple[Key, list[tuple[int, Key, int]]]:
        """By which key with cells a step visits input j, and of what the tag is made: inputs visited and their keys,
        with how far from a cell the other one lies that it asks for, and 0 of a column. Empty where it does not.
        """
        banded = self._banded(visited, j)
        if not self.has_banded_patterns:
            inputs = [f for f, _, _ in banded]
            parts = sorted(each for each in banded if each[0] == max(inputs, key=inputs.count))
            return tuple(sorted(c for _, key, _ in parts for c in key)), parts
        patterns = index[j] if index else ()
        if isinstance(patterns, Bits) or not patterns:
            return (), []
        compared, cells = self._compared(visited, j), {key[0]: part for part in banded for key in [part[1]]}
        return patterns[0], [cells[c] if c < 0 else (*compared[c][:2], 0) for c in patterns[0]]

    def _banded(self, visited: Sequence[int], j: int) -> list[tuple[int, Key, int]]:
        """The inputs visited that a band connects with input j: each with its key, and where the other tag lies."""
        found: list[tuple[int, Key, int]] = []
        for number, band in enumerate(self.bands):
            for (f, _), (target, _), reach in ((band.a, band.b, -1), (band.b, band.a, 1)):
                if target == j and f in visited:
                    found.append((f, (~number,), -reach if band.is_order else reach))
        return found

    def links_between(self, visited: Sequence[int], j: int) -> list[Link]:
        """The links between the inputs visited and j, turned so that j stands last."""
        return [link for link in self._into[j] if link[0] in visited]

    def joining(self, visited: Sequence[int], inputs: Sequence[int]) -> list[Link]:
        """How the join of the inputs visited is joined with that of others: the link to probe by, then those that are
        to be compared, of one column each. Where nothing links them, all rows of the first other input are probed.
        """
        asked = tuple(visited), tuple(inputs)
        if asked not in self._joining:
            if len(self._joining) == MOST_REMEMBERED:
                self._joining.clear()
            self._joining[asked] = self._joined(*asked)
        return self._joining[asked]

    def _joined(self, visited: Sequence[int], inputs: Sequence[int]) -> list[Link]:
        links = [link for j in inputs for link in self.links_between(visited, j)]
        if not links:
            return [(visited[0], (), inputs[0], ())]
        # Of the longest keys the one known first: what drops an element early spares the rest.
        probe = min(links, key=lambda link: (-len(link[1]), visited.index(link[0])))
        known = EqualColumns()
        for each in self.classes:
            for side in (visited, inputs):
                columns = [column for column in each if column[0] in side]
                # Two columns of one input are compared with those of another, not with each other.
                if len({i for i, _ in columns}) > 1:
                    known.join_all(columns)
        # Equal tags of a single column prove it equal; a hash proves nothing.
        if len(probe[1]) == 1:
            known.join((probe[0], probe[1][0]), (probe[2], probe[3][0]))
        result = [probe]
        for link in sorted(links, key=lambda link: visited.index(link[0])):
            f, its, j, other = link
            if len(its) == 1 and known.join((f, its[0]), (j, other[0])):
                result.append(link)
        return result

    def _component(self, i: int, without: int = -1) -> set[int]:
        """The inputs that equalities connect with input i, itself among them, past one that does not count."""
        known, fresh = {i}, [i]
        while fresh:
            for j in self._linked[fresh.pop()] - known - {without}:
                known.add(j)
                fresh.append(j)
        return known


def _beside_keys(index: Index, j: int) -> Sequence[Key]:
    """What the windows of input j are indexed by beside, or instead of, its keys."""
    beside = index[j] if index else ()
    return (ADDRESS,) if isinstance(beside, Bits) else with_cells(beside)


def _implied(equalities: Sequence[Equality], classes: Sequence[Sequence[tuple[int, int]]]) -> list[Equality]:
    """The equalities between columns of different inputs that follow from those given and are none of them."""
    given = {frozenset(pair) for pair in equalities}
    return [
        (a, b)
        for each in classes
        for k, a in enumerate(each)
        for b in each[k + 1 :]
        if a[0] != b[0] and frozenset((a, b)) not in given
    ]


def _keys(n: int, written: Sequence[Equality], equalities: Sequence[Equality]) -> tuple[list[list[Key]], list[Link]]:
    """Each input's keys, single columns first, and which are equal, those of several columns first.

    Two inputs linked by several written equalities get a key of all these columns: probing one column alone would walk
    past every row that shares it. Those that follow get no keys of their own: their columns have some already.
    """
    keys: list[list[Key]] = [[] for _ in range(n)]
    linked: list[Link] = []
    for (i, j), columns in _by_inputs(equalities).items():
        linked += [(i, (c,), j, (d,)) for c, d in columns]
    for (i, j), columns in _by_inputs(written).items():
        if len(columns) > 1:
            linked.insert(0, (i, tuple(c for c, _ in columns), j, tuple(d for _, d in columns)))
    for i, key, j, other in sorted(linked, key=lambda link: len(link[1])):
        for k, its in ((i, key), (j, other)):
            if its not in keys[k]:
                keys[k].append(its)
    return keys, linked


def _by_inputs(equalities: Iterable[Equality]) -> dict[tuple[int, int], list[tuple[int, int]]]:
    """The pairs of columns that are equal, by the pair of inputs, the lesser first."""
    between: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for (i, c), (j, d) in equalities:
        pair = (c, d) if i < j else (d, c)
        columns = between.setdefault((min(i, j), max(i, j)), [])
        if pair not in columns:
            columns.append(pair)
    return between
