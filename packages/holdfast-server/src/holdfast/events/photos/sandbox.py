"""Checks and scales the files of users in subprocesses, with limited time and memory, and without secrets.

A file that crashes the decoder ends only the subprocess. The service continues to answer requests. Decoders are given
in turns of organizers (`events/users/quotas.py`), and each organizer has a budget of their time.
"""

import asyncio
import io
import os
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import IO, NamedTuple

import structlog

from holdfast.events.photos import image, scaling
from holdfast.events.photos.container import UnfitFile
from holdfast.events.photos.scaling import ScaledPhoto, widths_of
from holdfast.events.users.quotas import is_unproved
from holdfast.kit.contract.bounds import Bound, bound_without_strangers
from holdfast.kit.contract.caller import Owner
from holdfast.kit.contract.client import require_client, wait_while_connected
from holdfast.kit.contract.messages import message
from holdfast.kit.contract.problems import SERVICE_UNAVAILABLE
from holdfast.kit.operations.slots import Slots
from holdfast.kit.operations.time_budget import TimeBudget

TIMEOUT_SECONDS = 30
"""The most seconds for one file, also on a busy machine. The limit of processor time is lower: see `image.py`."""

WAIT_SECONDS = 60
"""The most seconds that a file waits for its turn."""

MAX_CONCURRENT_CHECKS = 2

MAX_WAITING_FILES = 64
"""The most files that wait for their check. For more, the organizers with the most waiting files give way."""

MAX_WAITING_FILES_OF_OWNER = 16
"""The most files of one organizer that wait for their check. Further files are refused."""

BUDGET_SECONDS = 600
DECODER_SECONDS = 200
"""The most processor seconds that the files of one organizer take in ten minutes: a third of the time of a decoder."""

UNPROVED_DECODER_SECONDS = 40
"""The most processor seconds of one organizer that has not confirmed its address, in ten minutes."""

CHECKER = (sys.executable, "-I", "-m", image.__name__)
SCALER = (sys.executable, "-I", "-m", scaling.__name__)

DECODERS = Bound(
    name="Photos that are decoded before they are accepted",
    service="events",
    total=f"{MAX_CONCURRENT_CHECKS}; {MAX_WAITING_FILES} wait",
    tenant=f"1, in turns; {MAX_WAITING_FILES_OF_OWNER} wait",
    address=f"all unconfirmed organizers together: 1, in turns; {MAX_WAITING_FILES_OF_OWNER} wait",
    reserved="1 for confirmed organizers",
    stranger=f"Each other address waits one turn, at most {image.MAX_CPU_SECONDS} seconds.",
)
DECODER_TIME = bound_without_strangers(
    name="Processor time of decoders",
    service="events",
    total="none",
    tenant=f"{DECODER_SECONDS} s in {BUDGET_SECONDS // 60} minutes; unconfirmed: {UNPROVED_DECODER_SECONDS} s",
)
SIZES = Bound(
    name="Photos whose sizes are made",
    service="events",
    total="1",
    tenant="1, in turns",
    address="none",
    reserved="-",
    stranger=f"As an organizer it delays others by a turn, at most {image.MAX_CPU_SECONDS} seconds.",
)

log = structlog.get_logger()

_threads = ThreadPoolExecutor(MAX_CONCURRENT_CHECKS + 1, thread_name_prefix="photo")
"""Copies the files for the decoders."""

_slots = Slots(
    DECODERS,
    MAX_CONCURRENT_CHECKS,
    max_per_address=1,
    timeout=WAIT_SECONDS,
    max_waiting=MAX_WAITING_FILES_OF_OWNER,
    max_waiting_together=MAX_WAITING_FILES,
    retry_after=lambda: 5,
)
budget = TimeBudget(
    DECODER_TIME,
    BUDGET_SECONDS,
    "The photos of one organizer may take {seconds} seconds to check in {minutes} minutes.",
)


class CheckedPhoto(NamedTuple):
    """A checked file, without its metadata."""

    content_type: str
    content: bytes


class DecoderResult(NamedTuple):
    """What is left of a decoder.

    status     its exit status; below 0, the signal that killed it
    seconds    the processor time that it took
    """

    status: int
    output: bytes
    errors: bytes
    seconds: float


def require_time(owner: Owner) -> None:
    """Raise `rate_limited` if the files of an owner have taken too much time."""
    budget.require(owner[-1], UNPROVED_DECODER_SECONDS if is_unproved(owner) else DECODER_SECONDS)


@asynccontextmanager
async def decoder_turn(owner: Owner) -> AsyncGenerator[None]:
    """Wait for the turn of an owner, in which one file is decoded. A caller that has gone has none.

    Raises `service_unavailable`, `rate_limited` and `client_gone`.
    """
    require_time(owner)
    async with _slots.slot_of(owner):
        require_client()
        require_time(owner)
        yield


async def check(content: bytes, owner: Owner, declared_type: str = "") -> CheckedPhoto:
    """Check a file of an owner in its turn. Returns the photo in it. If a type is declared, the file must have it.

    Raises `UnfitFile`, `service_unavailable`, `rate_limited` and `client_gone`.
    """
    async with decoder_turn(owner):
        return await decode(content, owner, declared_type)


async def decode(content: bytes, owner: Owner, declared_type: str = "") -> CheckedPhoto:
    """Check a file whose turn it is. The decoder ends when its caller goes.

    Raises `UnfitFile`, `service_unavailable` on a machine that is too busy, and `client_gone`.
    """
    began = time.monotonic()
    seconds: float | None = None
    try:
        result = await _run(CHECKER, content)
        seconds = result.seconds
    except TimeoutError as error:
        raise SERVICE_UNAVAILABLE("The photo could not be checked in time.", retry_after=30) from error
    finally:
        if seconds is None:
            seconds = min(time.monotonic() - began, image.MAX_CPU_SECONDS)
        budget.spend(owner[-1], seconds)
    content_type, _, picture = _output_of(result, content).partition(b"\n")
    photo = CheckedPhoto(content_type.decode(), picture)
    if declared_type not in ("", photo.content_type):
        raise UnfitFile(
            message("is %(detected)s, not %(declared)s", detected=photo.content_type, declared=declared_type[:100])
        )
    return photo


async def scale(content: bytes) -> ScaledPhoto:
    """The sizes of a photo. Raises `UnfitFile`, and `TimeoutError` when the machine is too busy."""
    numbers, _, files = _output_of(await _run(SCALER, content), content).partition(b"\n")
    width, height, *lengths = map(int, numbers.split())
    file = io.BytesIO(files)
    return ScaledPhoto(
        width,
        height,
        {
            width_of_size: file.read(length)
            for width_of_size, length in zip(widths_of(width, height), lengths, strict=True)
        },
    )


async def _run(program: Sequence[str], content: bytes) -> DecoderResult:
    """Run a program with one file as its input. Raises `TimeoutError`, and `client_gone` when its caller goes.

    It uses temporary files, because with pipes this process would have to copy the data.
    """
    loop = asyncio.get_running_loop()
    environment = {name: os.environ[name] for name in ("SYSTEMROOT",) if name in os.environ}
    with tempfile.TemporaryFile() as input_file, tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        await loop.run_in_executor(_threads, _fill, input_file, content)
        began = time.monotonic()
        process = await asyncio.create_subprocess_exec(
            *program, stdin=input_file, stdout=output, stderr=errors, env=environment
        )
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                status = await wait_while_connected(asyncio.ensure_future(process.wait()))
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        wall = time.monotonic() - began
        output_bytes, error_bytes = await loop.run_in_executor(_threads, lambda: (_read(output), _read(errors)))
    return DecoderResult(status, output_bytes, error_bytes, _processor_seconds(error_bytes, wall))


def _fill(file: IO[bytes], content: bytes) -> None:
    file.write(content)
    file.seek(0)


def _read(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read()


def _processor_seconds(errors: bytes, wall: float) -> float:
    """The processor time that a decoder has written as its last line; if it was killed, at most the time it ran."""
    _, separator, seconds = errors.rpartition(image.PROCESSOR_TIME)
    try:
        return float(seconds) if separator else min(wall, image.MAX_CPU_SECONDS)
    except ValueError:
        return min(wall, image.MAX_CPU_SECONDS)


def _output_of(result: DecoderResult, content: bytes) -> bytes:
    """The output of a decoder that has done its work. Raises `UnfitFile`."""
    if result.status == image.UNFIT_STATUS:
        raise UnfitFile(message(result.output.decode()))
    if result.status < 0:
        # A signal killed the subprocess, because of its limits or because of the file.
        log.warning("a file took its decoder down", signal=-result.status, size=len(content))
        raise UnfitFile(message("takes too much to decode"))
    if result.status:
        raise RuntimeError(f"the decoder ended with status {result.status}: {result.errors.decode(errors='replace')}")
    return result.output
