"""Random n-way joins: cases of two to six inputs of every kind, with join graphs of every shape.

Inputs are windows of all kinds, relations and derived relations, some of them twice; equalities, over numbers and
texts with NULLs, form chains, stars and cycles, or leave inputs apart, maybe within a band; theta conditions and
conditions that can fail stand beside them. Invariant: the case depends on the seed and the arguments only.
"""

from __future__ import annotations

from random import Random

from minidsms.testing.feeds import random_feed
from minidsms.testing.generators import Case, declaration

_STREAMS = ("Sa", "Sb")
_SHARED = ("k", "v", "t")
"""Columns that all streams of these cases have; Rel calls its second one a."""
_OUTPUTS = ("SELECT {}", "SELECT ISTREAM({})", "SELECT DSTREAM({})", "SELECT DISTINCT {}", "SELECT COUNT(*), MAX({})")


def random_join(seed: int, most: int = 5, size: int = 9) -> Case:
    """A case of 2 to `most` inputs; `size` is about how many elements each stream gets."""
    rng = Random(seed)
    n = rng.randint(2, most)
    is_apart = rng.random() < 0.1
    items = [_item(rng, i) for i in range(n)]
    conditions = [] if is_apart else _equalities(rng, [name for _, name in items])
    if is_apart and n > 2:
        conditions = _equalities(rng, [name for _, name in items[: n - 1]])
    if is_apart and rng.random() < 0.7:
        last, other = items[-1][1], rng.choice(items[:-1])[1]
        band = rng.choice(("ABS({0} - {1}) < 2", "{1} - {0} BETWEEN 0 AND 1.5", "{0} = {1} + 1"))
        conditions.append(band.format(f"{last}.k", f"{other}.k"))
    if rng.random() < 0.3:
        conditions.append(f"{_column(rng, items, 'k')} < {_column(rng, items, 'k')} + {rng.randrange(3)}")
    if rng.random() < 0.15:
        conditions.append(f"{_column(rng, items, 'v')} + 9223372036854775806 > 0")
    rng.shuffle(conditions)
    columns = [_column(rng, items, c) for c in (rng.choice(_SHARED), "k")]
    output = rng.choice(_OUTPUTS)
    shown = columns[0] if "MAX" in output else ", ".join(f"{c} AS c{i}" for i, c in enumerate(columns))
    query = f"{output.format(shown)} FROM {', '.join(text for text, _ in items)}"
    if conditions:
        query += f" WHERE {' AND '.join(conditions)}"
    names = [name for name in (*_STREAMS, "Rel") if f"{name} " in query]
    feed = random_feed(rng, names, max(3, size - n), may_be_extreme=False)
    return Case(tuple(map(declaration, names)), query, feed)


def _item(rng: Random, number: int) -> tuple[str, str]:
    """(what stands in FROM, its alias)."""
    name = rng.choice(_STREAMS)
    window = rng.choice(
        (
            f"[RANGE {rng.randint(1, 20)}]", f"[RANGE {rng.randint(5, 30)}]", "[NOW]", "[RANGE UNBOUNDED]",
            f"[ROWS {rng.randint(1, 6)}]", f"[PARTITION BY k ROWS {rng.randint(1, 2)}]", "[RANGE 6 SLIDE 3]",
        )
    )  # fmt: skip
    alias = f"i{number}"
    kind = rng.random()
    if kind < 0.6:
        return f"{name} {window} AS {alias}", alias
    if kind < 0.8:
        return f"(SELECT k, a AS v, t FROM Rel WHERE Rel.k IS NOT NULL OR Rel.a > 0) AS {alias}", alias
    if kind < 0.9:
        return f"(SELECT k, MAX(v) AS v, t FROM {name} {window} AS g GROUP BY k, t) AS {alias}", alias
    return f"(SELECT k, v + 1 AS v, t FROM {name} {window} AS f WHERE f.v > 1) AS {alias}", alias


def _equalities(rng: Random, names: list[str]) -> list[str]:
    """Equalities that connect the inputs, some of them more than once."""
    conditions = []
    for i in range(1, len(names)):
        # A chain, a star or in between; then further ones, which close cycles or make keys of several columns.
        other = rng.choice((i - 1, 0, rng.randrange(i)))
        conditions.append(_equality(rng, names[other], names[i]))
    for _ in range(rng.choice((0, 0, 1, 2))):
        i, j = rng.sample(range(len(names)), 2)
        conditions.append(_equality(rng, names[i], names[j]))
    return conditions


def _equality(rng: Random, a: str, b: str) -> str:
    if rng.random() < 0.3:
        return f"{a}.t = {b}.t"
    left, right = rng.choice((("k", "k"), ("k", "k"), ("k", "v"), ("v", "v")))
    return f"{a}.{left} = {b}.{right}" if rng.random() < 0.9 else f"COALESCE({a}.{left}, 1) = {b}.{right}"


def _column(rng: Random, items: list[tuple[str, str]], column: str) -> str:
    return f"{rng.choice(items)[1]}.{column}"
