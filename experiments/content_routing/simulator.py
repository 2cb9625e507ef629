"""Tuple by tuple, as the paper routes and counts: how many times a tuple is sent to an operator.

A routing call sends one tuple to one operator. The policies:

    SBR       to the operator with the least W, all tuples alike
    LEARNS    Content-Learns, sections 4.1 and 4.2
    KNOWS     Content-Knows: it is told the best order of each class
    TOLD      Content-Learns that is told what it would learn: when an operator has been profiled, the right classifier
              and the true selectivities of its classes; what it saves less than Content-Knows is what profiles cost
    TICKET    a lottery (Avnur and Hellerstein 2000, section 4.2)

The share P of the tuples begins with the operator that is profiled, while it is; under SBR, which profiles nothing, as
many begin with any operator. What is not in the paper: whether a classifier helps is judged by routing calls per tuple
while it is used for TRIED tuples, against those while its operator was profiled, and gamma is what chance gives.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from experiments.content_routing.streams import StarStream
from minidsms.elements import Int64Array
from minidsms.streamon.contracts import Float64Array

SBR, LEARNS, KNOWS, TOLD, TICKET = range(5)
D, R, P, ALPHA = 24, 150, 0.06, 0.95
SURE = 2.0
"""gamma, which is not given: an attribute must tell more than chance does, by so many standard deviations."""
TRIED = 1000
"""Tuples for which a classifier is tried."""
WORSE = 0.05
"""A classifier goes where calls per tuple have risen by more: smaller differences are chance, and where the others'
classifiers tell enough already, one more changes nothing until they are profiled in turn.
"""
CALLS, CALLS_OF_DROPPED, DROPPED, CLASSIFIED, WRONG, PROFILES, COUNTS = range(7)


@dataclass(frozen=True)
class Counted:
    """calls: in all, per tuple.  until_dropped: per tuple that is dropped.  classified: calls that went by a
    classifier, as a share of all; wrong: those that went by another attribute than attrc.  profiles: of operators.
    """

    calls: float
    until_dropped: float
    classified: float
    wrong: float
    profiles: int


def simulate(stream: StarStream, policy: int, sure: float = SURE, seed: int = 0) -> Counted:
    """Route a stream."""
    rng = np.random.default_rng((seed, 2))
    m = len(stream.classes)
    draws = rng.random((m, 1 + stream.n))
    counts = np.zeros(COUNTS, np.int64)
    told = _best(stream), np.ascontiguousarray(stream.selectivities)
    _simulate(stream.drops, stream.buckets(D), stream.classes, *told, draws, policy, sure, counts)
    calls, of_dropped, dropped, classified, wrong, profiles = counts[:COUNTS].tolist()
    return Counted(calls / m, of_dropped / max(dropped, 1), classified / calls, wrong / calls, profiles)


def _best(stream: StarStream) -> Int64Array:
    """(classes, n): independent within a class, the filters by what they pass."""
    return np.argsort(stream.selectivities, axis=1, kind="stable")


def calls_of_order(stream: StarStream, order: Int64Array) -> float:
    """Per tuple, all in one order: what A-Greedy's order costs without its profiles."""
    reached = np.logical_and.accumulate(stream.drops[:, order] == 0, axis=1)
    return 1.0 + float(reached[:, :-1].sum()) / len(reached)


def greedy_order(stream: StarStream) -> Int64Array:
    """The order that A-Greedy's view converges to, over all tuples (Babu 2005, section 4.3)."""
    left = stream.drops
    order: list[int] = []
    for _ in range(stream.n):
        rest = [f for f in range(stream.n) if f not in order]
        best = max(rest, key=lambda f: int(left[:, f].sum()))
        order.append(best)
        left = left[left[:, best] == 0]
    return np.array(order)


@njit(cache=True)
def _entropy(p: float) -> float:
    if p <= 0.0 or p >= 1.0:
        return 0.0
    return -p * np.log2(p) - (1.0 - p) * np.log2(1.0 - p)


@njit(cache=True)
def _gain_ratio(out: Int64Array, into: Int64Array, sure: float) -> float:
    """Equations 2 to 5; 0 where chance tells as much: 2 |R| ln 2 times the gain is then chi-square."""
    total = into.sum()
    gain = _entropy(out.sum() / total)
    split = 0.0
    for i in range(len(into)):
        if into[i] > 0:
            share = into[i] / total
            gain -= share * _entropy(out[i] / into[i])
            split -= share * np.log2(share)
    freedom = np.sum(into > 0) - 1
    if freedom < 1:
        return 0.0
    spread = 2.0 / (9.0 * freedom)
    by_chance = freedom * (1.0 - spread + sure * np.sqrt(spread)) ** 3
    return gain / split if 2.0 * total * np.log(2.0) * gain > by_chance else 0.0


@njit(cache=True)
def _simulate(
    drops: Int64Array,
    buckets: Int64Array,
    classes: Int64Array,
    best: Int64Array,
    selectivities: Float64Array,
    draws: Float64Array,
    policy: int,
    sure: float,
    counts: Int64Array,
) -> None:
    m, n = drops.shape
    k = buckets.shape[1]
    w = np.full(n, 0.5)
    s = np.full((n, D), 0.5)
    ca = np.full(n, -1)
    into = np.zeros((k, D), np.int64)
    out = np.zeros((k, D), np.int64)
    tickets = np.ones(n)
    done = np.zeros(n, np.bool_)
    profiled, seen, trying, since, calls_since, without = 0, 0, False, 0, 0, 0.0
    for t in range(m):
        done[:] = False
        calls = 0
        is_dropped = False
        first = -1
        is_sampled = False
        if draws[t, 0] < P and (policy == SBR or (policy in (LEARNS, TOLD) and not trying)):
            is_sampled = policy != SBR
            first = profiled if policy != SBR else int(draws[t, 0] / P * n)
        for step in range(n):
            op = first if step == 0 else -1
            if op < 0 and policy == KNOWS:
                op = best[classes[t], step]
            elif op < 0 and policy == TICKET:
                total = 0.0
                for f in range(n):
                    if not done[f]:
                        total += tickets[f]
                left = draws[t, 1 + step] * total
                for f in range(n):
                    if not done[f]:
                        op = f
                        left -= tickets[f]
                        if left < 0.0:
                            break
            elif op < 0:
                least = 2.0
                for f in range(n):
                    if not done[f]:
                        sigma = s[f, buckets[t, ca[f]]] if ca[f] >= 0 else w[f]
                        if policy == TOLD and ca[f] >= 0:
                            sigma = selectivities[classes[t], f]
                        if sigma < least:
                            least = sigma
                            op = f
            done[op] = True
            calls += 1
            passes = 1 - drops[t, op]
            if ca[op] >= 0:
                counts[CLASSIFIED] += 1
                counts[WRONG] += ca[op] != 0
                i = buckets[t, ca[op]]
                s[op, i] = ALPHA * s[op, i] + (1.0 - ALPHA) * passes
            w[op] = ALPHA * w[op] + (1.0 - ALPHA) * passes
            tickets[op] = max(1.0, 0.9999 * tickets[op] + 1.0 - passes)
            if step == 0 and is_sampled:
                seen += 1
                for j in range(k):
                    into[j, buckets[t, j]] += 1
                    out[j, buckets[t, j]] += passes
            if not passes:
                is_dropped = True
                break
        counts[CALLS] += calls
        calls_since += calls
        since += 1
        if is_dropped:
            counts[DROPPED] += 1
            counts[CALLS_OF_DROPPED] += calls
        if policy != LEARNS and policy != TOLD:
            continue
        ended = False
        if not trying and seen >= R:
            greatest, chosen = 0.0, -1
            for j in range(k):
                ratio = _gain_ratio(out[j], into[j], sure)
                if ratio > greatest:
                    greatest, chosen = ratio, j
            without = calls_since / since
            counts[PROFILES] += 1
            if policy == TOLD:
                chosen = 0
            ca[profiled] = chosen
            if chosen >= 0:
                for i in range(D):
                    s[profiled, i] = out[chosen, i] / into[chosen, i] if into[chosen, i] else w[profiled]
                trying = True
                since = calls_since = 0
            else:
                ended = True
        elif trying and since >= TRIED:
            if policy == LEARNS and calls_since / since > (1.0 + WORSE) * without:
                ca[profiled] = -1
            ended = True
        if ended:
            trying = False
            profiled = (profiled + 1) % n
            ca[profiled] = -1
            seen = since = calls_since = 0
            into[:] = 0
            out[:] = 0
