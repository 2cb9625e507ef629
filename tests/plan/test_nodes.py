"""Every kind of node through everything that looks at plans: a new one is forgotten nowhere."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator, Sequence
from random import Random

import pytest

from minidsms.archive.demand import demand
from minidsms.archive.horizon import horizon
from minidsms.cql.binder import bind
from minidsms.cql.bound import Aggregate, Node, every_column
from minidsms.cql.parser import parse_query
from minidsms.operators.operator import Operator
from minidsms.plan.constants import FEWEST, Families
from minidsms.plan.logical import Stop, nodes
from minidsms.plan.physical import PhysicalPlanner
from minidsms.plan.planner import plan
from minidsms.plan.reading import inputs_of, is_immediate
from minidsms.plan.rules import RULES
from minidsms.spark.partitioning import partitioning
from minidsms.testing.compare import catalog_of, check
from minidsms.testing.generators import Case, declaration, random_feed

NAMES = ["Sa", "Sb", "Rel"]
REDUCED = {"state_reduction": "k-mon"}
QUERIES: dict[str, tuple[str, dict[str, str]]] = {
    "BaseStream Window Filter Project": ("SELECT k + 1 AS n FROM Sa [RANGE 3] WHERE v > 1", {}),
    "BaseRelation Join": ("SELECT a.k FROM Sa [RANGE 3] AS a, Rel AS r WHERE a.k * 2 < r.k", {}),
    "Aggregate FirstArrival": ("SELECT COUNT(*) AS n, SUM(v) AS s FROM Sa [RANGE 3]", {}),
    "Panes": ("SELECT k, MAX(v) AS m FROM Sa [RANGE 4 SLIDE 2] GROUP BY k", {}),
    "Stamped": ("SELECT k, ts FROM Sa [RANGE 3]", {}),
    "Bounds": ("SELECT k, window_end FROM Sa [HOP 3 EVERY 2]", {}),
    "Top": ("SELECT k, v FROM Sa [RANGE 3] ORDER BY v DESC LIMIT 2", {}),
    "Over": ("SELECT k, RANK() OVER (PARTITION BY k ORDER BY v) AS n FROM Sa [RANGE 3]", {}),
    "Unnest": ("SELECT k, e FROM Sa [RANGE 3], UNNEST([k, v, NULL]) AS e", {}),
    "Constant": ("SELECT a.v, t.n FROM Sa [RANGE 3] AS a, (VALUES (1, 'a'), (2, NULL)) AS t(k, n) WHERE a.k > t.k", {}),
    "Distinct": ("SELECT DISTINCT k FROM Sa [RANGE 3]", {}),
    "SetOperation": ("SELECT k FROM Sa [RANGE 3] EXCEPT SELECT k FROM Sb [ROWS 2]", {}),
    "RelationToStream WindowEvents": ("SELECT RSTREAM(k) FROM Sa [RANGE 3]", {}),
    "RelationEvents": ("SELECT RSTREAM(k) FROM Rel", {}),
    "SemiJoin": ("SELECT k FROM Sa [RANGE 3] WHERE k NOT IN (SELECT k FROM Rel WHERE k IS NOT NULL)", {}),
    "ProbedStream": ("RSTREAM (SELECT k, v FROM Sa [NOW] WHERE k IN (SELECT k FROM Sb [ROWS 3]))", {}),
    "LookupJoin": ("RSTREAM (SELECT a.v, b.v AS w FROM Sa [NOW] AS a LEFT JOIN Sb [ROWS 3] AS b ON a.k = b.k)", {}),
    "NewRows": ("SELECT ISTREAM(k, v) FROM Sa [NOW]", {}),
    "MultiJoin": ("SELECT a.v, b.v AS w FROM Sa [RANGE 3] AS a, Sb [RANGE 4] AS b WHERE a.k = b.k", {}),
    "KeepArrival RestoreArrival": ("SELECT FIRST(v) AS f FROM Sa [RANGE 5] WHERE k IN (SELECT k FROM Rel)", {}),
    "ReducedJoin": (
        "SELECT ISTREAM(a.v, b.v AS w) FROM Sa [RANGE 3] AS a, Sb [RANGE 4] AS b WHERE a.k = b.k",
        REDUCED,
    ),
    "Entering": (
        "SELECT ISTREAM(a.v, b.v AS w) FROM Sa [RANGE 4 SLIDE 2] AS a, Sb [RANGE 4] AS b WHERE a.k = b.k",
        REDUCED,
    ),
}
"""A query that has a node of each kind, and the settings under which it does."""
OF_BOUND_QUERIES = {"Lateral"}
"""What is a join in every plan."""


def kinds(base: type[Node] = Node) -> Iterator[str]:
    """The names of all classes of nodes of the engine; Spark's way has some of its own."""
    for kind in base.__subclasses__():
        if (
            not inspect.isabstract(kind)
            and kind.__module__.startswith("minidsms.")
            and not kind.__module__.startswith("minidsms.spark.")
        ):
            yield kind.__name__
        yield from kinds(kind)


def case_of(query: str) -> Case:
    return Case(tuple(map(declaration, NAMES)), query, random_feed(Random(5), NAMES, 12, may_be_extreme=False))


def every_plan() -> Iterator[Stop]:
    """The plans of all queries, after each rule."""
    for query, _ in QUERIES.values():
        tree = bind(parse_query(query), catalog_of(case_of(query)), query)
        for _, stage in plan(tree.node, query).stages:
            yield stage


def family_plans() -> Iterator[Stop]:
    """Plans of queries that differ in a filter, which no rule makes and `tests/plan/test_constants.py` runs."""
    for text in ("SELECT COUNT(*) AS n FROM Sa [RANGE 3] WHERE v > {}", "SELECT k FROM Sa [RANGE 3] WHERE v > {}"):
        families = Families()
        for i in range(FEWEST):
            tree = bind(parse_query(text.format(i)), catalog_of(case_of(text.format(i))), text.format(i))
            found = families.find(plan(tree.node, text).root, lambda stream: 0)
        assert found is not None
        yield found.root


def test_there_is_a_query_for_every_kind_of_node() -> None:
    of_families = {type(node).__name__ for root in family_plans() for node in nodes(root)}
    assert {name for names in QUERIES for name in names.split()} | of_families == set(kinds()) - OF_BOUND_QUERIES


@pytest.mark.parametrize("names", QUERIES)
def test_every_kind_of_node_is_run_and_answers_as_defined(names: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made: set[str] = set()
    make, aggregate = PhysicalPlanner._make, PhysicalPlanner._aggregate

    def noted(planner: PhysicalPlanner, node: Node) -> object:
        made.add(type(node).__name__)
        return make(planner, node)

    def noted_aggregate(planner: PhysicalPlanner, node: Aggregate, inputs: Sequence[Operator]) -> object:
        made.add(type(node).__name__)
        return aggregate(planner, node, inputs)

    monkeypatch.setattr(PhysicalPlanner, "_make", noted)
    monkeypatch.setattr(PhysicalPlanner, "_aggregate", noted_aggregate)
    query, settings = QUERIES[names]
    assert check(case_of(query), **settings) == "agreed"
    assert made >= set(names.split())


def test_every_node_says_what_it_reads_and_how_it_is_written() -> None:
    for node in (node for root in (*every_plan(), *family_plans()) for node in nodes(root)):
        assert node.text()
        assert node.text() != type(node).__name__ or node.text() in ("Distinct", "Entering")
        needs = node.needs(every_column(node))
        assert len(needs) == len(node.inputs)
        assert all(wanted <= every_column(child) for wanted, child in zip(needs, node.inputs))
        assert node.over(node.inputs) is node and node.rewritten(lambda e: e) is node
        assert dataclasses.replace(node).shape == node.shape
        hash(node.shape)


def test_every_rule_takes_every_node() -> None:
    for root in every_plan():
        for rule in RULES:
            assert isinstance(rule(root), Stop), rule.__name__


def test_whoever_looks_at_plans_knows_every_node() -> None:
    for root in every_plan():
        horizon(root)
        partitioning(root)
        demand([root], "Sa")
        inputs_of(root)
        is_immediate(root)


def test_a_node_that_says_too_little_cannot_be_made() -> None:
    class Silent(Node):
        pass

    with pytest.raises(TypeError, match="abstract"):
        Silent(QUERY_SCHEMA)  # type: ignore[abstract]


QUERY_SCHEMA = next(every_plan()).schema
