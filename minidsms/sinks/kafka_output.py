"""Lines as messages of a Kafka topic, one each.

All go to one partition, so that their order stays. Back-pressure: when the client's queue is full the engine waits for
the broker, up to a timeout; a message that could not be delivered makes the next call raise, and the sink is given up.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from typing import Any

from minidsms.cql.errors import Error
from minidsms.sources.kafka_client import KafkaAddress, asking, configuration, kafka, partitions, reason


class KafkaWriter:
    """Writes to one partition of a topic. timeout_s: how long the broker may take nothing."""

    def __init__(self, address: KafkaAddress, partition: int, timeout_s: float, given: Mapping[str, Any]) -> None:
        library = kafka()
        self._address, self._partition, self._timeout_s = address, partition, timeout_s
        self._failure = ""
        more = {"enable.idempotence": True, "linger.ms": 5, "message.timeout.ms": int(timeout_s * 1000)}
        try:
            self._producer: Any = library.Producer(configuration(address, given, **more))
        except (library.KafkaException, TypeError, ValueError) as error:
            raise Error(f"Kafka refuses the configuration: {reason(error)}") from None
        there = partitions(self._producer, address)
        if partition not in there:
            raise Error(f"topic {address.topic!r} has no partition {partition}\nhelp: it has {len(there)}, from 0 on")

    def write(self, data: bytes) -> None:
        """Send lines."""
        with asking(self._address):
            for line in data.splitlines():
                self._send(line)
            self._producer.poll(0)
        self._check()

    def _send(self, line: bytes) -> None:
        end = time.monotonic() + self._timeout_s
        while True:
            try:
                self._producer.produce(
                    self._address.topic, value=line, partition=self._partition, on_delivery=self._delivered
                )
                return
            except BufferError:
                if time.monotonic() > end:
                    reason_ = f"Kafka at {self._address.brokers} has taken nothing for {self._timeout_s:g} seconds"
                    raise Error(f"{reason_}\nhelp: WITH (timeout = ..) says how long to wait") from None
                self._producer.poll(0.05)
                self._check()

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self._failure = self._failure or str(error.str())

    def _check(self) -> None:
        if self._failure:
            raise Error(f"a message could not be delivered to topic {self._address.topic!r}: {self._failure}")

    def publish(self) -> None:
        """Wait until all has been delivered."""
        try:
            with asking(self._address):
                left = self._producer.flush(self._timeout_s)
            self._check()
            if left:
                raise Error(f"{left} messages could not be delivered to topic {self._address.topic!r} in time")
        finally:
            self.discard()

    def discard(self) -> None:
        """What has been sent is sent."""
        producer, self._producer = self._producer, None  # its threads and sockets end with it
        if producer is not None:
            with contextlib.suppress(kafka().KafkaException):
                producer.purge()
                producer.flush(1.0)
