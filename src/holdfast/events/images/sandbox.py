"""Checks the files that users send in a process of their own, with little time and memory, and without secrets.

A file that crashes the decoder ends only that process. The service goes on answering requests meanwhile.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import structlog

from holdfast.events.images import image
from holdfast.events.images.container import Unfit
from holdfast.kit.problems import SERVICE_UNAVAILABLE

SECONDS = 30
"""Seconds one file may take, also on a busy machine. The limit on processor time is lower: see `image.py`."""

AT_ONCE = 2
WAITING = 32
"""The most files that wait for their check. A further file is refused."""

PROGRAM = (sys.executable, "-I", "-m", image.__name__)

log = structlog.get_logger()

_watching = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="photo")
_present = set[Future["Photo"]]()


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
    looked_at = _watching.submit(_run, content)
    _present.add(looked_at)
    looked_at.add_done_callback(_present.discard)
    photo = await asyncio.wrap_future(looked_at)
    if declared not in ("", photo.content_type):
        raise Unfit(f"is {photo.content_type}, not {declared[:100]}")
    return photo


def _run(content: bytes) -> Photo:
    """Run the program on one file. Uses temporary files, because pipes would need this process to copy the data."""
    environment = {name: os.environ[name] for name in ("SYSTEMROOT",) if name in os.environ}
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as found:
        given.write(content)
        given.seek(0)
        try:
            ran = subprocess.run(  # noqa: S603 - the command contains nothing that users sent
                PROGRAM,
                stdin=given,
                stdout=found,
                stderr=subprocess.PIPE,
                env=environment,
                timeout=SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise Unfit("takes too long to decode") from error
        found.seek(0)
        said = found.read()
    if ran.returncode == image.UNFIT:
        raise Unfit(said.decode())
    if ran.returncode < 0:
        # A signal killed the process, because of its limits or because of the file.
        log.warning("a file took its decoder down", signal=-ran.returncode, size=len(content))
        raise Unfit("takes too much to decode")
    if ran.returncode:
        raise RuntimeError(f"the decoder ended with status {ran.returncode}: {ran.stderr.decode(errors='replace')}")
    content_type, _, kept = said.partition(b"\n")
    return Photo(content_type.decode(), kept)
