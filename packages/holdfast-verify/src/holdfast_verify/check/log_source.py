"""Where a public log is read: over HTTP from its address, or from a directory with a copy of its files."""

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol
from urllib.parse import urljoin, urlsplit

import httpx2

MAX_FILE_BYTES = 4_000_000
"""The largest file of a log that is read: a bundle of 256 entries has about 60 kB."""

REQUEST_TIMEOUT_SECONDS = 20.0
"""Seconds to wait for the next bytes of an answer."""

ANSWER_TIMEOUT_SECONDS = 120.0
"""Seconds within which an answer has to be complete."""

RETRY_PAUSES_SECONDS = (0.5, 2.0, 5.0)
MAX_PAUSE_SECONDS = 30.0
RETRIED_STATUSES = {429, 502, 503, 504}

HEAD_LOG_PATH = "/log/heads"
"""How the address and the origin of a head log end, without the generation."""

_LOG_PATH = r"/log/(?:(?:events|queues)/\d+|heads)"
LOG_PATH = re.compile(rf"(.*{_LOG_PATH}(?:/\d+)?)(?:/(?:checkpoint|key)?)?")
_GENERATION = re.compile(rf"({_LOG_PATH})/([0-9]{{1,9}})$")
_ROOM = re.compile(r"(.*)(/queues/\d+)(?:/embed)?/?")
_LINK = re.compile(r'href="([^"]*/log/(?:events|queues)/\d+)["/]')


class VerificationError(Exception):
    """Something cannot be checked. The message is a sentence."""


class MissingFile(VerificationError):
    """The log does not have a file. `comes_later`: it says that it will have it in a moment."""

    def __init__(self, message: str, *, comes_later: bool = False) -> None:
        super().__init__(message)
        self.comes_later = comes_later


class LogSource(Protocol):
    """A log. `name` says where it is; `origin` is what its checkpoints must be named, None if that is unknown."""

    name: str
    origin: str | None

    async def get(self, path: str) -> bytes:
        """The content of a file of the log, such as `checkpoint`. Raises `VerificationError`."""
        ...

    def earlier(self, generation: int) -> "LogSource | None":
        """The log of the same event or queue with a generation; None: it is unknown where."""
        ...

    def head_log(self) -> "LogSource":
        """The head log of the service. Raises `VerificationError` if it is unknown where."""
        ...


class DirectoryLog:
    """A copy of a log in a directory, with the paths that its address has."""

    def __init__(self, directory: Path) -> None:
        self.name = str(directory)
        self.origin: str | None = None
        self._directory = directory

    async def get(self, path: str) -> bytes:
        file = self._directory / path
        if not file.is_file():
            raise MissingFile(f"{file} is missing.")
        if file.stat().st_size > MAX_FILE_BYTES:
            raise VerificationError(f"{file} has more than {MAX_FILE_BYTES:,} bytes.")
        return file.read_bytes()

    def earlier(self, generation: int) -> LogSource | None:
        return None

    def head_log(self) -> LogSource:
        raise VerificationError(f"{self.name} is a copy of one log. Check the log at its address, with the head log.")


class HttpLog:
    """A log at an address, such as https://events.example.com/log/events/7."""

    def __init__(self, client: httpx2.AsyncClient, address: str) -> None:
        self.name = address
        self.origin: str | None = address.partition("://")[2]
        self.client = client

    async def get(self, path: str) -> bytes:
        return await fetch(self.client, f"{self.name}/{path}")

    def earlier(self, generation: int) -> LogSource | None:
        return HttpLog(self.client, f"{without_generation(self.name)}/{generation}")

    def head_log(self) -> LogSource:
        return HttpLog(self.client, f"{self.name.rpartition('/log/')[0]}{HEAD_LOG_PATH}")


@asynccontextmanager
async def http_client() -> AsyncGenerator[httpx2.AsyncClient]:
    """A client for the requests of one check."""
    async with httpx2.AsyncClient(timeout=REQUEST_TIMEOUT_SECONDS, verify=httpx2.create_ssl_context()) as client:
        yield client


async def fetch(client: httpx2.AsyncClient, url: str) -> bytes:
    """The content of a URL. A service that is busy is asked again. Raises `VerificationError`."""
    status, retry_after = 0, ""
    for pause in (*RETRY_PAUSES_SECONDS, None):
        try:
            async with (
                asyncio.timeout(ANSWER_TIMEOUT_SECONDS),
                client.stream("GET", url, follow_redirects=True) as response,
            ):
                if response.status_code == 200:
                    return await _content(response, url)
                status, retry_after = response.status_code, response.headers.get("retry-after", "")
        except TimeoutError as error:
            raise VerificationError(f"{url} did not end within {ANSWER_TIMEOUT_SECONDS:.0f} seconds.") from error
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise VerificationError(
                f"{url} cannot be reached: {str(error).strip() or type(error).__name__}."
            ) from error
        if status in (404, 410):
            raise MissingFile(f"{url} is not there: it is answered with {status}.", comes_later=bool(retry_after))
        if pause is None or status not in RETRIED_STATUSES:
            break
        seconds = float(retry_after) if re.fullmatch("[0-9]{1,6}", retry_after) else pause
        await asyncio.sleep(min(seconds, MAX_PAUSE_SECONDS))
    raise VerificationError(f"{url} is answered with {status}.")


async def _content(response: httpx2.Response, url: str) -> bytes:
    content = bytearray()
    async for chunk in response.aiter_bytes():
        content += chunk
        if len(content) > MAX_FILE_BYTES:
            raise VerificationError(f"{url} has more than {MAX_FILE_BYTES:,} bytes.")
    return bytes(content)


async def log_address(client: httpx2.AsyncClient, url: str) -> str:
    """The address of the log that a URL names: its own, that of a file of it, or that of a page with a link to it."""
    url = url.partition("#")[0]
    if match := LOG_PATH.fullmatch(url.partition("?")[0]):
        return match[1]
    if room := _ROOM.fullmatch(url.partition("?")[0]):
        return f"{room[1]}/log{room[2]}"
    page = (await fetch(client, url)).decode(errors="replace")
    link = _LINK.search(page)
    if not link:
        raise VerificationError(f"{url} is not the address of a log, and the page there names none.")
    try:
        return urljoin(url, link[1])
    except ValueError as error:
        raise VerificationError(f"{url} names a log whose address cannot be read: {link[1]!r}.") from error


def without_generation(origin: str) -> str:
    """The origin or address of the first log of an event or queue, from that of a later one."""
    return _GENERATION.sub(r"\1", origin)


def generation_of(origin: str) -> int:
    """The generation of a log, from its origin or address; the first one has none in it."""
    match = _GENERATION.search(origin)
    return int(match[2]) if match else 1


def address_of_origin(origin: str) -> str:
    """The address of the log with an origin. It has TLS, unless its host is this machine.

    Raises `VerificationError`.
    """
    try:
        host = urlsplit(f"//{origin}").hostname or ""
    except ValueError as error:
        raise VerificationError(f"{origin!r} is not the origin of a log at an address.") from error
    is_local = host in ("localhost", "127.0.0.1", "::1") or host.endswith(".localhost")
    return f"{'http' if is_local else 'https'}://{origin}"
