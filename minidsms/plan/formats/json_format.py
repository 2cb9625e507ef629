"""A plan as JSON: one object, described in docs/statements/explain.md."""

from __future__ import annotations

import json
from typing import Any

from minidsms.plan.plan_graph import PlanGraph, PlanNode


def json_plan(graph: PlanGraph, cql: str, logical: list[str], analyze: bool) -> str:
    """The plan. cql: the expanded query.  logical: the lines of the logical plan."""
    operators = [n for n in graph.nodes if n.kind == "operator"]
    plan: dict[str, Any] = {
        "query": graph.query or None,
        "cql": cql,
        "logical": logical,
        "operators": [_node(n) | _read_by(n, graph) for n in operators],
        "stores": [_node(n) for n in graph.nodes if n.kind == "store"],
        "output": graph.root,
    }
    if analyze:
        plan["queues"] = [
            {"from": e.producer, "to": e.consumer, "input": e.input, **e.figures} for e in graph.edges if e.figures
        ]
        plan |= {"closed_until": graph.closed_until, "failure": graph.failure, "waiting": graph.waiting}
        plan["shed"] = graph.shed
    return json.dumps(plan, indent=2, ensure_ascii=True, default=str)


def _read_by(node: PlanNode, graph: PlanGraph) -> dict[str, Any]:
    """Its inputs in order, or the store it reads."""
    producers = [graph.node(e.producer) for e in graph.edges if e.consumer == node.number]
    stores = [p.number for p in producers if p.kind == "store"]
    return {"store": stores[0]} if stores else {"inputs": [p.number for p in producers]}


def _node(node: PlanNode) -> dict[str, Any]:
    return {
        "id": node.number,
        "name": node.name,
        "detail": node.detail,
        "queries": list(node.queries),
        **({"figures": node.figures} if node.figures else {}),
        **({"parts": list(node.parts)} if node.parts else {}),
    }
