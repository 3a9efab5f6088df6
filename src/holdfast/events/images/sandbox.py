"""Checks and scales the files that users send in a process of their own, with little time and memory, and no secrets.

A file that crashes the decoder ends only that process. The service goes on answering requests meanwhile.
"""

import asyncio
import io
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import structlog

from holdfast.events.images import image, scaling
from holdfast.events.images.container import Unfit
from holdfast.events.images.scaling import Scaled, widths_of
from holdfast.kit.problems import SERVICE_UNAVAILABLE
from holdfast.kit.said import said

SECONDS = 30
"""Seconds one file may take, also on a busy machine. The limit on processor time is lower: see `image.py`."""

AT_ONCE = 2
WAITING = 32
"""The most files that wait for their check. A further file is refused."""

PROGRAM = (sys.executable, "-I", "-m", image.__name__)
SCALER = (sys.executable, "-I", "-m", scaling.__name__)

log = structlog.get_logger()

_watching = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="photo")
_present = set[Future["Photo"]]()
_scaling = ThreadPoolExecutor(1, thread_name_prefix="photo-scaling")
"""Scaling has a thread of its own: nobody waits for it, and a file that is uploaded must not wait behind it."""


class Photo(NamedTuple):
    """A file that was checked, without its metadata."""

    content_type: str
    content: bytes


async def look_at(content: bytes, declared: str = "") -> Photo:
    """The photo in a file. If a type is declared, the file must have it.

    Raises `Unfit`, and `service_unavailable` when too many files wait already.
    """
    if len(_present) >= AT_ONCE + WAITING:
        raise SERVICE_UNAVAILABLE("Too many photos wait to be looked at already.", retry_after=5)
    looked_at = _watching.submit(_look_at, content)
    _present.add(looked_at)
    looked_at.add_done_callback(_present.discard)
    photo = await asyncio.wrap_future(looked_at)
    if declared not in ("", photo.content_type):
        raise Unfit(said("is %(found)s, not %(declared)s", found=photo.content_type, declared=declared[:100]))
    return photo


async def scale(content: bytes) -> Scaled:
    """The sizes of a photo. Raises `Unfit`, and `TimeoutError` when the machine is too busy."""
    return await asyncio.get_running_loop().run_in_executor(_scaling, _scale, content)


def _look_at(content: bytes) -> Photo:
    try:
        content_type, _, kept = _run(PROGRAM, content).partition(b"\n")
    except TimeoutError as error:
        raise Unfit(said("takes too long to decode")) from error
    return Photo(content_type.decode(), kept)


def _scale(content: bytes) -> Scaled:
    numbers, _, files = _run(SCALER, content).partition(b"\n")
    width, height, *lengths = map(int, numbers.split())
    file = io.BytesIO(files)
    return Scaled(
        width,
        height,
        {each: file.read(length) for each, length in zip(widths_of(width, height), lengths, strict=True)},
    )


def _run(program: Sequence[str], content: bytes) -> bytes:
    """The output of a program for one file. Raises `Unfit` and `TimeoutError`.

    Uses temporary files, because pipes would need this process to copy the data.
    """
    environment = {name: os.environ[name] for name in ("SYSTEMROOT",) if name in os.environ}
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as found:
        given.write(content)
        given.seek(0)
        try:
            ran = subprocess.run(  # noqa: S603 - the command contains nothing that users sent
                program,
                stdin=given,
                stdout=found,
                stderr=subprocess.PIPE,
                env=environment,
                timeout=SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise TimeoutError(f"the decoder took longer than {SECONDS} seconds") from error
        found.seek(0)
        output = found.read()
    if ran.returncode == image.UNFIT:
        raise Unfit(said(output.decode()))
    if ran.returncode < 0:
        # A signal killed the process, because of its limits or because of the file.
        log.warning("a file took its decoder down", signal=-ran.returncode, size=len(content))
        raise Unfit(said("takes too much to decode"))
    if ran.returncode:
        raise RuntimeError(f"the decoder ended with status {ran.returncode}: {ran.stderr.decode(errors='replace')}")
    return output
