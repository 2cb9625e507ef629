"""What can be told of the departures from New York while they happen?

Ten weeks of 2013 are replayed through three continuous queries, or the whole year through eleven, each of which opens
with a question of its own.

    python examples/flights.py [--year] [--days N] [--plain]

The queries stand in examples/flights/, one per file; the choices about the data stand in docs/flights.md and in
`flights_timeline`. The streams are pushed in steps of a day of event time, all of them cut at the same instants; then a
heartbeat says that the day is over.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import flights_tables as tables
from flights_timeline import DAY, Year, read_year
from rich.console import Console, Group
from rich.padding import Padding
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

import minidsms
from minidsms import Connection, Query
from minidsms.machine_code import compile_time

FOLDER = Path(__file__).parent / "flights"

QUERIES: dict[str, Callable[[Query], Table]] = {
    "worst_hours": tables.worst_hours,
    "weather": tables.weather,
    "returns": tables.returns,
    "last_five": tables.last_five,
    "never_left": tables.never_left,
    "only_from_jfk": tables.only_from_jfk,
    "unregistered": tables.unregistered,
    "fleets": tables.fleets,
    "standstill": tables.standstill,
    "late_and_long": tables.late_and_long,
    "in_fog": tables.in_fog,
}
"""The queries, in the order of the page, and what shows their answers."""

SHORT, SHORT_DAYS = ("worst_hours", "never_left", "standstill"), 70
"""What is shown without --year: to the end of winter, in which two storms close the airports."""

EXPLAINED = "never_left"
"""The query whose plan is shown: two windows over two streams, a derived stream and an anti-join."""

REDUCED = {"what can still matter": "in_fog", "the whole four weeks": "in_fog_whole"}
"""The query whose join keeps only what can still matter, and the same join with whole windows."""

TOLD_S = 2.0
"""How often a replay without a terminal tells where it is."""

KEYWORDS = (
    r"\b(SELECT|DISTINCT|FROM|WHERE|GROUP BY|HAVING|AS|AND|OR|NOT|IN|EXISTS|CASE|WHEN|THEN|ELSE|END|LEFT|JOIN|ON|EXCEPT"
    r"|IS|NULL|[RDI]STREAM)\b"
)
WINDOWS = r"\[[^\]]*\]"


def question(name: str) -> str:
    """The question a query answers: the first line of its file."""
    return (FOLDER / f"{name}.cql").read_text(encoding="utf-8").splitlines()[0].removeprefix("--").strip()


def open_queries(names: Iterable[str] = QUERIES) -> tuple[Connection, dict[str, Query]]:
    """A connection with the streams declared and these queries running. A tick is a minute."""
    db = minidsms.connect(time_unit="m")
    db.execute((FOLDER / "inputs.cql").read_text(encoding="utf-8"))
    for name in names:
        db.execute((FOLDER / f"{name}.cql").read_text(encoding="utf-8"))
    return db, {name: db.queries[name] for name in names}


def replay(db: Connection, year: Year, tell: Callable[[int, int], None] = lambda done, instant: None) -> int:
    """Push the year in event-time order; returns the elements pushed.

    tell: called after each day with the elements pushed so far and the day's last instant.
    """
    for relation, rows in year.relations.items():
        db.push(relation, rows, ts=year.first - 1)
    done = 0
    for end, pieces in year.steps(DAY):
        for stream, rows in pieces:
            done += db.push(stream, rows)
        db.advance(end)
        tell(done, end)
    # A day more, so that the flights due on the last day are told apart from those that never left.
    db.advance(year.last + DAY)
    return done


def telling(console: Console, what: str) -> AbstractContextManager[Any]:
    """Say what is done meanwhile: beside a turning wheel on a terminal, in a line elsewhere."""
    if console.is_terminal:
        return console.status(Text(what))
    console.print(what)
    return nullcontext()


def replay_with_progress(console: Console, db: Connection, year: Year) -> dict[str, list[int]]:
    """`replay` under a bar that tells the date and the rate; without a terminal a line does, every TOLD_S seconds.

    Returns what the joins of REDUCED hold at the end of each day, in bytes.
    """
    held: dict[str, list[int]] = {name: [] for name, query in REDUCED.items() if query in db.queries}
    told, started, compiled_before = time.perf_counter(), compile_time.wall_ns(), compile_time.COMPILED.wall_ns
    columns = (
        TextColumn("{task.fields[date]}"),
        BarColumn(bar_width=None),
        TaskProgressColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=year.elements, date="starting (a first run compiles)", rate="")

        def tell(done: int, instant: int) -> None:
            nonlocal told
            now = time.perf_counter()
            running_s = (compile_time.wall_ns() - started) / 1e9
            date, rate = tables.date_of(instant), f"{done / running_s:>9,.0f} elements/s"
            progress.update(task, completed=done, date=date, rate=rate)
            if progress.disable and now - told >= TOLD_S:
                told = now
                console.print(f"{date} {done:>9,} elements {rate}")
            for name in held:
                held[name].append(tables.held_by(db.queries[REDUCED[name]]))

        done = replay(db, year, tell)
    seconds = (compile_time.wall_ns() - started) / 1e9
    compiled_s = (compile_time.COMPILED.wall_ns - compiled_before) / 1e9
    flow = ", ".join(f"{len(feed.instants):,} in {feed.stream}" for feed in year.feeds)
    rate = f"{done / seconds:,.0f} a second through {len(db.queries)} queries"
    console.print(Text(f"{done:,} elements in {seconds:.1f} s: {rate}", style="bold"))
    if compiled_s > 1:
        flow += f"; {compiled_s:.0f} s more went into compiling, on this first run"
    console.print(Text(flow, style="dim"))
    return held


def cql(text: str) -> Text:
    """A query's text, its words coloured."""
    shown = Text(text)
    shown.highlight_regex(KEYWORDS, "bold blue")
    shown.highlight_regex(WINDOWS, "magenta")
    shown.highlight_regex(r"'[^']*'", "green")
    return shown


def show_notes(console: Console, year: Year) -> None:
    """What was found missing, and what was made of it."""
    notes = tables.table(
        "what the data lacks", "what is made of it", left=("what the data lacks", "what is made of it")
    )
    for column in notes.columns:
        column.no_wrap = False
    for finding, choice in year.notes:
        notes.add_row(Text(finding), Text(choice, style="dim"))
    console.print(notes)
    console.print(
        Text("All instants are minutes in UTC, from the wall clock of New York; tables show that clock again.")
    )


def show_answers(console: Console, queries: dict[str, Query]) -> None:
    """For each query the question, the answer, and the query as the engine reads it."""
    for number, (name, query) in enumerate(queries.items(), 1):
        console.print()
        console.print(Rule(Text(f"{number}  {question(name)}", style="bold"), align="left", style="cyan"))
        shown = QUERIES[name](query)
        console.print(Padding(shown, (0, 0, 0, 1), expand=False))
        above = 1 if shown.caption else 0
        where = Text(f"examples/flights/{name}.cql", style="dim")
        console.print(Padding(Group(where, cql(query.expanded)), (above, 0, 0, 3), expand=False))


def show_plan(console: Console, query: Query) -> None:
    """The plan, with the figures of the replay."""
    console.print()
    title = Text(f"How the answer to “{question(EXPLAINED)}” was found", style="bold")
    console.print(Rule(title, align="left", style="cyan"))
    logical = query.explain().split("Logical plan\n", 1)[1].split("Physical plan", 1)[0]
    console.print(Padding(Text(logical.rstrip(), no_wrap=True, overflow="ellipsis"), (1, 0, 1, 0), expand=False))
    console.print(Padding(tables.plan_figures(query, console.width), (0, 0, 0, 1), expand=False))


def show_savings(console: Console, db: Connection, held: dict[str, list[int]]) -> None:
    """What the join with the weather holds, beside one that holds its windows, and what lets it hold less.

    held: by the names of REDUCED, bytes at the end of each day.
    """
    console.print()
    number = next(n for n, name in enumerate(QUERIES, 1) if name in REDUCED.values())
    console.print(Rule(Text(f"What question {number} keeps", style="bold"), align="left", style="cyan"))
    beside = {name: db.queries[query] for name, query in REDUCED.items()}
    console.print(Padding(tables.kept(beside, held), (1, 0, 1, 1), expand=False))
    console.print(Padding(tables.constraints(db.execute("SHOW CONSTRAINTS")), (0, 0, 0, 1), expand=False))


def main(arguments: list[str] | None = None) -> int:
    """Run the demo."""
    parser = argparse.ArgumentParser(description="Departures from New York in 2013, replayed")
    parser.add_argument("--year", action="store_true", help="the whole year, eleven questions")
    parser.add_argument("--days", type=int, default=None, help="replay only the first N days")
    parser.add_argument("--plain", action="store_true", help="no colours and no progress bar")
    options = parser.parse_args(arguments)
    console = Console(highlight=False)
    if options.plain or not console.is_terminal:
        # A file or a pipe has no width to ask for; the tables want about a hundred characters.
        console = Console(highlight=False, width=110, no_color=True, force_terminal=False)
    console.print(Rule(Text("Departures from New York, 2013", style="bold"), align="left", style="cyan"))
    with telling(console, "reading the files"):
        year = read_year()
    days = SHORT_DAYS if options.days is None and not options.year else options.days
    if days is not None:
        year = year.until(year.first // DAY * DAY + days * DAY)
    if options.year:
        show_notes(console, year)
    with telling(console, "starting the queries; the first run on a machine compiles for a minute or so"):
        db, queries = open_queries(QUERIES if options.year else SHORT)
    with db:
        held = replay_with_progress(console, db, year)
        show_answers(console, queries)
        show_plan(console, queries[EXPLAINED])
        if held:
            show_savings(console, db, held)
    if not options.year:
        console.print("The whole year, and eight questions more: make demo DEMO=--year (docs/flights.md)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
