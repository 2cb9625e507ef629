"""Reduced joins of thousands of rows against whole ones: `python -m tests.long.reduced_joins`.

Each generated join (`large_joins`) runs with `SET state_reduction = 'off'`, and again under reductions of the seed's
choice: 'swj', or 'k-mon', which looks for constraints more or less boldly; and with whole windows again, but reduced at
some slice, in other slices, as an XJoin, or with caches. In mid-stream an equal query is registered
beside it, maybe dropped, sharing is switched, plans and constraints are shown. What comes out, netted by instant and
row, and the snapshot at the end must be equal. The definition would take hours for cases of this size; `make soak` has
it for small ones. A difference, or a call that raises, is told with the command that shows it again, and the exit
status is 1; should the process crash, the seed that ran stands last on stderr.

Invariant: what runs depends on the seed and --rows alone.  docs/semantics T5; Babu 2005, chapter 6.
"""

from __future__ import annotations

import argparse
import faulthandler
import re
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from minidsms.streamon.k_mon.adaptive_reduction import TECHNIQUE
from minidsms.streamon.loop import adaptations_of
from minidsms.testing.compare import Answer, run_together
from minidsms.testing.generators import Case
from minidsms.testing.history import Row
from minidsms.testing.switching import Before
from tests.long.large_joins import large_join

REDUCTIONS: dict[str, dict[str, Any]] = {
    "swj": {"state_reduction": "swj"},
    "k-mon": {"state_reduction": "k-mon"},
    "k-mon, bold": {"state_reduction": "k-mon", "k_mon_window": 20, "k_mon_chance": 0.3},
    "k-mon, looks at all": {"state_reduction": "k-mon", "k_mon_window": 60, "k_mon_chance": 1.0, "k_mon_growth": 2.0},
    "k-mon, small slices": {"state_reduction": "k-mon", "k_mon_window": 100, "batch_size": 37},
    "k-mon, medium slices": {"state_reduction": "k-mon", "k_mon_window": 100, "batch_size": 300},
}
WHOLE: dict[str, dict[str, Any]] = {
    "auto, reduced at some slice": {"state_reduction": "auto", "k_mon_window": 100, "memory_limit": "4 GB"},
    "off, small slices": {"state_reduction": "off", "batch_size": 37},
    "off, medium slices": {"state_reduction": "off", "batch_size": 300},
    "off, xjoin": {"state_reduction": "off", "join_plan": "xjoin"},
    "off, auto": {"state_reduction": "off", "join_plan": "auto", "batch_size": 1000},
    "off, prefix caches": {"state_reduction": "off", "join_plan": "mjoin", "caching": "prefix"},
    "off, global caches": {"state_reduction": "off", "join_plan": "mjoin", "caching": "global", "batch_size": 500},
}
"""Other ways to run joins that keep whole windows: what all reductions share with the first run is tried by these."""
RUNS = 2
"""Of the reductions, for each case, and one of the other ways."""
ROWS = (1500, 4000, 8000)
"""How many rows a stream may get."""
MOST = 2_000_000
"""Changes of an answer; a case with more is left out, and counted."""
SHOWN = 5
"""Of the rows that differ, and of the instants."""


@dataclass
class Count:
    """Of one reduction: runs, those in which a join was reduced, and those in which rows came back."""

    runs: int = 0
    reduced: int = 0
    returned: int = 0


@dataclass
class Tally:
    """What a run has done. differences: the stories of answers that were not those of the whole join."""

    seed: int
    cases: int = 0
    answered: int = 0
    left_out: int = 0
    counts: dict[str, Count] = field(default_factory=lambda: {name: Count() for name in (*REDUCTIONS, *WHOLE)})
    differences: list[str] = field(default_factory=list)


class _Watch:
    """Looks into a running query now and then, switches sharing, and sees in the end what has been reduced."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(f"{seed} in mid-stream")
        self.is_reduced = False
        self.returned = 0

    def before(self, db: Any, _: int, queries: list[Any]) -> None:
        """See `switching.Before`."""
        if self.rng.random() < 0.02:
            queries[0].explain(analyze=True)
            db.execute("SHOW CONSTRAINTS")
        if self.rng.random() < 0.02:
            db.execute(f"SET sharing = {'off' if db.settings['sharing'] == 'on' else 'on'}")
        if db.settings["state_reduction"] == "auto" and self.rng.random() < 0.15:
            _reduce_now(db)

    def at_end(self, steps: int) -> Before:
        """The same, which looks at the plan after the last of the steps."""

        def before(db: Any, step: int, queries: list[Any]) -> None:
            self.before(db, step, queries)
            if step == steps:
                plan = queries[0].explain(analyze=True)
                self.is_reduced = bool(re.search(r"\b(KMonJoin|SWJ)\b", plan))
                self.returned = sum(int(n.replace(",", "")) for n in re.findall(r"came back ([\d,]+)", plan))

        return before


def _reduce_now(db: Any) -> None:
    """As if memory were short."""
    operators = [operator for group in db.groups.all for operator in group.operators]
    for place in adaptations_of(operators):
        if place.technique == TECHNIQUE and place.executor.is_legal(True) and not place.executor.plan:
            place.take(True, "forced")


def reduce_joins(cases: int, seed: int, rows: int | None = None) -> Iterator[Tally]:
    """Run the cases from a seed on; gives the tally before the first and after each. rows: of a stream, None: drawn."""
    tally = Tally(seed)
    yield tally
    for at in range(seed, seed + cases):
        _run(tally, at, rows)
        yield tally


def _run(tally: Tally, seed: int, rows: int | None) -> None:
    rng = Random(f"{seed} reduced")
    size = rng.choice(ROWS)
    case = large_join(seed, rows or size)
    cases, dropped = _beside(rng, case)
    chosen = [*rng.sample(sorted(REDUCTIONS), RUNS), rng.choice(sorted(WHOLE))]
    ways = {**REDUCTIONS, **WHOLE}
    tally.cases += 1
    _, whole, story = _answers(cases, dropped, seed, {"state_reduction": "off"})
    if story:
        tally.differences.append(_story(case, "off", story, seed, rows))
        return
    if len(whole[0].changes) > MOST:
        tally.left_out += 1
        return
    tally.answered += bool(whole[0].changes)
    for name in chosen:
        watch, answers, story = _answers(cases, dropped, seed, ways[name])
        counts = tally.counts[name]
        counts.runs += 1
        counts.reduced += watch.is_reduced
        counts.returned += watch.returned > 0
        difference = story or next(filter(None, map(difference_of, whole, answers)), "")
        if difference:
            tally.differences.append(_story(case, name, difference, seed, rows))


def _beside(rng: Random, case: Case) -> tuple[list[Case], dict[int, int]]:
    """The case, and now and then an equal query that comes in mid-stream; when that is dropped, if at all."""
    if rng.random() < 0.6:
        return [case], {}
    first = rng.randrange(len(case.feed) - 1)
    dropped = {1: rng.randrange(first + 1, len(case.feed))} if rng.random() < 0.6 else {}
    return [case, replace(case, registered=first)], dropped


def _answers(
    cases: Sequence[Case], dropped: dict[int, int], seed: int, options: dict[str, Any]
) -> tuple[_Watch, list[Answer], str]:
    """What the queries say under options, and the words of what was raised."""
    watch = _Watch(seed)
    try:
        answers = run_together(cases, dropped, before=watch.at_end(len(cases[0].feed)), **options)
    except Exception:  # no case may raise, whatever it is
        return watch, [], traceback.format_exc()
    return watch, answers, ""


def difference_of(whole: Answer, reduced: Answer) -> str:
    """Where two answers part, in words; "" where they do not. Values are compared as they stand: none is rounded."""
    if (whole.failed_at, whole.reason) != (reduced.failed_at, reduced.reason):
        return f"fails at {reduced.failed_at} ({reduced.reason}), whole at {whole.failed_at} ({whole.reason})"
    expected, actual = _netted(whole), _netted(reduced)
    lines = []
    instants = sorted(ts for ts in {*expected, *actual} if expected.get(ts) != actual.get(ts))
    for ts in instants[:SHOWN]:
        lines.append(f"at instant {ts} {_parting(expected.get(ts, Counter()), actual.get(ts, Counter()))}")
    if len(instants) > SHOWN:
        lines.append(f".. and at {len(instants) - SHOWN} instants more, until {instants[-1]}")
    if (whole.snapshot is None) != (reduced.snapshot is None):
        lines.append("one of them has no snapshot")
    held, kept = Counter(whole.snapshot or ()), Counter(reduced.snapshot or ())
    if held != kept:
        lines.append(f"the snapshot at the end {_parting(held, kept)}")
    return "\n".join(lines)


def _netted(answer: Answer) -> dict[int, Counter[Row]]:
    """Per instant, how often each row entered less how often it left; rows that cancel are absent."""
    result: dict[int, Counter[Row]] = {}
    for ts, sign, row in answer.changes:
        counts = result.setdefault(ts, Counter())
        counts[row] += sign
        if not counts[row]:
            del counts[row]
    return {ts: counts for ts, counts in result.items() if counts}


def _parting(expected: Counter[Row], actual: Counter[Row]) -> str:
    """Which rows are too few and too many."""
    rows = sorted((row for row in {*expected, *actual} if expected[row] != actual[row]), key=repr)
    told = "; ".join(f"{row} {actual[row]:+d}, not {expected[row]:+d}" for row in rows[:SHOWN])
    return f"has {told}" + (f"; and {len(rows) - SHOWN} rows more" if len(rows) > SHOWN else "")


def _story(case: Case, name: str, difference: str, seed: int, rows: int | None) -> str:
    """All that it takes to see it again."""
    again = f"python -m tests.long.reduced_joins --cases 1 --seed {seed}" + (f" --rows {rows}" if rows else "")
    statements = "\n".join(f"{text};" for text in (*case.declarations, case.query))
    return f"{difference}\n\n{name}: {REDUCTIONS.get(name, WHOLE.get(name, {}))}\n{statements}\n\nagain: {again}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, tell what was done by reduction, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.long.reduced_joins", description=__doc__)
    parser.add_argument("--cases", type=int, default=300, help="to be run (default: 300)")
    parser.add_argument("--seed", type=int, default=0, help="of the first case (default: 0)")
    parser.add_argument("--seconds", type=float, default=None, help="begin no case after so many (default: no end)")
    parser.add_argument("--rows", type=int, default=None, help="of each stream (default: 1500, 4000 or 8000)")
    parser.add_argument("--keep-going", action="store_true", help="count differences instead of stopping")
    options = parser.parse_args(arguments)
    started = time.perf_counter()
    tally = Tally(options.seed)
    for tally in reduce_joins(options.cases, options.seed, options.rows):
        spent = time.perf_counter() - started
        if tally.differences and not options.keep_going:
            break
        if tally.cases == options.cases or (options.seconds is not None and spent > options.seconds):
            break
        # Before the case, so that a crash shows whose it was.
        sys.stderr.write(f"\rseed {tally.seed + tally.cases}, {len(tally.differences)} differences ")
        sys.stderr.flush()
    _tell(tally, time.perf_counter() - started)
    return 1 if tally.differences else 0


def _tell(tally: Tally, seconds: float) -> None:
    print(f"\nseeds {tally.seed} to {tally.seed + tally.cases - 1}: {tally.cases} cases, {seconds:.0f} s")
    print(f"{tally.answered} with an answer, {tally.left_out} left out: more than {MOST:,} changes")
    print(f"{'way':24}{'runs':>8}{'reduced':>10}{'rows came back':>16}")
    for name, counts in tally.counts.items():
        print(f"{name:24}{counts.runs:8,}{counts.reduced:10,}{counts.returned:16,}")
    for story in tally.differences:
        print(f"\n{story}")


if __name__ == "__main__":
    faulthandler.enable()  # a crash shows where it was
    sys.exit(main())
