"""The contracts of k-Mon: what a k-constraint is, what its monitor is fed, what it answers (Babu 2005, chapter 6).

A constraint speaks of arrivals: the rows of a stream in the order in which the join takes them, which is that of ts and
within an instant that of arrival (the thesis' sequence, section 6.2). Rows are numbered from 0 for each stream; numbers
grow, and may have gaps where a filter that stands before the join has dropped rows.

Invariants: a monitor sees values only, never decides what is dropped; whoever uses a constraint asks `k` before every
use, since it may rise to infinity with any arrival. Exactness never depends on `k` being right: what goes because of a
constraint can be found again, unless loss was asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol, runtime_checkable

from minidsms.elements import Batch, BoolArray, Int64Array
from minidsms.kernels.k_mon_keys import Limit, StreamFigures
from minidsms.machine_code import Rows

NEVER = 1 << 60
"""The number of a row that does not come."""


class Kind(Enum):
    """The constraints of sections 6.2 and 6.6 to 6.8."""

    KEY = "KEY"
    """No two rows of a stream agree in the attributes, so that a join by them is many-one."""

    RIDS = "RIDS"
    """The child of a parent's row comes within k arrivals of the child stream after that row, or never."""
    CA = "CA"
    """Between two rows of a stream that agree in the attributes stand at most k that do not."""
    OAP = "OAP"
    """Rows that come more than k arrivals after another have no smaller attribute; of a parent stream."""
    OAC = "OAC"
    """The same of a child stream."""


@dataclass(frozen=True)
class KConstraint:
    """What is watched. It names one thing whoever asks, so that queries share its monitor.

    stream, attributes: CA and OAP: the parent stream and its join attributes; OAC and RIDS: the child stream and its;
    KEY: a stream and attributes by which it is joined.
    parent, parent_attributes: RIDS only: the other side of the join, attributes pairwise.  window: RIDS only: how long
    the parent's rows stay, (True, ticks) or (False, rows); None: for good.  Names are as declared, lower case; a stream
    that is filtered before the join (only by what may fail) carries the filter in its name.
    """

    kind: Kind
    stream: str
    attributes: tuple[str, ...]
    parent: str | None = None
    parent_attributes: tuple[str, ...] = ()
    window: tuple[bool, int] | None = None

    @property
    def edge(self) -> str | None:
        """parent and its window -> child, of a constraint on a join."""
        if self.parent is None:
            return None
        window = "" if self.window is None else f" [{'RANGE' if self.window[0] else 'ROWS'} {self.window[1]}]"
        return f"{self.parent}{window} -> {self.stream}"

    def __str__(self) -> str:
        if self.parent is not None:
            return f"{self.kind.value} on {self.edge}"
        return f"{self.kind.value} on {self.stream}.{', '.join(self.attributes)}"


class User(Protocol):
    """Somebody who uses a constraint, for SHOW CONSTRAINTS."""

    def name_of_user(self) -> str:
        """The query, or the operator."""

    def tell_monitors(self) -> None:
        """Show them what has come and has not been shown."""

    def saved_nbytes(self, constraint: KConstraint) -> int:
        """Bytes of rows that are not in memory now because of the constraint."""


@dataclass(frozen=True)
class Arrivals:
    """Consecutive arrivals of one stream within one slice of whole instants.

    numbers: (n,) strictly growing arrival numbers; a monitor that several joins feed skips those it has seen.
    ts: (n,) nondecreasing.  values: (n,) the attribute as a word, equal where equal: several attributes, and TEXT, by
    a hash or a code; `is_ordered` says that the words are ordered as the values are (INTEGER, TIMESTAMP, INTERVAL and
    FLOAT of one attribute): only then can OAP and OAC be watched.  valid: (n,) False where an attribute is NULL, None
    where none is. NULL joins nothing: such a row counts as an arrival, and as no value.
    """

    numbers: Int64Array
    ts: Int64Array
    values: Int64Array
    valid: BoolArray | None = None
    is_ordered: bool = True


class Monitor(Protocol):
    """Follows one constraint; compiled or vectorised over the batch, and independent of its borders."""

    constraint: KConstraint

    @property
    def k(self) -> int | None:
        """k_u, the value to use now; None is infinity, also where it lies above the threshold."""

    @property
    def attention(self) -> str:
        """How it looks now: at "all" rows, at those of one key in some ("1 in 8"), or at none: it is "resting", since
        the constraint is kept, or has been "given up" until it is tried again."""

    def observe(self, arrivals: Arrivals, parents: Arrivals | None = None) -> None:
        """The rows of one slice. arrivals: of the constraint's stream.  parents: RIDS only: of the parent stream, in
        the same slice; of one instant, the parents count as before the children.
        """

    @property
    def asleep_until(self) -> int:
        """The number of the first row of its stream that it is to be shown; those before may be left out."""

    def need(self, user: object, most: int, may_sample: bool) -> None:
        """A user has no use for k above `most`. may_sample: it notices itself what comes too late."""

    def below(self, k: int, number: int | None = None) -> int | None:
        """OAP and OAC: no row to come, from this number on, has a lesser word if k holds. None: nothing is known."""

    def notice(self, number: int) -> None:
        """Conditions have changed before this row of its stream: if it sleeps, it looks again from here on."""

    def refuted(self) -> None:
        """The executor has found a row that the constraint, at the k it gave, said could not come: reset."""


@runtime_checkable
class KeyMonitor(Monitor, Protocol):
    """Of a KEY: k is 0, or infinite where it is none."""

    def declare(self) -> None:
        """Somebody says that it is a key: it is taken for one until a value comes twice."""


class Monitors(Protocol):
    """The constraints of a connection: one monitor for each, however many use it."""

    def watch(self, constraint: KConstraint, user: User) -> Monitor:
        """The monitor, new or shared."""

    def leave(self, constraint: KConstraint, user: User) -> None:
        """The user is closed; a monitor nobody uses is forgotten."""


@dataclass(frozen=True)
class Source:
    """Where an input's rows come from. stream: its name, "" where no other join can name it.  attributes: of its
    columns.
    """

    stream: str
    attributes: tuple[str, ...]


class Watches(Protocol):
    """The constraints of one join: what it tells them, and what they let it take for granted."""

    def observe(self, part: Sequence[Batch | None], firsts: Sequence[int], is_forced: bool = False) -> None:
        """Take the rows of one part, all of them. firsts: the number of each input's first, where it has no others.

        is_forced: k will not be the monitors'.
        """

    def tell(self) -> None:
        """Show the monitors all that has come."""

    def keys(self, forced: Callable[[KConstraint], int | None] | None = None) -> list[bool]:
        """The sides whose columns are a key of their stream, as far as is known. forced: gives k in their place."""

    def take_keys(self, keys: Sequence[bool]) -> None:
        """Watch what these keys make useful, and nothing else."""

    def reckon(self, figures: Rows[StreamFigures], now: int) -> bool:
        """Tell the monitors which k are of use, if that has changed, and whether conditions have.

        figures: of the streams (`kernels.k_mon_keys`).
        """

    def room(self, figures: Rows[StreamFigures]) -> list[int]:
        """Rows of each stream that room should be made for: a small part of those that its window takes."""

    def limits(self, counts: Int64Array, forced: Callable[[KConstraint], int | None] | None = None) -> Rows[Limit]:
        """What may be taken for granted now, for each side (`kernels.k_mon_reduction`).

        counts: of each stream, the rows taken in that pass its filter.  forced: gives k in place of the monitors.
        """

    def wait_for_dead(self, side: int, figures: Rows[StreamFigures]) -> tuple[float, float]:
        """What it takes not to remember which children are dead.

        Returns (the parents on a side that come while one of them waits for a child, the children that stand in their
        window); the former inf, where nothing is known of children to come. figures: of the streams.
        """

    def refute(self, sides: Iterable[int]) -> None:
        """Rows have come by these sides that the constraints said would not come."""

    def refute_keys(self, sides: Iterable[int]) -> None:
        """Two rows agree in the columns of each of these sides."""

    def sides_closed_by(self, constraint: KConstraint) -> list[int]:
        """The sides by which no row is expected because of a constraint."""

    def close(self) -> None:
        """Nobody asks any more."""
