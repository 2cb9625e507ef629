"""Random joins along trees of keys, over streams that keep constraints more or less: cases for k-Mon.

Every stream is S0 (a INTEGER, b INTEGER, x FLOAT), S1, ..; that of a child has KEY (a), and its keys repeat only where
that is asked for. Keys run up with time; how far rows of one stream lie from their order, and the streams from each
other, changes at random within a feed, so that k of every constraint jumps.
"""

from __future__ import annotations

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


def _window(rng: Random) -> str:
    return rng.choice(("", " [RANGE {}]", " [RANGE {}]", " [RANGE {}]", " [ROWS {}]", " [ROWS {}]", " [NOW]")).format(
        rng.randrange(2, 25)
    )


def _feed(rng: Random, n: int, keyed: set[int], size: int, repeats: float) -> tuple[Step, ...]:
    """Rows in order of time, in pushes of various sizes, ending with a heartbeat on all."""
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
        elements.append((i, (ts, 1, row)))
    steps: list[Step] = []
    at = 0
    while at < len(elements):
        part = elements[at : at + rng.choice((1, 1, 2, 5, 20))]
        at += len(part)
        for i in range(n):
            rows = tuple(element for k, element in part if k == i)
            if rows:
                steps.append(Push(f"S{i}", rows))
        if rng.random() < 0.2 and at < len(elements) and elements[at][1][0] > part[-1][1][0]:
            steps.append(Advance(part[-1][1][0]))
    return (*steps, Advance(ts + rng.randrange(30)))
