"""A part of a service: all that one noun registers, in its `part.py`. A service is a list of its parts."""

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import AbstractContextManager
from itertools import chain
from typing import Any, Generic, NamedTuple, TypeVar

from holdfast.kit.background.tasks import Job, PeriodicJob
from holdfast.kit.http.index import Route
from holdfast.kit.postgres.database import Database
from holdfast.kit.running.operation import Operations
from holdfast.kit.security.secrets import SealedTable
from holdfast.kit.security.signed_tokens import KeySet

C = TypeVar("C")

Loop = Callable[[Database[Any]], Coroutine[Any, Any, None]]


class Doors(NamedTuple):
    """What answers requests in one process.

    routes     the routes of its pages, documents and webhooks
    caches     contexts in which notifications keep its caches up to date
    closing    functions that are called when the process ends, such as to close connections to other services
    """

    routes: Sequence[Route] = ()
    caches: Sequence[Callable[[], AbstractContextManager[None]]] = ()
    closing: Sequence[Callable[[], Awaitable[None]]] = ()

    @classmethod
    def joined(cls, doors: Iterable["Doors"]) -> "Doors":
        """The doors of several parts as one."""
        every = [*doors]
        return cls(*([*chain.from_iterable(members)] for members in zip(*every, strict=True))) if every else cls()


class Part(NamedTuple, Generic[C]):
    """All that one noun registers with its service. Public operations are lines of the table of the service.

    operations    operations of pages, which have no route and no tool of their own
    doors         builds what answers requests, once in a process, from what its parts share
    loops         work that runs as long as the process does, in any number of processes
    led           loops that one process at a time runs, their leader
    tasks         the jobs that run the tasks which transactions enqueue
    timed         jobs on a timetable; one process runs each
    keys          sets of keys that it signs with; the first keys are created at start
    sealed        tables with contents that are sealed with the secret of the service
    """

    operations: Operations = ()
    doors: Callable[[C], Doors] = lambda _: Doors()
    loops: Sequence[Loop] = ()
    led: Sequence[Loop] = ()
    tasks: Sequence[Job[Any]] = ()
    timed: Sequence[PeriodicJob] = ()
    keys: Sequence[KeySet] = ()
    sealed: Sequence[SealedTable] = ()
