"""Files that a pattern names, and compressed ones."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import minidsms

PACKED: dict[str, Callable[[bytes], bytes]] = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


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


def test_in_safe_mode_no_file_of_a_pattern_may_be_outside(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "secret.csv").write_text("at,v\n1,1\n")
    (inside / "a.csv").symlink_to(tmp_path / "secret.csv")
    with minidsms.connect(safe=True, allowed_paths=[inside]) as db, pytest.raises(minidsms.Error, match="safe mode"):
        db.execute(f"CREATE STREAM S (at TIMESTAMP, v INTEGER) TIMESTAMP BY at FROM '{inside}/*.csv'")
