"""The examples of the docs run, and say what they say.

In Markdown files: ```cqlt blocks are golden scripts; ```pycon blocks are doctests, those of a page in one session;
```cql blocks are CQL that parses, ```stream blocks scripts of STREAM that do; a ```python block is a program whose
output is the ```text block behind it; ```sh blocks are commands that there are. ```console blocks are run by
tests/shell/test_page.py, ```py blocks by tests/spark. There are no other examples. Links lead somewhere.
"""

from __future__ import annotations

import doctest
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest

from minidsms.cql.parser import parse
from minidsms.cql.stream_script import parse_script
from tests.golden_scripts import check, parse_scripts, rewritten

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


class Block(NamedTuple):
    """A fenced block: its language, its text, and the line it begins at."""

    language: str
    text: str
    line: int


def blocks(page: Path, *languages: str) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    found = [Block(m[1], m[2], text.count("\n", 0, m.start(2)) + 1) for m in FENCE.finditer(text)]
    return [block for block in found if not languages or block.language in languages]


def pages_with(language: str) -> list[Path]:
    return [page for page in PAGES if blocks(page, language)]


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", pages_with("cqlt"), ids=name)
def test_the_scripts_of_the_page_come_out_as_written(page: Path, rewrite: bool) -> None:
    if rewrite:
        text = page.read_text(encoding="utf-8")
        renewed = FENCE.sub(lambda m: f"```cqlt\n{rewritten(m[2])}```" if m[1] == "cqlt" else m[0], text)
        page.write_text(renewed, encoding="utf-8")
        return
    for block in blocks(page, "cqlt"):
        for script in parse_scripts(block.text, f"{name(page)}, the block at line {block.line}"):
            assert check(script) > 0, f"{script.title} states nothing"


@pytest.mark.parametrize("page", pages_with("pycon"), ids=name)
def test_the_session_of_the_page_goes_as_written(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = "\n".join(block.text for block in blocks(page, "pycon"))
    session = doctest.DocTestParser().get_doctest(text, {}, name(page), name(page), 0)
    failed, tried = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(session)
    assert tried > 0
    assert failed == 0, capsys.readouterr().out


@pytest.mark.parametrize("page", pages_with("python"), ids=name)
def test_the_programs_of_the_page_print_what_is_shown(page: Path, tmp_path: Path) -> None:
    found = blocks(page, "python", "text")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    for program, shown in zip(found, [*found[1:], Block("none", "", 0)]):
        if program.language == "python":
            file = tmp_path / "program.py"
            file.write_text(program.text, encoding="utf-8")
            command = [sys.executable, str(file)]
            ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240)
            assert ran.returncode == 0, ran.stderr
            if shown.language == "text":
                assert ran.stdout == shown.text


@pytest.mark.parametrize("page", pages_with("cql"), ids=name)
def test_the_cql_of_the_page_parses(page: Path) -> None:
    for block in blocks(page, "cql"):
        assert parse(block.text), f"{name(page)}, line {block.line}: no statement"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_the_links_of_the_page_lead_somewhere(page: Path) -> None:
    targets = [target for target in LINK.findall(page.read_text(encoding="utf-8")) if "://" not in target]
    missing = [target for target in targets if not (page.parent / target).is_file()]
    assert missing == []  # the site holds copies of files, and shows no folders


@pytest.mark.parametrize("page", pages_with("stream"), ids=name)
def test_the_stream_scripts_of_the_page_parse(page: Path) -> None:
    for block in blocks(page, "stream"):
        assert parse_script(block.text)


@pytest.mark.parametrize("page", pages_with("sh"), ids=name)
def test_the_commands_of_the_page_exist(page: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    made = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    for block in blocks(page, "sh"):
        for command in block.text.splitlines():
            words = shlex.split(command, comments=True)
            match words:
                case ["make", target]:
                    assert target in made
                case ["pip", "install", what]:
                    named = re.fullmatch(r"(?:minidsms|\.)(?:\[(.+)\])?", what)
                    assert named is not None and named[1] in (None, *project["optional-dependencies"])
                case _:
                    assert words[0] in project["scripts"], command


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_example_of_the_page_is_of_a_kind_that_runs(page: Path) -> None:
    known = {"cqlt", "pycon", "cql", "python", "py", "text", "sh", "stream", "console"}
    fences = re.findall(r"^ *```(.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert set(fences[::2]) <= known and set(fences[1::2]) <= {""}


def test_pages_of_results_hold_no_examples() -> None:
    results = [*ROOT.glob("experiments/results/*.md"), *ROOT.glob("benchmarks/*.md")]
    assert results and not [name(page) for page in results if "```" in page.read_text(encoding="utf-8")]
