"""Checks and scales the files of users in subprocesses, with limited time and memory, and without secrets.

A file that crashes the decoder ends only the subprocess. The service continues to answer requests.
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
from holdfast.events.images.container import UnfitFile
from holdfast.events.images.scaling import ScaledPhoto, widths_of
from holdfast.kit.contract.messages import message
from holdfast.kit.contract.problems import SERVICE_UNAVAILABLE

TIMEOUT_SECONDS = 30
"""The most seconds for one file, also on a busy machine. The limit of processor time is lower: see `image.py`."""

MAX_CONCURRENT_CHECKS = 2
MAX_WAITING_FILES = 32
"""The most files that wait for their check. Further files are refused."""

CHECKER = (sys.executable, "-I", "-m", image.__name__)
SCALER = (sys.executable, "-I", "-m", scaling.__name__)

log = structlog.get_logger()

_check_threads = ThreadPoolExecutor(MAX_CONCURRENT_CHECKS, thread_name_prefix="photo")
_checks = set[Future["CheckedPhoto"]]()
_scale_threads = ThreadPoolExecutor(1, thread_name_prefix="photo-scaling")
"""Scaling has a separate thread: no request waits for it, and an uploaded file must not wait behind it."""


class CheckedPhoto(NamedTuple):
    """A checked file, without its metadata."""

    content_type: str
    content: bytes


async def check(content: bytes, declared: str = "") -> CheckedPhoto:
    """Check a file. Returns the photo in it. If a type is declared, the file must have it.

    Raises `UnfitFile`, and `service_unavailable` when too many files wait already.
    """
    if len(_checks) >= MAX_CONCURRENT_CHECKS + MAX_WAITING_FILES:
        raise SERVICE_UNAVAILABLE("Too many photos wait to be looked at already.", retry_after=5)
    looked_at = _check_threads.submit(_check, content)
    _checks.add(looked_at)
    looked_at.add_done_callback(_checks.discard)
    photo = await asyncio.wrap_future(looked_at)
    if declared not in ("", photo.content_type):
        raise UnfitFile(message("is %(found)s, not %(declared)s", found=photo.content_type, declared=declared[:100]))
    return photo


async def scale(content: bytes) -> ScaledPhoto:
    """The sizes of a photo. Raises `UnfitFile`, and `TimeoutError` when the machine is too busy."""
    return await asyncio.get_running_loop().run_in_executor(_scale_threads, _scale, content)


def _check(content: bytes) -> CheckedPhoto:
    try:
        content_type, _, picture = _run(CHECKER, content).partition(b"\n")
    except TimeoutError as error:
        raise UnfitFile(message("takes too long to decode")) from error
    return CheckedPhoto(content_type.decode(), picture)


def _scale(content: bytes) -> ScaledPhoto:
    numbers, _, files = _run(SCALER, content).partition(b"\n")
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


def _run(program: Sequence[str], content: bytes) -> bytes:
    """Run a program with one file as its input. Returns its output. Raises `UnfitFile` and `TimeoutError`.

    It uses temporary files, because with pipes this process would have to copy the data.
    """
    environment = {name: os.environ[name] for name in ("SYSTEMROOT",) if name in os.environ}
    with tempfile.TemporaryFile() as input_file, tempfile.TemporaryFile() as output_file:
        input_file.write(content)
        input_file.seek(0)
        try:
            process = subprocess.run(  # noqa: S603 - the command contains nothing that users sent
                program,
                stdin=input_file,
                stdout=output_file,
                stderr=subprocess.PIPE,
                env=environment,
                timeout=TIMEOUT_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise TimeoutError(f"the decoder took longer than {TIMEOUT_SECONDS} seconds") from error
        output_file.seek(0)
        output = output_file.read()
    if process.returncode == image.UNFIT_STATUS:
        raise UnfitFile(message(output.decode()))
    if process.returncode < 0:
        # A signal killed the subprocess, because of its limits or because of the file.
        log.warning("a file took its decoder down", signal=-process.returncode, size=len(content))
        raise UnfitFile(message("takes too much to decode"))
    if process.returncode:
        raise RuntimeError(
            f"the decoder ended with status {process.returncode}: {process.stderr.decode(errors='replace')}"
        )
    return output
