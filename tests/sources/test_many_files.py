"""Files that a pattern names, and compressed ones."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import csv

import minidsms

PACKED: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": lambda data: bytes(pa.compress(data, "zstd", asbytes=True)),
}


def read(path: Path) -> tuple[list[Any], Any]:
    """The rows of the files, and the reasons why others are none."""
    with minidsms.connect() as db:
        db.execute(f"CREATE STREAM S (at TIMESTAMP, v INTEGER) TIMESTAMP BY at FROM '{path}'")
        q = db.query("SELECT v FROM S")
        db.run()
        return [(ts, *row) for ts, _, row in q.fetch()], [reason for _, reason in db.stream_input("S").rejected]


def test_files_of_a_pattern_are_read_in_the_order_of_their_names(tmp_path: Path) -> None:
    (tmp_path / "b.csv").write_text("v,at\n3,30\nx,31\n")
    (tmp_path / "a.csv").write_text("at,v\n10,1\n20,2\n")
    (tmp_path / "c.jsonl").write_text('{"at": 40, "v": 4}\n')
    (tmp_path / "d.csv.gz").write_bytes(gzip.compress(b"at,v\n50,5\ny,6\n"))
    rows, reasons = read(tmp_path / "[a-d].*")
    assert rows == [(10, 1), (20, 2), (30, 3), (40, 4), (50, 5)]
    assert len(reasons) == 2 and "b.csv, line 3" in reasons[0] and "d.csv.gz, line 3" in reasons[1]


def test_a_pattern_that_names_nothing_is_told(tmp_path: Path) -> None:
    with pytest.raises(minidsms.Error, match="no file fits"):
        read(tmp_path / "*.csv")


def test_a_folder_is_all_files_in_it_but_those_that_are_hidden(tmp_path: Path) -> None:
    (tmp_path / "in" / "2026").mkdir(parents=True)
    for name, row in {"a.csv": "1,1", "2026/b.csv": "0,0", ".c.csv": "9,9", "_d.csv": "9,9"}.items():
        (tmp_path / "in" / name).write_text(f"at,v\n{row}\n")
    assert read(tmp_path / "in")[0] == [(0, 0), (1, 1)]
    assert read(tmp_path / "**" / "[ab].csv")[0] == [(0, 0), (1, 1)]


@pytest.mark.parametrize("ending", ["csv", "arrow"])
@pytest.mark.parametrize("added", [None, "0.csv", "c.csv"])
def test_a_folder_is_gone_on_with_in_the_file_that_was_read(tmp_path: Path, ending: str, added: str | None) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for name, values in {"a": [1, 2], "b": [3, 4, 5]}.items():
        table = pa.table({"at": values, "v": values})
        if ending == "csv":
            csv.write_csv(table, folder / f"{name}.csv")
        else:
            with pa.ipc.new_file(folder / f"{name}.arrow", table.schema) as file:
                file.write(table)
    seen: list[Any] = []
    for until in (3, None):
        with minidsms.connect(tmp_path / "db") as db:
            declared = f"CREATE STREAM IF NOT EXISTS S (at TIMESTAMP, v INTEGER) TIMESTAMP BY at FROM '{folder}'"
            db.execute(f"{declared}; CREATE QUERY IF NOT EXISTS q AS SELECT v FROM S")
            if until is None and added == "0.csv":
                assert "there are other files now" in db.warnings[0]
                with pytest.raises(minidsms.Error, match="there are other files now"):
                    db.run()
                return
            db.run(until)
            seen += [row[0] for _, _, row in db.queries["q"].fetch()]
        if added is not None:
            (folder / added).write_text("at,v\n6,6\n")
    assert seen == [1, 2, 3, 4, 5] + ([] if added is None else [6])


def test_a_file_whose_name_looks_like_a_pattern_is_itself(tmp_path: Path) -> None:
    (tmp_path / "a[1].csv").write_text("at,v\n10,1\n")
    (tmp_path / "a1.csv").write_text("at,v\n10,2\n")
    assert read(tmp_path / "a[1].csv")[0] == [(10, 1)]


@pytest.mark.parametrize("ending", PACKED)
def test_a_compressed_file_is_read_by_its_name_and_a_broken_one_is_told(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"a.csv{ending}"
    packed = PACKED[ending](b"at,v\n" + b"".join(b"%d,%d\n" % (i, i) for i in range(5000)))
    path.write_bytes(packed)
    assert len(read(path)[0]) == 5000
    path.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(minidsms.Error, match="cannot read"):
        read(path)


@pytest.mark.parametrize("pattern", ["", "/*.csv", "/**/*"])
def test_in_safe_mode_no_file_of_a_pattern_or_folder_may_be_outside(tmp_path: Path, pattern: str) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "secret.csv").write_text("at,v\n1,1\n")
    (inside / "a.csv").symlink_to(tmp_path / "secret.csv")
    with minidsms.connect(safe=True, allowed_paths=[inside]) as db, pytest.raises(minidsms.Error, match="safe mode"):
        db.execute(f"CREATE STREAM S (at TIMESTAMP, v INTEGER) TIMESTAMP BY at FROM '{inside}{pattern}'")
