"""What `dir` shows of a connection and a query is what docs/python-api.md lists, and is there."""

from __future__ import annotations

import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import minidsms

PAGE = Path(__file__).parent.parent / "docs" / "python-api.md"


def listed(section: str) -> set[str]:
    """The names in the first column of a section's table."""
    part = PAGE.read_text().split(f"\n## {section}\n")[1].split("\n```")[0].split("\n### ")[0]
    cells = [line.split("|")[1] for line in part.splitlines() if line.startswith("| `")]
    return {name for cell in cells for name in re.findall(r"`(\w+)(?:\(|`)", cell)}


@pytest.mark.parametrize("section", ["Connection", "Query"])
def test_dir_shows_what_the_page_lists(section: str) -> None:
    db = minidsms.connect()
    db.execute("CREATE STREAM S (a INTEGER)")
    shown = db if section == "Connection" else db.query("SELECT a FROM S")
    assert set(dir(shown)) == listed(section)
    assert all(hasattr(type(shown), name) or name in vars(shown) for name in dir(shown))


def test_show_views_shows_the_query_alone() -> None:
    db = minidsms.connect()
    db.execute("CREATE STREAM S (a INTEGER); CREATE VIEW V (b) AS SELECT a\nFROM S; CREATE STREAM T (a INTEGER)")
    assert db.execute("SHOW VIEWS").rows == (("V", "SELECT a FROM S"),)


def test_every_module_can_be_imported() -> None:
    """Those without examples no doctest imports."""
    names = {found.name for found in pkgutil.walk_packages(minidsms.__path__, "minidsms.")}
    modules = [importlib.import_module(name) for name in sorted(names) if not name.endswith(".__main__")]
    assert len(modules) > 500


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("fetchall", r"fetch\(\).*snapshot\(\)"),
        ("fetchdf", r"df\(\)"),
        ("subscribe", r"on_change\(fn\)"),
        ("nothing", "'nothing'$"),
    ],
)
def test_the_names_of_other_systems_lead_to_those_of_this_one(name: str, hint: str) -> None:
    db = minidsms.connect()
    db.execute("CREATE STREAM S (k INTEGER)")
    present = db.query("SELECT k FROM S [NOW]").snapshot()
    for answer in (db.query("SELECT k FROM S"), db.execute("SELECT 1"), present):
        with pytest.raises(AttributeError, match=hint):
            getattr(answer, name)
