"""Scripts as the STREAM prototype took them, and what they write, worked out by hand from the semantics.

Order inside an instant carries no meaning (docs/semantics, "Comparing answers").
"""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest

from minidsms.shell.main import main

SCRIPTS = Path(__file__).parent / "stream_scripts"
NAMES = sorted(path.stem for path in SCRIPTS.glob("*.txt"))


def by_instant(text: str) -> list[tuple[str, Counter[str]]]:
    """The lines of an answer, instant by instant in the order of the file."""
    found: list[tuple[str, Counter[str]]] = []
    for line in text.splitlines():
        instant = line.split("]", 1)[0] + "]"
        if not found or found[-1][0] != instant:
            found.append((instant, Counter()))
        found[-1][1][line] += 1
    return found


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current directory with the data, and a place for the answers."""
    shutil.copytree(SCRIPTS / "data", tmp_path / "data")
    (tmp_path / "out").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", NAMES)
def test_a_script_writes_what_it_says(name: str, folder: Path) -> None:
    assert main(["run", str(SCRIPTS / f"{name}.txt"), "--quiet"]) == 0
    expected = sorted(path.name for path in (SCRIPTS / "expected").glob(f"{name}-*.log"))
    assert sorted(path.name for path in (folder / "out").iterdir()) == expected
    for file in expected:
        written = (folder / "out" / file).read_text()
        assert by_instant(written) == by_instant((SCRIPTS / "expected" / file).read_text()), f"{file}:\n{written}"


def test_a_vtable_that_says_stream_over_a_relation_is_warned_of(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", str(SCRIPTS / "views.txt")]) == 0
    told = capsys.readouterr().err
    assert "the vtable V says stream, but its query yields a relation" in told
    assert "vtable W" not in told


def test_a_chain_of_forty_views_runs(folder: Path) -> None:
    lines = ["table : register stream S (A integer, B float, C byte, D char(4));", "source : data/S.dat"]
    before = "S"
    for i in range(40):
        lines += [f"vquery : select A + 1 from {before};", f"vtable : register stream V{i} (A integer);"]
        before = f"V{i}"
    lines += [f"query : select A from {before};", "dest : out/chain.log"]
    (folder / "chain.txt").write_text("\n".join(lines))
    assert main(["run", "chain.txt", "--quiet"]) == 0
    written = (folder / "out/chain.log").read_text().split()
    assert written == ["[1]:+:41", "[1]:+:42", "[2]:+:41", "[4]:+:43", "[5]:+:41", "[7]:+:42"]


def test_a_chain_of_forty_windowed_views_runs(folder: Path) -> None:
    lines = ["table : register stream S (A integer, B float, C byte, D char(4));", "source : data/S.dat"]
    before = "S"
    for i in range(40):
        lines += [f"vquery : Istream(select A, B from {before} [Rows {i + 1}]);"]
        lines += [f"vtable : register stream V{i} (A integer, B float);"]
        before = f"V{i}"
    lines += [f"query : select count(*), max(B) from {before} [Range 2 Seconds];", "dest : out/chain.log"]
    (folder / "chain.txt").write_text("\n".join(lines))
    assert main(["run", "chain.txt", "--quiet"]) == 0
    # The first window has room for one row: of the two that come at instant 1 the later one stays.
    expected = {
        "[1]:+:1, 2.5",
        "[2]:-:1, 2.5",
        "[2]:+:2, 3.5",
        "[3]:-:2, 3.5",
        "[3]:+:1, 3.5",
        "[4]:-:1, 3.5",
        "[4]:+:1, 0.25",
        "[5]:-:1, 0.25",
        "[5]:+:2, 10",
        "[6]:-:2, 10",
        "[6]:+:1, 10",
        "[7]:-:1, 10",
        "[7]:+:1, 1e+06",
    }
    assert set((folder / "out/chain.log").read_text().splitlines()) == expected


def test_a_query_without_a_dest_is_printed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = """table: register stream S (A integer, B float, C byte, D char(4));
source: data/S.dat
query: select D from S;"""
    (folder / "script").write_text(text)
    assert main(["run", "script", "--until", "2"]) == 0
    assert capsys.readouterr().out == "[1]:+:aa\n[1]:+:bb\n[2]:+:cc\n"


def test_a_table_without_a_source_is_empty_and_holds_nothing_up(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = """table : register stream S (A integer, B float, C byte, D char(4));
source : data/S.dat
table : register stream U (A integer);
query : (select A from S [Now]) union (select A from U [Now]);
"""
    (folder / "script").write_text(text)
    assert main(["run", "script", "--until", "1"]) == 0
    out, err = capsys.readouterr()
    assert sorted(out.split()) == ["[1]:+:1", "[1]:+:2"]
    assert "nothing feeds U" in err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("query : select A from Nowhere;", "Nowhere"),
        ("table : register stream S (A integer);\nsource : data/none.dat\nquery : select A from S;", "data/none.dat"),
        ("table : register stream S (A integer);\nsource : data/S.dat\nquery : select A from S;", "types"),
        ("table : register stream S (A integer)\nquery : select A from S;", "does not end"),
    ],
)
def test_an_error_in_a_script_is_told_and_writes_nothing(
    text: str, message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "script").write_text(text + "\ndest : out/x.log\n")
    assert main(["run", "script"]) == 1
    err = capsys.readouterr().err
    assert err.startswith("error: ") and message in err
    assert list((folder / "out").iterdir()) == []
