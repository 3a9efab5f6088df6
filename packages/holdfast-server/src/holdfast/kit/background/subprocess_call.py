"""Calls a function in a subprocess, at low priority: for work that takes longer than requests may wait.

A thread is not enough: while one thread of a process runs Python, the others wait. Arguments and results go through
pipes, so that they are neither in files nor in the command line.
"""

import asyncio
import contextlib
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable
from typing import Generic, Self, TypeVar, get_type_hints

import msgspec
import structlog

from holdfast.kit.background import subprocess_main
from holdfast.kit.background.subprocess_main import MAX_MESSAGE_BYTES, MESSAGE_HEADER, NICENESS

A = TypeVar("A")
R = TypeVar("R")

CALL_TIMEOUT_SECONDS = 30
"""Seconds that the subprocess may take to start, and by default for each answer, also on a busy machine."""

EXIT_TIMEOUT_SECONDS = 1
"""Seconds that a subprocess may take to end after it has closed its pipe, before it is killed."""

MAX_ATTEMPTS = 3
"""Attempts of a call during which the subprocess ends."""

log = structlog.get_logger()


class SubprocessStartError(Exception):
    """The subprocess could not be started. No call is the cause."""


class SubprocessCrash(Exception):
    """The subprocess ended, or did not answer in time, at each attempt of this call.

    status    the exit status of the last subprocess
    """

    def __init__(self, message: str, status: int | None) -> None:
        super().__init__(message)
        self.status = status


class SubprocessException(Exception):
    """The function has raised an exception. The message is its traceback."""

    def __repr__(self) -> str:
        """The exception alone, on one line."""
        return str(self).rstrip().rpartition("\n")[2]


class _SubprocessExit(Exception):
    """The subprocess has ended, or did not answer in time."""

    def __init__(self, status: int | None, error: Exception) -> None:
        super().__init__(f"status {status}, {error!r}")
        self.status = status


class SubprocessCall(Generic[A, R]):
    """A function that runs in a subprocess. The first call starts the subprocess, and the end of the block ends it.

    function    a module-level function of one argument, with annotations; arguments and results are sent as MessagePack
    seconds     the timeout of an answer
    tries       the maximum number of attempts of a call during which the subprocess ends
    niceness    the niceness of the subprocess: the higher, the smaller its share of a busy processor
    """

    def __init__(
        self,
        function: Callable[[A], R],
        *,
        seconds: float = CALL_TIMEOUT_SECONDS,
        tries: int = MAX_ATTEMPTS,
        niceness: int = NICENESS,
    ) -> None:
        self._seconds, self._tries, self._niceness = seconds, tries, niceness
        self._module, self._name = function.__module__, function.__qualname__
        self._answer: msgspec.msgpack.Decoder[R] = msgspec.msgpack.Decoder(get_type_hints(function)["return"])
        self._process: Process | None = None
        self._calling = asyncio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End the subprocess. The next call starts another."""
        await self._end()

    async def __call__(self, argument: A) -> R:
        """The result. Raises `SubprocessException`, `SubprocessCrash`, `SubprocessStartError`, and `ValueError`
        for too large an argument.
        """
        question = msgspec.msgpack.encode(argument)
        if len(question) > MAX_MESSAGE_BYTES:
            raise ValueError(f"the message has {len(question)} bytes; it may have {MAX_MESSAGE_BYTES}")
        status: int | None = None
        async with self._calling:
            for _ in range(self._tries):
                process = self._process or await self._start()
                try:
                    return self._answer.decode(await self._ask(process, question))
                except _SubprocessExit as end:
                    status = end.status
                    log.warning("a process ended in the middle of its work", function=self._name, reason=str(end))
        raise SubprocessCrash(f"the process that runs {self._name} ended {self._tries} times", status)

    async def _start(self) -> Process:
        """Start a subprocess and wait until it is ready. Raises `SubprocessStartError`."""
        try:
            process = self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", subprocess_main.__name__, self._module, self._name, str(self._niceness)),
                stdin=PIPE,
                stdout=PIPE,
                limit=MAX_MESSAGE_BYTES,
            )
            await self._ask(process, seconds=CALL_TIMEOUT_SECONDS)
        except (_SubprocessExit, OSError) as error:
            # The errors of uvloop do not name the program.
            message = f"the process that runs {self._name} cannot be started with {sys.executable}: {error}"
            raise SubprocessStartError(message) from error
        return process

    async def _ask(self, process: Process, question: bytes | None = None, seconds: float | None = None) -> bytes:
        """Send a question and return the next message. Raises `SubprocessException` and `_SubprocessExit`."""
        assert process.stdin
        assert process.stdout
        try:
            async with asyncio.timeout(seconds or self._seconds):
                if question is not None:
                    process.stdin.write(MESSAGE_HEADER.pack(False, len(question)) + question)
                    await process.stdin.drain()
                is_error, length = MESSAGE_HEADER.unpack(await process.stdout.readexactly(MESSAGE_HEADER.size))
                if length > MAX_MESSAGE_BYTES:
                    raise OSError(f"a message of {length} bytes")
                answer = await process.stdout.readexactly(length)
        except (EOFError, ConnectionError) as error:
            raise _SubprocessExit(await self._end(by_itself=True), error) from error
        except OSError as error:  # of the timeout
            raise _SubprocessExit(await self._end(), error) from error
        except BaseException:
            await self._end()  # the next call must not get the answer to this question
            raise
        if is_error:
            raise SubprocessException(answer.decode())
        return answer

    async def _end(self, *, by_itself: bool = False) -> int | None:
        """End the subprocess, if there is one. Returns its exit status.

        by_itself    whether it has closed its pipe and so is ending: `kill` would lose its exit status (CPython 3.11)
        """
        process, self._process = self._process, None
        if process is None:
            return None
        try:
            if by_itself:
                async with asyncio.timeout(EXIT_TIMEOUT_SECONDS):
                    await process.wait()
        except TimeoutError:
            pass
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
        return await process.wait()
