"""Random n-way joins: queries over three to five windows and what is fed to them, for tests of join plans.

Join graphs are chains, stars, cycles and complete graphs, now and then with two equalities between a pair or none at
all; keys are INTEGER and TEXT, some NULL; windows of every kind stand in one query, and a stream may stand twice.

Invariant: the case depends on the seed and the options only.
"""

from __future__ import annotations

from random import Random

from minidsms.testing.feeds import Advance, Push, Step
from minidsms.testing.generators import Case
from minidsms.testing.history import Row

STREAMS = ("Ja", "Jb", "Jc", "Jd")
COLUMNS = "(a INTEGER, b TEXT, c INTEGER)"
FIFO_WINDOWS = (
    *("[RANGE 3]", "[RANGE 5]", "[RANGE 1]", "[NOW]", "[ROWS 3]", "[ROWS 1]"),
    *("[RANGE 4 SLIDE 2]", "[ROWS 4 SLIDE 2]", "[RANGE UNBOUNDED]"),
)
RANGES = ("[RANGE 3]", "[RANGE 5]", "[RANGE 2]", "[NOW]", "[RANGE UNBOUNDED]")
GRAPHS = ("chain", "star", "cycle", "complete", "random")


def random_join_case(
    seed: int, inputs: tuple[int, ...] = (3, 3, 4, 5), size: int = 9, graphs: tuple[str, ...] = GRAPHS
) -> Case:
    """The case of a seed. inputs: numbers of windows, graphs: shapes, to choose from.  size: about how many rows a
    stream gets.
    """
    rng = Random(seed)
    n = rng.choice(inputs)
    names = [f"w{i}" for i in range(n)]
    streams = [rng.choice(STREAMS) for _ in names]
    # Where all windows are ranges, ISTREAM joins the streams themselves.
    windows = RANGES if rng.random() < 0.4 else FIFO_WINDOWS
    unbounded = 0
    items = []
    for name, stream in zip(names, streams):
        window = rng.choice(windows)
        unbounded += "UNBOUNDED" in window
        items.append(f"{stream} {window if unbounded < 2 else '[RANGE 2]'} AS {name}")
    conditions = _conditions(rng, names, graphs)
    shown = ", ".join(f"{rng.choice(names)}.{rng.choice('abc')} AS c{i}" for i in range(rng.randint(1, 3)))
    query = f"SELECT {shown} FROM {', '.join(items)}" + (f" WHERE {' AND '.join(conditions)}" if conditions else "")
    output = rng.choice(("", "ISTREAM", "ISTREAM", "DSTREAM", "RSTREAM"))
    used = sorted(set(streams))
    declarations = tuple(f"CREATE STREAM {name} {COLUMNS}" for name in used)
    return Case(declarations, f"{output} ({query})" if output else query, _feed(rng, used, size))


def _conditions(rng: Random, names: list[str], graphs: tuple[str, ...]) -> list[str]:
    """Equalities along the edges of a graph over the windows, and now and then another condition."""
    n = len(names)
    shape = rng.choice(graphs)
    if shape == "chain":
        edges = [(i, i + 1) for i in range(n - 1)]
    elif shape == "star":
        edges = [(0, i) for i in range(1, n)]
    elif shape == "cycle":
        edges = [(i, (i + 1) % n) for i in range(n)]
    elif shape == "complete":
        edges = [(i, j) for i in range(n) for j in range(i)]
    else:
        edges = [(i, rng.randrange(i)) for i in range(1, n)]
        edges += [rng.choice(edges)] if rng.random() < 0.5 else []
    conditions = []
    one_column = rng.random() < 0.3
    for i, j in edges:
        column = "a" if one_column else rng.choice("aabc")
        other = rng.choice("ac") if column != "b" and not one_column else column
        conditions.append(f"{names[i]}.{column} = {names[j]}.{other}")
    if rng.random() < 0.2:
        conditions.append(f"{rng.choice(names)}.c {rng.choice(('<', '<>', '>='))} {rng.choice(names)}.a")
    if rng.random() < 0.15:
        conditions.append(f"{rng.choice(names)}.c >= 1")
    rng.shuffle(conditions)
    return conditions


def _feed(rng: Random, streams: list[str], size: int) -> tuple[Step, ...]:
    """Rows in calls of one to three, with ties and gaps, and heartbeats between them."""
    keys, nulls = rng.choice((2, 2, 3)), rng.choice((0.0, 0.1))
    now = dict.fromkeys(streams, 0)
    feed: list[Step] = []

    def some(value: int | str) -> int | str | None:
        return None if rng.random() < nulls else value

    for _ in range(size * len(streams) // 2):
        stream = rng.choice(streams)
        now[stream] = max(now[stream], max(now.values()) - 3)
        rows: list[tuple[int, int, Row]] = []
        for _ in range(rng.randint(1, 3)):
            now[stream] += rng.choice((0, 0, 1, 1, 2))
            row = (some(rng.randrange(keys)), some(rng.choice("xy")), some(rng.randrange(keys)))
            rows.append((now[stream], +1, row))
        feed.append(Push(stream, tuple(rows)))
        if rng.random() < 0.1:
            feed.append(Advance(max(now.values())))
            now = dict.fromkeys(streams, max(now.values()) + 1)
    feed.append(Advance(max(now.values()) + rng.choice((0, 2, 8))))
    return tuple(feed)
