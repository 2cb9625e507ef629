"""Every setting: a `connect` option and a `SET name = value` alike, checked the same way."""

from __future__ import annotations

import difflib
import math
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from minidsms.cql.errors import CqlError, Error, quoted
from minidsms.cql.times import duration_ticks
from minidsms.cql.words import TICK_NS
from minidsms.process.safety import STANDARD
from minidsms.statements.arguments import name_of

DETECTORS = ("cusum", "beta_cusum", "adwin", "martingale", "meta", "change_finder")
"""Of change, over profile tuples."""
INDEX_ASSESSMENTS = ("sria", "csria", "dia", "cdia_random", "cdia")
INDEX_TUNINGS = ("continuous", "periodic", "triggered", "hybrid")
INDEX_MIGRATIONS = ("all", "nothing", "partial")

_MOST_THREADS = 256
_MOST_ROWS = 2**32
"""Monitors multiply it by numbers of rows, in 64 bits."""


def length_of_tick(time_unit: str) -> int:
    """Nanoseconds. Error where there is no such unit."""
    if time_unit not in TICK_NS:
        raise Error(f'no time unit "{time_unit}"; there are: {", ".join(TICK_NS)}')
    return TICK_NS[time_unit]


@dataclass(frozen=True)
class Setting:
    """default: the value it has unset.  check: returns the value in its proper form or raises ValueError with the
    reason.

    live: it may change while queries run.  guards: it bounds what a query may take; it is fixed in safe mode.
    """

    name: str
    default: Any
    check: Callable[[Any], Any]
    meaning: str
    live: bool = True
    guards: bool = False


def _one_of(*words: str) -> Callable[[Any], str]:
    """One of the words, in any case and however its parts are joined: `A-Greedy` is a_greedy."""
    by_letters = {_letters(word): word for word in words}

    def check(value: Any) -> str:
        letters = _letters(str(value))
        if letters not in by_letters:
            near = difflib.get_close_matches(letters, by_letters, 1)
            hint = f'; did you mean "{by_letters[near[0]]}"?' if near else ""
            raise ValueError(f"choose one of: {', '.join(words)}{hint}")
        return by_letters[letters]

    return check


def _letters(word: str) -> str:
    return re.sub(r"[-_ ]", "", word.lower())


def _switch(value: Any) -> str:
    word = {"true": "on", "false": "off"}.get(str(value).lower(), str(value).lower())
    if word not in ("on", "off"):
        raise ValueError("choose one of: on, off")
    return word


def _or_none(check: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """What the check takes, or none."""

    def checked(value: Any) -> Any:
        if value is None or str(value).lower() == "none":
            return None
        try:
            return check(value)
        except ValueError as error:
            raise ValueError(f"{error}, or none") from None

    return checked


def _number(least: float, most: float, wanted: str) -> Callable[[Any], float]:
    def check(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            raise ValueError(f"give a {wanted}")
        return float(value)

    return check


def _whole(least: int, most: float, wanted: str) -> Callable[[Any], int]:
    def check(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise ValueError(f"give a whole number {wanted}")
        return value

    return check


def _at_least(least: int) -> Callable[[Any], int]:
    return _whole(least, math.inf, f"of at least {least}")


def _threads(value: Any) -> int | str:
    return (
        "auto"
        if str(value).lower() == "auto"
        else _whole(1, _MOST_THREADS, f"from 1 to {_MOST_THREADS}, or auto")(value)
    )


def _buckets(value: Any) -> int:
    from minidsms.expressions.classifiers import MOST_BUCKETS

    return _whole(2, MOST_BUCKETS, f"from 2 to {MOST_BUCKETS}")(value)


_ABOVE_0 = math.ulp(0.0)
_share = _number(0, 1, "share from 0 to 1")
_positive_share = _number(_ABOVE_0, 1, "share above 0, at most 1")
_optional_share = _or_none(_positive_share)
_optional_count = _or_none(_at_least(1))


def _optional_bytes(value: Any) -> int | None:
    if value is None or str(value).lower() == "none":
        return None
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    text = str(value).strip().upper()
    for suffix, factor in (("KB", 2**10), ("MB", 2**20), ("GB", 2**30), ("B", 1)):
        number = text.removesuffix(suffix).strip()
        if text.endswith(suffix) and number.isdigit() and int(number) > 0:
            return int(number) * factor
    raise ValueError("give a number of bytes, or a text such as '500 MB'")


def _time(value: Any) -> Any:
    if isinstance(value, str):
        number, _, unit = value.strip().partition(" ")
        if unit and duration_ticks(number, unit.strip(), 1) > 0:
            return value.strip()
    raise ValueError("give a text such as '500 MILLISECONDS'")


def _interval(value: Any) -> Any:
    if isinstance(value, str):
        number, _, unit = value.strip().partition(" ")
        if duration_ticks(number, unit.strip() or None, 1) > 0:
            return value.strip()
    elif isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    raise ValueError("give a number of ticks, or a text such as '500 MILLISECONDS'")


def _folders(value: Any) -> tuple[str, ...]:
    """Where they are now: a later change of the working directory moves none of them."""
    given = (value,) if isinstance(value, str | os.PathLike) else value
    try:
        folders = tuple(os.fspath(folder) for folder in given)
    except TypeError:
        raise ValueError("give a list of folders") from None
    if not all(isinstance(folder, str) and folder.strip() and "\0" not in folder for folder in folders):
        raise ValueError("give a list of folders, none of them empty")
    return tuple(f if f == STANDARD or "://" in f else os.path.realpath(os.path.expanduser(f)) for f in folders)


def _join_plan(value: Any) -> str:
    from minidsms.plan.written_join_plan import checked_plan

    return checked_plan(value)


def interval_ticks(value: int | str, tick_ns: int) -> int:
    """An interval of a setting in ticks; what is shorter than a tick is one."""
    if isinstance(value, int):
        return value
    number, _, unit = value.partition(" ")
    if not unit:
        return duration_ticks(number, None, tick_ns)
    return max(1, duration_ticks(number, unit.strip(), 1) // tick_ns)


SETTINGS: dict[str, Setting] = {
    s.name: s
    for s in (
        Setting("scheduler", "chain", _one_of("round_robin", "fifo", "greedy", "chain"), "which operator runs next"),
        Setting(
            "chain_latency_bound",
            None,
            _or_none(_whole(0, math.inf, "of ticks")),
            "ticks an element may wait before Chain lets it pass",
        ),
        Setting("batch_size", 65_536, _at_least(1), "elements in a slice"),
        Setting("threads", 1, _threads, "threads that work on a large slice; auto: as many as are faster"),
        Setting("quantum", 65_536, _at_least(1), "elements an operator may take in a turn"),
        Setting("queue_size", 1_000_000, _at_least(1), "bound of a queue between operators, in elements"),
        Setting("queue_bytes", 2**28, _optional_bytes, "bound of a queue between operators, in bytes"),
        Setting(
            "memory_limit",
            None,
            _optional_bytes,
            "bytes that may be held before a push is refused or sheds",
            guards=True,
        ),
        Setting(
            "memory_priority",
            1.0,
            _number(_ABOVE_0, 1e6, "number above 0, at most a million"),
            "weight of what waits for a query where memory_limit has it shed",
        ),
        Setting(
            "load_shedding",
            "none",
            _one_of("none", "random", "drop oldest"),
            "what overload does: refuse, or shed elements",
        ),
        Setting("time_unit", "ms", _one_of(*TICK_NS), "length of a tick", live=False),
        Setting("rstream", "events", _one_of("events", "ticks"), "when RSTREAM speaks (docs/semantics S2)"),
        Setting("adaptive", "on", _switch, "plans may change while they run"),
        Setting(
            "filter_ordering",
            "a_greedy",
            _one_of("a_greedy", "sweep", "independent", "local_swaps", "static", "optimal", "sbr", "ticket"),
            "what orders the filters of a condition, of queries to come",
        ),
        Setting(
            "change_detection",
            "auto",
            _one_of("auto", "counts", *DETECTORS, "off"),
            "how queries to come notice that conditions have changed",
        ),
        Setting("detector_block", 20, _at_least(1), "profile tuples that a change detector takes for one estimate"),
        Setting("detector_training", None, _optional_count, "blocks that a change detector learns from; none: its own"),
        Setting(
            "detector_threshold",
            None,
            _or_none(_number(_ABOVE_0, 1e6, "number above 0")),
            "when a detector tells a change; none: its own",
        ),
        Setting("detector_confidence", 0.05, _share, "zeta of beta-CUSUM: the chance that an interval misses"),
        Setting("profile_rate", None, _optional_share, "share of tuples profiled; none: as it pays"),
        Setting("profile_window", None, _optional_count, "profile tuples remembered; none: as the algorithm likes"),
        Setting("thrashing_alpha", None, _optional_share, "how much better another order must be (4 / alpha bound)"),
        Setting(
            "state_reduction",
            "auto",
            _one_of("auto", "off", "swj", "k-mon"),
            "what joins of windows keep: all rows, those that pass filters, or those that can still matter; auto: all, "
            "until memory gets short",
        ),
        Setting(
            "k_mon",
            "exact",
            _one_of("exact", "trusting", "lossy"),
            "what k-Mon gives up is kept out of memory; or lost where declared keys say so; or lost",
        ),
        Setting(
            "k_mon_window",
            None,
            _or_none(_whole(1, _MOST_ROWS, f"from 1 to {_MOST_ROWS:,}")),
            "W: rows without a greater k; none: as the constraint likes",
        ),
        Setting("k_mon_chance", 0.01, _share, "p: share of rows watched for more than is needed, of monitors to come"),
        Setting(
            "k_mon_growth",
            None,
            _or_none(_number(1, 1000, "number from 1 to 1000")),
            "c: so many times k is watched; none: as the constraint likes",
        ),
        Setting("k_mon_threshold", 50_000, _at_least(0), "a greater k counts as infinite, of monitors to come"),
        Setting("join_plan", "auto", _join_plan, "how n-way joins of queries to come are planned"),
        Setting(
            "join_index",
            "auto",
            _one_of("auto", "hash", "patterns", "bit_address"),
            "what the windows of n-way joins of queries to come are indexed by",
        ),
        Setting(
            "index_assessment",
            "sria",
            _one_of(*INDEX_ASSESSMENTS),
            "how access patterns are counted where join_index is bit_address",
        ),
        Setting("index_error", 0.05, _positive_share, "of the compact ones, what they may miss of a pattern's share"),
        Setting("index_threshold", 0.1, _share, "of the compact ones, the share from which a pattern counts"),
        Setting(
            "index_tuning",
            "hybrid",
            _one_of(*INDEX_TUNINGS),
            "of which inputs access patterns are counted when",
        ),
        Setting("index_window", 20_000, _at_least(1), "requests of all inputs between two choices of bits"),
        Setting(
            "index_migration",
            "all",
            _one_of(*INDEX_MIGRATIONS),
            "which rows are stored anew where bits change",
        ),
        Setting(
            "routing",
            "auto",
            _one_of("off", "auto", "content"),
            "different orders of filters for tuples of different content, of queries to come",
        ),
        Setting("routing_rate", 0.06, _positive_share, "P: share of the tuples that meet the profiled filter first"),
        Setting("routing_sample", 150, _at_least(10), "R: tuples that tell the classifier of a filter"),
        Setting("routing_memory", 0.95, _share, "what a tuple leaves of the selectivity known before it"),
        Setting("routing_gain", None, _optional_share, "gamma: least gain ratio of a classifier; none: beyond chance"),
        Setting("routing_buckets", 24, _buckets, "classes that an attribute tells apart, NULL among them"),
        Setting(
            "compilation",
            "auto",
            _one_of("auto", "off", "at once"),
            "kernels compiled for the plan that runs: beside it where that pays, never, or before it goes on",
        ),
        Setting("plan_logging", "off", _switch, "plans come back with the conditions they were good for"),
        Setting("cost_model", "measured", _one_of("measured", "fixed"), "costs as measured, or 1 for every step"),
        Setting(
            "caching",
            "auto",
            _one_of("auto", "off", "prefix", "global"),
            "caches in joins of queries to come; auto: where join_plan is",
        ),
        Setting("cache_memory", 2**26, _optional_bytes, "bytes that the caches of a join may hold; none: no limit"),
        Setting("cache_interval", 10_000, _at_least(100), "elements of a join between two choices of its caches"),
        Setting("sharing", "on", _switch, "operators and stores shared between queries"),
        Setting(
            "screening",
            "auto",
            _one_of("auto", "off", "column", "written", "macro", "hybrid", "ticket"),
            "whether many filters over one stream are looked up together, and in which order of columns",
        ),
        Setting("rearrange_period", 10_000, _at_least(1), "lambda: rows of a screen between two looks at its sequence"),
        Setting(
            "rearrange_threshold", 0.05, _share, "mu: change of the share of rows dropped that has it arranged anew"
        ),
        Setting("sys_interval", "1 SECOND", _interval, "time between two publications of SysStream"),
        Setting("archive_rows", 1_000_000, _at_least(1), "elements that make a file of an archive", live=False),
        Setting("archive_interval", "10 SECONDS", _interval, "longest wait of an element to be archived", live=False),
        Setting("archive_retention", None, _or_none(_time), "how long archives of streams are kept; none: for ever"),
        Setting("backfill", "local", _one_of("local", "spark"), "what computes the past of CREATE QUERY .. BACKFILL"),
        Setting("safe", "off", _switch, "no file outside allowed_paths, no socket, no other program; for good"),
        Setting(
            "allowed_paths", (), _folders, "folders that safe mode allows files in; '-': standard streams", live=False
        ),
        Setting("input_limit", 256, _optional_count, "streams, relations and views that a query may name", guards=True),
        Setting("literal_limit", None, _optional_count, "constants that a query may have", guards=True),
        Setting("answer_limit", None, _optional_count, "answers of a query that may wait to be fetched", guards=True),
        Setting(
            "statement_timeout", None, _or_none(_time), "longest time that a query may take of a call", guards=True
        ),
        Setting(
            "durability",
            "sync",
            _one_of("sync", "batch", "os"),
            "when what a connection with a folder is told is on disk: at once, soon, or when the system likes",
        ),
        Setting("checkpoint_interval", None, _or_none(_time), "time between checkpoints of a connection with a folder"),
        Setting("seed", 0, _at_least(0), "seed of everything random"),
    )
}


class SettingValues(Protocol):
    """Settings by name, to be read."""

    def __getitem__(self, name: str) -> Any: ...


class Settings:
    """The values of one connection."""

    def __init__(self, **options: Any) -> None:
        self.values: dict[str, Any] = {name: s.default for name, s in SETTINGS.items()}
        for name, value in options.items():
            self.set(name, value, starting=True)

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    @property
    def timeout_s(self) -> float | None:
        """statement_timeout in seconds."""
        value = self.values["statement_timeout"]
        return None if value is None else interval_ticks(value, 1) / 1e9

    @property
    def checkpoint_s(self) -> float | None:
        """checkpoint_interval in seconds."""
        value = self.values["checkpoint_interval"]
        return None if value is None else interval_ticks(value, 1) / 1e9

    @property
    def limits(self) -> dict[str, int | None]:
        """How much of what a query may have (`Catalog.limits`)."""
        return {"inputs": self.values["input_limit"], "literals": self.values["literal_limit"]}

    def set(self, name: str, value: Any, starting: bool = False) -> None:
        """Change one; Error with the choices where the name or the value is wrong."""
        value = checked(name, value)
        key = name.lower()
        if not starting and self.values["safe"] == "on":
            if key == "safe" and value == "off":
                raise Error("safe mode cannot be switched off")
            if SETTINGS[key].guards:
                raise Error(f'safe mode: "{key}" is fixed; set it before safe mode is on')
        if not SETTINGS[key].live and not starting:
            raise Error(f'"{key}" is fixed when the connection is made: minidsms.connect({key}=..)')
        self.values[key] = value


def _short(value: Any) -> str:
    written = repr(value)
    return written if len(written) <= 100 else f"{written[:97]}..."


def checked(name: str, value: Any, called: str | None = None) -> Any:
    """A value of a setting in its proper form; Error with the choices where the name or the value is wrong.

    called: what the user named it, where that is not the setting.
    """
    key = name_of(name).lower()
    setting = SETTINGS.get(key)
    if setting is None:
        near = difflib.get_close_matches(key, SETTINGS, 1)
        hint = f'; did you mean "{near[0]}"?' if near else "; SHOW SETTINGS lists them all"
        raise Error(f"unknown setting {quoted(name)}{hint}")
    try:
        return setting.check(value)
    except ValueError as error:
        reason = f"{_short(value)} is no value for {called or quoted(key)}: {error}"
        span = getattr(error, "span", None)
        raise (Error(reason) if span is None else CqlError(reason, str(value).strip(), span)) from None
