"""Calls a function in a process of its own, at low priority: for work that takes longer than requests may wait.

A thread would not do: while one thread of a process runs Python, the others wait. What the function needs and returns
goes through pipes, so that it is neither in files nor in the command line.
"""

import asyncio
import contextlib
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable
from typing import Generic, Self, TypeVar, get_type_hints

import msgspec
import structlog

from holdfast.kit import there
from holdfast.kit.there import HEADER, LARGEST

A = TypeVar("A")
R = TypeVar("R")

SECONDS = 30
"""How long the process may take to start, and for each answer, also on a busy machine."""

TRIES = 3
"""How often a call is tried at which the process ends."""

log = structlog.get_logger()


class NotStarted(Exception):
    """The process could not be started. No call is to blame."""


class Crashed(Exception):
    """The process ended, or did not answer in time, each time that this call was tried."""


class Raised(Exception):
    """The function has raised an exception, whose traceback this is."""

    def __repr__(self) -> str:
        """The exception alone, on one line."""
        return str(self).rstrip().rpartition("\n")[2]


class _Gone(Exception):
    """The process has ended, or did not answer in time."""


class Elsewhere(Generic[A, R]):
    """A function that runs in another process. The first call starts the process, and the end of the block ends it.

    function    one with annotations, of one argument, which its module has by its name; messages are `msgspec`'s
    """

    def __init__(self, function: Callable[[A], R]) -> None:
        self._module, self._name = function.__module__, function.__qualname__
        self._answer: msgspec.msgpack.Decoder[R] = msgspec.msgpack.Decoder(get_type_hints(function)["return"])
        self._process: Process | None = None
        self._calling = asyncio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._end()

    async def __call__(self, argument: A) -> R:
        """What the function returns. Raises `Raised`, `Crashed`, `NotStarted`, and `ValueError` if it is too much."""
        question = msgspec.msgpack.encode(argument)
        if len(question) > LARGEST:
            raise ValueError(f"the message has {len(question)} bytes; it may have {LARGEST}")
        async with self._calling:
            for _ in range(TRIES):
                process = self._process or await self._started()
                try:
                    return self._answer.decode(await self._asked(process, question))
                except _Gone as gone:
                    log.warning("a process ended in the middle of its work", function=self._name, reason=str(gone))
        raise Crashed(f"the process that runs {self._name} ended {TRIES} times")

    async def _started(self) -> Process:
        """A process that has told that it is ready. Raises `NotStarted`."""
        try:
            process = self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", there.__name__, self._module, self._name),
                stdin=PIPE,
                stdout=PIPE,
                limit=LARGEST,
            )
            await self._asked(process)
        except (_Gone, OSError) as error:
            raise NotStarted(f"the process that runs {self._name} cannot be started: {error}") from error
        return process

    async def _asked(self, process: Process, question: bytes | None = None) -> bytes:
        """The answer to a question; without one, the first message. Raises `Raised` and `_Gone`."""
        assert process.stdin
        assert process.stdout
        try:
            async with asyncio.timeout(SECONDS):
                if question is not None:
                    process.stdin.write(HEADER.pack(False, len(question)) + question)
                    await process.stdin.drain()
                is_error, length = HEADER.unpack(await process.stdout.readexactly(HEADER.size))
                if length > LARGEST:
                    raise OSError(f"a message of {length} bytes")
                answer = await process.stdout.readexactly(length)
        except (OSError, EOFError) as error:  # also of the timeout
            raise _Gone(f"status {await self._end()}, {error!r}") from error
        except BaseException:
            await self._end()  # whoever asks next must not get the answer to this question
            raise
        if is_error:
            raise Raised(answer.decode())
        return answer

    async def _end(self) -> int | None:
        """End the process, if there is one. Returns its status."""
        process, self._process = self._process, None
        if process is None:
            return None
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        return await process.wait()
