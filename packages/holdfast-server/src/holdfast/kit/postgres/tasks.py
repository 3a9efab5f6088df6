"""Tasks: work that a transaction enqueues, and that a job (`background/tasks.py`) runs later.

The code that enqueues a task gives the task and its arguments. The `part.py` of its noun names its function.
"""

from dataclasses import dataclass
from typing import Generic, LiteralString, TypeVar

from msgspec import Struct

A = TypeVar("A", bound=Struct)

CHANNEL: LiteralString = "tasks"
"""The channel on which delayed tasks are announced."""

JOBS_CHANNEL: LiteralString = "procrastinate_any_queue_v1"
"""The channel of PostgreSQL on which the job library announces each stored job."""

ENQUEUE: LiteralString = "select enqueue_task(%(name)s, %(arguments)s::jsonb, %(delay)s)"


@dataclass(frozen=True)
class Task(Generic[A]):
    """A kind of work, and the type of its arguments."""

    name: str
    arguments: type[A]


class EnqueuedTask(Struct, Generic[A]):
    """A task as it is stored: the tenant whose rows it may use, and its arguments."""

    tenant: int | None
    arguments: A
