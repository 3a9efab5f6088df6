"""Where the files of strangers are looked at: in a process of their own, with little time and memory, and no secrets.

A decoder that is led astray takes that process down and nothing else, and the service goes on answering meanwhile.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import structlog

from holdfast.events.photos import image
from holdfast.events.photos.container import Unfit
from holdfast.kit.problems import SERVICE_UNAVAILABLE

SECONDS = 30
"""How long one file may take on a busy machine. The process itself is content with less: see `image.py`."""

AT_ONCE = 2
WAITING = 32
"""Files that are looked at, and that wait for it. One more is refused."""

PROGRAM = (sys.executable, "-I", "-m", image.__name__)

log = structlog.get_logger()

_watching = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="photo")
_present = set[Future["Photo"]]()


class Photo(NamedTuple):
    """A file that was looked at, without what is not the picture."""

    content_type: str
    content: bytes


async def look_at(content: bytes, declared: str = "") -> Photo:
    """The photo in a file, which is of the type declared, if one is.

    Raises `Unfit`, or `service_unavailable` when too many wait already.
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
    """Let the program read a file and write another: pipes would keep this process busy with every page of them."""
    environment = {name: os.environ[name] for name in ("SYSTEMROOT",) if name in os.environ}
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as found:
        given.write(content)
        given.seek(0)
        try:
            ran = subprocess.run(  # noqa: S603 - nothing of the stranger's is in the command
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
        # Killed: by its limits, or by what it read.
        log.warning("a file took its decoder down", signal=-ran.returncode, size=len(content))
        raise Unfit("takes too much to decode")
    if ran.returncode:
        raise RuntimeError(f"the decoder ended with status {ran.returncode}: {ran.stderr.decode(errors='replace')}")
    content_type, _, kept = said.partition(b"\n")
    return Photo(content_type.decode(), kept)
