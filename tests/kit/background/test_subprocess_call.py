"""A function in a subprocess: a call is answered or refused however the process ends, and nothing is left."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
import uvloop
from structlog.testing import capture_logs

from holdfast.kit.background.subprocess_call import (
    MAX_ATTEMPTS,
    SubprocessCall,
    SubprocessCrash,
    SubprocessException,
    SubprocessStartError,
)
from holdfast.kit.background.subprocess_main import MAX_MESSAGE_BYTES, NICENESS
from tests.helpers.events_service import eventually
from tests.helpers.serving import bind_port
from tests.kit import import_failure, subprocess_functions
from tests.kit.subprocess_functions import Addends


@pytest.fixture(autouse=True)
def of_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the other process find the functions of tests."""
    monkeypatch.setenv("PYTHONPATH", subprocess_functions.PATH)


async def test_calls_are_answered_by_one_process_which_ends_with_the_block() -> None:
    async with SubprocessCall(subprocess_functions.add_numbers) as add:
        answers = await asyncio.gather(*(add(Addends(number, 1)) for number in range(20)))

    assert [answer for answer, _ in answers] == [*range(1, 21)]
    [process] = {process for _, process in answers}
    assert process != os.getpid()
    assert not psutil.pid_exists(process)


async def test_a_subprocess_is_not_started_before_the_first_call() -> None:
    before = psutil.Process().children()
    async with SubprocessCall(subprocess_functions.add_numbers):
        assert psutil.Process().children() == before


def test_a_subprocess_keeps_no_listening_socket_of_the_service() -> None:
    async def call() -> list[Any]:
        async with SubprocessCall(subprocess_functions.add_numbers) as add:
            _, process = await add(Addends(1, 1))
            return psutil.Process(process).net_connections("inet")

    with bind_port() as port, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        port.listen()
        port.set_inheritable(True)  # as that of a worker is, which got it from its parent
        assert runner.run(call()) == []


async def test_a_subprocess_runs_at_low_priority() -> None:
    async with SubprocessCall(subprocess_functions.niceness) as look:
        assert await look(None) == min(os.nice(0) + NICENESS, 19)
    async with SubprocessCall(subprocess_functions.niceness, niceness=3) as look:
        assert await look(None) == min(os.nice(0) + 3, 19)


async def test_an_exception_comes_back_in_words_and_harms_no_other_call() -> None:
    async with SubprocessCall(subprocess_functions.cut) as cut:
        with pytest.raises(SubprocessException) as raised:
            await cut("")
        assert await cut("ab") == "a"

    assert repr(raised.value) == "IndexError: string index out of range"
    assert "in cut" in str(raised.value)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_subprocess_ignores_signals_to_the_whole_service(number: int) -> None:
    async with SubprocessCall(subprocess_functions.add_numbers) as add:
        _, process = await add(Addends(1, 1))
        os.kill(process, number)
        assert await add(Addends(1, 2)) == (3, process)


async def test_a_process_that_was_killed_is_replaced() -> None:
    async with SubprocessCall(subprocess_functions.add_numbers) as add:
        _, first = await add(Addends(1, 1))
        os.kill(first, signal.SIGKILL)
        answer, second = await add(Addends(1, 2))

    assert (answer, second != first) == (3, True)


async def test_a_call_in_which_the_process_was_killed_is_tried_again(tmp_path: Path) -> None:
    kills = tmp_path / "kills"
    kills.write_text("\n".join("x" * (MAX_ATTEMPTS - 1)))
    with capture_logs() as logs:
        async with SubprocessCall(subprocess_functions.killed_until) as call:
            assert await call(str(kills)) == "done"

    assert [log["event"] for log in logs] == ["a process ended in the middle of its work"] * (MAX_ATTEMPTS - 1)


async def test_a_call_that_ends_the_process_each_time_is_given_up_and_the_next_is_answered(tmp_path: Path) -> None:
    kills = tmp_path / "kills"
    kills.write_text("\n".join("x" * MAX_ATTEMPTS))
    async with SubprocessCall(subprocess_functions.killed_until) as call:
        with pytest.raises(SubprocessCrash, match="killed_until"):
            await call(str(kills))
        assert await call(str(kills)) == "done"


async def test_a_process_that_does_not_answer_is_replaced() -> None:
    async with SubprocessCall(subprocess_functions.hang, seconds=0.5, tries=1) as hang:
        with pytest.raises(SubprocessCrash):
            await hang(60)
        assert await hang(0.0) == 0.0


async def test_a_call_without_a_retry_says_how_its_process_ended(tmp_path: Path) -> None:
    kills = tmp_path / "kills"
    kills.write_text("x")
    async with SubprocessCall(subprocess_functions.killed_until, tries=1) as call:
        with pytest.raises(SubprocessCrash) as crashed:
            await call(str(kills))

    assert crashed.value.status == -signal.SIGKILL


async def test_a_call_after_a_cancelled_one_gets_its_own_answer() -> None:
    async with SubprocessCall(subprocess_functions.hang) as hang:
        await hang(0.0)
        call = asyncio.create_task(hang(1.0))
        await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert await hang(0.5) == 0.5


async def test_messages_to_and_from_a_subprocess_are_bounded() -> None:
    async with SubprocessCall(subprocess_functions.repeat_byte) as repeat:
        assert len(await repeat(MAX_MESSAGE_BYTES - 100)) == MAX_MESSAGE_BYTES - 100
        with pytest.raises(SubprocessException, match="the answer has"):
            await repeat(MAX_MESSAGE_BYTES)
    async with SubprocessCall(subprocess_functions.cut) as cut:
        with pytest.raises(ValueError, match="the message has"):
            await cut("x" * MAX_MESSAGE_BYTES)


async def test_a_process_that_cannot_be_started_raises_an_error_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    async with SubprocessCall(import_failure.exists) as exists:
        with monkeypatch.context() as during:
            during.setenv("UNFIT", "1")
            with pytest.raises(SubprocessStartError, match="exists"):
                await exists("/")
        assert await exists("/")

    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    async with SubprocessCall(import_failure.exists) as exists:
        with pytest.raises(SubprocessStartError, match="nowhere"):
            await exists("/")


ASKING = """
import asyncio, sys
from holdfast.kit.background.subprocess_call import SubprocessCall
from tests.kit import subprocess_functions

async def main():
    async with SubprocessCall(getattr(subprocess_functions, sys.argv[1])) as call:
        if sys.argv[1] == "add_numbers":
            print((await call(subprocess_functions.Addends(1, 1)))[1], flush=True)
            await asyncio.sleep(60)
        print("asks", flush=True)
        await call(0.5)

asyncio.run(main())
"""


def _start_asking_process(function: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", ASKING, function], stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("function", ["add_numbers", "hang"])
async def test_no_orphan_is_left_when_the_process_that_calls_is_killed(function: str) -> None:
    with _start_asking_process(function) as asking:
        assert asking.stdout
        asking.stdout.readline()
        await eventually(lambda: psutil.Process(asking.pid).children())
        [orphan] = psutil.Process(asking.pid).children()
        asking.kill()

    await eventually(_has_ended(orphan))


def _has_ended(process: psutil.Process) -> Callable[[], Any]:
    async def ended() -> bool:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE

    return ended
