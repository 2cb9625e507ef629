"""Random joins along trees of keys, over streams that keep constraints more or less: cases for k-Mon.

Every stream is S0 (a INTEGER, b INTEGER, x FLOAT), S1, ..; that of a child has KEY (a), and its keys repeat only where
that is asked for. Keys run up with time; how far rows of one stream lie from their order, and the streams from each
other, changes at random within a feed, so that k of every constraint jumps.
"""

from __future__ import annotations

from collections.abc import Collection
from random import Random

from minidsms.testing.feeds import Advance, Element, Push, Step
from minidsms.testing.generators import Case
from minidsms.testing.history import Row

_TREES: tuple[tuple[tuple[int, str, int], ...], ...] = (
    ((0, "a", 1),),
    ((0, "b", 1),),
    ((0, "b", 1), (1, "b", 2)),
    ((0, "a", 1), (0, "b", 2)),
    ((0, "b", 2), (1, "b", 2)),
)
"""(parent, its column, child): the child is joined by its key, a."""

_SHOWN = (
    "ISTREAM({all})", "DSTREAM({all})", "RSTREAM({all})", "{all}", "ISTREAM({some})", "{some}", "COUNT(*), SUM(S0.x)",
    "ISTREAM(S0.b, COUNT(*))",
)  # fmt: skip


def random_tree_case(seed: int, size: int = 14, repeats: float = 0.0) -> Case:
    """The case of a seed; `size` is about how many elements a stream gets.

    repeats: the share of rows that may violate the key of their stream; 1: no key is declared.
    """
    rng = Random(seed)
    tree = rng.choice(_TREES)
    n = 1 + max(max(p, c) for p, _, c in tree)
    children = {c for _, _, c in tree}
    if n > 2:
        size = size // 2  # the definition goes through all combinations
    keyed = children | ({0} if rng.random() < 0.3 else set())
    declarations = tuple(
        f"CREATE STREAM S{i} (a INTEGER, b INTEGER, x FLOAT)" + (" KEY (a)" if i in keyed and repeats < 1 else "")
        for i in range(n)
    )
    windows = [_window(rng) for _ in range(n)]
    order = rng.sample(range(n), n)
    conditions = [f"S{p}.{column} = S{c}.a" for p, column, c in tree]
    conditions += [f"S{i}.x {rng.choice('<>')} {rng.choice((0.5, 1.0))}" for i in range(n) if rng.random() < 0.4]
    shown = rng.choice(_SHOWN).format(
        all=", ".join(f"S{i}.{c} AS {c}{i}" for i in range(n) for c in "abx"), some=f"S{rng.randrange(n)}.x AS x0"
    )
    group = " GROUP BY S0.b" if "S0.b, COUNT" in shown else ""
    query = (
        f"SELECT {shown} FROM {', '.join(f'S{i}{windows[i]}' for i in order)} WHERE {' AND '.join(conditions)}{group}"
    )
    return Case(declarations, query, _feed(rng, n, keyed, size, repeats))


_KINDS = ("relation", "slide", "partition", "derived", "view")
"""What an input may be besides a window: see `random_changing_case`."""


def random_changing_case(seed: int, size: int = 16, breaks: float = 0.0) -> Case:
    """The same with inputs whose rows leave at any time, at least one of them: relations that are updated, windows that
    slide or are partitioned, groups, and views over a relation and a stream.

    breaks: the share of insertions of relations that may violate their key.
    """
    rng = Random(seed)
    tree = rng.choice(_TREES)
    n = 1 + max(max(p, c) for p, _, c in tree)
    if n > 2:
        size = size // 2
    kinds = ["window" if rng.random() < 0.45 else rng.choice(_KINDS) for _ in range(n)]
    kinds[rng.randrange(1, n)] = rng.choice(_KINDS)
    if all(kind != "window" for kind in kinds):
        kinds[0] = "window"
    relations = {i for i, kind in enumerate(kinds) if kind in ("relation", "view")}
    children = {c for _, _, c in tree}
    keyed = {i for i in children if i not in relations} | ({0} if rng.random() < 0.5 and 0 not in relations else set())
    declarations = [
        f"CREATE {'RELATION' if i in relations else 'STREAM'} S{i} (a INTEGER, b INTEGER, x FLOAT)"
        + (" KEY (a)" if i in children or i in keyed else "")
        for i in range(n)
    ]
    inputs = []
    for i, kind in enumerate(kinds):
        if kind == "view":
            declarations.append(f"CREATE VIEW V{i} AS SELECT a, MIN(b) AS b, MAX(x) AS x FROM S{i} GROUP BY a")
        inputs.append(_changing_input(rng, i, kind))
    conditions = [f"S{p}.{column} = S{c}.a" for p, column, c in tree]
    conditions += [f"S{i}.x {rng.choice('<>')} {rng.choice((0.5, 1.0))}" for i in range(n) if rng.random() < 0.4]
    shown = rng.choice(_SHOWN).format(
        all=", ".join(f"S{i}.{c} AS {c}{i}" for i in range(n) for c in "abx"), some="S0.a AS a0, S1.x AS x1"
    )
    group = " GROUP BY S0.b" if "S0.b, COUNT" in shown else ""
    order = rng.sample(range(n), n)
    query = f"SELECT {shown} FROM {', '.join(inputs[i] for i in order)} WHERE {' AND '.join(conditions)}{group}"
    return Case(tuple(declarations), query, _feed(rng, n, keyed, size, 0.0, relations, breaks))


def _changing_input(rng: Random, i: int, kind: str) -> str:
    """What FROM says of an input."""
    match kind:
        case "relation":
            return f"S{i}"
        case "view":
            return f"V{i} AS S{i}"
        case "slide":
            slide = rng.randrange(2, 6)
            length = slide * rng.randrange(1, 4) + rng.choice((0, 0, 1))
            return f"S{i} [RANGE {length} SLIDE {slide}]" if rng.random() < 0.8 else f"S{i} [ROWS {length} SLIDE 2]"
        case "partition":
            rows, within = rng.choice(((1, ""), (2, ""), (1, f" RANGE {rng.randrange(4, 12)}")))
            return f"S{i} [PARTITION BY {rng.choice('ab')} ROWS {rows}{within}]"
        case "derived":
            return f"(SELECT a, MAX(b) AS b, MIN(x) AS x FROM S{i}{_window(rng)} GROUP BY a) AS S{i}"
        case _:
            return f"S{i}{_window(rng)}"


def _window(rng: Random) -> str:
    return rng.choice(("", " [RANGE {}]", " [RANGE {}]", " [RANGE {}]", " [ROWS {}]", " [ROWS {}]", " [NOW]")).format(
        rng.randrange(2, 25)
    )


def _feed(
    rng: Random,
    n: int,
    keyed: set[int],
    size: int,
    repeats: float,
    relations: Collection[int] = (),
    breaks: float = 0.0,
) -> tuple[Step, ...]:
    """Rows in order of time, in pushes of various sizes, ending with a heartbeat on all.

    relations: the inputs whose rows are deleted and updated, too.
    """
    present: dict[int, dict[int, list[Row]]] = {i: {} for i in relations}
    nulls = rng.choice((0.0, 0.1))
    gap = rng.choice((0, 1, 1, 2))
    used: list[set[int]] = [set() for _ in range(n)]
    leads = [rng.randrange(-4, 5) for _ in range(n)]
    spread = rng.randrange(4)
    elements: list[tuple[int, Element]] = []
    ts = 0
    for step in range(n * size):
        if rng.random() < 0.05:
            leads, spread = [rng.randrange(-6, 7) for _ in range(n)], rng.randrange(6)
        ts += rng.randrange(gap + 1)
        i = rng.randrange(n)
        a = max(0, step // n + leads[i] + rng.randrange(-spread, spread + 1))
        if i in keyed and (not repeats or rng.random() >= repeats):
            while a in used[i]:
                a += 1
            used[i].add(a)
        b = max(0, step // n + leads[i] + rng.randrange(-spread - 1, spread + 2))
        row: Row = (a, None if rng.random() < nulls else b, None if rng.random() < nulls else rng.randrange(4) / 2)
        if i in present:
            elements += [(i, change) for change in _changes(rng, present[i], ts, row, breaks)]
        else:
            elements.append((i, (ts, 1, row)))
    steps: list[Step] = []
    at = 0
    while at < len(elements):
        part = elements[at : at + rng.choice((1, 1, 2, 5, 20))]
        at += len(part)
        for i in sorted(range(n), key=lambda i: i not in present):  # before streams close the instant
            rows = tuple(element for k, element in part if k == i)
            if rows:
                steps.append(Push(f"S{i}", rows))
        if rng.random() < 0.2 and at < len(elements) and elements[at][1][0] > part[-1][1][0]:
            steps.append(Advance(part[-1][1][0]))
    return (*steps, Advance(ts + rng.randrange(30)))


def _changes(rng: Random, present: dict[int, list[Row]], ts: int, row: Row, breaks: float) -> list[Element]:
    """A row of a relation is inserted, takes the place of those of its key, or one of any key is deleted."""
    key = row[0]
    assert isinstance(key, int)
    if present and rng.random() < 0.3:
        key = rng.choice(sorted(present))
        return [(ts, -1, old) for old in present.pop(key)]
    if rng.random() < 0.3 and present:  # another version of a row that is there
        key = rng.choice(sorted(present))
        row = (key, *row[1:])
    old = [] if rng.random() < breaks else present.pop(key, [])
    present.setdefault(key, []).append(row)
    return [*((ts, -1, each) for each in old), (ts, 1, row)]
