"""Table 6.3: queries of Linear Road (section 6.11) over cars of the generator, as joins of windows.

Every car reports each 30 seconds, so that `position [RANGE 30 SECONDS]` holds the last report of each car on the road,
as the thesis' join of LastRep and CurActiveCars does. A car is never met again once it has left: `car` is a key of
`entry`, `exit` and `accident`, (car, at) one of `position`, and (car, dir, seg) one of `crossing`.

    CurCarSeg    the segment of each active car, and where it came from
    AccSeg       the segments where cars report that have had an accident
    CarExitStr   the segment from which each car left
    NegTollStr   the toll that a car gets back that leaves in the segment it was to pay for
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from experiments.k_mon.memory import MODES
from experiments.k_mon.running import Query, Run, run
from experiments.k_mon.workload import Stream, Streams
from minidsms.cql.parser import parse_type
from minidsms.elements import Schema
from minidsms.generators import generator_named, open_generator

POSITION = ("position", "(car INTEGER, dir INTEGER, xpos INTEGER, at INTEGER) KEY (car, at)")
PLACE = "(car INTEGER, dir INTEGER, seg INTEGER)"


@dataclass(frozen=True)
class LinearRoad:
    """A query of the table. thesis: the constraint and the ratios of memory and time that are reported there."""

    query: Query
    thesis: tuple[str, float, float]


QUERIES = {
    "CurCarSeg": LinearRoad(
        Query(
            dict([POSITION, ("entry", f"{PLACE} KEY (car)")]),
            "SELECT ISTREAM(P.car, P.at, P.dir, P.xpos / 5280, E.seg) FROM position [RANGE 30 SECONDS] AS P,"
            " entry [RANGE 20 MINUTES] AS E WHERE P.car = E.car",
        ),
        ("many-one", 0.09, 0.65),
    ),
    "AccSeg": LinearRoad(
        Query(
            dict([POSITION, ("accident", f"{PLACE} KEY (car)")]),
            "SELECT ISTREAM(P.car, P.at, P.dir, P.xpos / 5280) FROM position [RANGE 30 SECONDS] AS P,"
            " accident [RANGE 5 MINUTES] AS A WHERE P.car = A.car",
        ),
        ("RIDS", 0.13, 0.99),
    ),
    "CarExitStr": LinearRoad(
        Query(
            dict([POSITION, ("exit", f"{PLACE} KEY (car)")]),
            "SELECT ISTREAM(P.car, P.at, P.dir, P.xpos / 5280) FROM position [RANGE 30 SECONDS] AS P,"
            " exit [RANGE 30 SECONDS] AS X WHERE P.car = X.car",
        ),
        ("RIDS", 0.10, 0.49),
    ),
    "NegTollStr": LinearRoad(
        Query(
            {
                "crossing": "(car INTEGER, dir INTEGER, seg INTEGER, toll INTEGER) KEY (car, dir, seg)",
                "exit": f"{PLACE} KEY (car)",
            },
            "SELECT ISTREAM(C.car, C.dir, C.seg, 0 - C.toll) FROM crossing [RANGE 10 MINUTES] AS C,"
            " exit [RANGE 30 SECONDS] AS X WHERE C.car = X.car AND C.seg = X.seg AND C.dir = X.dir",
        ),
        ("RIDS", 0.13, 0.62),
    ),
}


def cars(names: Mapping[str, str], count: int, events: int, accidents: float = 2.0, seed: int = 1) -> Streams:
    """Streams of the generator, with the columns that a query declares; instants are milliseconds."""
    generator = generator_named("linear_road")
    found = {}
    for name, declared in names.items():
        types, _ = generator.streams[name]
        schema = Schema.of(*((column, parse_type(type_)) for column, type_ in types.items()))
        args = (name, ("events", events), ("cars", count), ("accidents", accidents), ("seed", seed))
        columns: dict[str, list[np.ndarray]] = {column: [] for column in types}
        for batch in open_generator("linear_road", args, schema, 1_000_000).read():
            for column in types:
                columns[column].append(batch.column(column).to_numpy())
        whole = {column: np.concatenate(parts).astype(np.int64) for column, parts in columns.items()}
        wanted = [column for column in types if f"{column} INTEGER" in declared]
        found[name] = Stream(whole["at"], {column: whole[column] for column in wanted})
    return found


ALL_MODES: Mapping[str, Mapping[str, object]] = {"off": {"state_reduction": "off"}, **MODES}


def measure(
    name: str, count: int, minutes: int = 30, repeats: int = 1, modes: Collection[str] = tuple(ALL_MODES)
) -> dict[str, Run]:
    """A query over so many cars at once, in each mode; of repeated runs the fastest."""
    query = QUERIES[name].query
    streams = cars(query.declared, count, 2 * minutes * count)
    found: dict[str, Run] = {}
    for _ in range(repeats):
        for mode in modes:
            one = run(query, streams, ALL_MODES[mode], slice_ticks=5000)
            if mode not in found or one.spent_ns < found[mode].spent_ns:
                found[mode] = one
    return found
