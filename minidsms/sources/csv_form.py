"""How CSV is written where it is not written as usual: the options of files and lines (docs/sources.md).

Invariant: a form says how texts become fields and values, and nothing of what they mean.
"""

from __future__ import annotations

from dataclasses import dataclass

from minidsms.sources.blocks import Marks
from minidsms.sources.options import OptionError, Options

EPOCHS = {"seconds": "s", "milliseconds": "ms", "microseconds": "us", "nanoseconds": "ns"}
"""Units of numbers that are instants, and what Arrow calls them."""
_CHARACTERS = {"tab": "\t", "\\t": "\t", "none": ""}
"""Characters that are written as words."""


@dataclass(frozen=True)
class Times:
    """How instants are written. epoch: the Arrow unit of numbers since 1970, None: ticks.  format: as of strptime, in
    UTC; None: ISO times.
    """

    epoch: str | None = None
    format: str | None = None


TICKS_OR_ISO = Times()


@dataclass(frozen=True)
class CsvForm:
    """delimiter, decimal_point: one character each.  quote: one character, or none.  header: there is a first line of
    names.  names: the columns, whatever the header says; empty: as it says, or without one as declared.  nulls: what
    stands for NULL without quotes, beside nothing.
    """

    delimiter: str = ","
    quote: str = '"'
    decimal_point: str = "."
    header: bool = True
    names: tuple[str, ...] = ()
    nulls: tuple[str, ...] = ("",)
    times: Times = TICKS_OR_ISO

    @property
    def marks(self) -> Marks:
        """What divides it."""
        return Marks(self.delimiter.encode(), self.quote.encode())


USUAL = CsvForm()


def csv_form(options: Options, header: bool = True) -> CsvForm:
    """The form that options ask for. header: unless they say otherwise. OptionError for one that cannot be."""
    delimiter = _character(options, "delimiter", ",")
    quote = _character(options, "quote", '"')
    if not delimiter:
        raise OptionError("delimiter", "something stands between fields", "write ';', '|' or 'tab'")
    if quote == delimiter:
        raise OptionError("quote", f"{delimiter!r} cannot be both", "write quote = 'none' where no field is quoted")
    names = options.texts("names")
    null = options.texts("null")
    comma = options.flag("decimal_comma")
    if comma and delimiter == ",":
        raise OptionError("decimal_comma", "a comma cannot be both", "write delimiter = ';'")
    epoch = options.one_of("epoch", tuple(EPOCHS), "") or None
    times = Times(None if epoch is None else EPOCHS[epoch], options.text("time_format", None))
    if times.epoch is not None and times.format is not None:
        raise OptionError("time_format", "times are numbers or texts", "leave epoch or time_format out")
    has_header = options.flag("header", header and not names)
    return CsvForm(delimiter, quote, "," if comma else ".", has_header, names, ("", *null), times)


def _character(options: Options, name: str, default: str) -> str:
    """One character, or a word that stands for one or for none."""
    given = options.text(name, default) or default
    character = _CHARACTERS.get(given.lower(), given)
    if len(character) > 1 or character in ("\r", "\n") or not character.isascii():
        raise OptionError(name, f'"{name}" is one character, not {given!r}', "write ';', '|' or 'tab'")
    return character
