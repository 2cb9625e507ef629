"""What a call may take while operators are at work: memory beyond `memory_limit`, and time.

Elements are admitted by `admission.py` before they are stored; what they then make of themselves, a join's pairs or the
texts of an expression, is counted here as it comes to be. The query whose operator asks for more than is left fails at
the first instant it has not answered; the connection and its other queries go on.

Invariant: a call adds no more to what was held when it began than `memory_limit` and a quarter, and what one operator
puts out at a time: what has waited for another stream's time, up to the limit, may be handed on. docs/overload.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from minidsms.cql.errors import MemoryLimitError, TimeLimitError
from minidsms.machine_code.compile_time import monotonic

if TYPE_CHECKING:
    from minidsms.limits.memory import MemoryAccount

T = TypeVar("T")
_AT_ONCE = 32
"""Values between two looks at the clock."""
_BEYOND = 4
"""A call may pass memory_limit by one part in so many: what comes after it is refused before queries fail."""
_NEVER = float("inf")
NO_MEMORY = "the system has no memory left"
"""Why a query fails with a MemoryError."""
TOO_MANY_ANSWERS = "nobody has fetched its answers: more would wait than answer_limit allows"
"""Why a query fails whose answers were not taken."""


class Allowance:
    """Of one connection. is_open: nothing is limited, and nobody need ask.

    account: of all that is held, or None where nothing is limited.  calls: so many have begun.  is_at_work: one is.
    left: bytes that may be taken, and subtracted here, before anybody need ask (`MemoryAccount`); below 0 they ask.
    began: what was left when the call began.  is_clocked: `check_time` may have something to say, and `begin` and `end`
    have to be told of calls.
    """

    def __init__(self, account: MemoryAccount | None = None) -> None:
        self._account = account
        self._most: int | None = None
        self.left = self.began = 0
        self._timeout_s: float | None = None
        self._deadline = _NEVER
        self.is_at_work = False
        self._is_interrupted = self.is_clocked = False
        self.calls = 0
        self.is_open = True

    def limit(self, memory_limit: int | None, timeout_s: float | None) -> None:
        """Take other limits: bytes, and seconds of a call."""
        self._most = None if memory_limit is None else memory_limit + memory_limit // _BEYOND
        self._timeout_s = timeout_s
        self.is_at_work = False
        self._forget_call()

    def begin(self) -> None:
        """A call begins, or goes on after a query has failed for want of time: the others have theirs."""
        self.calls += 1
        self.is_at_work = True
        self.began = self.left
        if self.is_clocked:
            self._forget_call()
            if self._timeout_s is not None:
                self._deadline = monotonic() + self._timeout_s

    def end(self) -> None:
        """The call is done."""
        self.is_at_work = False
        if self.is_clocked:
            self._forget_call()

    def _forget_call(self) -> None:
        self._is_interrupted = False
        self._deadline = _NEVER
        self.is_clocked = self._timeout_s is not None
        self.is_open = self._most is None and not self.is_clocked

    def expire(self) -> None:
        """The user has interrupted the call twice: what is at work has no more time."""
        if self.is_at_work:
            self._is_interrupted = self.is_clocked = True
            self.is_open = False

    def check_time(self) -> None:
        """TimeLimitError where the call has taken too long."""
        if self._is_interrupted:
            raise TimeLimitError("interrupted")
        if self._deadline != _NEVER and monotonic() > self._deadline:
            raise TimeLimitError(
                f"it has taken longer than the statement_timeout of {self._timeout_s:g} seconds; bound its windows, "
                "push less at once, or SET statement_timeout"
            )

    def listed(self, values: Iterable[T]) -> list[T]:
        """Values that take time to compute. TimeLimitError between two of them."""
        found: list[T] = []
        left = iter(values)
        while part := [*islice(left, _AT_ONCE)]:
            found += part
            if not self.is_open:
                self.check_time()
        return found

    def take(self, nbytes: int) -> None:
        """So many bytes more are about to be held. MemoryLimitError where they do not fit; TimeLimitError."""
        if self.is_clocked:
            self.check_time()
        account = self._account
        if self._most is None or account is None:
            return
        self.left -= nbytes
        if self.left < 0:
            limit = account.limit or 0
            began = account.known_with(self.began)
            most = self._most + min(began, limit)
            held = account.expect(nbytes, most)
            if held > most:
                # What this query held until now must not fail the others of the call.
                self.began -= max(0, min(held - nbytes, limit) - began)
                raise MemoryLimitError(
                    f"{held:,} bytes would be held, which is more than the memory_limit of {limit:,} and "
                    "a quarter beside what the call began with; bound its windows, push less at once, fetch answers, "
                    "or SET memory_limit"
                )


class OwnAllowance(Allowance):
    """Of a query with a memory_limit of its own, which is asked always. common: the connection's.  held: bytes that the
    query holds.
    """

    def __init__(self, common: Allowance, memory_limit: int, held: Callable[[], int]) -> None:
        super().__init__()
        self._common = common
        self._limit = memory_limit
        self._held = held
        self._call = -1
        self._held_then = 0
        self.is_open, self.is_clocked, self.left = False, True, -1

    def begin(self) -> None:
        """The query has failed for want of time: others have theirs."""
        self._common.begin()

    def check_time(self) -> None:
        """That of the call."""
        self._common.check_time()

    def take(self, nbytes: int) -> None:
        """As much as the connection allows, and the query's own limit."""
        self._common.take(nbytes)
        held = self._held()
        if self._call != self._common.calls:
            self._call, self._held_then = self._common.calls, min(held, self._limit)
        if held + nbytes > self._limit + self._limit // _BEYOND + self._held_then:
            raise MemoryLimitError(
                f"it would hold {held + nbytes:,} bytes, which is more than its memory_limit of {self._limit:,} and a "
                "quarter beside what the call began with; bound its windows, push less at once, fetch answers, or "
                "ALTER QUERY .. SET memory_limit"
            )


OPEN = Allowance()
"""Of operators that no connection runs."""
