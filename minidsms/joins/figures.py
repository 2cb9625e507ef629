"""What an n-way join has counted of its pipelines and caches, and what its caches may hold.

Babu 2005, sections 5.4 and 5.5.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from minidsms.elements import Int64Array
from minidsms.joins.plan import SharedKey


@dataclass(frozen=True)
class CacheFigures:
    """Of one used cache, since it came into use; those of a shared store (creates to bytes) stand at each sharing it.

    probes = hits + misses.  creates: entries added after a miss; created_rows: rows in them.  inserts, deletes: rows
    added to and taken from present entries by changes of the segment's inputs; ignored: changes whose key was absent.
    evictions: entries replaced, or dropped for want of memory.  entries, rows, bytes: held now.
    """

    probes: int = 0
    hits: int = 0
    misses: int = 0
    creates: int = 0
    created_rows: int = 0
    inserts: int = 0
    deletes: int = 0
    ignored: int = 0
    evictions: int = 0
    entries: int = 0
    rows: int = 0
    bytes: int = 0


@dataclass(frozen=True)
class PipelineFigures:
    """Of one pipeline, since the plan began or longer; all of it without caches, from sampled elements or from those
    that met none.

    elements: insertions and deletions that entered the pipeline, whether sampled or not.  sampled: those that the rest
    counts.  processed: (n,) tuples that reached each position, the last being the results.  time_ns: (n - 1,) spent at
    each position on them, nan where nothing was timed.
    """

    elements: int
    sampled: int
    processed: tuple[float, ...]
    time_ns: tuple[float, ...]


@dataclass(frozen=True)
class ProbeSample:
    """A stretch of the probe stream of a cache that is profiled: consecutive probes, none left out.

    keys: (m, words) int64, one row per probe, in the order of `key_parts`.
    """

    keys: Int64Array


@dataclass(frozen=True)
class Memory:
    """What the caches may hold. budget: bytes, None for no limit.  priorities: of each store, higher first served."""

    budget: int | None = None
    priorities: Mapping[SharedKey, float] = field(default_factory=dict)
