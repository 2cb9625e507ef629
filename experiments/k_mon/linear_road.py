"""Table 6.3: queries of Linear Road (section 6.11) over cars of the generator.

Every car reports each 30 seconds and is never met again once it has left: `car` is a key of `entry`, `exit` and
`accident`, (car, at) one of `position`, and (car, dir, seg) one of `crossing`.

    CurCarSeg        the segment of each active car: figure 6.19, its inner query
    AccSeg           the segments where cars have had an accident: figure 6.19
    AccSeg, streams  the reports of cars that have had an accident, these being a stream
    CarExitStr       the segment from which each car left
    NegTollStr       the toll that a car gets back that leaves in the segment it was to pay for
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

CARS = 100_000
"""On the road at once."""
REPORTS = ("position", "(car INTEGER, dir INTEGER, xpos INTEGER)")
POSITION = ("position", "(car INTEGER, dir INTEGER, xpos INTEGER, at INTEGER) KEY (car, at)")
PLACE = "(car INTEGER, dir INTEGER, seg INTEGER)"
CUR_CAR_SEG = (
    "SELECT LastRep.car, dir, seg FROM"
    " (SELECT car, dir, xpos / 5280 AS seg FROM position [PARTITION BY car ROWS 1]) AS LastRep,"
    " (SELECT DISTINCT car FROM position [RANGE 30 SECONDS]) AS CurActiveCars WHERE LastRep.car = CurActiveCars.car"
)


def _met(other: str, window: str) -> Query:
    """The reports of cars that another stream tells of, which names each car once."""
    return Query(
        dict([POSITION, (other, f"{PLACE} KEY (car)")]),
        "SELECT ISTREAM(P.car, P.at, P.dir, P.xpos / 5280) FROM position [RANGE 30 SECONDS] AS P,"
        f" {other} [RANGE {window}] AS O WHERE P.car = O.car",
    )


@dataclass(frozen=True)
class LinearRoad:
    """A query of the table. thesis: the constraint and the ratios of memory and time that are reported there.

    minutes: how long the cars drive.  modes: in which it is measured; without SWJ and lossy where nothing differs.
    cars: on the road at once.
    """

    query: Query
    thesis: tuple[str, float, float]
    minutes: int
    modes: tuple[str, ...] = ("off", "SWJ", "exact", "lossy")
    cars: int = CARS


QUERIES = {
    "CurCarSeg": LinearRoad(Query(dict([REPORTS]), CUR_CAR_SEG), ("many-one", 0.09, 0.65), 30, ("off", "exact")),
    "AccSeg": LinearRoad(
        Query(
            dict([REPORTS]),
            f"SELECT DISTINCT dir, seg FROM ({CUR_CAR_SEG}) AS CurCarSeg,"
            " (SELECT car FROM position [PARTITION BY car ROWS 4] GROUP BY car"
            " HAVING COUNT(DISTINCT xpos) = 1 AND COUNT(*) = 4) AS AccCars WHERE CurCarSeg.car = AccCars.car",
        ),
        ("RIDS", 0.13, 0.99),
        15,
        ("off", "exact"),
    ),
    "AccSeg, streams": LinearRoad(_met("accident", "5 MINUTES"), ("RIDS", 0.13, 0.99), 9),
    "CarExitStr": LinearRoad(_met("exit", "30 SECONDS"), ("RIDS", 0.10, 0.49), 6),
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
        20,
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
        wanted = [column for column in types if f"{column} INTEGER" in declared]
        columns: dict[str, list[np.ndarray]] = {column: [] for column in {*wanted, "at"}}
        for batch in open_generator("linear_road", args, schema, 1_000_000).read():
            for column, parts in columns.items():
                parts.append(batch.column(column).to_numpy())
        whole = {column: np.concatenate(parts).astype(np.int64) for column, parts in columns.items()}
        found[name] = Stream(whole["at"], {column: whole[column] for column in wanted})
    return found


ALL_MODES: Mapping[str, Mapping[str, object]] = {"off": {"state_reduction": "off"}, **MODES}


def measure(name: str, count: int, minutes: int | None = None, modes: Collection[str] | None = None) -> dict[str, Run]:
    """A query over so many cars at once, in each mode."""
    one = QUERIES[name]
    streams = cars(one.query.declared, count, 2 * (minutes or one.minutes) * count)
    # A second at a time: what was just pushed is held whatever a query keeps, and should not be what is measured.
    return {mode: run(one.query, streams, ALL_MODES[mode], slice_ticks=1000) for mode in modes or one.modes}
