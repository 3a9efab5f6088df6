"""Tasks: work that a transaction enqueues, and that a job (`jobs.py`) does later.

The code that enqueues a task gives the task and its arguments. The service's `jobs.py` defines the function for it.
"""

from dataclasses import dataclass
from typing import Generic, LiteralString, TypeVar

from msgspec import Struct

A = TypeVar("A", bound=Struct)

CHANNEL: LiteralString = "tasks"
"""The channel on which tasks are announced that are to be done later."""

ENQUEUE: LiteralString = "select enqueue_task(%(name)s, %(arguments)s::jsonb, %(delay)s)"

FUNCTION: LiteralString = """
    -- It has its owner's rights: work inside a tenant may enqueue, and sees no jobs.
    create function enqueue_task(name text, arguments jsonb, delay float8) returns bigint
    language sql security definer set search_path from current as $$
        select (procrastinate_defer_jobs_v1(array[row(
                    'default', name, 0, null, null, arguments,
                    case when delay > 0 then now() + delay * interval '1 second' end
                )::procrastinate_job_to_defer_v1]))[1]
    $$
"""
"""A migration that follows those of the job library."""


@dataclass(frozen=True)
class Task(Generic[A]):
    """A kind of work, and the type of its arguments."""

    name: str
    arguments: type[A]


class Enqueued(Struct, Generic[A]):
    """A task as it is stored: the tenant whose rows it may use, and its arguments."""

    tenant: int | None
    arguments: A
