"""How a CSV file is written where it is not written as usual: the options of a file (docs/sources.md).

Invariant: a form says how texts become fields and values, and nothing of what they mean.
"""

from __future__ import annotations

from dataclasses import dataclass

from minidsms.sources.options import OptionError, Options

EPOCHS = {"seconds": "s", "milliseconds": "ms", "microseconds": "us", "nanoseconds": "ns"}
"""Units of numbers that are instants, and what Arrow calls them."""


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
    """delimiter, decimal_point: one character each.  header: the first line names the columns.  nulls: what stands for
    NULL without quotes, beside nothing.
    """

    delimiter: str = ","
    decimal_point: str = "."
    header: bool = True
    nulls: tuple[str, ...] = ("",)
    times: Times = TICKS_OR_ISO


USUAL = CsvForm()


def csv_form(options: Options) -> CsvForm:
    """The form that options ask for. OptionError for one that cannot be."""
    delimiter = options.text("delimiter", ",") or ","
    delimiter = "\t" if delimiter in ("tab", "\\t") else delimiter
    if len(delimiter) != 1 or delimiter in '"\r\n' or not delimiter.isascii():
        raise OptionError("delimiter", f'"delimiter" is one character, not {delimiter!r}', "write ';', '|' or 'tab'")
    null = options.text("null", None)
    comma = options.flag("decimal_comma")
    if comma and delimiter == ",":
        raise OptionError("decimal_comma", "a comma cannot be both", "write delimiter = ';'")
    epoch = options.one_of("epoch", tuple(EPOCHS), "") or None
    times = Times(None if epoch is None else EPOCHS[epoch], options.text("time_format", None))
    if times.epoch is not None and times.format is not None:
        raise OptionError("time_format", "times are numbers or texts", "leave epoch or time_format out")
    header = options.flag("header", True)
    return CsvForm(delimiter, "," if comma else ".", header, ("",) if null is None else ("", null), times)
