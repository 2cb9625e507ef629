"""Messages that are neither JSON nor CSV: Avro and Protobuf, as lines of JSON.

Invariant: a message gives one line, whatever it holds; what cannot be decoded gives one that is no JSON and says why,
so that it is counted and kept like any other row that cannot be read.
"""

from __future__ import annotations

import base64
import io
import json
import math
from collections.abc import Callable, Mapping, MutableSequence
from typing import Any

from minidsms.cql.errors import Error, quoted, shown
from minidsms.extras import library
from minidsms.sources.files import content
from minidsms.sources.options import OptionError, Options

MESSAGE_FORMATS = ("avro", "protobuf")
_HEAD = 5
"""Bytes that a schema registry's clients put before a message: 0, and the number of the schema."""


class Messages:
    """How the messages of a topic are read. decode: gives the record of a message, by name; it may raise.

    learned: of each field an empty text where it is written as a text, else 0, as `LineRows.learn` takes it.
    """

    def __init__(self, format: str, decode: Callable[[bytes], Mapping[str, Any]], learned: dict[str, Any]) -> None:
        self._format, self._decode = format, decode
        self.learned = learned

    def line(self, message: bytes) -> bytes:
        """The message as a line of JSON, without its end."""
        try:
            return json.dumps(plain(self._decode(message))).encode()
        except Exception as error:
            reason = f"no {self._format}: {type(error).__name__}: {error}"[:300]
            return reason.encode("utf-8", "replace").replace(b"\n", b" ")


def messages(format: str, options: Options) -> Messages:
    """How messages of a format are read. Error where the schema is not there, or the library."""
    has_head = options.one_of("framing", ("none", "confluent"), "none") == "confluent"
    return avro(options, has_head) if format == "avro" else protobuf(options, has_head)


def avro(options: Options, has_head: bool) -> Messages:
    """Of the schema in a file, which must be the one they were written with."""
    fastavro = library("fastavro", "FORMAT avro", "avro")
    path = _needed(options, "schema", "a file with the schema of the messages, schema = 'orders.avsc'")
    try:
        schema = fastavro.schema.parse_schema(json.loads(content(path)))
        fields = schema["fields"]
    except Error:
        raise
    except Exception as error:
        raise Error(f"{shown(path)}: no Avro schema of a record: {type(error).__name__}: {error}") from None
    start = _HEAD if has_head else 0

    def decode(message: bytes) -> Mapping[str, Any]:
        rest = io.BytesIO(_without_head(message, has_head)[start:])
        record: Mapping[str, Any] = fastavro.schemaless_reader(rest, schema)
        if rest.read(1):
            raise ValueError("bytes are left over: it was written with another schema")
        return record

    return Messages("Avro", decode, {field["name"]: _kind(field["type"]) for field in fields})


def _kind(type_: Any) -> Any:
    """How values of an Avro type are written: "" as texts, 0 otherwise."""
    if isinstance(type_, list):
        return next((_kind(each) for each in type_ if each != "null"), 0)
    if isinstance(type_, dict):
        return "" if "logicalType" in type_ else _kind(type_["type"])
    return "" if type_ in ("string", "bytes", "enum", "fixed") else 0


def protobuf(options: Options, has_head: bool) -> Messages:
    """Of a message type in a file of descriptors, as `protoc --include_imports --descriptor_set_out` writes it."""
    needs = "FORMAT protobuf", "protobuf"
    descriptor_pb2 = library("google.protobuf.descriptor_pb2", *needs)
    descriptor_pool = library("google.protobuf.descriptor_pool", *needs)
    message_factory = library("google.protobuf.message_factory", *needs)
    path = _needed(options, "descriptors", "what protoc --include_imports --descriptor_set_out=orders.desc has written")
    name = _needed(options, "message", "the type of the messages, message = 'shop.Order'")
    pool = descriptor_pool.DescriptorPool()
    try:
        for file in descriptor_pb2.FileDescriptorSet.FromString(content(path)).file:
            pool.Add(file)
        descriptor = pool.FindMessageTypeByName(name)
    except KeyError:
        raise OptionError("message", f"{shown(path)} has no message {quoted(name)}") from None
    except Error:
        raise
    except Exception as error:
        raise Error(f"{shown(path)}: no descriptors of protoc: {type(error).__name__}: {error}") from None
    kind: Any = message_factory.GetMessageClass(descriptor)

    def decode(message: bytes) -> Mapping[str, Any]:
        content = _without_head(message, has_head)
        body = content[_behind_indexes(content, _HEAD) :] if has_head else content
        record: Mapping[str, Any] = _fields(kind.FromString(body))
        return record

    texts = {field.name: _kind_of_field(field) for field in descriptor.fields}
    return Messages("Protobuf", decode, texts)


_TIMES = ("google.protobuf.Timestamp", "google.protobuf.Duration")


def _kind_of_field(field: Any) -> Any:
    is_message = field.message_type is not None and field.message_type.full_name in _TIMES
    return "" if is_message or field.enum_type is not None or field.cpp_type == field.CPPTYPE_STRING else 0


def _fields(message: Any) -> Any:
    """A message by name; what is not there, where that can be told, is None."""
    kind = message.DESCRIPTOR.full_name
    if kind in _TIMES:
        return message.ToJsonString()
    if kind.startswith("google.protobuf.") and kind.endswith("Value") and len(message.DESCRIPTOR.fields) == 1:
        return message.value  # of google/protobuf/wrappers.proto
    found: dict[str, Any] = {}
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            of_messages = field.message_type.fields_by_name["value"].message_type is not None
            found[field.name] = {str(k): _fields(v) if of_messages else v for k, v in value.items()}
        elif field.has_presence and not message.HasField(field.name):
            found[field.name] = None
        else:
            found[field.name] = _values(field, value)
    return found


def _values(field: Any, value: Any) -> Any:
    """The value, or the list of values, of a field; enumerations by name."""
    names = {} if field.enum_type is None else {k: v.name for k, v in field.enum_type.values_by_number.items()}
    read = _fields if field.message_type is not None else (lambda v: names.get(v, v))
    return [read(each) for each in value] if isinstance(value, MutableSequence) else read(value)


def _behind_indexes(content: bytes, at: int) -> int:
    """Behind the place of the message's type in its file, which a registry's clients write before a Protobuf message:
    how many numbers, and these.
    """
    count, at = _varint(content, at)
    for _ in range(count >> 1):
        _, at = _varint(content, at)
    return at


def _varint(content: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (content[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if content[at - 1] < 0x80:
            return value, at


def _without_head(message: bytes, has_head: bool) -> bytes:
    """The message. ValueError where it has not the head that it is to have."""
    if has_head and (len(message) < _HEAD or message[0]):
        raise ValueError("it does not begin with the number of a schema")
    return message


def plain(value: Any) -> Any:
    """A value of Python as JSON has it: times as ISO texts, bytes in base 64, decimals as texts, NaN as null."""
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, float) and math.isnan(value):
        return None
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)


def _needed(options: Options, name: str, what: str) -> str:
    given = options.text(name, None)
    if given is None:
        raise OptionError(name, f'the option "{name}" is missing', f"it is {what}")
    return given
