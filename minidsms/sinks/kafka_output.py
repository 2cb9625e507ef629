"""Lines as messages of a Kafka topic, one each.

All go to one partition, so that their order stays. Back-pressure: when the client's queue is full the engine waits for
the broker, up to a timeout; a message that could not be delivered makes the next call raise, and the sink is given up.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from minidsms.counted import counted
from minidsms.cql.errors import Error
from minidsms.sources.kafka_client import KafkaAddress, asking, configuration, kafka, partitions, reason

_CSV_LINE = re.compile(rb'(?:[^"\n]|"[^"]*")+')


@dataclass(frozen=True)
class KafkaPlace:
    """One partition of a topic. timeout_s: how long the broker may take nothing.  given: options `kafka.*`.  is_csv: a
    line may hold line ends, within double quotes.

    Called, it is the output that a `LineSink` makes.
    """

    address: KafkaAddress
    partition: int
    timeout_s: float
    given: Mapping[str, Any]
    is_csv: bool

    def __call__(self, path: str) -> KafkaWriter:
        return KafkaWriter(self)


class KafkaWriter:
    """Writes to one partition of a topic. more: of the client's configuration."""

    def __init__(self, place: KafkaPlace, **more: Any) -> None:
        library = kafka()
        address, partition, timeout_s = place.address, place.partition, place.timeout_s
        self._address, self._partition, self._timeout_s = address, partition, timeout_s
        self._failure = ""
        self.lines: Callable[[bytes], list[bytes]] = _CSV_LINE.findall if place.is_csv else bytes.splitlines
        """The messages of a text."""
        self.offset = 0
        """Behind the last message delivered."""
        more = {"enable.idempotence": True, "linger.ms": 5, "message.timeout.ms": int(timeout_s * 1000), **more}
        try:
            self.producer: Any = library.Producer(configuration(address, place.given, **more))
        except (library.KafkaException, TypeError, ValueError) as error:
            raise Error(f"Kafka refuses the configuration: {reason(error)}") from None
        there = partitions(self.producer, address)
        if partition not in there:
            raise Error(f"topic {address.topic!r} has no partition {partition}\nhelp: it has {len(there)}, from 0 on")

    def write(self, data: bytes) -> None:
        """Send lines."""
        self.send([(line, []) for line in self.lines(data)])

    def send(self, messages: Sequence[tuple[bytes, list[tuple[str, bytes]]]]) -> None:
        """Send (value, headers) of each."""
        with asking(self._address):
            for message, headers in messages:
                self._send(message, headers)
            self.producer.poll(0)
        self._check()

    def _send(self, line: bytes, headers: list[tuple[str, bytes]]) -> None:
        end = time.monotonic() + self._timeout_s
        while True:
            try:
                self.producer.produce(
                    self._address.topic, line, partition=self._partition, on_delivery=self._delivered, headers=headers
                )
                return
            except BufferError:
                if time.monotonic() > end:
                    reason_ = f"Kafka at {self._address.brokers} has taken nothing for {self._timeout_s:g} seconds"
                    raise Error(f"{reason_}\nhelp: WITH (timeout = ..) says how long to wait") from None
                self.producer.poll(0.05)
                self._check()

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self._failure = self._failure or str(error.str())
        else:
            self.offset = max(self.offset, message.offset() + 1)

    def _check(self) -> None:
        if self._failure:
            raise Error(f"a message could not be delivered to topic {self._address.topic!r}: {self._failure}")

    def publish(self) -> None:
        """Wait until all has been delivered."""
        try:
            with asking(self._address):
                left = self.producer.flush(self._timeout_s)
            self._check()
            if left:
                raise Error(
                    f"{counted(left, 'message')} could not be delivered to topic {self._address.topic!r} in time"
                )
        finally:
            self.discard()

    def discard(self) -> None:
        """What has been sent is sent."""
        producer, self.producer = self.producer, None  # its threads and sockets end with it
        if producer is not None:
            with contextlib.suppress(kafka().KafkaException):
                producer.purge()
                producer.flush(1.0)
