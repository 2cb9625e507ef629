"""Kept machine code is dropped when a constant it was compiled with may have changed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from minidsms.kernels.stale_code import drop_stale_code


@pytest.fixture
def kernels(tmp_path: Path) -> Path:
    folder = tmp_path / "kernels"
    (folder / "__pycache__").mkdir(parents=True)
    (folder / "layout.py").write_text("LO, HI = range(2)\n")
    (folder / "walk.py").write_text("from minidsms.kernels.layout import LO\n")
    (folder / "alone.py").write_text("x = 1\n")
    (tmp_path / "elements.py").write_text("NEVER = 1\n")
    drop_stale_code(folder, [tmp_path / "elements.py"])
    for stem in ("layout", "walk", "alone"):
        (folder / "__pycache__" / f"{stem}.f-1.py311.nbi").write_bytes(b"")
    return folder


def _kept(kernels: Path) -> set[str]:
    return {path.name.partition(".")[0] for path in (kernels / "__pycache__").glob("*.nbi")}


def _drop(kernels: Path) -> list[str]:
    return drop_stale_code(kernels, [kernels.parent / "elements.py"])


def test_nothing_is_dropped_while_nothing_changes(kernels: Path) -> None:
    assert _drop(kernels) == []
    assert _kept(kernels) == {"layout", "walk", "alone"}


def test_code_that_took_constants_from_a_changed_file_is_dropped(kernels: Path) -> None:
    (kernels / "layout.py").write_text("HI, LO, MASK = range(3)\n")
    assert _drop(kernels) == ["walk.py"]
    assert _kept(kernels) == {"layout", "alone"}
    assert _drop(kernels) == []


def test_a_file_of_the_same_size_and_another_time_has_changed(kernels: Path) -> None:
    os.utime(kernels / "layout.py", ns=(1, 1))
    assert _drop(kernels) == ["walk.py"]


def test_constants_from_outside_the_folder_count_too(kernels: Path) -> None:
    (kernels / "alone.py").write_text("from minidsms.elements import NEVER\n")
    _drop(kernels)
    (kernels / "__pycache__" / "alone.f-1.py311.nbi").write_bytes(b"")
    (kernels.parent / "elements.py").write_text("NEVER = 222\n")
    assert _drop(kernels) == ["alone.py"]


def test_code_whose_sources_were_never_recorded_is_dropped(kernels: Path) -> None:
    (kernels / "__pycache__" / "sources.json").unlink()
    assert _drop(kernels) == ["walk.py"]
