"""`python -m minidsms.testing.open_page --seconds T`: what server and browser hold while the page is open under load;
with --loss: what the engine loses to it.

The engine runs in a process of its own, fed without end, and begins with as many decisions and pictures of plans as it
keeps; queries come and go, plans are forced, and the page in a headless Chromium shows every view of the answers by
turns, with graphs pinned. Now and then a decision is compared, and the experiment of the schedulers run, which opens
connections of its own. The slope over the later half of the time is printed, in bytes a second: of the floor (the least
of every tenth of the samples) of the resident sets of engine and renderer, of what scripts hold after a collection, and
of the elements that the page has.

What the engine loses is seen in one that runs at full speed, by turns of two seconds: nobody looks on, nobody again
(which tells the noise), a reader that throws away what a page is told, and the page in Chromium. What the engine loses
by itself, its waits for the page's threads and what these take, does not depend on what else the machine does.
docs/visualizer.md.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import numpy.typing as npt

import minidsms
from minidsms.past.past import MOST_PICTURES
from minidsms.streamon.loop import adaptations_of
from minidsms.streamon.plan_log import KEPT
from minidsms.testing.devtools import Tab, chromium
from minidsms.testing.slopes import floor, slope

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
_TURN_S = 2.0
_SETTLE_S = 0.5
_TURN_ROWS = 2000


_LOST = """\
what is left of the engine's rate while somebody looks on, medians and quartiles of turns; shares of a processor
looks on        rows of a processor second  rows of a second            engine waits page threads      browser"""


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
    """Print the page's URL. For every line that comes push for a turn, and print the rows of a second of the engine's
    processor time, those of a second, and the shares of the time in which the engine waited for the page, and in which
    the page's threads ran.
    """
    with minidsms.connect() as db:
        db.execute(_DECLARED)
        print(db.ui().url, flush=True)
        rows = np.arange(_TURN_ROWS)
        at = 0
        for _ in sys.stdin:
            before, began = at, _clocks()
            while time.monotonic() < began[1] + _TURN_S:
                sensors = (at + rows) % 40
                values = (at + rows) * 7 % 1000 / 1.0
                columns = {"sensor": sensors, "value": values, "lat": 48 + sensors / 40, "lon": 11 + sensors / 20}
                db.push("Reading", columns, ts=at + rows)
                for query in db.queries.values():
                    query.fetch_arrow()
                at += _TURN_ROWS
            ran, passed, all_ran, queued = _clocks() - began
            told = (at - before) / ran, (at - before) / passed, 1 - (ran + queued) / passed, (all_ran - ran) / passed
            print(*told, flush=True)


def _clocks() -> npt.NDArray[np.float64]:
    """Seconds of this thread on a processor, of the clock, of all threads on one, of this one waiting for one."""
    queued_ns = int(Path("/proc/thread-self/schedstat").read_text(encoding="ascii").split()[1])
    return np.array([time.thread_time(), time.monotonic(), time.process_time(), queued_ns / 1e9])


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
    command = [sys.executable, "-m", "minidsms.testing.open_page", *options]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True)


def show(started: Any, url: str) -> Any:
    """The page of an engine in a browser, with graphs pinned."""
    page = started.chromium.launch(executable_path=chromium(), args=["--no-sandbox"]).new_page(
        viewport={"width": 1280, "height": 900}
    )
    page.goto(url)
    page.evaluate(_OPEN)
    return page


@contextlib.contextmanager
def reading(url: str) -> Iterator[None]:
    """Take all that a page is told, and the answers that it asks for, and throw them away."""
    address = urlsplit(url)
    entry = http.client.HTTPConnection(str(address.netloc))
    entry.request("GET", f"/?{address.query}")
    cookie = str(entry.getresponse().getheader("set-cookie"))
    asking, told = (http.client.HTTPConnection(str(address.netloc)) for _ in range(2))
    told.request("GET", "/events", headers={"Cookie": cookie})

    def read() -> None:
        with contextlib.suppress(OSError, ValueError, AttributeError, http.client.HTTPException):  # it is closed amidst
            for line in told.getresponse():
                if line == b"event: now\n":
                    asking.request("GET", "/api/answer?query=means", headers={"Cookie": cookie})
                    asking.getresponse().read()

    reader = threading.Thread(target=read)
    reader.start()
    yield
    assert told.sock is not None
    told.sock.shutdown(socket.SHUT_RDWR)
    reader.join()
    for each in (entry, asking, told):
        each.close()


@contextlib.contextmanager
def seen(page: Any) -> Iterator[None]:
    """A page that is elsewhere in the background."""
    turn = """is => {
        Object.defineProperty(document, "hidden", { value: !is, configurable: true });
        document.dispatchEvent(new Event("visibilitychange"));
    }"""
    page.evaluate(turn, True)
    yield
    page.evaluate(turn, False)


def lose(seconds: float) -> dict[str, npt.NDArray[np.float64]]:
    """By who looks on: what is left of the rows of a second of the engine's processor time and of those of a second,
    beside a turn in which nobody looks, the shares of the time that the engine waits for the page and that the page's
    threads run, and the processors that the browser takes: a row for every turn.
    """
    from playwright.sync_api import sync_playwright

    turns: dict[str, list[npt.NDArray[np.float64]]] = {}
    with start("--turns") as engine, sync_playwright() as started:
        assert engine.stdin is not None and engine.stdout is not None
        url = engine.stdout.readline().strip()
        page = show(started, url)
        with seen(page):  # all is compiled and drawn once
            page.wait_for_timeout(2000)
        scenes: dict[str, Callable[[], contextlib.AbstractContextManager[None]]] = {
            "nobody": contextlib.nullcontext,
            "nobody, again": contextlib.nullcontext,
            "a reader": lambda: reading(url),
            "Chromium": lambda: seen(page),
        }
        for number in range(-1, max(1, int(seconds / len(scenes) / (_TURN_S + _SETTLE_S)))):
            told = {}
            for name in list(scenes)[:: 1 if number % 2 else -1]:
                with scenes[name]():
                    page.wait_for_timeout(1000 * _SETTLE_S)
                    processes = below(os.getpid(), b"chrom")
                    before = spent(processes)
                    engine.stdin.write("\n")
                    engine.stdin.flush()
                    figures = [float(each) for each in engine.stdout.readline().split()]
                    told[name] = np.array([*figures, (spent(processes) - before) / _TURN_S])
            for name in list(scenes)[1:] if number >= 0 else ():
                turns.setdefault(name, []).append(told[name] / [*told["nobody"][:2], 1, 1, 1])
        page.context.browser.close()
        engine.stdin.close()
    return {name: np.array(rows) for name, rows in turns.items()}


def watch(seconds: float) -> dict[str, tuple[float, float]]:
    """By what is held: at the end, and its slope a second over the later half of so many seconds."""
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
    return {
        name: (values[-1], slope([times[i] for i in floor(values)], [values[i] for i in floor(values)]))
        for name, values in held.items()
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a line for each thing held; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m minidsms.testing.open_page", description=__doc__)
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
        print(_LOST)
        for name, rows in lose(options.seconds or 120).items():
            low, middle, high = np.quantile(rows[:, :2], (0.25, 0.5, 0.75), axis=0)
            shown = [f"{m:.3f} ({a:.3f} to {b:.3f})" for a, m, b in zip(low, middle, high)]
            print(f"{name:16}{shown[0]:28}{shown[1]:28}", *(f"{each:12.4f}" for each in rows[:, 2:].mean(axis=0)))
    if options.serve or options.turns or options.loss:
        return 0
    for name, (last, by_second) in watch(options.seconds or 3600).items():
        print(f"{name:24}{last:16,.0f} at the end {by_second:12,.1f} a second", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
