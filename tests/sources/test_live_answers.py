"""Live sources against the definition: the feed comes as lines, cut anywhere, and the answer is that of the pushes."""

from __future__ import annotations

import json
import threading
from random import Random
from typing import Any

import pytest

import minidsms
from minidsms.cql.errors import CqlError, QueryError
from minidsms.inputs.conversion import FIRST_INSTANT
from minidsms.sources.csv_form import CsvForm
from minidsms.sources.line_cutter import LineCutter
from minidsms.sources.live_lines import LiveLines
from minidsms.testing.compare import Answer, bind_case, difference_of, run_definition
from minidsms.testing.feeds import Advance, Step
from minidsms.testing.generators import Case, random_case
from minidsms.testing.user_definitions import create_all


class Script:
    """A feeder that puts nothing: the test puts what it likes into the inbox."""

    def __init__(self) -> None:
        self._stopped = threading.Event()

    def run(self, source: LiveLines) -> None:
        """Wait for the end."""
        self._stopped.wait()

    def stop(self) -> None:
        """This is it."""
        self._stopped.set()


class Lines:
    """One input and the bytes on their way to it."""

    def __init__(self, db: Any, name: str, format: str, cut: int) -> None:
        target = db.stream_input(name)
        # A relation's lines have instants and signs; a stream takes the instants as well.
        self.source = LiveLines(name, target.schema, True, CsvForm(header=False) if format == "csv" else None, Script())
        self._rows, self._cutter = self.source.rows(name), LineCutter()
        self._names, self._format, self._cut = target.schema.names, format, cut
        db.reading.add(self.source, target)

    def send(self, data: bytes) -> None:
        """Let bytes arrive, `cut` at once."""
        for start in range(0, len(data), self._cut):
            self.source.inbox.put(self._rows, *self._cutter.feed(data[start : start + self._cut]))

    def line(self, ts: int, sign: int, row: tuple[Any, ...]) -> bytes:
        """A row as the format writes it."""
        if self._format == "csv":
            return (",".join([str(ts), str(sign), *map(_csv_field, row)]) + "\n").encode()
        values = {"ts": ts, "sign": sign, **dict(zip(self._names, row))}
        return json.dumps(values, default=str).replace("Infinity", "1e999").encode() + b"\n"


def _csv_field(value: Any) -> str:
    if isinstance(value, tuple):
        value = json.dumps(value)
    if isinstance(value, str):
        return '"' + value.replace('"', '""') + '"'
    return "" if value is None else str(value)


def run_lines(case: Case, format: str, cut: int, seed: int, batch_size: int) -> Answer:
    """The engine's answer where every call of the feed comes as lines."""
    random = Random(seed)
    # The clock stands at the beginning of time: instants come with the lines.
    with minidsms.connect(batch_size=batch_size, clock=lambda: FIRST_INSTANT + 2) as db:
        create_all(db)
        for declaration in case.declarations:
            db.execute(declaration)
        names = {step.name for step in case.feed if not isinstance(step, Advance)}
        names |= {d.name for d in db.catalog.streams.values() if not d.is_system}
        lines = {name.lower(): Lines(db, name, format, cut) for name in sorted(names)}
        query = db.query(case.query)
        driver: Any = db.source_driver
        changes: list[tuple[int, int, tuple[Any, ...]]] = []
        failure: QueryError | None = None
        for i, step in enumerate(case.feed):
            _send(lines, step, format)
            follows = case.feed[i + 1] if i + 1 < len(case.feed) else None
            if _touches(step, lines) == _touches(follows, lines) and random.random() < 0.5:
                continue  # both arrive before anybody looks
            while any(each.source.inbox.waiting_bytes or each.source._ready for each in lines.values()):
                with db.lock:
                    driver.step()
                    db._step(None)
            with db.lock:
                driver.step()
                db._step(None)
        try:
            while fetched := query.fetch():
                changes += [(c.ts, c.sign, tuple(c.row)) for c in fetched]
        except QueryError as error:
            failure = error
        if failure is not None:
            return Answer(tuple(changes), failure.ts, failure.reason)
        return Answer(tuple(changes), snapshot=tuple(query.snapshot()) if query.kind == "relation" else None)


def _send(lines: dict[str, Lines], step: Step, format: str) -> None:
    if isinstance(step, Advance):
        for name in _touches(step, lines):
            line = f"_heartbeat,{step.ts}" if format == "csv" else f'{{"_heartbeat":{step.ts}}}'
            lines[name].send(f"{line}\n".encode())
        return
    into = lines[step.name.lower()]
    into.send(b"".join(into.line(*element) for element in step.rows))


def _touches(step: Step | None, lines: dict[str, Lines]) -> list[str]:
    """The inputs a call of the feed goes to."""
    if step is None:
        return []
    if isinstance(step, Advance):
        return sorted(lines) if step.stream is None else [step.stream.lower()]
    return [step.name.lower()]


def _is_for_lines(case: Case) -> bool:
    """Registered first, and without what a line cannot hold."""
    pushes = [step for step in case.feed if not isinstance(step, Advance)]
    texts = [v for step in pushes for _, _, row in step.rows for v in row if isinstance(v, str)]
    return case.registered == 0 and not any("\n" in text or "\r" in text for text in texts)


@pytest.mark.parametrize("format", ["csv", "json"])
@pytest.mark.parametrize(("cut", "batch_size"), [(1, 2), (7, 1), (61, 7), (1 << 20, 65_536)])
def test_the_answer_to_lines_is_the_answer_to_pushes(format: str, cut: int, batch_size: int) -> None:
    agreed = 0
    for seed in range(3000 + cut % 997, 3010 + cut % 997):
        case = random_case(seed)
        if not _is_for_lines(case):
            continue
        try:
            if not bind_case(case).streams:
                continue  # only `advance` closes the instants of a query that reads no stream
            expected = run_definition(case)
            actual = run_lines(case, format, cut, seed, batch_size)
        except CqlError:
            continue
        difference = difference_of(expected, actual)
        assert not difference, f"{difference}\n\nseed {seed}, {format}, cut {cut}\n{case}"
        agreed += 1
    assert agreed >= 4
