"""The offline choice of caches: which of the candidates together make the join cheapest (Babu 2005, section 5.5.4).

Minimised is the sum of what every operator and every used cache spends in its pipeline, plus, once for each store, what
keeping it up costs. Three algorithms:

    optimal      no two candidates share a store: each pipeline by itself, a recursion over its positions
    exhaustive   that recursion for every set of shared stores that may be open; exact, 2^stores
    greedy       repeatedly the store with those of its users that cover their operators at the least price per operator
                 newly covered, an operator alone being covered at its own price; within H(n (n - 1)) of the optimum

Invariant: no two chosen caches overlap, and none bypasses the point where changes of another are seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, combinations

from minidsms.joins.plan import CacheSpec, Orders, SharedKey, hides, position

MOST_STORES = 8
"""Stores whose opening is searched exhaustively: 256 times the recursion, some milliseconds."""


@dataclass(frozen=True)
class Priced:
    """A candidate. processing: what it spends in its pipeline; cost: what its store costs, the same for all users."""

    spec: CacheSpec
    store: SharedKey
    processing: float
    cost: float


@dataclass(frozen=True)
class Problem:
    """operators: (n)(n - 1) what each position of each pipeline spends without caches."""

    orders: Orders
    operators: tuple[tuple[float, ...], ...]
    candidates: tuple[Priced, ...]

    @property
    def uncached(self) -> float:
        """The cost without any cache."""
        return sum(chain.from_iterable(self.operators))

    def cost_of(self, chosen: Iterable[CacheSpec]) -> float:
        """What the join costs with these caches, which must not overlap."""
        wanted = set(chosen)
        total, stores = self.uncached, {}
        for each in self.candidates:
            if each.spec in wanted:
                first = position(each.spec, self.orders)
                covered = self.operators[each.spec.pipeline][first : first + len(each.spec.segment)]
                total += each.processing - sum(covered)
                stores[each.store] = each.cost
        return total + sum(stores.values())


@dataclass(frozen=True)
class Choice:
    """caches: sorted.  cost: of the join with them.  algorithm: by which they were found."""

    caches: tuple[CacheSpec, ...]
    cost: float
    algorithm: str


def select(problem: Problem) -> Choice:
    """The best algorithm that takes little time: optimal, else exhaustive, else greedy."""
    stores = _stores_to_decide(problem)
    if not stores:
        return optimal(problem)
    return exhaustive(problem) if len(stores) <= MOST_STORES else greedy(problem)


def optimal(problem: Problem) -> Choice:
    """The cheapest caches where no store is shared and none hidden (theorem 5.5.1).  O(n^2 + candidates)."""
    return _choice(problem, _best(problem, None, frozenset()), "optimal")


def exhaustive(problem: Problem) -> Choice:
    """The cheapest caches of all. O(2^s) recursions, s being the stores that are shared or can be hidden."""
    stores = _stores_to_decide(problem)
    decided = frozenset(stores)
    subsets = chain.from_iterable(combinations(stores, k) for k in range(len(stores) + 1))
    choices = (_choice(problem, _best(problem, frozenset(s), decided), "exhaustive") for s in subsets)
    return min(choices, key=lambda choice: (choice.cost, len(choice.caches), choice.caches))


def greedy(problem: Problem) -> Choice:
    """Caches that cost at most H(n (n - 1)) times the cheapest (theorem 5.5.3), as weighted set cover does.

    What the cover opened is then used as well as can be, and single stores are opened or closed while that saves
    something: it can only become cheaper.
    """
    opened = _cover(problem)
    decided = frozenset(each.store for each in problem.candidates)
    choice = _choice(problem, _best(problem, opened, decided), "greedy")
    while True:
        trials = [_choice(problem, _best(problem, opened ^ {s}, decided), "greedy") for s in sorted(decided)]
        better = min(trials, key=lambda trial: (trial.cost, trial.caches), default=choice)
        if better.cost >= choice.cost:
            return choice
        choice = better
        opened = frozenset(each.store for each in problem.candidates if each.spec in choice.caches)


# ----------------------------------------------------------------------------------------------------------- inside


def _choice(problem: Problem, caches: Iterable[CacheSpec], algorithm: str) -> Choice:
    chosen = tuple(sorted(caches))
    return Choice(chosen, problem.cost_of(chosen), algorithm)


def _stores_to_decide(problem: Problem) -> list[SharedKey]:
    """Stores of which more than one pipeline must agree whether they are there: those that several candidates share,
    and those whose changes another candidate would hide.
    """
    users: dict[SharedKey, int] = {}
    for each in problem.candidates:
        users[each.store] = users.get(each.store, 0) + 1
    hidden = {
        each.store
        for each in problem.candidates
        for other in problem.candidates
        if hides(other.spec, each.spec, problem.orders)
    }
    return sorted(store for store, count in users.items() if count > 1 or store in hidden)


def _best(problem: Problem, opened: frozenset[SharedKey] | None, decided: frozenset[SharedKey]) -> list[CacheSpec]:
    """Of each pipeline the cheapest caches, by recursion from its end.

    Of the stores that are decided only those opened may be used, and are paid already; any other costs its one user.
    """
    usable = []
    for each in problem.candidates:
        if each.store in decided and each.store not in (opened or ()):
            continue
        if any(c.store in (opened or ()) and hides(each.spec, c.spec, problem.orders) for c in problem.candidates):
            continue
        usable.append((each, each.processing + (0.0 if each.store in decided else each.cost)))
    caches: list[CacheSpec] = []
    for i, operators in enumerate(problem.operators):
        own: dict[int, list[tuple[Priced, float]]] = {}
        for each, price in usable:
            if each.spec.pipeline == i:
                own.setdefault(position(each.spec, problem.orders), []).append((each, price))
        end = len(operators)
        best: list[tuple[float, tuple[CacheSpec, ...]]] = [(0.0, ())] * (end + 1)
        for p in range(end - 1, -1, -1):
            best[p] = (best[p + 1][0] + operators[p], best[p + 1][1])
            for each, price in own.get(p, ()):
                rest = best[p + len(each.spec.segment)]
                if rest[0] + price < best[p][0]:
                    best[p] = (rest[0] + price, (each.spec, *rest[1]))
        caches.extend(best[0][1])
    return caches


def _cover(problem: Problem) -> frozenset[SharedKey]:
    """The stores that greedy weighted set cover opens to cover all operators."""
    stores: dict[SharedKey, list[Priced]] = {}
    for each in problem.candidates:
        stores.setdefault(each.store, []).append(each)
    left = {(i, p): price for i, prices in enumerate(problem.operators) for p, price in enumerate(prices)}
    opened: set[SharedKey] = set()
    chosen: list[CacheSpec] = []
    while left:
        price, store = min(left.values()), None
        users: tuple[Priced, ...] = ()
        for candidate, members in sorted(stores.items()):
            allowed = [m for m in members if not _conflicts(m.spec, chosen, problem.orders)]
            ratio, some = _cheapest_users(allowed, left, problem.orders, candidate not in opened)
            if some and ratio < price:
                price, store, users = ratio, candidate, some
        if store is None:
            del left[min(left, key=lambda at: (left[at], at))]
            continue
        opened.add(store)
        for each in users:
            chosen.append(each.spec)
            for at in _operators(each.spec, problem.orders):
                left.pop(at, None)
    return frozenset(opened)


def _cheapest_users(
    members: Sequence[Priced], left: dict[tuple[int, int], float], orders: Orders, is_closed: bool
) -> tuple[float, tuple[Priced, ...]]:
    """(price per operator newly covered, users) of a store's best users: a prefix of them by their own price."""
    ranked = []
    for each in members:
        new = sum(at in left for at in _operators(each.spec, orders))
        if new:
            ranked.append((each.processing / new, each.spec, each, new))
    ranked.sort(key=lambda entry: entry[:2])
    spent, covered = (max((m.cost for m in members), default=0.0) if is_closed else 0.0), 0
    ratio, best = float("inf"), 0
    for place, (_, _, each, new) in enumerate(ranked):
        spent += each.processing
        covered += new
        if spent / covered < ratio:
            ratio, best = spent / covered, place + 1
    return ratio, tuple(entry[2] for entry in ranked[:best])


def _operators(spec: CacheSpec, orders: Orders) -> list[tuple[int, int]]:
    first = position(spec, orders)
    return [(spec.pipeline, first + p) for p in range(len(spec.segment))]


def _conflicts(spec: CacheSpec, chosen: Sequence[CacheSpec], orders: Orders) -> bool:
    """One would hide the other's changes."""
    return any(hides(spec, other, orders) or hides(other, spec, orders) for other in chosen)
