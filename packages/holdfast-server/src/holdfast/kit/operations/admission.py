"""Admission: what a process refuses while its work waits too long.

A process finishes everything that it has begun. While the work in progress waits too long, new work is refused before
its body is read, and each refused client is told another time to come again. Work that waits only for other work of
its tenant, or for a locked row, causes only further work of that tenant to be refused.

Reads are refused first, then changes, then what follows up on accepted work. Health checks, metrics, documents, cached
pages, the console, the check-in, signing in and messages of partners are never refused here. See decision 81.
"""

import math
import time
from collections.abc import Callable, Coroutine
from enum import Enum
from typing import Any, ParamSpec, Self, TypeVar

from holdfast.kit.contract.bounds import Bound
from holdfast.kit.contract.problems import SERVICE_UNAVAILABLE, Problem

P = ParamSpec("P")
A = TypeVar("A")


class Priority(Enum):
    """How many seconds the work in progress may have waited before new work of this kind is refused."""

    READ = 2
    """Reads and lists, which every caller can repeat."""

    CHANGE = 4
    """Registrations, joins, changes of stock and everything else that is stored."""

    FOLLOW_UP = 8
    """Questions about what was accepted: polls, places in a queue, tokens."""


MIN_IN_PROGRESS = 200
"""Work in progress below which nothing is refused, however slow it is."""

WORK_IN_PROGRESS = Bound(
    name="Work in progress",
    service="both",
    total=f"above {MIN_IN_PROGRESS}, reads are refused when work waits {Priority.READ.value} s, changes "
    f"{Priority.CHANGE.value} s, follow-ups {Priority.FOLLOW_UP.value} s",
    tenant="what waits for a share of its own counts for itself alone",
    address="-",
    reserved="signing in, console, check-in, partners",
    stranger="Others wait for the work that it has in progress.",
)

MEASURE_SECONDS = 1
"""How often it is measured how much work is finished a second."""

MAX_RETRY_SECONDS = 10
"""The longest time after which clients are told to come again."""


class Backlog:
    """The work in progress of a process, or that of one tenant which waits only for other work of that tenant.

    Its methods take the present time, `now`, in seconds.
    """

    def __init__(self, now: float) -> None:
        self.in_progress = 0
        self._sum_of_begin_times = 0.0
        """The sum of the times at which the work in progress began."""
        self._finished = 0
        self._measured_at = now
        self._rate = 1.0
        """How much work was finished a second when it was measured."""
        self._next_turn = 0.0
        """The time at which the last refused client comes again."""

    def begin(self, now: float) -> None:
        self.in_progress += 1
        self._sum_of_begin_times += now

    def remove(self, began_at: float) -> None:
        """Stop counting work that began at a time."""
        self.in_progress -= 1
        # Set to 0 without work, so that errors of rounding do not add up.
        self._sum_of_begin_times = self._sum_of_begin_times - began_at if self.in_progress else 0.0

    def finish(self, now: float, was_done: bool) -> None:
        """Note that work ended.

        was_done    whether it was done: it was not refused because too much work waits
        """
        self._measure(now)
        self._finished += was_done

    def require_capacity(self, priority: Priority, now: float) -> None:
        """Raise `service_unavailable` if the work in progress waits too long for more work of this kind."""
        if self.in_progress < MIN_IN_PROGRESS:
            return
        # Work that is done in order of arrival has been there, on average, for half of the time that it takes.
        seconds = 2 * (now - self._sum_of_begin_times / self.in_progress)
        if seconds >= priority.value:
            message = f"Work waits for {seconds:.0f} seconds. This request was not begun."
            raise SERVICE_UNAVAILABLE(message, retry_after=self.retry_after(now))

    def retry_after(self, now: float) -> int:
        """The seconds after which a refused client should come again.

        Each client gets a turn of its own, so that refused clients come again as fast as work is finished.
        """
        self._measure(now)
        self._next_turn = min(max(self._next_turn, now) + 1 / self._rate, now + MAX_RETRY_SECONDS)
        return math.ceil(self._next_turn - now)

    def _measure(self, now: float) -> None:
        """Measure how much work was finished a second, if the last time is long enough ago."""
        if now >= self._measured_at + MEASURE_SECONDS:
            self._rate = max(1.0, self._finished / (now - self._measured_at))
            self._measured_at, self._finished = now, 0


class Work:
    """An operation in progress, for as long as a `with` block lasts.

    tenant    the only tenant whose other work waits for it; None: work of all tenants waits for it
    """

    __slots__ = ("_admission", "_backlog", "_began_at", "_tenant")

    def __init__(self, admission: "Admission", tenant: int | None) -> None:
        self._admission = admission
        self._tenant = tenant
        self._began_at = admission.now()

    def __enter__(self) -> Self:
        self._backlog = self._admission.backlog_of(self._tenant)
        self._backlog.begin(self._began_at)
        return self

    def move_to_tenant(self, tenant: int | None) -> None:
        """From now on, count the work only for a tenant. None: it is not known who waits; it counts for none."""
        self._end()
        self._tenant = tenant
        self._backlog = self._admission.backlog_of(tenant) if tenant is not None else Backlog(self._began_at)
        self._backlog.begin(self._began_at)

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        was_refused = isinstance(error, Problem) and error.type is SERVICE_UNAVAILABLE
        self._backlog.finish(self._admission.now(), not was_refused)
        self._end()

    def _end(self) -> None:
        self._backlog.remove(self._began_at)
        if self._tenant is not None and not self._backlog.in_progress:
            self._admission.forget(self._tenant)


class Admission:
    """Counts the work of one process, and refuses work that would wait too long.

    clock    returns the present time in seconds, which never goes back
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.now = clock
        self._backlog = Backlog(clock())
        self._tenants: dict[int, Backlog] = {}
        """The backlog of each tenant with work in progress for which only other work of that tenant waits."""

    @property
    def in_progress(self) -> int:
        """How much work is in progress for which all tenants wait."""
        return self._backlog.in_progress

    def work(self, tenant: int | None = None) -> Work:
        """Work that begins now; `tenant` is as in `Work`."""
        return Work(self, tenant)

    def backlog_of(self, tenant: int | None) -> Backlog:
        """The work for which only a tenant waits; with None, the work for which all tenants wait."""
        if tenant is None:
            return self._backlog
        backlog = self._tenants.get(tenant)
        if backlog is None:
            backlog = self._tenants[tenant] = Backlog(self.now())
        return backlog

    def forget(self, tenant: int) -> None:
        """Forget a tenant that has no more work in progress."""
        self._tenants.pop(tenant, None)

    def counted(self, run: Callable[P, Coroutine[Any, Any, A]]) -> Callable[P, Coroutine[Any, Any, A]]:
        """A function whose calls are counted as work in progress for which all tenants wait."""

        async def run_counted(*arguments: P.args, **options: P.kwargs) -> A:
            with self.work():
                return await run(*arguments, **options)

        return run_counted

    def require_capacity(self, priority: Priority, tenant: int | None = None) -> None:
        """Raise `service_unavailable` if work waits too long for more of this kind: all work, or that of the tenant."""
        now = self.now()
        self._backlog.require_capacity(priority, now)
        if tenant in self._tenants:
            self._tenants[tenant].require_capacity(priority, now)

    def retry_after(self) -> int:
        """The seconds after which a refused client should come again, as fast as work of the process is finished."""
        return self._backlog.retry_after(self.now())
