"""SHOW: every word that the parser takes has its table."""

from __future__ import annotations

from pathlib import Path

import pytest

import minidsms
from minidsms.answers.table import Table
from minidsms.cql.tree_builder import SHOWN


@pytest.mark.parametrize("what", SHOWN)
def test_there_is_a_table_of_everything_that_can_be_shown(what: str, tmp_path: Path) -> None:
    with minidsms.connect(str(tmp_path / "folder")) as db:
        table = db.execute(f"SHOW {what}")
        assert isinstance(table, Table) and table.columns
        assert all(len(row) == len(table.columns) for row in table)
