"""The figures as pages of `experiments/results`."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

from experiments.content_routing import plots, simulator
from experiments.content_routing.engine import Compared, compared, ns_of
from experiments.content_routing.simulator import Counted, calls_of_order, greedy_order, simulate
from experiments.content_routing.streams import StarStream, drawn, skewed, without_classes
from experiments.pages import Pages, table

PAGES = Pages("content_routing")
TUPLES = 100_000
SKEWS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.95)
OPERATORS = (2, 4, 6, 8)
POLICIES = {"SBR": simulator.SBR, "Ticket": simulator.TICKET, "Content-Learns": simulator.LEARNS}
POLICIES |= {"told": simulator.TOLD, "Content-Knows": simulator.KNOWS}

Points = dict[str, list[tuple[float, float]]]


def _counted(stream: StarStream) -> dict[str, Counted]:
    return {name: simulate(stream, policy) for name, policy in POLICIES.items()}


def _saved(found: dict[str, Counted], stream: StarStream) -> dict[str, float]:
    """Percent of SBR's routing calls; of Content-Learns also of what A-Greedy's order takes."""
    of = found["SBR"].calls
    saved = {name: 100 * (1 - each.calls / of) for name, each in found.items() if name != "SBR"}
    greedy = calls_of_order(stream, greedy_order(stream))
    return {**saved, "over A-Greedy": 100 * (1 - found["Content-Learns"].calls / greedy)}


def _mean(each: Sequence[dict[str, float]]) -> dict[str, float]:
    return {name: statistics.mean(one[name] for one in each) for name in each[0]}


def _curve(xs: Sequence[float], at: Callable[[float], dict[str, float]]) -> Points:
    points: Points = {}
    for x in xs:
        for name, y in at(x).items():
            points.setdefault(name, []).append((x, y))
    return points


def _table(head: str, points: Points) -> str:
    xs = [x for x, _ in next(iter(points.values()))]
    rows = [[name, *(f"{y:.1f}" for _, y in line)] for name, line in points.items()]
    return table([head, *(f"{x:g}" for x in xs)], rows) + "\n"


def calls(seeds: int) -> str:
    """Figures 3 to 7 and 10, counted in routing calls."""
    skew = {
        n: _curve(
            SKEWS,
            lambda a, n=n: _mean([_saved(_counted(s), s) for s in (skewed(n, a, TUPLES, i) for i in range(seeds))]),  # type: ignore[misc]
        )
        for n in OPERATORS
    }
    plots.curves(PAGES.picture("skew"), [(f"{n} operators", skew[n]) for n in OPERATORS], "A", "routing calls saved, %")
    sections = [
        PAGES.section(
            "Figures 3 and 4: skew",
            PAGES.shown("skew") + "\n" + "\n".join(f"{n} operators:\n\n{_table('A', skew[n])}" for n in OPERATORS),
        )
    ]
    at_random = {n: [_counted(drawn(n, TUPLES, seed)) for seed in range(10 * seeds)] for n in OPERATORS}
    learned = [each["Content-Learns"] for n in OPERATORS for each in at_random[n]]
    right = statistics.mean(each.classified - each.wrong for each in learned)
    wrong = statistics.mean(each.wrong for each in learned)
    sections.append(
        PAGES.section(
            "Figure 5: the right classifier",
            f"Of the routing calls of Content-Learns {100 * right:.1f} % went by attrc, {100 * wrong:.1f} % by another "
            f"attribute and {100 * (1 - right - wrong):.1f} % by no classifier ({len(learned)} streams).\n",
        )
    )
    saved = _curve(
        OPERATORS,
        lambda n: _mean([_saved(each, drawn(int(n), TUPLES, i)) for i, each in enumerate(at_random[int(n)])]),
    )
    plots.curves(PAGES.picture("random"), [("random selectivities", saved)], "operators", "routing calls saved, %")
    sections.append(
        PAGES.section("Figure 6: random selectivities", PAGES.shown("random") + "\n" + _table("operators", saved))
    )
    aggregate = _curve(
        (0.05, 0.15, 0.25, 0.35),
        lambda share: _mean([_saved(_counted(s), s) for s in (drawn(6, TUPLES, i, share) for i in range(10 * seeds))]),
    )
    plots.curves(
        PAGES.picture("aggregate"), [("6 operators", aggregate)], "aggregate selectivity", "routing calls saved, %"
    )
    sections.append(
        PAGES.section(
            "Figure 7: aggregate selectivity", PAGES.shown("aggregate") + "\n" + _table("aggregate", aggregate)
        )
    )
    return PAGES.write("calls", "Content-based routing in routing calls", sections)


ROUNDS = 3
LONG, LONGER = 1_000_000, 3_000_000


def _ratios(found: dict[str, Compared], modes: Sequence[str]) -> str:
    rows = [
        [name, *(f"{each.fastest[m]:.2f} ({each.median[m]:.2f}), {each.evaluations[m]:.2f}" for m in modes)]
        for name, each in found.items()
    ]
    return table(["stream", *(f"{mode}: fastest (median)" for mode in modes)], rows) + "\n"


def clock(seeds: int) -> str:
    """The same by the clock: rates over A-Greedy's, and evaluations of filters per tuple."""
    modes = ("A-Greedy", "auto", "Content-Learns", "SBR")
    found = {f"6 filters, A = {a:g}": compared(skewed(6, a, LONG), 5, ROUNDS, modes) for a in (0.05, 0.25, 0.5, 0.95)}
    longer = {}
    for sines in (5, 20):
        told = f"three million, {ns_of(sines):.0f} ns a filter"
        streams = {f"A = {a:g}": skewed(6, a, LONGER) for a in (0.05, 0.25)}
        streams["without classes"] = without_classes(6, LONGER)
        for name, stream in streams.items():
            longer[f"6 filters, {name}, {told}"] = compared(stream, sines, ROUNDS, ("A-Greedy", "auto"))
    both = _ratios(found, modes) + "\n" + _ratios(longer, ("A-Greedy", "auto"))
    sections = [PAGES.section("Figures 3 and 4 by the clock", both)]
    costs: dict[str, Compared] = {}
    for sines in (0, 1, 3, 8):
        label = f"{sines} sines" if sines else "comparisons"
        costs[label] = compared(skewed(6, 0.15, LONG), sines, ROUNDS, ("A-Greedy", "auto"))
    line: Points = {}
    for i, each in enumerate(costs.values()):
        line.setdefault("auto", []).append(((0, 1, 3, 8)[i], 100 * (each.fastest["auto"] - 1)))
    plots.curves(PAGES.picture("cost"), [("6 filters, A = 0.15", line)], "sines a filter", "faster than A-Greedy, %")
    sections.append(
        PAGES.section(
            "Figure 9: cost of an operator", PAGES.shown("cost") + "\n" + _ratios(costs, ("A-Greedy", "auto"))
        )
    )
    at_random = [compared(drawn(6, 500_000, seed), 5, 2, ("A-Greedy", "auto")) for seed in range(2 * seeds)]
    gains = [each.fastest["auto"] for each in at_random]
    sections.append(
        PAGES.section(
            "Figure 6 by the clock",
            f"{len(gains)} streams: {statistics.mean(gains):.2f} times as fast on average, "
            f"{min(gains):.2f} at least and {max(gains):.2f} at most.\n",
        )
    )
    nothing = {
        "6 filters without classes": compared(without_classes(6, LONG), 5, ROUNDS, ("A-Greedy", "auto")),
        "6 comparisons without classes": compared(without_classes(6, 2 * LONG), 0, ROUNDS, ("A-Greedy", "auto")),
        "6 comparisons, A = 0.05": compared(skewed(6, 0.05, 2 * LONG), 0, ROUNDS, ("A-Greedy", "auto")),
    }
    sections.append(PAGES.section("Figure 10: overhead", _ratios(nothing, ("A-Greedy", "auto"))))
    return PAGES.write("clock", "Content-based routing by the clock", sections)


def flights(seeds: int) -> str:
    """The year of flights."""
    from experiments.content_routing.flights import by_attribute, through_a_query

    whole, told = by_attribute()
    saved = [[t.attribute, f"{t.evaluations:.3f}", f"{100 * (1 - t.evaluations / whole):.1f} %"] for t in told]
    shown = table(["classifier", "filters evaluated per flight", "saved"], [["none", f"{whole:.3f}", ""], *saved])
    found = {f"{sines} sines": through_a_query(sines, 4, ROUNDS) for sines in (5, 20)}
    plans = "; ".join(f"{name}: `{each.plans['auto']}`" for name, each in found.items())
    measured = shown + "\n\n" + _ratios(found, ("A-Greedy", "auto")) + f"\nRoutes at the end: {plans}.\n"
    return PAGES.write("flights", "Content-based routing of a year of flights", [PAGES.section("Flights", measured)])


PARTS: dict[str, Callable[[int], str]] = {"calls": calls, "clock": clock, "flights": flights}
