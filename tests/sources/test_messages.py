"""Messages of Kafka in Avro and Protobuf: what a stream makes of them, and what of those that are none."""

from __future__ import annotations

import datetime as dt
import io
import json
import struct
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import minidsms
from minidsms.cql.errors import Error
from tests.sources.test_kafka import broker as broker
from tests.sources.test_kafka import produce
from tests.sources.test_kafka import topic as topic

COLUMNS = "id INTEGER, item TEXT, price FLOAT, paid BOOLEAN, at TIMESTAMP, state TEXT, tags TEXT[]"
AT = dt.datetime(2026, 1, 1, 10, 0, 1, tzinfo=dt.UTC)
ORDERS: list[dict[str, Any]] = [
    {"id": 2**60, "item": 'tea\n"1"', "price": 1.5, "paid": True, "at": None, "state": "NEW", "tags": ["a", "b"]},
    {"id": -1, "item": None, "price": float("nan"), "paid": False, "at": AT, "state": "SENT", "tags": []},
]
EXPECTED = [
    (2**60, 'tea\n"1"', 1.5, True, None, "NEW", ["a", "b"]),
    (-1, None, None, False, int(AT.timestamp() * 1000), "SENT", []),
]


def rows(broker: str, topic: str, format: str, options: str) -> list[Any]:
    """What a relation holds of the topic; two messages of it are none."""
    with minidsms.connect() as db:
        source = f"'kafka://{broker}/{topic}' FORMAT {format} WITH (until_end = true, {options})"
        db.execute(f"CREATE RELATION R ({COLUMNS}) FROM {source}")
        q = db.query("SELECT * FROM R")
        db.run()
        db.advance(2**50)
        rejected = db.stream_input("R").rejected
        assert rejected.count == 2 and all(f"no {format}".lower() in text.lower() for text, _ in rejected)
        found: list[Any] = sorted(map(tuple, q.snapshot()), reverse=True)
        return found


@pytest.mark.parametrize("framing", ["none", "confluent"])
def test_messages_of_avro(broker: str, topic: str, tmp_path: Path, framing: str) -> None:
    fastavro: Any = pytest.importorskip("fastavro")
    nullable = {"item": "string", "at": {"type": "long", "logicalType": "timestamp-millis"}}
    kinds = {"id": "long", "price": "double", "paid": "boolean", "tags": {"type": "array", "items": "string"}}
    state = {"type": "enum", "name": "State", "symbols": ["NEW", "SENT"]}
    fields = [{"name": name, "type": ["null", kind]} for name, kind in nullable.items()]
    fields += [{"name": name, "type": kind} for name, kind in {**kinds, "state": state}.items()]
    schema = {"type": "record", "name": "Order", "fields": fields}
    (tmp_path / "orders.avsc").write_text(json.dumps(schema))
    written = []
    for order in ORDERS:
        out = io.BytesIO(struct.pack(">bI", 0, 7) if framing == "confluent" else b"")
        out.seek(0, io.SEEK_END)
        fastavro.schemaless_writer(out, fastavro.parse_schema(schema), order)
        written.append(out.getvalue())
    produce(broker, topic, written[0], b"\xff\n", written[1] + b"x", written[1])
    options = f"schema = '{tmp_path}/orders.avsc', framing = '{framing}'"
    assert rows(broker, topic, "avro", options) == EXPECTED


@pytest.mark.parametrize("framing", ["none", "confluent"])
def test_messages_of_protobuf(broker: str, topic: str, tmp_path: Path, framing: str) -> None:
    descriptor_pb2, message_factory, timestamp_pb2 = (
        pytest.importorskip(f"google.protobuf.{name}")
        for name in ("descriptor_pb2", "message_factory", "timestamp_pb2")
    )
    of = descriptor_pb2.FieldDescriptorProto
    file: Any = descriptor_pb2.FileDescriptorProto(name="order.proto", package="shop", syntax="proto3")
    file.dependency.append("google/protobuf/timestamp.proto")
    order = file.message_type.add(name="Order")
    order.enum_type.add(name="State").value.extend(
        [descriptor_pb2.EnumValueDescriptorProto(name=name, number=i) for i, name in enumerate(("NEW", "SENT"))]
    )
    kinds = [of.TYPE_INT64, of.TYPE_STRING, of.TYPE_DOUBLE, of.TYPE_BOOL, of.TYPE_MESSAGE, of.TYPE_ENUM, of.TYPE_STRING]
    for i, (name, kind) in enumerate(zip(ORDERS[0], kinds), 1):
        label = of.LABEL_REPEATED if i == 7 else of.LABEL_OPTIONAL
        field = order.field.add(name=name, number=i, type=kind, label=label)
        if name in ("at", "state"):
            field.type_name = ".google.protobuf.Timestamp" if name == "at" else ".shop.Order.State"
        if name == "item":
            order.oneof_decl.add(name="_item")
            field.proto3_optional, field.oneof_index = True, 0
    files: Any = descriptor_pb2.FileDescriptorSet()
    timestamp_pb2.DESCRIPTOR.CopyToProto(files.file.add())
    files.file.append(file)
    (tmp_path / "orders.desc").write_bytes(files.SerializeToString())
    kind: Any = message_factory.GetMessages(files.file)["shop.Order"]
    written = []
    for given in ORDERS:
        message = kind(**{k: v for k, v in given.items() if v is not None and k not in ("at", "state")})
        message.state = ("NEW", "SENT").index(given["state"])
        if given["at"] is not None:
            message.at.FromDatetime(given["at"])
        # Of the first type of a file one byte says so.
        written.append((struct.pack(">bIb", 0, 7, 0) if framing == "confluent" else b"") + message.SerializeToString())
    produce(broker, topic, written[0], b"\xff\n", written[1][:-1], written[1])
    options = f"descriptors = '{tmp_path}/orders.desc', message = 'shop.Order', framing = '{framing}'"
    assert rows(broker, topic, "protobuf", options) == EXPECTED


@pytest.mark.parametrize(
    ("format", "options", "reason"),
    [
        ("avro", "", "schema = "),
        ("avro", "schema = 'none.avsc'", "no file"),
        ("avro", "schema = 'bad'", "no Avro schema"),
        ("protobuf", "", "descriptor_set_out"),
        ("protobuf", "descriptors = 'bad', message = 'a.B'", "no descriptors"),
        ("protobuf", "descriptors = 'empty', message = 'a.B'", "no message"),
    ],
)
def test_what_is_missing_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: str, options: str, reason: str
) -> None:
    pytest.importorskip("fastavro" if format == "avro" else "google.protobuf")
    monkeypatch.chdir(tmp_path)
    Path("bad").write_text("{}")
    Path("empty").write_bytes(b"")
    given = f"FORMAT {format} WITH ({options or 'until_end = true'})"
    with minidsms.connect() as db, pytest.raises(Error) as caught:
        db.execute(f"CREATE RELATION R (id INTEGER) FROM 'kafka://127.0.0.1:1/t' {given}")
    assert reason in str(caught.value)


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastavro", None)
    with minidsms.connect() as db:
        with pytest.raises(Error, match=r"pip install 'minidsms\[avro\]'"):
            db.execute("CREATE STREAM S (a INTEGER) FROM 'kafka://127.0.0.1:1/t' FORMAT avro WITH (schema = 'x.avsc')")
        with pytest.raises(Error, match="for the messages of kafka://"):
            db.execute("CREATE RELATION R (a INTEGER) FROM 'x.avro' FORMAT avro")


def test_values_that_json_has_not() -> None:
    from minidsms.sources.messages import plain

    found = plain({"a": Decimal("1.50"), "b": b"\x00", "c": (dt.date(2026, 1, 2), float("nan")), "d": {"e": AT}})
    assert found == {"a": "1.50", "b": "AA==", "c": ["2026-01-02", None], "d": {"e": str(AT)}}
