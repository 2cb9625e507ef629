"""EXPLAIN as JSON, Mermaid and SVG: what they say is what runs, and nothing in a query becomes markup."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

import minidsms
from minidsms.plan.formats.layered import layers
from minidsms.plan.formats.mermaid import escaped
from minidsms.plan.plan_graph import plan_graph
from minidsms.plan.rules import RULES

NASTY = "x\"'><script>alert(1)</script>&amp;#]|`%%{init}%%\x1b[31m\u202e"


@pytest.fixture
def db() -> minidsms.Connection:
    db = minidsms.connect()
    db.execute("CREATE STREAM S (k INTEGER, v TEXT); CREATE STREAM T (k INTEGER); CREATE RELATION R (k INTEGER)")
    return db


def test_json_tells_operators_queues_and_stores(db: minidsms.Connection) -> None:
    q = db.query("SELECT S.k, COUNT(*) FROM S [RANGE 5], T [ROWS 3] WHERE S.k = T.k GROUP BY S.k", name="q")
    db.push("S", [(1, "a"), (2, "b")], ts=[1, 2])
    db.push("T", [(1,), (3,)], ts=[1, 2])
    plan = json.loads(q.explain(analyze=True, format="json"))
    assert plan["query"] == "q" and plan["closed_until"] == 1 and plan["waiting"] is None
    by_name = {op["name"]: op for op in plan["operators"]}
    assert by_name["Stream"]["detail"] in ("S", "T")
    assert plan["operators"][-1]["id"] == plan["output"]
    assert {s["detail"] for s in plan["stores"]} == {"S", "T"}
    ids = {node["id"] for node in [*plan["operators"], *plan["stores"]]}
    for op in plan["operators"]:
        assert set(op.get("inputs", [op.get("store")])) <= ids
    counted = q.stats()["operators"]
    assert [op["figures"]["elements_in"] for op in plan["operators"]] == [c["elements_in"] for c in counted]
    assert {(e["from"], e["to"]) for e in plan["queues"]} == {
        (producer, op["id"]) for op in plan["operators"] for producer in op.get("inputs", ())
    }


def test_without_analyze_nothing_of_the_run_is_told(db: minidsms.Connection) -> None:
    q = db.query("SELECT k FROM S WHERE k > 1")
    plan = json.loads(q.explain(format="json"))
    assert "queues" not in plan and all("figures" not in op for op in plan["operators"])


def test_a_store_that_several_queries_read_says_so_in_every_format(db: minidsms.Connection) -> None:
    q = db.query("SELECT k FROM S [RANGE 5]", name="one")
    db.query("SELECT v FROM S [RANGE 9]", name="two")
    db.query("SELECT k FROM T", name="elsewhere")
    (store,) = json.loads(q.explain(format="json"))["stores"]
    assert store["queries"] == ["one", "two"]
    assert "serves one, two" in q.explain(format="mermaid")
    assert "serves one, two" in q.explain(format="svg")
    assert "store read by one, two" in q.explain(analyze=True)


def test_the_input_that_holds_time_back_is_named_in_every_format(db: minidsms.Connection) -> None:
    q = db.query("SELECT S.k FROM S [RANGE 5], T [RANGE 5] WHERE S.k = T.k")
    db.push("T", (1,), ts=10)
    db.push("S", [(1, "a")] * 2, ts=[50, 60])
    assert "stream T, which is at 9" in json.loads(q.explain(analyze=True, format="json"))["waiting"]
    for format_ in ("mermaid", "svg", "text"):
        assert "held back by stream T" in q.explain(analyze=True, format=format_)


def test_svg_is_well_formed_and_holds_no_markup_of_the_query(db: minidsms.Connection) -> None:
    text = NASTY.replace("'", "''")
    q = db.query(f"SELECT k FROM S [RANGE 5] WHERE v <> '{text}' AND v LIKE '{text}'", name="n<b>&")
    db.push("S", (1, NASTY), ts=1)
    svg = q.explain(analyze=True, format="svg")
    root = ElementTree.fromstring(svg)
    assert {element.tag.rpartition("}")[2] for element in root.iter()} == {"svg", "rect", "text", "path"}
    assert not re.search("[\x00-\x08\x0b-\x1f\u202e]", svg)
    texts = "".join(element.text or "" for element in root.iter())
    assert "n<b>&" in texts and "<script" not in svg


def test_mermaid_labels_cannot_be_left(db: minidsms.Connection) -> None:
    text = NASTY.replace("'", "''")
    q = db.query(f"SELECT k FROM S [RANGE 5] WHERE v <> '{text}'")
    for line in q.explain(analyze=True, format="mermaid").splitlines()[1:]:
        label = re.search('"(.*)"', line)
        if label is not None:
            inside = label[1].replace("<br/>", "")
            assert not set(inside) & set('"<>`%|[]{}'), line


def test_escaping_is_undone_by_reading_the_numbers() -> None:
    shown = escaped('a "b" <c> #1; 100 % [x]')
    assert re.sub(r"#(\d+);", lambda m: chr(int(m[1])), shown) == 'a "b" <c> #1; 100 % [x]'


def test_every_reader_stands_above_what_it_reads(db: minidsms.Connection) -> None:
    q = db.query(
        "SELECT S.k FROM S [RANGE 5], T [RANGE 5], R WHERE S.k = T.k AND T.k = R.k AND S.k IN (SELECT k FROM T [NOW])"
    )
    graph = plan_graph(q.network)
    rows = layers(graph)
    layer = {n: i for i, row in enumerate(rows) for n in row}
    assert sorted(layer) == [node.number for node in graph.nodes]
    assert all(layer[edge.consumer] < layer[edge.producer] for edge in graph.edges)
    assert rows[0] == [graph.root]


def test_a_part_read_twice_is_drawn_once(db: minidsms.Connection) -> None:
    db.execute("CREATE VIEW V AS SELECT k, COUNT(*) AS n FROM S [RANGE 5] GROUP BY k")
    q = db.query("SELECT a.k FROM V a, V b WHERE a.k = b.n")
    graph = plan_graph(q.network)
    assert sum(node.name == "Aggregate" for node in graph.nodes) == 1
    aggregate = next(node.number for node in graph.nodes if node.name == "Aggregate")
    assert sum(edge.producer == aggregate for edge in graph.edges) == 2


def test_the_statement_gives_the_formats_line_by_line(db: minidsms.Connection) -> None:
    db.query("SELECT k FROM S", name="q")
    shown = "\n".join(line for (line,) in db.execute("EXPLAIN (ANALYZE, FORMAT json) q"))
    assert json.loads(shown)["query"] == "q"
    drawn = "\n".join(line for (line,) in db.execute("EXPLAIN (FORMAT svg) SELECT k FROM T WHERE k < 3"))
    assert ElementTree.fromstring(drawn) is not None
    stages = "\n".join(line for (line,) in db.execute("EXPLAIN (RULES) SELECT k FROM T [RANGE 5] WHERE k < 3"))
    assert "After push filters" in stages
    with pytest.raises(minidsms.Error, match="no plan format"):
        db.queries["q"].explain(format="dot")


def test_the_page_has_every_rule_in_its_order() -> None:
    page = Path(__file__).parents[2] / "docs" / "statements" / "explain.md"
    told = re.findall(r"^\| ([a-z ]+) \| ", page.read_text().partition("| rule |")[2], re.MULTILINE)
    rules = dict.fromkeys(rule.__name__.replace("_", " ") for rule in RULES)
    assert told == [*rules, "look up stars", "reduce state"]


def test_operators_that_serve_several_queries_say_so_until_one_is_paused(db: minidsms.Connection) -> None:
    cql = "SELECT k, COUNT(*) FROM S [RANGE 10] WHERE k > 1 GROUP BY k"
    a, b = db.query(cql, name="a"), db.query(cql, name="b")
    operators = json.loads(b.explain(format="json"))["operators"]
    assert [op["queries"] for op in operators[:-1]] == [["b", "a"]] * (len(operators) - 1)
    assert operators[-1]["queries"] == ["b"]
    assert "serves a, b" in a.explain(analyze=True) and "serves a, b" in a.explain(format="mermaid")
    b.pause()
    assert all(op["queries"] == ["b"] for op in json.loads(b.explain(format="json"))["operators"])
