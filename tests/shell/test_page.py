"""docs/shell.md shows what happens.

Its ```console blocks are one session of the interactive shell: behind `cql>` what is typed, below it what appears above
the prompt, and what is drawn in place as it stands when everything fed has come. Lines behind `$` are run as they are.
`pytest --rewrite` fills in what came out.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import shlex
from pathlib import Path

import pytest

from minidsms.cql.errors import Error
from minidsms.shell.commands import COMMANDS
from minidsms.shell.main import main
from minidsms.shell.modes.mode import MODES
from minidsms.shell.session import Session
from tests.shell.sessions import CARS, ROADS, KeptScreen, finish, session_of

PAGE = Path(__file__).parent.parent.parent / "docs" / "shell.md"
FENCE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROMPTS = ("cql> ", "...> ", "$ ")


class Talk:
    """A session that goes on over the blocks of the page."""

    def __init__(self) -> None:
        self.session, self.screen = session_of()
        self.drawn: list[list[str]] = []

    def answer(self, typed: str) -> str:
        """What appears when something is typed."""
        if typed.startswith("$ "):
            return run_command_line(typed[2:])
        session, screen = self.session, self.screen
        try:
            session.run_text(typed)
            finish(session)
        except Error as error:
            screen.error(str(error))
        said = screen.said.copy()
        screen.said.clear()
        text = "".join(part if part.endswith("\n") else part + "\n" for _, part in said)
        pictures = shown(session)
        if pictures != self.drawn:
            text += "".join(line + "\n" for picture in pictures for line in picture)
        self.drawn = pictures
        return text


def shown(session: Session) -> list[list[str]]:
    pictures = session.watches.pictures(20)
    if session.plan_shown is not None:
        pictures.append(session.plan_shown[1].draw())
    return pictures


def run_command_line(line: str) -> str:
    """The standard output and the standard error of a command line."""
    program, *arguments = shlex.split(line)
    assert program == "minidsms"
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
        main(arguments)
    return out.getvalue()


def is_as(expected: str, answer: str) -> bool:
    """It is what is expected, where `...` stands for anything."""
    return doctest.OutputChecker().check_output(expected, answer, doctest.ELLIPSIS)


def inputs_of(block: str) -> list[tuple[str, str, str]]:
    """(as written, what is typed, what should appear) of a block."""
    found: list[tuple[str, str, str]] = []
    for line in block.splitlines(keepends=True):
        if line.startswith(("cql> ", "$ ")):
            found.append((line, line.removeprefix("cql> "), ""))
        elif line.startswith("...> "):
            written, typed, _ = found.pop()
            found.append((written + line, typed + line.removeprefix("...> "), ""))
        else:
            written, typed, answer = found.pop()
            found.append((written, typed, answer + line))
    return found


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cars.csv").write_text(CARS)
    (tmp_path / "roads.csv").write_text(ROADS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))


def test_what_the_page_types_appears_as_the_page_shows(rewrite: bool) -> None:
    text = PAGE.read_text(encoding="utf-8")
    talk = Talk()
    if rewrite:

        def renewed(block: re.Match[str]) -> str:
            answers = [(written, talk.answer(typed), expected) for written, typed, expected in inputs_of(block[1])]
            # What is left open stays open.
            kept = [written + (old if is_as(old, new) else new) for written, new, old in answers]
            return "```console\n" + "".join(kept) + "```"

        PAGE.write_text(FENCE.sub(renewed, text), encoding="utf-8")
        return
    blocks = FENCE.findall(text)
    assert blocks
    for block in blocks:
        for written, typed, expected in inputs_of(block):
            answer = talk.answer(typed)
            assert is_as(expected, answer), f"{written}gives\n{answer}and not\n{expected}"
    talk.session.close()


def test_the_page_shows_every_command_and_every_mode() -> None:
    text = PAGE.read_text(encoding="utf-8")
    typed = "".join(t for block in FENCE.findall(text) for _, t, _ in inputs_of(block))
    missing = [name for name in COMMANDS if f".{name}" not in typed and name not in ("quit", "demo", "ui")]
    assert missing == [] and all(f"`.{name}" in text for name in ("quit", "demo", "ui"))
    assert all(mode in typed for mode in MODES)


def test_kept_screens_keep_what_is_said_in_order() -> None:
    screen = KeptScreen()
    screen.note("a")
    screen.write("b")
    assert screen.take("note", "result") == "ab" and screen.said == []
