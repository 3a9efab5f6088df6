"""Files on the local disk, and the signed addresses at which this service itself receives uploads."""

import asyncio
import contextlib
import os
import tempfile
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import IO, ParamSpec, TypeVar
from urllib.parse import urlencode

import structlog

from holdfast.events.problems import UPLOAD_REFUSED
from holdfast.events.storage.store import CHUNK_BYTES, MAX_CONCURRENT_FILES, OpenedFile, file_slots, file_turn
from holdfast.kit.contract.problems import SERVICE_UNAVAILABLE
from holdfast.kit.security.service_secret import HmacSigner

P = ParamSpec("P")
T = TypeVar("T")

log = structlog.get_logger()


class DiskStore:
    """Files in a directory.

    base_url    the address of this service, without a slash at the end
    signer      signs the addresses of uploads
    """

    def __init__(self, root: Path, base_url: str, signer: HmacSigner) -> None:
        self._root = root
        self._base_url = base_url
        self._signer = signer
        self._threads = ThreadPoolExecutor(MAX_CONCURRENT_FILES, thread_name_prefix="files")
        self._slots = file_slots()

    async def upload_url(self, name: str, content_type: str, content_length: int, seconds: int) -> str:
        terms = {"type": content_type, "length": str(content_length), "expires": str(int(time.time()) + seconds)}
        return f"{self._base_url}/{name}?{urlencode({**terms, 'signature': self._signer.sign(_signed(name, terms))})}"

    def admit(self, name: str, query: Mapping[str, str], content_type: str, content_length: str) -> None:
        """Check that an upload agrees with the signed query of its address. Raises `upload_refused`."""
        if not self._signer.accepts(_signed(name, query), query.get("signature", "")):
            raise UPLOAD_REFUSED("The address of the upload is not one that was presigned here.")
        if int(query["expires"]) <= time.time():
            raise UPLOAD_REFUSED("The address of the upload has expired.")
        if content_type != query["type"]:
            raise UPLOAD_REFUSED(f"The upload must be declared as Content-Type: {query['type']}.")
        if content_length != query["length"]:
            raise UPLOAD_REFUSED(f"The upload must be announced as Content-Length: {query['length']}.")

    @asynccontextmanager
    async def open(self, name: str) -> AsyncGenerator[OpenedFile | None]:
        file = await self._in_thread(_open, self._root / name)
        if file is None:
            yield None
            return
        with file:
            yield OpenedFile(os.fstat(file.fileno()).st_size, self._chunks(file))

    async def write(self, name: str, content: bytes, content_type: str) -> None:
        async def at_once() -> AsyncIterator[bytes]:
            yield content

        await self.receive(name, at_once())

    async def receive(self, name: str, chunks: AsyncIterator[bytes]) -> None:
        """Store a file that arrives in chunks. It becomes visible only when it is complete."""
        path = self._root / name
        # A thread goes on when its caller is cancelled. The file that it makes is then removed too.
        beginning = asyncio.ensure_future(self._in_thread(_begin, path))
        try:
            part = await asyncio.shield(beginning)
            async for chunk in chunks:
                await self._in_thread(part.write, chunk)
            await self._in_thread(_finish, part, path, self._root)
        except BaseException:
            _drop(await beginning)
            raise

    async def delete(self, names: Sequence[str]) -> None:
        await self._in_thread(_delete, [self._root / name for name in names])

    async def _chunks(self, file: IO[bytes]) -> AsyncIterator[bytes]:
        while chunk := await self._in_thread(file.read, CHUNK_BYTES):
            yield chunk

    async def _in_thread(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a blocking function in a thread. Raises `service_unavailable` if the disk fails."""
        try:
            async with file_turn(self._slots):
                return await asyncio.get_running_loop().run_in_executor(self._threads, partial(work, *args, **kwargs))
        except OSError as error:
            log.error("the photo store is out of reach", error=str(error))
            raise SERVICE_UNAVAILABLE("The photo store cannot be reached right now.", retry_after=5) from error


def _signed(name: str, terms: Mapping[str, str]) -> str:
    """The signed text of an upload's address."""
    return "\n".join((name, *(terms.get(name_of_term, "") for name_of_term in ("type", "length", "expires"))))


def _open(path: Path) -> IO[bytes] | None:
    with contextlib.suppress(FileNotFoundError):
        return path.open("rb")
    return None


def _begin(path: Path) -> IO[bytes]:
    path.parent.mkdir(parents=True, exist_ok=True)
    return tempfile.NamedTemporaryFile(dir=path.parent, prefix=f"{path.name}.", delete=False)


def _finish(part: IO[bytes], path: Path, root: Path) -> None:
    """Move a complete file to its path, and flush it to disk so that it survives a crash of the machine."""
    with part:
        part.flush()
        os.fsync(part.fileno())
    Path(part.name).replace(path)
    for directory in path.parents:
        _sync(directory)
        if directory == root.parent:
            break


def _drop(part: IO[bytes]) -> None:
    part.close()
    Path(part.name).unlink(missing_ok=True)


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _delete(paths: Sequence[Path]) -> None:
    for path in paths:
        # This also deletes incomplete files of killed processes.
        for file in path.parent.glob(f"{path.name}*"):
            file.unlink(missing_ok=True)
