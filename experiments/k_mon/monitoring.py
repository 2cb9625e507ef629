"""Figures 6.11, 6.13 and 6.15: does the k that the monitor estimates follow the k that the streams keep?

The estimate is noted after every SLICE rows of all streams. False negatives are results that an execution would miss
which drops at the end of a slice whatever k_u says can matter no more; they are reckoned from the estimates, so that
they do not depend on how a join is carried out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from experiments.k_mon import workload
from experiments.k_mon.distances import clustering_distances, join_distances, scrambling_distances
from experiments.k_mon.workload import BoolArray, Float64Array, Int64Array, Stream, Streams
from minidsms.operators.k_mon.contracts import Arrivals, KConstraint, Kind
from minidsms.streamon.k_mon.monitoring.clustered import DEFAULTS as CA_DEFAULTS
from minidsms.streamon.k_mon.monitoring.clustered import ClusteredMonitor
from minidsms.streamon.k_mon.monitoring.estimate import Estimate
from minidsms.streamon.k_mon.monitoring.ordered import DEFAULTS as OA_DEFAULTS
from minidsms.streamon.k_mon.monitoring.ordered import OrderedMonitor
from minidsms.streamon.k_mon.monitoring.rids import DEFAULTS as RIDS_DEFAULTS
from minidsms.streamon.k_mon.monitoring.rids import RidsMonitor

MARGIN = RIDS_DEFAULTS.margin

SLICE = 200
"""Rows, of all streams."""
BLOCK = 4000
"""Rows, of all streams, over which false negatives are counted (section 6.6.4)."""
_NEVER = 1 << 60


@dataclass(frozen=True)
class Followed:
    """A figure. at: (slices,) rows of all streams so far.  actual: the greatest distance within a BLOCK of each.
    estimated: k_u, NaN where infinite.  missed: (blocks,) percent of results.  results: how many there are.  increases:
    how often k_u was given up.
    """

    at: Int64Array
    actual: Float64Array
    estimated: Float64Array
    missed: Float64Array
    results: int
    increases: int

    @property
    def missed_share(self) -> float:
        """Percent of all results."""
        return float(np.nanmean(self.missed)) if len(self.missed) else 0.0


def rids(rows: int, most: int, seed: int, margin: float = MARGIN) -> Followed:
    """Figure 6.11: RIDS(k) on S1 -> S2; c = 1, p = 0.01, W = 500."""
    streams = workload.referring(rows // (workload.MULTIPLICITY + 2), workload.changing(most), seed)
    parents, children = streams["s1"], streams["s2"]
    constraint = KConstraint(Kind.RIDS, "s2", ("a",), "s1", ("a",))
    monitor = RidsMonitor(constraint, replace(RIDS_DEFAULTS, margin=margin))
    ends = _ends(streams)
    k, before = [], (0, 0)
    for end in ends:
        upto = (int(np.searchsorted(parents.ts, end)), int(np.searchsorted(children.ts, end)))
        shown = [_arrivals(s, "a", lo, hi) for s, lo, hi in zip((children, parents), before[::-1], upto[::-1])]
        monitor.observe(*shown)
        k.append(_k_of(monitor))
        before = upto
    distances = join_distances(parents, "a", children, "a")
    came = np.searchsorted(children.ts, parents.ts)
    # Dropped is a parent from the first slice on at whose end k children have come since it.
    dropped_below = np.maximum.accumulate(np.searchsorted(children.ts, ends) - np.array(k))
    met = np.where(distances > 0, children.ts[np.minimum(came + distances - 1, len(children) - 1)], parents.ts)
    slice_before = np.searchsorted(ends, met, side="right") - 1
    missed = (distances > 0) & (slice_before >= 0) & (dropped_below[slice_before] >= came)
    has_result = distances >= 0
    return _followed(ends, k, met[has_result], distances[has_result], missed[has_result], monitor)


def clustered(rows: int, most: int, seed: int, margin: float = MARGIN) -> Followed:
    """Figure 6.13: CA(k) on S1.A; c = 1.2, p = 0.01, W = 1000."""
    streams = workload.clustered(rows // (2 * workload.MULTIPLICITY + 1), workload.changing(most), seed)
    stream = streams["s1"]
    monitor = ClusteredMonitor(KConstraint(Kind.CA, "s1", ("a",)), replace(CA_DEFAULTS, margin=margin))
    ends, k, arrived = _follow(streams, stream, monitor)
    distances = clustering_distances(stream["a"])
    # A value is over from the first slice on at whose end more than k others have come since its first row. Of the rows
    # of a value the marks C_v grow; what is over stays over.
    over_below = np.maximum.accumulate(arrived - np.array(k))
    mark = np.arange(len(stream)) - distances
    missed = over_below[_slice_before(ends, stream.ts)] > mark
    order = np.argsort(stream["a"], kind="stable")
    first = np.r_[True, stream["a"][order][1:] != stream["a"][order][:-1]]
    missed[order[first]] = False
    return _followed(ends, k, stream.ts, distances, _from_then_on(missed, order, first), monitor)


def ordered(rows: int, most: int, seed: int, margin: float = MARGIN) -> Followed:
    """Figure 6.15: OAP(k) on S1.A; c = 1.2, W = 1000."""
    streams = workload.ordered(rows // (2 * workload.MULTIPLICITY + 1), workload.changing(most), seed)
    stream = streams["s1"]
    monitor = OrderedMonitor(KConstraint(Kind.OAP, "s1", ("a",)), replace(OA_DEFAULTS, margin=margin))
    ends, k, arrived = _follow(streams, stream, monitor)
    distances = scrambling_distances(stream["a"])
    # Dropped are the children below what the maximum was k rows ago.
    highest = np.maximum.accumulate(stream["a"])
    place = arrived - 1 - np.array(k)
    dropped_below = np.maximum.accumulate(np.where(place >= 0, highest[np.maximum(place, 0)], -1))
    missed = stream["a"] < dropped_below[_slice_before(ends, stream.ts)]
    return _followed(ends, k, stream.ts, distances, missed, monitor)


FIGURES: dict[str, Callable[[int, int, int, float], Followed]] = {"6.11": rids, "6.13": clustered, "6.15": ordered}


def _ends(streams: Streams) -> Int64Array:
    """The instants before which slices end."""
    rows = sum(len(stream) for stream in streams.values())
    return np.arange(SLICE, rows + SLICE, SLICE)


def _slice_before(ends: Int64Array, instants: Int64Array) -> Int64Array:
    """The last slice that ended before each instant, -1 (as the last) never is: the first has none before it."""
    return np.maximum(np.searchsorted(ends, instants, side="right") - 1, 0)


def _follow(
    streams: Streams, stream: Stream, monitor: ClusteredMonitor | OrderedMonitor
) -> tuple[Int64Array, list[int], Int64Array]:
    """Show a stream; (ends of the slices, k after each, rows come by then)."""
    ends = _ends(streams)
    arrived = np.searchsorted(stream.ts, ends)
    k, before = [], 0
    for upto in arrived.tolist():
        monitor.observe(_arrivals(stream, "a", before, upto))
        k.append(_k_of(monitor))
        before = upto
    return ends, k, arrived


def _arrivals(stream: Stream, column: str, first: int, end: int) -> Arrivals:
    return Arrivals(np.arange(first, end), stream.ts[first:end], stream[column][first:end])


def _k_of(monitor: Estimate) -> int:
    return _NEVER if monitor.k is None else monitor.k


def _from_then_on(missed: BoolArray, order: Int64Array, first: BoolArray) -> BoolArray:
    """Of each group of rows, in `order`, all from the first marked one on."""
    marked = np.cumsum(missed[order])
    starts = np.flatnonzero(first)
    before = (marked - missed[order])[starts]
    since = marked - np.repeat(before, np.diff(np.r_[starts, len(order)]))
    result = np.empty_like(missed)
    result[order] = since > 0
    return result


def _followed(
    ends: Int64Array, k: list[int], instants: Int64Array, distances: Int64Array, missed: BoolArray, monitor: Estimate
) -> Followed:
    """Put a figure together. instants, distances, missed: of each result."""
    actual = np.zeros(len(ends))
    np.maximum.at(actual, np.minimum(np.searchsorted(ends, instants, side="right"), len(ends) - 1), distances)
    width = BLOCK // SLICE
    padded = np.pad(actual, width)
    smooth = np.max([padded[i : i + len(actual)] for i in range(2 * width + 1)], axis=0)
    blocks = instants // BLOCK
    count = np.bincount(blocks, minlength=1)
    with np.errstate(invalid="ignore"):
        share = 100 * np.bincount(blocks, missed, len(count)) / count
    estimated = np.array([np.nan if value == _NEVER else value for value in k], float)
    return Followed(ends, smooth, estimated, share, int(count.sum()), monitor.increases)
