"""Arrow data that points outside itself, and data whose own methods raise, are refused with an Error and change
nothing.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import minidsms
from tests.long.malformed_arrow import Producer


def texts(offsets: list[int], data: bytes = b"ab") -> Any:
    """An array of texts with the given offsets, whatever they are."""
    written = pa.py_buffer(np.array(offsets, np.int32).tobytes())
    return pa.Array.from_buffers(pa.string(), len(offsets) - 1, [None, written, pa.py_buffer(data)])


OUTSIDE = texts([0, 2**30, 2])


@pytest.fixture
def db() -> minidsms.Connection:
    connection = minidsms.connect()
    connection.execute("CREATE STREAM S (t TEXT); CREATE RELATION R (t TEXT)")
    return connection


@pytest.mark.parametrize("array", [OUTSIDE, texts([0, -5, 2]), texts([0, 1, 0, 2])])
def test_a_pushed_text_whose_offsets_point_outside_is_refused(db: minidsms.Connection, array: Any) -> None:
    for name in ("S", "R"):
        for data in ({"t": array}, pa.table({"t": array}), {"t": pa.chunked_array([array])}):
            with pytest.raises(minidsms.DataError, match="cannot be read"):
                db.push(name, data, ts=1)
        assert db.stream_input(name).counters.accepted == 0


def test_a_code_beyond_its_dictionary_is_refused(db: minidsms.Connection) -> None:
    coded = pa.DictionaryArray.from_arrays(pa.array([0, 7]), pa.array(["a", "b"]), safe=False)
    with pytest.raises(minidsms.DataError, match="cannot be read"):
        db.push("S", {"t": coded}, ts=1)


def test_a_malformed_table_of_another_library_is_refused(db: minidsms.Connection) -> None:
    with pytest.raises(minidsms.DataError, match="cannot be read"):
        db.push("S", Producer(pa.table({"t": texts([0, 5, 2])})), ts=1)


@pytest.mark.parametrize("given", [pa.table({"t": OUTSIDE}), [pa.table({"t": OUTSIDE})]])
def test_a_malformed_table_is_refused_as_a_source(db: minidsms.Connection, given: Any) -> None:
    with pytest.raises(minidsms.Error, match="out of bounds"):
        db.feed("R", given)
        db.run()


def test_offsets_of_lists_without_rows_are_not_followed() -> None:
    """No rows, no value: Arrow calls it valid, wherever its only offset points."""
    anywhere = pa.py_buffer(np.array([2**40], np.int64).tobytes())
    inner = pa.Array.from_buffers(pa.list_(pa.int64()), 0, [None, anywhere], children=[pa.array([1])])
    lists = pa.Array.from_buffers(pa.large_list(inner.type), 0, [None, anywhere], children=[inner])
    db = minidsms.connect()
    db.execute("CREATE RELATION R (v INTEGER[])")
    db.feed("R", pa.table({"v": lists}))
    db.run()
    assert db.push("R", {"v": lists}, ts=1) == 0


def test_an_extension_of_an_extension_is_read_or_refused_and_ends_nothing(db: minidsms.Connection) -> None:
    array: Any = pa.array(["a"])
    for _ in range(2):
        array = pa.ExtensionArray.from_storage(pa.opaque(array.type, "a type", "somebody"), array)
    with pytest.raises(minidsms.DataError):
        db.push("S", {"t": array}, ts=1)


def test_views_of_texts_beside_a_null_timestamp_are_read() -> None:
    db = minidsms.connect()
    db.execute("CREATE STREAM S (at TIMESTAMP, t TEXT) TIMESTAMP BY at")
    query = db.query("SELECT t FROM S")
    db.feed("S", pa.table({"at": pa.array([1, None, 3]), "t": pa.array(["a", "b", "c"], pa.string_view())}))
    db.run()
    assert [change.row for change in query.fetch()] == [("a",), ("c",)]
    assert db.stream_input("S").counters.rejected == 1


@pytest.mark.parametrize("form", ["file", "stream"])
def test_an_arrow_file_whose_offsets_point_outside_is_refused(form: str, tmp_path: Any) -> None:
    path = tmp_path / "x.arrow"
    schema = pa.schema([("t", pa.string())])
    with (pa.ipc.new_file if form == "file" else pa.ipc.new_stream)(path, schema) as writer:
        writer.write_batch(pa.record_batch([pa.array(["a" * 40, "b" * 40])], schema=schema))
    content = path.read_bytes()
    offsets = np.array([0, 40, 80], np.int32).tobytes()
    assert content.count(offsets) == 1
    path.write_bytes(content.replace(offsets, np.array([0, 2**30, 80], np.int32).tobytes()))
    db = minidsms.connect()
    db.execute(f"CREATE RELATION R (t TEXT) FROM '{path}'")
    with pytest.raises(minidsms.Error, match=r"cannot read .*out of bounds"):
        db.run()


def test_a_damaged_archive_is_an_error_of_the_replay(db: minidsms.Connection, tmp_path: Any) -> None:
    db.archive("S", str(tmp_path))
    db.push("S", [("a",), ("b",)], ts=1)
    db.close()
    (file,) = (tmp_path / "S").rglob("*.parquet")
    file.write_bytes(file.read_bytes()[:-10])
    again = minidsms.connect()
    again.execute("CREATE STREAM S (t TEXT)")
    with pytest.raises(minidsms.Error, match="cannot read"):
        again.replay(str(tmp_path))


class Raising:
    """A column whose every way of being read raises."""

    def __init__(self, *ways: str) -> None:
        self.ways = ways

    def __getattr__(self, name: str) -> Any:
        if name in self.__dict__.get("ways", ()):
            raise RuntimeError("out of order")
        raise AttributeError(name)

    def __iter__(self) -> Iterator[Any]:
        raise RuntimeError("out of order")


class RaisingArray:
    """A column whose array cannot be made."""

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("out of order")

    def __len__(self) -> int:
        return 1


class RaisingDict(dict[str, Any]):
    """Columns that cannot be looked at."""

    def values(self) -> Any:
        raise RuntimeError("out of order")


UNREADABLE: list[Any] = [
    {"t": Raising()},
    {"t": Raising("__arrow_c_stream__")},
    {"t": RaisingArray()},
    {"t": [RaisingArray()]},
    RaisingDict(t=["a"]),
    Raising("__arrow_c_stream__"),
    Producer(RuntimeError("out of order")),
    {"t": Producer(RecursionError("out of order"))},
]


@pytest.mark.parametrize("data", UNREADABLE)
def test_what_the_methods_of_data_raise_is_a_data_error(db: minidsms.Connection, data: Any) -> None:
    for name in ("S", "R"):
        with pytest.raises(minidsms.DataError):
            db.push(name, data, ts=1)
        assert db.stream_input(name).counters.accepted == 0


def test_what_the_methods_of_instants_and_signs_raise_is_a_data_error(db: minidsms.Connection) -> None:
    with pytest.raises(minidsms.DataError, match="out of order"):
        db.push("S", [("a",)], ts=RaisingArray())
    with pytest.raises(minidsms.DataError, match="out of order"):
        db.push("R", [("a",)], ts=1, sign=RaisingArray())


@pytest.mark.parametrize("data", [RaisingDict(t=["a"]), {"t": Raising("__arrow_c_stream__")}])
def test_the_error_keeps_the_exception_as_its_cause(db: minidsms.Connection, data: Any) -> None:
    with pytest.raises(minidsms.DataError) as caught:
        db.push("S", data, ts=1)
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_an_interrupt_while_data_is_read_stays_an_interrupt(db: minidsms.Connection) -> None:
    class Interrupted:
        def __iter__(self) -> Iterator[Any]:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        db.push("S", {"t": Interrupted()}, ts=1)
    assert db.push("S", ("a",), ts=1) == 1


def test_what_an_iterable_of_tables_raises_is_an_error_of_the_source(db: minidsms.Connection) -> None:
    def tables() -> Iterator[Any]:
        yield pa.table({"t": ["a"]})
        raise ZeroDivisionError("no more")

    db.feed("R", tables())
    with pytest.raises(minidsms.Error, match="the source of R cannot be read further: ZeroDivisionError: no more"):
        db.run()


def test_a_clock_that_raises_is_an_error() -> None:
    def clock() -> int:
        raise OSError("no time")

    db = minidsms.connect(clock=clock)
    db.execute("CREATE STREAM S (k INTEGER)")
    with pytest.raises(minidsms.DataError, match="clock raised OSError: no time"):
        db.push("S", (1,))


def test_random_malformed_data_is_never_believed() -> None:
    """In a process of its own: a wild read would end it."""
    command = [sys.executable, "-X", "faulthandler", "-m", "tests.long.malformed_arrow", "--cases", "300"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
