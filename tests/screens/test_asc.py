"""The regions of columns: a bitmap says of every value what the condition says, at the edges of regions above all."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from minidsms.connection import connect
from minidsms.cql.binder import bind
from minidsms.cql.bound import Expr, Filter
from minidsms.cql.parser import parse_query
from minidsms.elements import Batch, Column, Type
from minidsms.expressions import Projection
from minidsms.kernels.screening import BLOCK, CHUNK, STEP
from minidsms.plan.screening import box_of
from minidsms.screens import homes, level
from minidsms.screens.asc import Constructs
from minidsms.screens.box import float_key
from minidsms.screens.domains import Domains
from minidsms.screens.level import Found, Level
from minidsms.statements.registering import context_of

ENDS = (-(2**63), -(2**63) + 1, -1, 0, 1, 2**63 - 2, 2**63 - 1)
DECLARED = "CREATE STREAM S (v INTEGER, x FLOAT, t TEXT, b BOOLEAN, w TIMESTAMP, far INTEGER)"
VALUES = {
    "v": [*ENDS, *range(-3, 8), None],
    "x": [-np.inf, -1.5, np.nextafter(-1.5, 0), -5e-324, 0.0, 5e-324, 1.0, np.nextafter(1.0, 2), 2.5, np.inf, None],
    "t": ["", "a", "ab", "abc", "abd", "b", "a\U0010ffff", "\U0010ffff", "\U0010ffffx", "zebra", None],
    "b": [True, False, None],
    "w": [0, 1, 999, 1000, 1001, None],
    "far": [*ENDS, 10**9 - 1, 10**9, 10**9 + 1, 10**12 - 1, 10**12, None],
}
ATOMS = (
    *(f"v {op} {c}" for op in ("=", "<>", "<", "<=", ">", ">=") for c in (-1, 0, 3, 9223372036854775807)),
    "4 > v", "v > 1.5", "v <= 3.0", "v = 2.5", "v < 9.3e18", "v >= -9.3e18",
    *(f"x {op} {c}" for op in ("=", "<>", "<", "<=", ">", ">=") for c in ("0.0", "-1.5", "1.0")), "x > 1",
    *(f"t {op} '{c}'" for op in ("=", "<>", "<", "<=", ">", ">=") for c in ("", "ab", "b")),
    "t LIKE 'ab%'", "t LIKE 'ab'", "t LIKE '%'", "t NOT LIKE 'a%'", "t LIKE 'a!%%' ESCAPE '!'", "t LIKE '\U0010ffff%'",
    "b", "NOT b", "b = TRUE", "b <> TRUE", "b IS NULL", "w >= '1970-01-01 00:00:01'", "w IS NOT NULL",
    "v IN (1, 3, 5)", "v NOT IN (1, 3)", "v IN (1, NULL)", "v NOT IN (1, NULL)", "x IN (1.0, 2.5)", "t IN ('a', 'b')",
    "v IS NULL", "v BETWEEN 1 AND 4", "v NOT BETWEEN 1 AND 4", "v < 0 OR v > 4 OR v IS NULL", "NOT (v > 1 AND v < 4)",
    "far > 1000000000 AND far <= 1000000000000", "far = 1000000000", "far < 9223372036854775807",
)  # fmt: skip


class Scene:
    """A stream, rows that meet every edge, and conditions over them."""

    def __init__(self) -> None:
        self.db = connect()
        self.db.execute(DECLARED)
        self.types = self.db.catalog.streams["s"].schema.types
        n = max(len(values) for values in VALUES.values())
        columns = []
        for values, type_ in zip(VALUES.values(), self.types):
            column = [values[i % len(values)] for i in range(n)]
            if type_ is Type.TEXT:
                columns.append(self.db.dictionary.encode(column))
            else:
                valid = np.array([v is not None for v in column])
                columns.append(Column(np.array([v if v is not None else 0 for v in column], type_.dtype), valid))
        self.batch = Batch(np.arange(n), None, columns)

    def repeat(self, rows: int) -> None:
        """Let the batch be so many rows, its own again and again."""
        numbers = np.arange(rows) % len(self.batch)
        self.batch = Batch(np.arange(rows), None, [self.batch.column(c).take(numbers) for c in range(len(self.types))])

    def condition(self, text: str) -> Expr:
        node = bind(parse_query(f"SELECT v FROM S WHERE {text}"), self.db.catalog, "").node
        while not isinstance(node, Filter):
            node = node.inputs[0]
        return node.condition

    def true_rows(self, condition: Expr) -> list[int]:
        (column,), _ = Projection((condition,), context_of(self.db))(self.batch)
        passes = column.values if column.valid is None else column.values & column.valid
        return np.flatnonzero(passes).tolist()

    def found(self, conditions: list[Expr]) -> list[list[int]]:
        boxes = [box_of(c) for c in conditions]
        made = Level(boxes, range(len(boxes)), self.types)  # type: ignore[arg-type]
        found = Found()
        made.run(self.batch, self.db.dictionary, found)
        rows: list[list[int]] = [[] for _ in conditions]
        for row, member in zip(found.rows[: found.count].tolist(), found.members[: found.count].tolist()):
            rows[member].append(row)
        return rows


@pytest.mark.parametrize("text", ATOMS)
def test_a_box_holds_the_values_for_which_the_condition_is_true(text: str) -> None:
    scene = Scene()
    condition = scene.condition(text)
    box = box_of(condition)
    if box is None:  # it asks nothing
        assert scene.true_rows(condition) == [i for i in range(len(scene.batch))]
        return
    assert box.is_all
    assert scene.found([condition]) == [scene.true_rows(condition)]


@pytest.mark.parametrize(("many", "groups"), [(2048, 0), (0, 1000), (0, 3)])
def test_bitmaps_of_many_conjunctions_are_what_each_condition_says(
    many: int, groups: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(level, "MANY", many)  # 0: every level has home lists, with so many groups of regions
    monkeypatch.setattr(homes, "_GROUPS", groups)
    monkeypatch.setattr(homes, "GROUPED_BYTES", 1)
    scene = Scene()
    rng = Random(3)
    texts = [" AND ".join(rng.sample(ATOMS, rng.randrange(1, 4))) for _ in range(300)]
    conditions = [c for c in map(scene.condition, texts) if box_of(c) is not None]
    assert scene.found(conditions) == [scene.true_rows(c) for c in conditions]


def test_filters_that_ask_one_column_only_have_a_home_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(level, "MANY", 0)
    scene = Scene()
    conditions = [scene.condition(f"v >= {i} AND v < {i + 3}") for i in range(-5, 9)]
    assert scene.found(conditions) == [scene.true_rows(c) for c in conditions]


def test_home_lists_find_every_pair_however_many_rows_and_pairs_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(level, "MANY", 0)
    scene = Scene()
    scene.repeat(2 * CHUNK + 100)
    conditions = [c for c in map(scene.condition, ATOMS) if box_of(c) is not None]
    found = scene.found(conditions)
    assert found == [scene.true_rows(c) for c in conditions]
    assert sum(map(len, found)) > 4 * len(scene.batch) + STEP * BLOCK * 64  # there was not room for all at first


@pytest.mark.parametrize(
    "text",
    ["v + 1 > 2", "v > far", "LENGTH(t) > 1", "t LIKE '%a'", "t LIKE 'a_'", "v = 1 OR x = 1.0", "v > 1 AND v > far"],
)
def test_what_sets_of_values_cannot_say_stays_with_the_filter(text: str) -> None:
    box = box_of(Scene().condition(text))
    assert box is None or not box.is_all


def test_a_region_is_only_where_some_filter_asks_for_it() -> None:
    scene = Scene()
    boxes = [box_of(scene.condition(text)) for text in ("v > 3", "v > 3 AND x < 1.0")]
    constructs = Constructs(boxes, Domains(boxes, scene.types))  # type: ignore[arg-type]
    assert [len(r) for r in constructs.domains.regions] == [3, 3]
    assert constructs.qub[:, 0].tolist() == [0b11, 0b10]
    assert constructs.bits[:, 0].tolist() == [0b00, 0b00, 0b11, 0b01, 0b11, 0b01]


def test_keys_of_floats_are_in_their_order() -> None:
    values = [float("-inf"), -2.5, -5e-324, 0.0, 5e-324, 1.0, float("inf")]
    keys = [float_key(v) for v in values]
    assert keys == sorted(keys) and len(set(keys)) == len(keys) and float_key(-0.0) == float_key(0.0)


def test_texts_that_come_later_find_their_regions() -> None:
    db = connect()
    db.execute("CREATE STREAM S (t TEXT)")
    queries = [db.query(f"SELECT ISTREAM(t) FROM S WHERE t >= '{c}' AND t < '{c}m'") for c in "abcdefghij"]
    db.push("S", [("a",), ("b",)], ts=1)
    db.push("S", [("azure",), ("blue",), ("al",), (None,)], ts=2)
    assert [len(q.fetch()) for q in queries[:3]] == [2, 2, 0]
