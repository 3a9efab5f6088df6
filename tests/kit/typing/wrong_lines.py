"""Lines that are wrong on purpose. Each ends with `# refused`; `test_modes.py` lets the type checker refuse them.

This file is left out of the project's own type check.
"""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from holdfast.kit.background.tasks import Schedule, TaskHandler, TimedTask
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import Command
from holdfast.kit.contract.problems import Problem
from holdfast.kit.operations.operation import Batch, Call, Operation, batched, read, read_batched, single, steps
from holdfast.kit.operations.steps import Conclusion, Steps
from holdfast.kit.postgres.database import Reader, Tx
from holdfast.kit.postgres.transactions import Task


class Ask(Command):
    question: str


class Answer(Struct):
    answer: str


class Letter(Struct):
    to: str


async def change(tx: Tx[Any], caller: Caller, command: Ask) -> Answer:
    return Answer(command.question)


async def look(reader: Reader[Any], caller: Caller, command: Ask) -> Answer:
    return Answer(command.question)


async def change_many(tx: Tx[Any], batch: Batch[Ask]) -> Sequence[Answer | Problem]:
    return [Answer(call.command.question) for call in batch.calls]


async def change_calls(tx: Tx[Any], calls: Sequence[Call[Ask]]) -> Sequence[Answer | Problem]:
    return [Answer(call.command.question) for call in calls]


async def answer_of_many(tx: Tx[Any], batch: Batch[Ask]) -> Answer:
    return Answer(batch.calls[0].command.question)


async def take_no_command(tx: Tx[Any], caller: Caller, command: Answer) -> Answer:
    return command


async def conclude(opened: Steps[Any], caller: Caller, command: Ask) -> Conclusion[Answer]:
    return await opened.conclude(lambda tx: change(tx, caller, command))


async def forget_to_conclude(opened: Steps[Any], caller: Caller, command: Ask) -> Answer:
    return await opened.transact(lambda tx: change(tx, caller, command))


async def write_while_reading(reader: Reader[Any], caller: Caller, command: Ask) -> Answer:
    await reader.run("delete from everything")  # refused
    return Answer("gone")


async def post(opened: Steps[Any], letter: Letter) -> None: ...


async def tidy(tx: Tx[Any]) -> int:
    await tx.enqueue(POST, Letter("ada"))
    await tx.enqueue(POST, Answer("ada"))  # refused
    return 0


POST = Task("post", Letter)

RIGHT = (
    Operation("look", None, read(look)),
    Operation("look", None, single(look)),
    Operation("change", None, single(change)),
    Operation("change_many", None, batched(change_many)),
    Operation("conclude", None, steps(conclude)),
    TaskHandler(POST, post),
)

BARE = Operation("change", None, change)  # refused
READS_AND_WRITES = read(change)  # refused
READS_AND_WRITES_MANY = read_batched(change_many)  # refused
MANY_AS_ONE = single(change_many)  # refused
ONE_AS_MANY = batched(change)  # refused
MANY_WITHOUT_BATCH = batched(change_calls)  # refused
ONE_ANSWER_FOR_MANY = batched(answer_of_many)  # refused
NO_COMMAND = single(take_no_command)  # refused
NEVER_CONCLUDED = steps(forget_to_conclude)  # refused
NO_STEPS = steps(change)  # refused
IN_STEPS_AS_ONE = single(conclude)  # refused
OTHER_ARGUMENTS = TaskHandler(Task("post", Answer), post)  # refused
NOT_IN_A_TRANSACTION = TimedTask("tidy", Schedule.minutes(1), tidy)  # refused
