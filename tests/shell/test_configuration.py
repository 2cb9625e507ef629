"""The configuration file, the variables over it, and safe mode, which nothing switches off."""

from __future__ import annotations

import re
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest

from minidsms.cql import syntax
from minidsms.cql.errors import Error
from minidsms.process.safety import Safety
from minidsms.shell.configuration import EXAMPLE, Configuration, load_configuration
from minidsms.shell.main import main
from minidsms.shell.modes.mode import ModeSpec
from tests.shell.sessions import session_of


def loaded(text: str, folder: Path, **variables: str) -> Configuration:
    (folder / "config.toml").write_text(text)
    return load_configuration(str(folder / "config.toml"), variables)


def test_the_example_says_the_defaults_and_every_key(tmp_path: Path) -> None:
    assert loaded(EXAMPLE, tmp_path) == Configuration()
    said = re.sub(r"^# (?=[a-z]+ =|\[settings\]|\.mode|\"\"\")", "", EXAMPLE, flags=re.MULTILINE)
    keys = set(tomllib.loads(said))
    # Which folder the connection has, only the command line says.
    assert keys == set(Configuration.__dataclass_fields__) - {"db"}


def test_variables_stand_over_the_file(tmp_path: Path) -> None:
    text = 'keys = "vi"\nlimit = 5\nmode = "table"\n[settings]\ntime_unit = "s"\n'
    configuration = loaded(text, tmp_path, MINIDSMS_LIMIT="7", MINIDSMS_MODE="top 3 BY x", MINIDSMS_TIMER="on")
    assert (configuration.keys, configuration.limit, configuration.timer) == ("vi", 7, True)
    assert configuration.mode == ModeSpec("top", 3, "x") and configuration.settings == {"time_unit": "s"}


def test_the_file_is_looked_for_where_the_environment_says(tmp_path: Path) -> None:
    (tmp_path / "minidsms").mkdir()
    (tmp_path / "minidsms" / "config.toml").write_text("timer = true\n")
    assert load_configuration(None, {"XDG_CONFIG_HOME": str(tmp_path)}).timer
    assert not load_configuration(None, {"XDG_CONFIG_HOME": str(tmp_path / "none")}).timer
    with pytest.raises(Error, match="cannot read"):
        load_configuration(None, {"MINIDSMS_CONFIG": str(tmp_path / "none.toml")})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('key = "vi"\n', 'did you mean "keys"'),
        ('keys = "nano"\n', "choose one of: emacs, vi"),
        ("limit = -1\n", "give a number of rows"),
        ('mode = "tabel"\n', 'did you mean "table"'),
        ("timer = 3\n", "choose on or off"),
        ("[settings]\nbatch_size = 0\n", "at least 1"),
        ("keys = \n", "config.toml"),
        ("history = 3\n", "give a text"),
        ("allow = [3]\n", "list of folders"),
    ],
)
def test_what_is_wrong_is_named_with_a_way_out(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(Error, match=re.escape(said)):
        loaded(text, tmp_path)


def test_the_shell_prints_its_configuration_and_follows_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["--print-config"]) == 0
    assert capsys.readouterr().out == EXAMPLE
    (tmp_path / "c.toml").write_text('mode = "csv"\ninit = "SHOW VIEWS;"\n')
    assert main(["--config", str(tmp_path / "c.toml"), "-c", ""]) == 0
    assert capsys.readouterr().out == "view,query\n"
    monkeypatch.setenv("MINIDSMS_CONFIG", str(tmp_path / "c.toml"))
    assert main(["--no-config", "-c", "SHOW VIEWS;"]) == 0
    assert capsys.readouterr().out.startswith("view  query")


# ------------------------------------------------------------------------------------------------------ safe mode


def test_safe_mode_is_switched_on_by_each_and_off_by_none(tmp_path: Path) -> None:
    assert loaded("safe = true\n", tmp_path, MINIDSMS_SAFE="off").safe
    assert loaded("safe = false\n", tmp_path, MINIDSMS_SAFE="1").safe
    assert loaded('safe = true\nallow = ["/a"]\n', tmp_path, MINIDSMS_ALLOW="/").allow == ("/a",)
    session, _ = session_of(safety=Safety(True))
    for text in (".set safe off", "SET safe = off;"):
        with pytest.raises(Error):
            session.run_text(text)
    assert session.safety.is_safe


def test_safe_mode_may_be_a_setting_of_the_connection_and_survives_a_new_one(tmp_path: Path) -> None:
    settings = {"safe": "on", "allowed_paths": (str(tmp_path),)}
    session, _ = session_of(settings=settings)
    session.begin_anew()
    assert session.safety.is_safe and session.safety.allows(str(tmp_path / "x")) and not session.safety.allows("/etc/x")
    session, _ = session_of(settings=settings, safety=Safety(True, ["/nowhere"]))
    assert not session.safety.allows(str(tmp_path / "x"))
    session, _ = session_of("SET safe = on;")
    session.begin_anew()
    assert session.safety.is_safe


@pytest.fixture
def allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder allowed, with a way out of it."""
    folder = tmp_path / "allowed"
    folder.mkdir()
    (tmp_path / "secret.csv").write_text("t,v\n1,1\n")
    (folder / "ok.csv").write_text("t,v\n1,1\n")
    (folder / "link.csv").symlink_to(tmp_path / "secret.csv")
    monkeypatch.chdir(folder)
    return folder


DECLARATION = "CREATE STREAM S (t INTEGER, v INTEGER) TIMESTAMP BY t"


@pytest.mark.parametrize(
    "text",
    [
        f"{DECLARATION} FROM '../secret.csv';",
        f"{DECLARATION} FROM 'link.csv';",
        f"{DECLARATION} FROM 'tcp-listen://127.0.0.1:0';",
        f"{DECLARATION} ARCHIVE '../out';",
        f"{DECLARATION}; CREATE QUERY q AS SELECT v FROM S INTO '../out.csv';",
        f"{DECLARATION}; CREATE QUERY q AS SELECT v FROM S INTO 'tcp://127.0.0.1:9';",
        f"{DECLARATION};\n.feed S FROM '../secret.csv'",
        ".read ../secret.csv",
        ".output ../out.txt",
        ".save ../out.cql",
        ".open ../secret.csv",
        ".schema '../secret.csv'",
    ],
)
def test_nothing_outside_the_allowed_folders_is_touched(allowed: Path, text: str) -> None:
    session, _ = session_of(safety=Safety(True, [str(allowed)]))
    with pytest.raises(Error, match="safe mode"):
        session.run_text(text)
    assert sorted(path.name for path in allowed.parent.iterdir()) == ["allowed", "secret.csv"]


def test_inside_the_allowed_folders_everything_works(allowed: Path) -> None:
    session, _ = session_of(safety=Safety(True, [str(allowed)]), is_interactive=False)
    session.run_text(
        f"{DECLARATION}; CREATE QUERY q AS SELECT v FROM S INTO 'out.csv';\n.feed S FROM 'ok.csv'\n.save s.cql"
    )
    session.close()
    assert (allowed / "out.csv").read_text() == "_ts,_sign,v\n1,1,1\n" and (allowed / "s.cql").exists()


def test_folders_are_compared_by_name_not_by_letters(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    safety = Safety(True, [str(tmp_path / "data")])
    assert safety.allows(str(tmp_path / "data" / "x")) and not safety.allows(str(tmp_path / "database"))
    assert not safety.allows("x\0y") and Safety(False).allows("/anything")


def test_safe_mode_knows_every_clause_of_every_statement() -> None:
    """A new statement or clause that carries a text has to be thought about: is it a place?"""
    statements = [c for c in vars(syntax).values() if isinstance(c, type) and issubclass(c, syntax.Statement)]
    texts = {
        f"{c.__name__}.{f.name}"
        for c in (*statements, syntax.Source, syntax.Generator, syntax.Option)
        for f in fields(c)
        if "str" in str(f.type)
    }
    places = {"CreateQuery.into", "CreateQuery.archive", "CreateQuery.backfill", "Source.path"}
    places |= {"CreateStream.archive", "CreateRelation.archive"}
    harmless = {"name", "format", "action", "setting", "value", "kind", "what", "target", "columns"}
    assert {text for text in texts if text.split(".")[1] not in harmless} == places
