"""What reading from and writing to Kafka have in common: addresses, the client library, errors.

`kafka://host:port/topic`; several brokers stand apart by commas. The client is the extra `minidsms[kafka]`.
"""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from minidsms.cql.errors import Error
from minidsms.extras import library
from minidsms.sources.addresses import check_loopback

_BROKER = r"(?:[^/,:\[\]]+|\[[0-9a-fA-F:]+\]):[0-9]{1,5}"
_ADDRESS = re.compile(rf"kafka://({_BROKER}(?:,{_BROKER})*)/([\w.-]{{1,249}})", re.IGNORECASE)
_log = logging.getLogger("minidsms.sources.kafka")
ANSWER_S = 10.0
"""How long a broker may take to say which topics there are."""


@dataclass(frozen=True)
class KafkaAddress:
    """brokers: host:port, apart by commas."""

    brokers: str
    topic: str


def kafka_address(path: str, allow_remote: bool) -> KafkaAddress:
    """Read an address. Error where it is none, or leads away from this machine without leave."""
    match = _ADDRESS.fullmatch(path)
    if match is None:
        raise Error(f"{path!r} is no address of a topic\nhelp: write kafka://127.0.0.1:9092/topic")
    for broker in match[1].split(","):
        check_loopback(broker.rpartition(":")[0].strip("[]"), path, allow_remote)
    return KafkaAddress(match[1], match[2])


def kafka() -> Any:
    """The client library. Error where it is not installed."""
    return library("confluent_kafka", "kafka://", "kafka")


def configuration(address: KafkaAddress, given: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """The client's configuration. given: options `kafka.*`, which come last: they may set anything."""
    words = {True: "true", False: "false"}
    own = {name: words[value] if isinstance(value, bool) else value for name, value in given.items()}
    return {"bootstrap.servers": address.brokers, "logger": _log, **more, **own}


@contextlib.contextmanager
def asking(address: KafkaAddress) -> Iterator[None]:
    """What the client refuses is an Error."""
    try:
        yield
    except kafka().KafkaException as error:
        raise Error(f"Kafka at {address.brokers}: {reason(error)}") from None


def partitions(client: Any, address: KafkaAddress) -> list[int]:
    """The partitions of the topic. Error where no broker answers, or there is no such topic."""
    library = kafka()
    try:
        topic = client.list_topics(address.topic, timeout=ANSWER_S).topics[address.topic]
    except library.KafkaException as error:
        why = f"no answer from Kafka at {address.brokers}: {reason(error)}"
        raise Error(f"{why}\nhelp: is the broker running?") from None
    if topic.error is not None or not topic.partitions:
        why = "it has no partitions" if topic.error is None else topic.error.str()
        raise Error(f"cannot use topic {address.topic!r} at {address.brokers}: {why}\nhelp: create the topic first")
    return sorted(topic.partitions)


def reason(error: Any) -> str:
    """What the library's error says."""
    inner = error.args[0] if getattr(error, "args", None) else error
    return str(inner.str() if hasattr(inner, "str") else inner)[:200]
