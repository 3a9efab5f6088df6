"""Jobs that post letters."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager

from msgspec import Struct

from holdfast.events.resources import Database, Steps
from holdfast.kit.background import tasks
from holdfast.kit.background.tasks import TaskHandler
from holdfast.kit.postgres.transactions import Task
from tests.helpers.background_loops import run_in_background


class Letter(Struct):
    to: str
    pages: int = 1


POST_LETTER = Task("post_letter", Letter)

LetterHandler = Callable[[Steps, Letter], Awaitable[None]]


def run_letter_jobs(database: Database, run: LetterHandler, attempts: int = 10) -> AbstractAsyncContextManager[None]:
    """A process that does the jobs, for as long as the block lasts."""
    return run_in_background(tasks.run_tasks(database, [TaskHandler(POST_LETTER, run, attempts)], ()))
