"""A part of a service: all that one noun registers, in its `part.py`. A service is a list of its parts."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import chain
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar

from holdfast.kit.background.loops import Loop
from holdfast.kit.background.row_work import RowWork
from holdfast.kit.background.tasks import TaskHandler, TimedTask
from holdfast.kit.http.index import Route
from holdfast.kit.operations.operation import Operations
from holdfast.kit.postgres.database import Database
from holdfast.kit.security.service_secret import SealedTable
from holdfast.kit.security.signed_tokens import SigningKeyTable

C = TypeVar("C")


class Endpoints(NamedTuple):
    """What answers requests in one process.

    routes     the routes of its pages, documents and webhooks
    caches     contexts in which notices keep its caches up to date
    closing    functions that are called when the process ends, such as to close connections to other services
    """

    routes: Sequence[Route] = ()
    caches: Sequence[Callable[[], AbstractContextManager[None]]] = ()
    closing: Sequence[Callable[[], Awaitable[None]]] = ()

    @classmethod
    def joined(cls, endpoints: Iterable["Endpoints"]) -> "Endpoints":
        """The endpoints of several parts, joined."""
        every = [*endpoints]
        return cls(*([*chain.from_iterable(members)] for members in zip(*every, strict=True))) if every else cls()


class Part(NamedTuple, Generic[C]):
    """All that one noun registers with its service. Public operations are lines of the table of the service.

    operations    operations of pages, which have no route and no tool of their own
    endpoints     builds what answers requests, once in a process, from what its parts share
    row_work      makes its work on rows, once in a process
    loops         its loops
    senders       what sends mails until it is cancelled, by its name in logs
    tasks         what runs the tasks that transactions enqueue
    timed_tasks   tasks on a timetable; one process runs each
    keys          sets of keys that it signs with; the first keys are created at start
    sealed        tables with contents that are sealed with the secret of the service
    """

    operations: Operations = ()
    endpoints: Callable[[C], Endpoints] = lambda _: Endpoints()
    row_work: Callable[[Database[Any]], Sequence[RowWork[Any]]] = lambda _: ()
    loops: Sequence[Loop] = ()
    senders: Mapping[str, Callable[[Database[Any]], Awaitable[None]]] = MappingProxyType({})
    tasks: Sequence[TaskHandler[Any]] = ()
    timed_tasks: Sequence[TimedTask] = ()
    keys: Sequence[SigningKeyTable] = ()
    sealed: Sequence[SealedTable] = ()
