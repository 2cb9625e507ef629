"""The options of WITH (..): each is read once, with its type, and what nobody reads is refused by name.

Invariant: an option that acts has been asked for; one that does not exist, or does not belong to what is opened, never
passes in silence.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from minidsms.cql.errors import Error, quoted


class OptionError(Error):
    """An option that does not exist or has a wrong value. option: its name."""

    def __init__(self, option: str, reason: str, hint: str = "") -> None:
        self.option = option
        self.reason = reason
        self.hint = hint
        super().__init__(reason + (f"\nhelp: {hint}" if hint else ""))


class Options:
    """The options given to one source or sink. what: it, as an error names it.

    >>> options = Options({"speed": 2}, "a file")
    >>> options.number("speed", None, least=0)
    2.0
    >>> options.done()
    """

    def __init__(self, given: Mapping[str, Any], what: str) -> None:
        self._given = {name.lower(): value for name, value in given.items() if value is not None}
        self._known: list[str] = []
        self.what = what

    def _take(self, name: str) -> Any:
        self._known.append(name)
        return self._given.get(name)

    def flag(self, name: str, default: bool = False) -> bool:
        """true or false."""
        value = self._take(name)
        if value is None:
            return default
        if isinstance(value, bool):
            return value
        if isinstance(value, str) and value.lower() in ("on", "off", "true", "false"):
            return value.lower() in ("on", "true")
        raise OptionError(name, f'"{name}" is true or false, not {value!r}')

    def count(self, name: str, default: int | None, least: int = 1) -> int | None:
        """A whole number of at least `least`."""
        value = self._take(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise OptionError(name, f'"{name}" is a whole number of at least {least}, not {value!r}')
        return value

    def number(self, name: str, default: float | None, least: float) -> float | None:
        """A number above `least`."""
        value = self._take(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float) or not least < value < float("inf"):
            raise OptionError(name, f'"{name}" is a number above {least}, not {value!r}')
        return float(value)

    def seconds(self, name: str, default: float | None) -> float | None:
        """A length of time: in CQL `5 SECONDS`, in Python a number of seconds or a timedelta."""
        value = self._take(name)
        if value is None:
            return default
        if hasattr(value, "total_seconds"):
            value = value.total_seconds()
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e9:
            hint = f"write {name} = 5 SECONDS"
            raise OptionError(name, f'"{name}" is a length of time, not {value!r}', hint)
        return float(value)

    def text(self, name: str, default: str | None) -> str | None:
        """A text."""
        value = self._take(name)
        if value is None:
            return default
        if not isinstance(value, str) or not value:
            raise OptionError(name, f'"{name}" is a text, not {value!r}')
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        """Texts: in CQL one text in which they stand apart by commas, in Python also a list of them."""
        value = self._take(name)
        if value is None:
            return ()
        if isinstance(value, str):
            parts = value.split(",")
            value = parts if len(parts) == 1 else [part.strip() for part in parts]
        if not isinstance(value, list | tuple) or not all(isinstance(each, str) and each for each in value):
            raise OptionError(name, f'"{name}" is texts that stand apart by commas, not {value!r}')
        return tuple(value)

    def one_of(self, name: str, words: tuple[str, ...], default: str) -> str:
        """One of the words, in any case."""
        value = self._take(name)
        if value is None:
            return default
        if not isinstance(value, str) or value.lower() not in words:
            raise OptionError(name, f'"{name}" is one of {", ".join(words)}, not {value!r}')
        return value.lower()

    def rest(self, prefix: str) -> dict[str, Any]:
        """What is given under names that begin with the prefix, without it."""
        found = {name: value for name, value in self._given.items() if name.startswith(prefix)}
        self._known += found
        return {name.removeprefix(prefix): value for name, value in found.items()}

    def done(self) -> None:
        """Everything there is has been asked for: what is left over does not exist."""
        for name in self._given:
            if name not in self._known:
                near = difflib.get_close_matches(name, self._known, 1)
                there = f"there are: {', '.join(self._known)}" if self._known else f"{self.what} takes none"
                raise OptionError(
                    name, f"{self.what} has no option {quoted(name)}", f'did you mean "{near[0]}"?' if near else there
                )
