"""Figures 6.10, 6.12, 6.14, 6.16, 6.17 and 6.18, and table 6.1: memory and time of joins that use constraints.

Windows hold 50,000 rows, half of the children pass their filters (a tenth in figure 6.18). The baseline is SWJ
(section 6.5). All memory of the connection counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from experiments.k_mon import workload
from experiments.k_mon.running import Query, Run, run
from experiments.k_mon.workload import MULTIPLICITY, Streams, steady
from minidsms.operators.k_mon.contracts import Kind

WINDOW, ROWS = 50_000, 600_000
ADHERENCES = (0, 1000, 5000, 10_000, 20_000)
"""k of table 6.1."""
MODES: Mapping[str, Mapping[str, object]] = {
    "SWJ": {"state_reduction": "swj"},
    "exact": {"state_reduction": "k-mon"},
    "lossy": {"state_reduction": "k-mon", "k_mon": "lossy"},
}
"""The thesis' k-Mon is lossy: what constraints let go is gone."""


@dataclass(frozen=True)
class Figure:
    """streams: from (rows, k, seed).  query: from the windows' rows.  kinds: of constraints that are used."""

    title: str
    streams: Callable[[int, int, int], Streams]
    query: Callable[[int], Query]
    kinds: frozenset[Kind]


def _from(names: str, window: int) -> str:
    return ", ".join(f"{name} [ROWS {window}]" for name in names.split())


def star(window: int) -> Query:
    """Figure 6.9(a): S1 -> S2, S1 -> S3."""
    return Query(
        {
            "s1": "(a INTEGER, b INTEGER, e INTEGER) KEY (e)",
            "s2": "(a INTEGER, c INTEGER, f INTEGER) KEY (a)",
            "s3": "(b INTEGER, d INTEGER, g INTEGER) KEY (b)",
        },
        f"SELECT ISTREAM(s1.a, s1.b, s1.e, s2.c, s2.f, s3.d, s3.g) FROM {_from('s1 s2 s3', window)}"
        " WHERE s1.a = s2.a AND s1.b = s3.b AND s2.c < 50 AND s3.d < 50",
    )


def two_roots(window: int) -> Query:
    """Figure 6.9(b): S1 -> S3, S2 -> S3."""
    return Query(
        {
            "s1": "(a INTEGER, e INTEGER, f INTEGER) KEY (e)",
            "s2": "(a INTEGER, e INTEGER, f INTEGER) KEY (e)",
            "s3": "(a INTEGER, d INTEGER, g INTEGER) KEY (a)",
        },
        f"SELECT ISTREAM(s1.a, s1.e, s1.f, s2.e, s2.f, s3.d, s3.g) FROM {_from('s1 s2 s3', window)}"
        " WHERE s1.a = s3.a AND s2.a = s3.a AND s3.d < 50",
    )


def pair(window: int, passing: int = 50) -> Query:
    """Figure 6.9(c): S1 -> S2."""
    return Query(
        {
            "s1": "(a INTEGER, e INTEGER, f INTEGER) KEY (e)",
            "s2": "(a INTEGER, d INTEGER, g INTEGER) KEY (a)",
        },
        f"SELECT ISTREAM(s1.a, s1.e, s1.f, s2.d, s2.g) FROM {_from('s1 s2', window)}"
        f" WHERE s1.a = s2.a AND s2.d < {passing}",
    )


def _children(rows: int, parents: int, children: int) -> int:
    return rows // (parents * MULTIPLICITY + children)


FIGURES = {
    "6.10": Figure(
        "6.10: RIDS(k)",
        lambda rows, k, seed: workload.referring(_children(rows, 1, 2), steady(k), seed),
        star,
        frozenset({Kind.RIDS}),
    ),
    "6.12": Figure(
        "6.12: CA(k)",
        lambda rows, k, seed: workload.clustered(_children(rows, 2, 1), steady(k), seed),
        two_roots,
        frozenset({Kind.CA}),
    ),
    "6.14": Figure(
        "6.14: OAP(k)",
        lambda rows, k, seed: workload.ordered(_children(rows, 2, 1), steady(k), seed),
        two_roots,
        frozenset({Kind.OAP}),
    ),
    "6.16": Figure(
        "6.16: OAC(k)",
        lambda rows, k, seed: workload.ordered_children(_children(rows, 1, 1), steady(k), seed),
        pair,
        frozenset({Kind.OAC}),
    ),
}


def reduction(number: str, quicker: int) -> dict[int, dict[str, Run]]:
    """A figure: at each k the join in each mode."""
    figure = FIGURES[number]
    query = figure.query(WINDOW // quicker)
    found = {}
    for k in (k // quicker for k in ADHERENCES):
        streams = figure.streams(ROWS // quicker, k, 1)
        found[k] = {mode: run(query, streams, settings, kinds=figure.kinds) for mode, settings in MODES.items()}
    return found


def combined(quicker: int) -> dict[str, Run]:
    """Figure 6.17: CA(0) on S1.A and OAC(5000) on S3.B, each alone and both."""
    streams = workload.clustered_and_ordered(_children(ROWS, 1, 2) // quicker, 5000 // quicker, 1)
    query = star(WINDOW // quicker)
    found = {"SWJ": run(query, streams, MODES["SWJ"], kinds=())}
    for name, kinds in (("CA", {Kind.CA}), ("OAC", {Kind.OAC}), ("CA and OAC", {Kind.CA, Kind.OAC})):
        found[name] = run(query, streams, MODES["lossy"], kinds=kinds)
    return found


def interfering(quicker: int) -> dict[int, dict[str, float]]:
    """Figure 6.18: bytes at the end by k of RIDS(k), with CA(5000) alone, RIDS alone, and both."""
    query = pair(WINDOW // quicker, passing=10)
    found: dict[int, dict[str, float]] = {}
    for k in (0, 1000, 2000, 4000, 7000, 10_000):
        streams = workload.clustered_and_referring(ROWS // 3 // quicker, 5000 // quicker, k // quicker, 1)
        found[k // quicker] = {
            name: run(query, streams, MODES["lossy"], kinds=kinds).steady_nbytes
            for name, kinds in (("CA", {Kind.CA}), ("RIDS", {Kind.RIDS}), ("CA and RIDS", {Kind.CA, Kind.RIDS}))
        }
    return found
