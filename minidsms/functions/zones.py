"""Wall clocks of time zones, by the standard library's zones and the IANA data, or by a distance from UTC.

A TIMESTAMP is an instant in UTC; the wall clock of a zone is the TIMESTAMP that shows there at that instant. Where
clocks are set back, a wall clock means the earlier of its two instants; where they are set forward and skip it, the one
that the offset before gives.
"""

from __future__ import annotations

import datetime
import functools
import re
import zoneinfo
from typing import Any

import numpy as np

from minidsms.elements import Type
from minidsms.functions.function import Arrays, Function, fixed

_SECOND_NS = 10**9
_MINUTE_S = 60
_WHOLE_MINUTES_SINCE_S = 94_694_400
"""1973: since then every zone has changed its clock at a whole minute of UTC."""
_LEAST_S, _MOST_S = -62_135_596_800 + 86_400, 253_402_300_799 - 86_400
"""The years 1 to 9999, but for a day at each end, which an offset may leave."""
_DISTANCE = re.compile("([+-])(0[0-9]|1[0-4]):([0-5][0-9])")
_EPOCH = datetime.datetime(1970, 1, 1)
_DAY_S = 86_400
_FIRST_DAY, _LAST_DAY = _WHOLE_MINUTES_SINCE_S // _DAY_S, 84_000
"""Days whose offset is remembered, 1973 to 2199. No zone changes its clock twice on one of them."""
_CHANGES, _UNSEEN = -(10**6), -(10**6) - 1


def _zone(value: Any) -> str | None:
    try:
        _loaded(value)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return "a time zone is a name of the IANA database, such as 'Europe/Berlin' or 'UTC', or '+02:00', east of UTC"
    return None


@functools.lru_cache(maxsize=64)
def _loaded(name: str) -> datetime.tzinfo:
    found = _DISTANCE.fullmatch(name)
    if found is None:
        return zoneinfo.ZoneInfo(name)
    distance = datetime.timedelta(hours=int(found[2]), minutes=int(found[3]))
    return datetime.timezone(distance if found[1] == "+" else -distance)


@functools.lru_cache(maxsize=65_536)
def _offset_s(name: str, second: int, is_wall: bool) -> int:
    """The zone's distance from UTC at a second since 1970, of UTC or of its own wall clock."""
    zone = _loaded(name)
    at = _EPOCH + datetime.timedelta(seconds=second)
    if is_wall:
        offset = at.replace(tzinfo=zone).utcoffset()
    else:
        offset = at.replace(tzinfo=datetime.UTC).astimezone(zone).utcoffset()
    return 0 if offset is None else round(offset.total_seconds())


@functools.lru_cache(maxsize=64)
def _offsets_of_days(name: str, is_wall: bool) -> Any:
    """By day from `_FIRST_DAY` to before `_LAST_DAY`: the offset that it keeps, `_CHANGES` or `_UNSEEN`; before and
    behind them stands `_CHANGES` for all other days.
    """
    offsets = np.full(_LAST_DAY - _FIRST_DAY + 2, _UNSEEN, np.int64)
    offsets[[0, -1]] = _CHANGES
    return offsets


def _offsets_s(name: str, seconds: Any, is_wall: bool) -> Any:
    """The same for many seconds: of a day once, but where clocks are changed on it."""
    known = _offsets_of_days(name, is_wall)
    days = np.clip(seconds // _DAY_S, _FIRST_DAY - 1, _LAST_DAY) - (_FIRST_DAY - 1)
    offsets = known.take(days)
    if (unseen := offsets == _UNSEEN).any():
        for day in np.unique(days[unseen]).tolist():
            begins = (day + _FIRST_DAY - 1) * _DAY_S
            first, last = (_offset_s(name, second, is_wall) for second in (begins, begins + _DAY_S - 1))
            known[day] = first if first == last else _CHANGES
        offsets = known.take(days)
    if (changing := np.flatnonzero(offsets == _CHANGES)).size:
        offsets[changing] = _offsets_each(name, seconds[changing], is_wall)
    return offsets


def _offsets_each(name: str, seconds: Any, is_wall: bool) -> Any:
    """Each minute (before 1973, each second) is looked up once."""
    places = np.where(seconds >= _WHOLE_MINUTES_SINCE_S, seconds // _MINUTE_S * _MINUTE_S, seconds)
    distinct, inverse = np.unique(places, return_inverse=True)
    found = np.array([_offset_s(name, second, is_wall) for second in distinct.tolist()], np.int64)
    return found[inverse.reshape(-1)]


def _seconds(ticks: Any, tick_ns: int) -> tuple[Any, Any]:
    """(seconds since 1970, where the zones' years hold them; 0 where not)."""
    if tick_ns <= _SECOND_NS:
        seconds = ticks // (_SECOND_NS // tick_ns)
    else:
        step = tick_ns // _SECOND_NS
        seconds = np.where(np.abs(ticks) <= _MOST_S // step + 1, ticks, _MOST_S) * step
    near = (seconds >= _LEAST_S) & (seconds <= _MOST_S)
    return np.where(near, seconds, 0), near


def _moved(ticks: Any, offset_s: Any, near: Any, tick_ns: int) -> Arrays:
    """Fails where an offset is no whole number of ticks."""
    if tick_ns <= _SECOND_NS:
        return Arrays(np.where(near, ticks, 0) + offset_s * (_SECOND_NS // tick_ns), bad=~near)
    step = tick_ns // _SECOND_NS
    return Arrays(np.where(near, ticks, 0) + offset_s // step, bad=~near | (offset_s % step != 0))


def _convert(ticks: Any, source: str, target: str, *, tick_ns: int) -> Arrays:
    seconds, near = _seconds(ticks, tick_ns)
    utc = _moved(ticks, -_offsets_s(source, seconds, True), near, tick_ns)
    seconds, still_near = _seconds(utc.values, tick_ns)
    there = _moved(utc.values, _offsets_s(target, seconds, False), near & still_near, tick_ns)
    return Arrays(there.values, bad=there.bad | utc.bad)


_AT = "TIMESTAMP '2013-05-31 14:35'"

FUNCTIONS = (
    Function(
        "convert_tz",
        3,
        3,
        fixed(Type.TIMESTAMP, Type.TIMESTAMP, Type.TEXT),
        "TIMESTAMP and two time zones",
        "the wall clock of the second zone when that of the first one shows the TIMESTAMP; "
        "`t AT TIME ZONE z` is CONVERT_TZ(t, 'UTC', z)",
        (f"CAST(CONVERT_TZ({_AT}, 'UTC', 'America/New_York') AS TEXT)", "'2013-05-31 10:35:00'"),
        of_arrays=_convert,
        literals={1: _zone, 2: _zone},
        can_fail=True,
        in_ticks=True,
    ),
)
