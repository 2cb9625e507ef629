"""`python -m tests.long.open_page --seconds T`: what server and browser hold while the page is open under load;
with --loss: what the engine loses to it.

The engine runs in a process of its own, fed without end, and begins with as many decisions and pictures of plans as it
keeps; queries come and go, plans are forced, and the page in a headless Chromium shows every view of the answers by
turns, with graphs pinned. Now and then a decision is compared, and the experiment of the schedulers run, which opens
connections of its own. The slope over the later half of the time is printed with its standard error, in bytes a second:
of the floor (the least of every tenth of the samples) of the resident sets of engine and renderer, of what scripts hold
after a collection, and of the elements that the page has.

What the engine loses is seen in one that runs at full speed, by turns of a quarter of a second: the page in Chromium is
told and draws, the engine is looked at and nobody is told, nothing happens (which tells the noise), and between these
nothing happens either. A turn is compared with its two neighbours, so that what else the machine does counts little.
A page is told once a second at most: what a turn loses, the engine loses in a second.
docs/visualizer.md.
"""

from __future__ import annotations

import argparse
import itertools
import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

import minidsms
from minidsms.past.past import MOST_PICTURES
from minidsms.streamon.loop import adaptations_of
from minidsms.streamon.plan_log import KEPT
from tests.long.devtools import Tab
from tests.long.slopes import floor

_DECLARED = """
CREATE STREAM Reading (sensor INTEGER, value FLOAT, lat FLOAT, lon FLOAT);
CREATE QUERY few AS SELECT sensor, value FROM Reading WHERE value > 10 AND sensor % 7 < 5 AND value < 900;
CREATE QUERY means AS SELECT sensor, AVG(value) AS mean, MAX(lat) AS lat, MAX(lon) AS lon
  FROM Reading [RANGE 2000] GROUP BY sensor;
"""
_ROWS = 200
_PUSH_S = 0.05
_VIEWS = ("table", "changes", "line", "bars", "points", "map")
_SAMPLES = 200
_OPEN = """async () => {
  const soon = (ms) => new Promise((go) => setTimeout(go, ms));
  const named = async (kind, name) => {
    for (;;) {
      const found = [...document.querySelectorAll(kind)].find((each) => each.textContent.includes(name));
      if (found) return found;
      await soon(100);
    }
  };
  (await named("#query-list button", "means")).click();
  for (const name of ["Select", "Aggregate"]) {
    (await named(".box", name)).dispatchEvent(new KeyboardEvent("keydown", { key: "Enter" }));
    await named(".property", "elements_in");
    for (const row of [...document.querySelectorAll(".property")].slice(0, 4)) row.click();
  }
}"""
_LOOK = """async (view, isForced, isCompared, experiment) => {
  const soon = (ms) => new Promise((go) => setTimeout(go, ms));
  document.querySelector(`[data-view=${view}]`).click();
  if (isForced) {
    const box = [...document.querySelectorAll(".box")].find((each) => each.textContent.includes("Select"));
    box.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter" }));
    document.querySelector("#inspector button.force").click();
  }
  const decision = document.querySelector(".decision");
  if (isCompared && decision) {
    decision.click();
    await soon(500);
    document.querySelector("dialog[open] button[aria-label=close]").click();
  }
  if (experiment) {
    const menu = document.querySelector("#examples select[aria-label=Experiments]");
    menu.value = [...menu.options].find((each) => each.text === experiment).value;
    menu.dispatchEvent(new Event("change"));
  }
  await soon(1500);
}"""
_SCHEDULERS = "Chain against FIFO, Greedy and round robin"
_TURNS = ("Chromium", "", "nobody", "", "looked at", "", "nobody", "", "looked at", "")
_TURN_S = 0.25
_TURN_ROWS = 2000
_LOST = """\
what one look costs, in percent of a second: medians of {} turns, beside their neighbours, with 95 % intervals
told            rows take longer      the engine waits      both                  page's threads        browser"""


def serve() -> None:
    """Print the page's URL; feed the engine until the standard input ends."""
    with minidsms.connect() as db:
        db.execute(_DECLARED)
        fill(db)
        print(db.ui().url, flush=True)
        is_over = threading.Event()

        def wait() -> None:
            sys.stdin.read()
            is_over.set()

        threading.Thread(target=wait, daemon=True).start()
        turn = 0
        while not is_over.wait(_PUSH_S):
            at = [turn * _ROWS + i for i in range(_ROWS)]
            db.push(
                "Reading",
                {
                    "sensor": [t % 40 for t in at],
                    "value": [t * 7 % 1000 / 1.0 for t in at],
                    "lat": [48 + t % 40 / 40 for t in at],
                    "lon": [11 + t % 40 / 20 for t in at],
                },
                ts=at,
            )
            for query in db.queries.values():
                query.fetch()
            turn += 1
            if turn % 100 == 0:  # queries come and go
                if "passing" in db.queries:
                    db.execute("DROP QUERY passing")
                else:
                    db.execute("CREATE QUERY passing AS SELECT MAX(value) FROM Reading [RANGE 500]")


def fill(db: minidsms.Connection) -> None:
    """Take as many decisions and keep as many pictures of plans as are kept: what grows then, grows for ever."""
    place = adaptations_of(db.queries["few"].network.working)[0]
    for number in range(KEPT):
        place.pin((0, 1, 2) if number % 2 else (2, 1, 0))
        if number >= KEPT - MOST_PICTURES:
            db.past.look()
    place.unpin()


def take_turns() -> None:
    """Print the page's URL; read for how many seconds to push, and the browser's processes. Print of every turn: rows,
    and seconds of the engine's thread on a processor, of the clock, in which it waited for threads of its process, in
    which these ran, and in which the browser ran.
    """
    from minidsms.web.server import Visualizer

    with minidsms.connect() as db, Visualizer(db, interval_s=1e6).start() as shown:  # looks only when it is woken
        db.execute(_DECLARED)
        print(shown.url, flush=True)
        seconds, *browser = map(int, sys.stdin.readline().split())
        lengths = np.random.default_rng(0).uniform(0.9 * _TURN_S, 1.2 * _TURN_S, 1 + int(seconds / _TURN_S))
        rows = np.arange(_TURN_ROWS)
        tell = shown.observer.changed
        at = 0
        over = time.monotonic() + seconds
        for kind, length in zip(itertools.cycle(_TURNS), lengths):
            if time.monotonic() > over:
                break
            shown.observer.changed = tell if kind == "Chromium" else lambda: None
            before, began = at, _clocks(browser)
            if kind in ("Chromium", "looked at"):
                shown.observer.wake()
            while time.monotonic() < began[1] + length:
                sensors = (at + rows) % 40
                values = (at + rows) * 7 % 1000 / 1.0
                columns = {"sensor": sensors, "value": values, "lat": 48 + sensors / 40, "lon": 11 + sensors / 20}
                db.push("Reading", columns, ts=at + rows)
                for query in db.queries.values():
                    query.fetch_arrow()
                at += _TURN_ROWS
            ran, passed, all_ran, queued, browsed = _clocks(browser) - began
            print(at - before, ran, passed, passed - ran - queued, all_ran - ran, browsed, flush=True)


def _clocks(others: Sequence[int]) -> npt.NDArray[np.float64]:
    """Seconds of this thread on a processor, of the clock, of all threads on one, of this one waiting for one, and of
    other processes on one.
    """
    queued_ns = int(Path("/proc/thread-self/schedstat").read_text(encoding="ascii").split()[1])
    return np.array([time.thread_time(), time.monotonic(), time.process_time(), queued_ns / 1e9, spent(others)])


def look(tab: Tab, turn: int) -> None:
    """What a person does: another view, another plan, and back from the comparison of two."""
    experiment = _SCHEDULERS if turn % 40 == 20 else None
    tab.run(_LOOK, _VIEWS[turn % len(_VIEWS)], turn % 2 == 0, turn % 10 == 5, experiment)


def resident(pid: int) -> int:
    """Bytes of a process that stand in memory."""
    return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def below(ancestor: int, said: bytes) -> list[int]:
    """The processes below another whose command line says this."""
    parents: dict[int, int] = {}
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            if said in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
        except OSError:  # it has ended meanwhile
            continue

    def is_below(pid: int) -> bool:
        while pid and pid != ancestor:
            pid = parents.get(pid, 0)
        return pid == ancestor

    return [pid for pid in found if is_below(pid)]


def spent(pids: Sequence[int]) -> float:
    """Seconds that processes have run."""
    fields = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids]
    return sum(int(each[11]) + int(each[12]) for each in fields) / os.sysconf("SC_CLK_TCK")


def start(*options: str) -> subprocess.Popen[str]:
    """An engine in a process and a session of its own, as beside a browser: systems share time between sessions."""
    command = [sys.executable, "-m", "tests.long.open_page", *options]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True)


def turns(seconds: int) -> npt.NDArray[np.float64]:
    """What `take_turns` tells, a row for every turn, beside a browser."""
    with start("--turns") as engine, Tab() as tab:
        assert engine.stdin is not None and engine.stdout is not None
        tab.call("Page.navigate", url=engine.stdout.readline().strip())
        tab.run(_OPEN)
        print(seconds, *below(tab.pid, b"chrom"), file=engine.stdin, flush=True)
        return np.array([line.split() for line in engine.stdout], float)


def lost(told: npt.NDArray[np.float64]) -> dict[str, npt.NDArray[np.float64]]:
    """By who is told, a row for every turn, in seconds, beside its neighbours: what it loses as rows take longer, as
    the engine waits for the page's threads, both; and what these threads and the browser take.

    told: see `turns`.
    """
    rows, ran, passed, *taken = told.T
    rate = rows / ran
    found: dict[str, list[list[float]]] = {kind: [] for kind in _TURNS if kind}
    for i in range(2 * len(_TURNS), len(told) - 1, 2):  # after two rounds everything is compiled, and has been drawn
        longer = passed[i] * (1 - rate[i] / np.sqrt(rate[i - 1] * rate[i + 1]))
        waits, threads, browser = (
            each[i] - passed[i] * (each[i - 1] + each[i + 1]) / (passed[i - 1] + passed[i + 1]) for each in taken
        )
        found[_TURNS[i % len(_TURNS)]].append([longer, waits, longer + waits, threads, browser])
    return {kind: np.array(each) for kind, each in found.items()}


def median(values: npt.NDArray[np.float64]) -> tuple[float, float, float]:
    """With the interval in which 95 % of the medians of as many draws from the values lie."""
    drawn = np.random.default_rng(0).choice(values, (4000, len(values)))
    low, high = np.quantile(np.median(drawn, axis=1), (0.025, 0.975))
    return float(np.median(values)), float(low), float(high)


def watch(seconds: float) -> dict[str, tuple[float, float, float]]:
    """By what is held: at the end; its slope a second over the later half of so many seconds, and the error of that."""
    with start("--serve") as engine, Tab() as tab:
        assert engine.stdout is not None and engine.stdin is not None
        tab.call("Page.navigate", url=engine.stdout.readline().strip())
        tab.run(_OPEN)
        tab.call("Performance.enable")
        began, turn = time.monotonic(), 0
        due = seconds / 2
        times: list[float] = []
        held: dict[str, list[float]] = {}
        while (passed := time.monotonic() - began) < seconds:
            look(tab, turn)
            turn += 1
            if passed < due:
                continue
            due = max(due + seconds / 2 / _SAMPLES, passed)
            tab.call("HeapProfiler.collectGarbage")
            counted = {each["name"]: each["value"] for each in tab.call("Performance.getMetrics")["metrics"]}
            times.append(passed)
            for name, value in {
                "engine, bytes": resident(engine.pid),
                "renderer, bytes": max(map(resident, below(tab.pid, b"--type=renderer"))),
                "scripts, bytes": counted["JSHeapUsedSize"],
                "elements of the page": counted["Nodes"],
                "listeners": counted["JSEventListeners"],
            }.items():
                held.setdefault(name, []).append(float(value))
        engine.stdin.close()
    return {name: (values[-1], *slope(times, values)) for name, values in held.items()}


def slope(times: Sequence[float], values: Sequence[float]) -> tuple[float, float]:
    """Of the line through the floor of values, with its standard error."""
    least = floor(values)
    fitted, covariance = np.polyfit([times[i] for i in least], [values[i] for i in least], 1, cov=True)
    return float(fitted[0]), float(np.sqrt(covariance[0, 0]))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a line for each thing held; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.long.open_page", description=__doc__)
    parser.add_argument("--seconds", type=float, help="default: 3600, with --loss 120")
    parser.add_argument("--loss", action="store_true", help="what the engine loses while the page is open")
    for name in ("--serve", "--turns"):
        parser.add_argument(name, action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.serve:
        serve()
    elif options.turns:
        take_turns()
    elif options.loss:
        found = lost(turns(int(options.seconds or 120)))
        print(_LOST.format(len(found["Chromium"])))
        for name, each in found.items():
            shown = ("{:5.2f} ({:.2f} to {:.2f})".format(*median(100 * lost_s)) for lost_s in each.T)
            print(f"{name:16}", *(f"{told:21}" for told in shown))
    if options.serve or options.turns or options.loss:
        return 0
    for name, (last, by_second, error) in watch(options.seconds or 3600).items():
        print(f"{name:24}{last:16,.0f} at the end {by_second:12,.1f} ± {error:,.1f} a second", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
