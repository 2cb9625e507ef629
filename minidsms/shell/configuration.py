"""The shell's configuration: what the file says, what the environment says over it, what the command line says last.

The file is TOML; `minidsms --print-config` prints one with everything in it, commented out. Variables are called
MINIDSMS_ and the key in capitals. Safe mode can be switched on by each of them and off by none.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from minidsms.cql.errors import Error
from minidsms.shell.modes.mode import ModeSpec, read_mode
from minidsms.shell.words import words_of

MOST_ROWS = 40


@dataclass(frozen=True)
class Configuration:
    """keys: emacs or vi.  limit: rows or changes shown at once, 0 for all.  history: a file, or "" for none.

    settings: options of the connection.  init: statements and commands run at the start.  allow: folders files may be
    in, in safe mode.  db: the folder of the connection, or None; only the command line names it.
    """

    keys: str = "emacs"
    mode: ModeSpec = field(default=ModeSpec("changelog"))
    limit: int = MOST_ROWS
    timer: bool = False
    color: str = "auto"
    toolbar: bool = True
    suggestions: bool = True
    completion: bool = True
    history: str = "~/.local/state/minidsms/history"
    prompt: str = "cql> "
    init: str = ""
    safe: bool = False
    allow: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    db: str | None = None


def _switch(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    word = str(value).lower()
    if word in ("on", "true", "yes", "1"):
        return True
    if word in ("off", "false", "no", "0", ""):
        return False
    raise ValueError("choose on or off")


def _choice(*words: str) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        if str(value).lower() not in words:
            raise ValueError(f"choose one of: {', '.join(words)}")
        return str(value).lower()

    return read


def _mode(value: Any) -> ModeSpec:
    words = words_of(str(value))
    if not words:
        raise ValueError("name a mode")
    try:
        return read_mode(words)
    except Error as error:
        raise ValueError(str(error)) from None


def _limit(value: Any) -> int:
    text = str(value)
    if isinstance(value, bool) or not text.isdigit():
        raise ValueError("give a number of rows, 0 for all")
    return int(text)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("give a text")
    return value


def _folders(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return tuple(part for part in value.split(os.pathsep) if part)
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return tuple(value)
    raise ValueError("give a list of folders")


_READ: dict[str, Callable[[Any], Any]] = {
    "keys": _choice("emacs", "vi"),
    "mode": _mode,
    "limit": _limit,
    "timer": _switch,
    "color": _choice("auto", "always", "never"),
    "toolbar": _switch,
    "suggestions": _switch,
    "completion": _switch,
    "history": _text,
    "prompt": _text,
    "init": _text,
    "safe": _switch,
    "allow": _folders,
}

EXAMPLE = """\
# The configuration of the minidsms shell. It stands in ~/.config/minidsms/config.toml (under $XDG_CONFIG_HOME where
# that is set), or where $MINIDSMS_CONFIG or --config says. Every key can be set for one run as a variable too:
# MINIDSMS_KEYS=vi minidsms. What stands here commented out is the default.

# How lines are edited: "emacs" or "vi".
# keys = "emacs"

# How answers are shown: "changelog", "table", "top 10 BY column", "count", "csv" or "jsonl".
# mode = "changelog"

# Rows of a table, or changes at one time, that are shown; 0 shows all.
# limit = 40

# Tell how long each statement took.
# timer = false

# Colours: "auto" (on a terminal, unless NO_COLOR is set), "always" or "never".
# color = "auto"

# The line with rates, lag and state below the prompt.
# toolbar = true

# Grey suggestions from the history, taken with the right arrow key.
# suggestions = true

# Offer completions while you type; without it the tabulator key asks for them.
# completion = true

# Where what you type is kept; "" keeps it nowhere.
# history = "~/.local/state/minidsms/history"

# prompt = "cql> "

# Statements and commands that are run at the start.
# init = \"\"\"
# .mode table
# \"\"\"

# Safe mode: only files in the folders of `allow`, no code of yours. The command line cannot switch it off again.
# safe = false
# allow = []

# Settings of the engine, as `SHOW SETTINGS` lists them.
# [settings]
# time_unit = "ms"
# memory_limit = "500 MB"
"""


def config_path(environment: Mapping[str, str]) -> str:
    """Where the file is looked for when the command line names none."""
    named = environment.get("MINIDSMS_CONFIG")
    if named:
        return os.path.expanduser(named)
    base = environment.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return os.path.join(base, "minidsms", "config.toml")


def load_configuration(path: str | None, environment: Mapping[str, str]) -> Configuration:
    """The configuration of a file and the environment. path: as the command line names it; then it has to exist.

    Error with the key and the way out where something in it is wrong.
    """
    named = path is not None or bool(environment.get("MINIDSMS_CONFIG"))
    file = config_path(environment) if path is None else os.path.expanduser(path)
    configuration = Configuration()
    state = environment.get("XDG_STATE_HOME")
    if state:
        configuration = replace(configuration, history=os.path.join(state, "minidsms", "history"))
    if named or os.path.exists(file):
        configuration = _over(configuration, _read_file(file), file)
    said: dict[str, Any] = {}
    for key in _READ:
        value = environment.get(f"MINIDSMS_{key.upper()}")
        if value is not None:
            said[key] = value
    return _over(configuration, said, "the environment (MINIDSMS_..)")


def _over(configuration: Configuration, said: Mapping[str, Any], where: str) -> Configuration:
    changes: dict[str, Any] = {}
    for key, value in said.items():
        if key == "settings":
            if not isinstance(value, dict):
                raise Error(f"{where}: settings is a table, [settings]")
            changes["settings"] = _checked_settings(value, where)
            continue
        if key not in _READ:
            near = difflib.get_close_matches(key, [*_READ, "settings"], 1)
            hint = f'did you mean "{near[0]}"?' if near else f"keys are: {', '.join([*_READ, 'settings'])}"
            raise Error(f'{where}: unknown key "{key}"\nhelp: {hint}')
        try:
            changes[key] = _READ[key](value)
        except ValueError as error:
            raise Error(f'{where}: {value!r} is no value for "{key}": {error}') from None
    if configuration.safe:
        # What has been made safe stays safe, and what has been allowed grows no more.
        changes["safe"] = True
        changes.pop("allow", None)
    return replace(configuration, **changes)


def _checked_settings(values: dict[str, Any], where: str) -> dict[str, Any]:
    from minidsms.settings import Settings

    try:
        Settings(**values)
    except Error as error:
        raise Error(f"{where}: {error}") from None
    return values


def _read_file(path: str) -> dict[str, Any]:
    import tomllib

    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except OSError as error:
        raise Error(f"cannot read {path!r}: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Error(f"{path}: {error}") from None
