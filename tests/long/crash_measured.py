"""Random queries over system streams in a connection that crashes; as `crash_cases` else.

What the engine measures is another with each run. So queries tell every element of the system streams, and the oracle,
a run that never stops and publishes nothing itself, is given what they have told behind the same calls.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any
from unittest import mock

from minidsms.connection import Connection
from minidsms.durability.connection import DurableConnection
from minidsms.streamon.forcing import ForcedSwitching
from minidsms.system_streams.registry import SystemStreams
from minidsms.system_streams.system_input import SystemInput
from tests.long.crash_cases import Call, Client, Kept, Scene, in_blocks, marking, without_crash
from tests.long.crash_topics import broker

TELLERS = {f"every_{name.lower()}": name for name in ("SysStream", "SysDecisions")}
"""Queries that tell every element, and of which stream."""
QUERIES = (
    "SELECT ISTREAM(entity, property, ival) FROM SysStream WHERE kind = 'source' OR kind = 'query'",
    "SELECT kind, COUNT(*), MAX(fval), SUM(ival) FROM SysStream [RANGE 9] GROUP BY kind",
    "SELECT COUNT(*), MIN(ts) FROM SysStream",
    "SELECT kind, MAX(ival) FROM SysStream GROUP BY kind",
    "SELECT entity, property, ival FROM SysStream [PARTITION BY entity, property ROWS 2] WHERE kind = 'source'",
    "SELECT DISTINCT property FROM SysStream [RANGE 20 SLIDE 6] WHERE ival > 0",
    "SELECT DSTREAM(entity, kind) FROM SysStream [ROWS 11]",
    "SELECT a.entity, b.entity FROM SysStream [RANGE 6] AS a, SysStream [RANGE 3] AS b"
    " WHERE a.ival = b.ival AND a.property = 'accepted' AND b.property = 'results'",
    "SELECT technique, COUNT(*), MIN(number) FROM SysDecisions [RANGE 7] GROUP BY technique",
    "SELECT ISTREAM(d.operator, s.entity) FROM SysDecisions [RANGE 5] AS d, SysStream [RANGE 4] AS s"
    " WHERE s.property = 'accepted' OR s.kind = 'connection'",
    "SELECT reason, new_plan FROM SysDecisions [ROWS 3]",
    "SELECT operator, COUNT(*) FROM SysDecisions GROUP BY operator",
)
FILTERED = "SELECT k FROM {} WHERE k > 0 AND k < 9 AND k <> 7"
"""Decisions are taken on the order of its conditions."""


@dataclass(frozen=True)
class Publication(Call):
    """What the engine has published, given to one that does not."""

    changes: Sequence[tuple[Any, ...]] = ()

    def make(self, db: Connection) -> None:
        """Publish it: an instant is closed as it is."""
        stream = db.stream_input(self.text)
        assert isinstance(stream, SystemInput)
        for now in dict.fromkeys(ts for ts, _, _ in self.changes):
            columns = zip(*(row for ts, _, row in self.changes if ts == now))
            with db.lock:
                stream.publish_again(dict(zip(stream.schema.names, map(list, columns))), now)
            db.process()


@dataclass
class Measured:
    """Queries over system streams among the calls of a case. at: before which of its calls each is registered.

    histories: those WITH HISTORY.
    """

    texts: dict[str, str]
    at: dict[str, int]
    histories: Collection[str]
    told: dict[int, dict[str, int]] = field(default_factory=dict)
    """How many elements had been told before each call."""

    def among(self, calls: Sequence[Call]) -> list[Call]:
        """The calls, these queries among them."""
        first = next(i for i, call in enumerate(calls) if call.step is not None or call.query)
        found: list[Call] = []
        for i, call in enumerate(calls):
            if i == first:
                found += [Call(f"SELECT ISTREAM(*) FROM {stream}", name) for name, stream in TELLERS.items()]
            for name in [name for name in self.texts if first + self.at[name] == i]:
                found.append(Call(self.texts[name], name, "WITH HISTORY" if name in self.histories else ""))
            found.append(call)
        return found

    def of_oracle(self, calls: Sequence[Call], kept: Mapping[str, Kept]) -> list[Call]:
        """The calls, and behind each what was published with it."""
        found, ends = list(calls), {name: len(kept[name].changes) for name in TELLERS}
        for i in sorted(self.told, reverse=True):
            for name, begin in self.told[i].items():
                if begin < ends[name]:
                    found.insert(i + 1, Publication(TELLERS[name], changes=kept[name].changes[begin : ends[name]]))
            ends = self.told[i]
        assert not any(ends.values())
        return found


class MeasuredClient(Client):
    """Notes what has been published before each call. The clock goes on with the calls, and plans are switched."""

    def measure(self, measured: Measured) -> None:
        """Begin."""
        self._measured, self._switches_every, self._at = measured, self.rng.choice((1, 3, 20)), 0
        self._ticks = self.rng.choice((1, 3))
        self.is_repeatable = False  # a copy measures something else
        self.options = {"clock": lambda: self._at * self._ticks, "sys_interval": self.rng.choice((4, 10, 25))}

    def _is_made(self, db: DurableConnection, i: int) -> bool:
        self._at = i
        self._measured.told[i] = {name: len(self.kept[name].changes) for name in TELLERS}
        db.streamon.forcing = db.streamon.forcing or ForcedSwitching(self._switches_every, self.crashes, None)
        return super()._is_made(db, i)


def check_measured(seed: int) -> int:
    """Run the case of a seed; how many crashes it went through. AssertionError where an answer differs."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as ending:
        scene = Scene(seed, folder, ending.enter_context(broker()), may_be_limited=False)
        if not scene.is_valid():
            return 0
        rng = Random(f"measured {seed}")
        texts = {f"measured{n}": text for n, text in enumerate(rng.sample(QUERIES, rng.randint(1, 4)))}
        texts |= {f"filtered{name.lower()}": FILTERED.format(name) for name in sorted(scene.cases[0].slack())}
        at = {name: rng.randrange(len(scene.cases[0].feed)) for name in texts}
        measured = Measured(texts, at, [name for name in texts if rng.random() < 0.2])
        scene.names += [*TELLERS, *texts]
        scene.story += f", {texts}"
        ours, theirs = scene.receivers(), scene.receivers()
        for receiver in (*ours.values(), *theirs.values()):
            ending.callback(receiver.end)
        loses = scene.durability == "sync" and rng.random() < 0.7  # else calls that are lost are measured anew
        calls = measured.among(scene.calls("found", ours))
        client = MeasuredClient(calls, scene.names, folder + "/db", scene.durability, loses, rng, ours)
        client.measure(measured)
        client.broker = scene.broker
        with marking(rng.choice((0.0, 1e9))), in_blocks(rng.random() < 0.5):
            try:
                client.run()
            except BaseException as error:
                error.add_note(scene.story)
                raise
        calls = measured.of_oracle(measured.among(scene.calls("wanted", theirs)), client.kept)
        with mock.patch.object(SystemStreams, "publish", lambda self: []):
            expected = without_crash(calls, [*scene.names, *scene.topics], theirs)
        for receiver in theirs.values():
            receiver.settle()
        scene.compare(client.kept, expected)
        scene.compare_told(ours, theirs)
        scene.compare_topics(expected)
    return client.crashes
