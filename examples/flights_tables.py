"""What the demo prints: a table per query.

Everything that comes from the data is put into `rich.text.Text`, never into a string that rich reads as markup, and
with its control characters written out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pyarrow as pa
from flights_timeline import DAY, NEW_YORK
from rich import box
from rich.bar import Bar
from rich.table import Table
from rich.text import Text

from minidsms import Query
from minidsms.plan.operator_tree import OperatorNode
from minidsms.streamon.plan_log import Decision

AIRPORTS = {"EWR": "Newark", "JFK": "Kennedy", "LGA": "La Guardia"}
SHADES = (" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█")
QUARTER = 15
BAR = ""
"""The title of a column of bars."""


def shown(value: object, style: str = "") -> Text:
    """A value of the data: printed as it is, never interpreted."""
    text = "–" if value is None else f"{value:,}" if isinstance(value, int) else str(value)
    return Text("".join(c if c.isprintable() else "·" for c in text), style=style)


def local(instant: int) -> datetime:
    """The wall clock in New York."""
    return datetime.fromtimestamp(instant * 60, UTC).astimezone(NEW_YORK)


def day_and_time(instant: int) -> str:
    return local(instant).strftime("%a %d %b %H:%M")


def duration(minutes: float) -> str:
    """Minutes as hours and minutes.

    >>> duration(187)
    '3 h 07'
    """
    whole = round(minutes)
    return f"{whole // 60} h {whole % 60:02d}"


def heat(minutes: float) -> str:
    """The colour of a delay."""
    for limit, colour in ((5, "green"), (15, "default"), (30, "yellow"), (60, "dark_orange")):
        if minutes < limit:
            return colour
    return "red"


def bar(value: float, greatest: float) -> Bar:
    """A bar as wide as the column allows: in a narrow terminal it gives way to the figures."""
    return Bar(greatest or 1, 0, max(0.0, value), color="cyan")


def short(name: str) -> str:
    """An airline as people call it.

    >>> [short(name) for name in ("ExpressJet Airlines Inc.", "United Air Lines Inc.", "US Airways Inc.", "Envoy Air")]
    ['ExpressJet', 'United', 'US Airways', 'Envoy Air']
    """
    for ending in (" Inc.", " Co.", " Corporation", " Airlines", " Air Lines", " Airways"):
        if len(rest := name.removesuffix(ending)) > 2:
            name = rest
    return name


def table(*columns: str, left: Sequence[str] = ()) -> Table:
    """An empty table; the columns named in `left` are texts, the others figures. All fit into 80 characters.

    A column named BAR has no title and is the first to shrink.
    """
    made = Table(box=box.SIMPLE_HEAD, header_style="bold", padding=(0, 1, 0, 0), pad_edge=False)
    for column in columns:
        if column == BAR:
            made.add_column(max_width=24)
        else:
            made.add_column(Text(column), justify="left" if column in left else "right", no_wrap=True)
    return made


# -------------------------------------------------------------------------------------------------- one per query


def worst_hours(query: Query) -> Table:
    """The worst two hours of the ten worst days of an airport."""
    answer = query.fetch_arrow().sort_by([("mean_delay", "descending"), ("_ts", "ascending")])
    rows = table("#", "airport", "two hours", "flights", "mean delay", BAR, left=("airport", "two hours"))
    taken: list[tuple[str, int]] = []
    greatest = 0.0
    for ts, origin, mean, departures in _rows(answer, "_ts", "origin", "mean_delay", "departures"):
        if any(origin == other and abs(ts - at) < DAY for other, at in taken):
            continue
        taken.append((origin, ts))
        greatest = greatest or mean
        hours = f"{day_and_time(ts - 120)} – {local(ts):%H:%M}"
        mean_delay = Text(duration(mean), style=heat(mean))
        place = shown(AIRPORTS.get(origin, origin))
        rows.add_row(shown(len(taken)), place, shown(hours), shown(departures), mean_delay, bar(mean, greatest))
        if len(taken) == 10:
            break
    return rows


def weather(query: Query) -> Table:
    """The mean delay by visibility and wind."""
    winds = ("under 10", "10 to 20", "20 and more", "unknown")
    sights = ("10 miles", "5 to 10 miles", "1 to 5 miles", "under 1 mile", "no observation")
    cells = {(visibility, wind): (n, mean) for visibility, wind, n, mean in query.snapshot()}
    rows = table("visibility", *winds, left=("visibility",))
    rows.caption = Text("mean delay in minutes (departures), by wind in miles per hour")
    counts = {wind: [f"({n:,})" for (_, other), (n, _) in cells.items() if other == wind] for wind in winds}
    widths = {wind: max(map(len, counts[wind]), default=0) for wind in winds}
    for sight in sights:
        line = [shown(sight)]
        for wind in winds:
            n, mean = cells.get((sight, wind), (0, 0.0))
            figures = ((f"{mean:.1f}", heat(mean)), " ", (f"({n:,})".rjust(widths[wind]), "dim")) if n else ()
            line.append(Text.assemble(*figures))
        rows.add_row(*line)
    return rows


def returns(query: Query) -> Table:
    """The ten destinations with most round trips."""
    rows = table("from", "trips", "aircraft", "quickest", "mean", "moved", left=("from",))
    rows.columns[0].max_width = 33
    rows.caption = Text("moved: back at another of the three airports")
    busiest = sorted(query.snapshot(), key=lambda row: (-row[2], row[0]))[:10]
    for dest, name, trips, aircraft, quickest, mean, moved in busiest:
        times = (Text(duration(quickest)), Text(duration(mean)))
        rows.add_row(_place(dest, name), shown(trips), shown(aircraft), *times, Text(f"{moved / trips:.0%}"))
    return rows


def last_five(query: Query) -> Table:
    """An airline's last five departures on one line."""
    by_airline: dict[str, list[tuple[Any, ...]]] = {}
    for row in sorted(query.snapshot(), key=lambda r: (r[1], r[3])):
        by_airline.setdefault(row[0], []).append(row)
    rows = table("airline", "last left", "flight", "from – to", "minutes late", left=("airline", "flight", "from – to"))
    rows.caption = Text("five departures each, the last one last; a minus is early")
    for name, flights in sorted(by_airline.items(), key=lambda item: (-item[1][-1][1], item[0])):
        _, departed, carrier, number, origin, dest, _ = flights[-1]
        delays = Text()
        for flight in flights:
            delays.append(f"{flight[6]:+5d}", style=heat(flight[6]))
        when = shown(f"{local(departed):%d %b %H:%M}")
        rows.add_row(shown(short(name)), when, shown(f"{carrier} {number}"), shown(f"{origin} – {dest}"), delays)
    return rows


def never_left(query: Query) -> Table:
    """The ten days with most cancelled flights."""
    answer = query.fetch_arrow()
    days: dict[str, dict[str, int]] = {}
    for date, origin in _rows(answer, "date", "origin"):
        day = days.setdefault(date, {})
        day[origin] = day.get(origin, 0) + 1
    worst = sorted(days.items(), key=lambda item: (-sum(item[1].values()), item[0]))[:10]
    rows = table("day", *AIRPORTS.values(), "together", BAR, left=("day",))
    share = sum(sum(day.values()) for _, day in worst) / max(1, answer.num_rows)
    rows.caption = Text(f"{answer.num_rows:,} flights in all; {share:.0%} of them on these days")
    for date, day in worst:
        total = sum(day.values())
        counts = [shown(day.get(code, 0)) for code in AIRPORTS]
        when = datetime.fromisoformat(date).strftime("%a %d %b")
        rows.add_row(shown(when), *counts, Text(f"{total:,}", style="bold"), bar(total, sum(worst[0][1].values())))
    return rows


def only_from_jfk(query: Query) -> Table:
    """The share of the time in which a destination was Kennedy's alone, and in which months."""
    present: dict[tuple[str, str | None], list[tuple[int, int]]] = {}
    since: dict[tuple[str, str | None], int] = {}
    first = last = 0
    for ts, sign, row in query.fetch():
        first, last = first or ts, ts
        if sign > 0:
            since[row] = ts
        else:
            present.setdefault(row, []).append((since.pop(row), ts))
    for row, begin in since.items():
        present.setdefault(row, []).append((begin, last))
    edges = [int(datetime(2013, m, 1, tzinfo=NEW_YORK).timestamp()) // 60 for m in range(1, 13)]
    edges.append(int(datetime(2014, 1, 1, tzinfo=NEW_YORK).timestamp()) // 60)
    ranked = sorted(present.items(), key=lambda item: (-sum(b - a for a, b in item[1]), item[0][0]))
    rows = table("to", "days", "J F M A M J J A S O N D", left=("to", "J F M A M J J A S O N D"))
    rows.columns[0].max_width = 36
    rows.caption = Text(f"the fifteen most lasting of {len(ranked)}; a full block is a whole month")
    for (dest, name), spans in ranked[:15]:
        months = [_overlap(spans, begin, end) / (end - begin) for begin, end in pairwise(edges)]
        # A month with any of it shows at least the lowest block: an empty place means never.
        strip = " ".join(SHADES[max(1, round(8 * share))] if share else " " for share in months)
        rows.add_row(_place(dest, name), Text(f"{sum(b - a for a, b in spans) / DAY:.0f}"), Text(strip, style="cyan"))
    return rows


def unregistered(query: Query) -> Table:
    """Departures and aircraft without an entry, by airline."""
    found = sorted(query.snapshot(), key=lambda r: (-r[1], r[0]))
    rows = table("airline", "departures", "aircraft", BAR, left=("airline",))
    for name, departures, aircraft in found:
        rows.add_row(shown(short(name)), shown(departures), shown(aircraft), bar(departures, found[0][1]))
    return rows


def fleets(query: Query) -> Table:
    """A line of weeks per airline. The first and the last told reach beyond the data, and are left out."""
    weeks: dict[int, dict[str, tuple[int, int]]] = {}
    for ts, _, (name, aircraft, departures) in query.fetch():
        weeks.setdefault(ts, {})[name] = (aircraft, departures)
    whole = sorted(weeks)[1:-1] if len(weeks) > 2 else sorted(weeks)
    names = {name for week in whole for name in weeks[week]}
    lines = {name: [weeks[week].get(name, (0, 0))[0] for week in whole] for name in names}
    head = f"{len(whole)} weeks, one after the other"
    rows = table("airline", "min", "max", head, left=("airline", head))
    rows.caption = Text("every line has a scale of its own, from the airline's fewest to its most")
    for name, counts in sorted(lines.items(), key=lambda item: (-max(item[1]), item[0])):
        low, high = min(counts), max(counts)
        line = "".join(SHADES[1 + (round(7 * (n - low) / (high - low)) if high > low else 7)] for n in counts)
        rows.add_row(shown(short(name)), shown(low), shown(high), Text(line, style="cyan"))
    return rows


def standstill(query: Query) -> Table:
    """Alerts that follow one another at an airport are one episode; the ten longest."""
    episodes: dict[str, list[list[tuple[int, int, int]]]] = {}
    alerts = 0
    for ts, _, (origin, due, gone) in query.fetch():
        alerts += 1
        of_airport = episodes.setdefault(origin, [])
        if of_airport and ts - of_airport[-1][-1][0] == QUARTER:
            of_airport[-1].append((ts, due, gone))
        else:
            of_airport.append([(ts, due, gone)])
    ranked = sorted(
        ((origin, episode) for origin, several in episodes.items() for episode in several),
        key=lambda item: (-len(item[1]), item[1][0][0], item[0]),
    )
    head = ("airport", "alert from", "lasted", "gone of due")
    rows = table(*head, BAR, left=("airport", "alert from"))
    rows.caption = Text(f"the ten longest of {len(ranked):,} episodes ({alerts:,} alerts), at their worst")
    for origin, episode in ranked[:10]:
        begin, length = episode[0][0], episode[-1][0] - episode[0][0] + QUARTER
        _, due, gone = min(episode, key=lambda alert: (alert[2] / alert[1], alert[0]))
        lasted, worst = Text(duration(length)), shown(f"{gone} of {due}")
        longest = len(ranked[0][1]) * QUARTER
        place = shown(AIRPORTS.get(origin, origin))
        rows.add_row(place, shown(day_and_time(begin)), lasted, worst, bar(length, longest))
    return rows


LATE_AND_LONG = ("from Kennedy", "over 1,000 miles", "late")
"""The filters of question 10, as written."""


def late_and_long(query: Query) -> Table:
    """Per hour of the day the mean number of flights, and how often another filter came first. The line below tells
    when and why, of the change that was expected to gain most.
    """
    flights: dict[int, list[int]] = {hour: [] for hour in range(24)}
    for ts, _, (count,) in query.fetch():
        flights[local(ts - 60).hour].append(count)
    changes = [d for d in query.decisions() if _first(d.old_plan) != _first(d.new_plan)]
    came = {hour: [0] * len(LATE_AND_LONG) for hour in range(24)}
    for change in changes:
        came[local(change.instant).hour][_first(change.new_plan)] += 1
    rows = table("hour", "flights", *(f"{name} first" for name in LATE_AND_LONG))
    for hour, counts in flights.items():
        if counts:
            mean = sum(counts) / len(counts)
            rows.add_row(f"{hour:02d}:00", f"{mean:.1f}", *(shown(n or None) for n in came[hour]))
    rows.caption = Text(_why(changes))
    return rows


def in_fog(query: Query) -> Table:
    """Of the airlines that left in fog most often, how late they were."""
    answer = query.fetch_arrow()
    late: dict[str, list[int]] = {}
    for carrier, delay in _rows(answer, "carrier", "delay"):
        late.setdefault(carrier, []).append(delay)
    rows = table("airline", "departures in fog", "mean delay", "on time", left=("airline",))
    for carrier, delays in sorted(late.items(), key=lambda item: (-len(item[1]), item[0]))[:8]:
        mean, punctual = sum(delays) / len(delays), sum(delay <= 0 for delay in delays) / len(delays)
        cells = (shown(len(delays)), Text(duration(max(mean, 0)), style=heat(mean)), shown(f"{100 * punctual:.0f} %"))
        rows.add_row(shown(carrier), *cells)
    rows.caption = Text(f"{len(answer):,} departures; on time: not a minute late")
    return rows


def kept(queries: Mapping[str, Query], held: Mapping[str, Sequence[int]]) -> Table:
    """What two joins hold: rows of each input at the end, and bytes. queries: the sparing one first, by what to call
    them.  held: of each its bytes at the end of every day.
    """
    titles = ("the join keeps", "departures", "observations", "bytes", "on average")
    rows = table(*titles, left=("the join keeps",))
    for name, query in queries.items():
        figures = join_of(query.operator_tree()).figures
        cells = [shown(int(figures[f])) for f in ("rows_of_d", "rows_of_w", "bytes")]
        rows.add_row(shown(name), *cells, shown(round(_mean(held[name]))))
    sparing, whole = (_mean(held[name]) for name in queries)
    answers = [query.results for query in queries.values()]
    same = f"the same {answers[0]:,} answers" if len(set(answers)) == 1 else f"{answers} answers"
    rows.caption = Text(f"{whole / max(sparing, 1):.0f} times less memory on average, and {same}")
    return rows


def held_by(query: Query) -> int:
    """Bytes that a query's join holds."""
    return int(join_of(query.operator_tree()).figures["bytes"])


def _mean(values: Sequence[int]) -> float:
    return sum(values) / max(1, len(values))


def constraints(listed: Iterable[tuple[Any, ...]]) -> Table:
    """SHOW CONSTRAINTS."""
    rows = table("constraint", "on", "k", left=("constraint", "on"))
    for stream, attribute, constraint, edge, k, *_ in listed:
        rows.add_row(shown(constraint), shown(edge or f"{stream} ({attribute})"), shown("infinite" if k is None else k))
    return rows


def join_of(node: OperatorNode) -> OperatorNode:
    """The operator below that tells how many rows it holds of the inputs d and w."""
    while "rows_of_d" not in node.figures:
        node = node.inputs[0]
    return node


def _first(plan: str) -> int:
    """The first filter of an order such as F3, F1, F2, counted from 0."""
    return int(plan.split(",")[0].removeprefix("F")) - 1


def _why(changes: Sequence[Decision]) -> str:
    """When and why another filter came first."""
    if not changes:
        return "another filter never came first"
    change = max(changes, key=lambda d: d.expected_gain or 0.0)
    order, rates, profiled = (change.statistics[name] for name in ("order", "drop_rates", "profile_tuples"))
    shares = [f"{LATE_AND_LONG[f]!r} {100 * rate:.0f} %" for f, rate in zip(order, rates) if rate is not None]
    return (
        f"{len(changes):,} changes. {day_and_time(change.instant)}: {LATE_AND_LONG[_first(change.new_plan)]!r} before "
        f"{LATE_AND_LONG[_first(change.old_plan)]!r}. Of the last {profiled} flights dropped "
        f"{shares[0]}, of what is left {', '.join(shares[1:])}: {100 * (change.expected_gain or 0):.0f} % less to do"
    )


def _overlap(spans: list[tuple[int, int]], begin: int, end: int) -> int:
    return sum(max(0, min(b, end) - max(a, begin)) for a, b in spans)


def _place(code: str, name: str | None) -> Text:
    return Text.assemble(shown(code, "bold"), "  ", shown(name or "(not in the table of airports)"))


def _rows(answer: pa.Table, *names: str) -> Iterable[tuple[Any, ...]]:
    return zip(*(answer[name].to_pylist() for name in names))


def date_of(instant: int) -> str:
    """The local date an instant falls on, for the progress line."""
    return local(instant).strftime("%d %b %Y")


def plan_figures(query: Query, width: int) -> Table:
    """EXPLAIN ANALYZE of the physical plan: an operator a line, its figures in columns. width: of the terminal."""
    rows = table("operator", "in", "out", "ms", "share", left=("operator",))
    rows.columns[0].max_width = max(20, width - 44)
    physical = query.explain(analyze=True).split("Physical plan\n", 1)[1]
    for line in physical.splitlines():
        operator, _, figures = line.removeprefix("  ").partition("   [")
        figures, _, shared = figures.partition("]")
        if not figures.startswith("in "):
            if not operator.lstrip().startswith("- F"):  # how a single filter fares is too wide for a page
                rows.add_row(shown(operator, "dim"))
            continue
        elements_in, elements_out, taken, *_ = figures.split("; ")
        ms, _, share = taken.partition(" ms ")
        cells = (elements_in.removeprefix("in "), elements_out.removeprefix("out "), ms, share.strip("()"))
        rows.add_row(shown(operator).append(shared, style="dim"), *(shown(cell) for cell in cells))
    return rows
