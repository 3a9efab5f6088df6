"""Requests to URLs that users or settings name. They must not reach the operator's own network.

The host name in a URL is looked up once, all its addresses are checked, and the connection is made to a checked
address. The name is not looked up again, so a DNS answer that changes in between has no effect. The URL of a redirect
is checked in the same way.
"""

import asyncio
import socket
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from ipaddress import IPv4Address, IPv6Address, ip_address
from types import MappingProxyType
from typing import NamedTuple

import httpx2

from holdfast.kit.contract.bounds import Bound
from holdfast.kit.contract.caller import Owner
from holdfast.kit.contract.messages import message
from holdfast.kit.operations.slots import OwnerNode, Slots
from holdfast.kit.outbound.public_addresses import is_public
from holdfast.kit.outbound.refusals import (
    CONNECT_TIMEOUT_SECONDS,
    FetchRefusal,
    broken_off,
    not_connected,
    not_public,
    too_slow,
)
from holdfast.kit.security.http_client import reset_connections, trusted_certificates

MAX_REDIRECTS = 3
MAX_SKIPPED_BYTES = 65_536
"""The longest body of an answer to a post that is read. Its connection is used again."""

REDIRECT_STATUSES = {301, 302, 303, 307, 308}

MAX_CONCURRENT_REQUESTS = 32
"""Concurrent requests of one client. Each of them may use its whole limit of bytes."""

MAX_CONCURRENT_REQUESTS_OF_OWNER = 8
"""Concurrent requests of one owner, so that an owner with slow servers leaves slots for others."""

MAX_WAITING = 16
"""Requests of one owner that wait; they hold nothing yet."""

WAIT_SECONDS = 10
"""Seconds that a request waits for earlier ones."""

MAX_CONCURRENT_LOOK_UPS = 8

MAX_CONCURRENT_LOOK_UPS_OF_OWNER = 2
"""A look-up cannot be cancelled: it holds its thread until the resolver gives up, also when no caller waits."""

FETCHES = Bound(
    name="Addresses that users give and the service fetches",
    service="both",
    total=f"{MAX_CONCURRENT_REQUESTS} for each purpose, such as photos",
    tenant=f"{MAX_CONCURRENT_REQUESTS_OF_OWNER}, in turns; {MAX_WAITING} wait",
    address=f"all unconfirmed organizers together: {MAX_CONCURRENT_REQUESTS_OF_OWNER}, in turns",
    reserved="-",
    stranger=f"It can use {MAX_CONCURRENT_REQUESTS_OF_OWNER} of {MAX_CONCURRENT_REQUESTS}. Other strangers wait one "
    "turn, of at most 10 seconds.",
)
LOOK_UPS = Bound(
    name="Look-ups of the names in such addresses",
    service="both",
    total=f"{MAX_CONCURRENT_LOOK_UPS} for each purpose",
    tenant=f"{MAX_CONCURRENT_LOOK_UPS_OF_OWNER}, in turns",
    address=f"all unconfirmed organizers together: {MAX_CONCURRENT_LOOK_UPS_OF_OWNER}",
    reserved="-",
    stranger=f"It can use {MAX_CONCURRENT_LOOK_UPS_OF_OWNER} of {MAX_CONCURRENT_LOOK_UPS}, until the resolver gives up "
    "a name.",
)

LookUp = Callable[[str, int], Awaitable[Sequence[str]]]
"""The addresses of a host name, for a port. Raises OSError if there are none."""


class FetchedContent(NamedTuple):
    """The content of a URL.

    content_type    the media type from the server, in lower case and without parameters; empty if there is none
    headers         all headers of the answer, by name in lower case
    """

    content: bytes
    content_type: str
    headers: Mapping[str, str]


class PostAnswer(NamedTuple):
    """The answer to content that was posted. Its body is not read.

    headers    all headers of the answer, by name in lower case
    """

    status: int
    headers: Mapping[str, str]


def checked_url(url: str, *, seen_from: httpx2.URL | None = None, ports: Collection[int] = ()) -> httpx2.URL:
    """The parsed URL, after all checks that need no look-up. Raises `FetchRefusal`.

    seen_from    the URL of the answer that redirects to it
    ports        ports that it may name
    """
    try:
        parsed = seen_from.join(url) if seen_from else httpx2.URL(url)
    except httpx2.InvalidURL as error:
        raise FetchRefusal(message("is not a URL, or redirects to what is none"), "address") from error
    if parsed.scheme not in {"http", "https"} or not parsed.host:
        raise FetchRefusal(message("must begin with http:// or https:// and a host"), "address")
    if parsed.userinfo:
        raise FetchRefusal(message("must not carry a user name or password"), "address")
    if parsed.port is not None and parsed.port not in ports:
        raise FetchRefusal(message("must use the default port, 80 for http or 443 for https"), "address")
    return parsed


class OutboundClient:
    """A client for public http and https addresses on their default ports.

    seconds    the timeout of a request, with its look-ups and redirects
    exempt     pairs of address and port that may be reached although they are not public; only for tests and trials
    trust      the trusted certificate authorities; None: those of the system
    look_up    the function that finds the addresses of a name
    """

    def __init__(
        self,
        *,
        seconds: float = 10,
        exempt: Collection[tuple[str, int]] = (),
        trust: ssl.SSLContext | None = None,
        look_up: LookUp | None = None,
    ) -> None:
        self._seconds = seconds
        self._exempt = frozenset((ip_address(address), port) for address, port in exempt)
        self._ports = {port for _, port in self._exempt}
        self._trust = trust
        self._look_up = look_up or self._resolve
        self._look_ups = Slots(
            LOOK_UPS, MAX_CONCURRENT_LOOK_UPS, max_per_address=MAX_CONCURRENT_LOOK_UPS_OF_OWNER, timeout=WAIT_SECONDS
        )
        self._threads = ThreadPoolExecutor(MAX_CONCURRENT_LOOK_UPS, thread_name_prefix="look-up")
        self._slots = Slots(
            FETCHES,
            MAX_CONCURRENT_REQUESTS,
            max_per_address=MAX_CONCURRENT_REQUESTS_OF_OWNER,
            timeout=WAIT_SECONDS,
            max_waiting=MAX_WAITING,
            retry_after=lambda: 10,
        )

    def checked(self, url: str) -> httpx2.URL:
        """The parsed URL, after all checks that need no look-up. Raises `FetchRefusal`."""
        parsed = checked_url(url, ports=self._ports)
        if (address := _ip_address(parsed.host)) and not is_public(address) and not self.is_exempt(parsed):
            raise not_public()
        return parsed

    def is_exempt(self, url: httpx2.URL) -> bool:
        """Whether a URL names an address and a port that are exempt."""
        return (_ip_address(url.host), url.port) in self._exempt

    async def get(
        self, url: str, *, owner: Owner, limit: int, accept: str = "*/*", redirects: int = MAX_REDIRECTS
    ) -> FetchedContent:
        """Fetch a URL of at most `limit` bytes for an owner, following at most `redirects` redirects.

        owner    who has the turn; its first part is the same for all who use this client

        Raises `FetchRefusal`, or `service_unavailable` if too many requests wait.
        """
        at = self.checked(url)
        async with self._slots.slot_of(owner):
            try:
                async with asyncio.timeout(self._seconds):
                    return await self._follow(owner, at, limit, accept, redirects)
            except TimeoutError as error:
                raise too_slow(self._seconds) from error
            except httpx2.TransportError as error:
                raise broken_off() from error

    async def post(self, url: str, content: bytes, *, owner: Owner, headers: Mapping[str, str]) -> PostAnswer:
        """Post content to a URL for an owner. Redirects are not followed, and the body of the answer is not read.

        Raises `FetchRefusal`, or `service_unavailable` if too many requests wait.
        """
        at = self.checked(url)
        async with self._slots.slot_of(owner):
            try:
                async with asyncio.timeout(self._seconds), self._answer(owner, at, "*/*", content, headers) as answer:
                    return PostAnswer(answer.status_code, dict(answer.headers))
            except TimeoutError as error:
                raise too_slow(self._seconds) from error
            except httpx2.TransportError as error:
                raise broken_off() from error

    @asynccontextmanager
    async def session(self, url: str, *, owner: Owner, connections: int) -> AsyncGenerator["PostSession"]:
        """Up to `connections` connections, which stay open, to post much to one URL. Its name is looked up once.

        Raises `FetchRefusal`, or `service_unavailable` if too many requests wait.
        """
        at = self.checked(url)
        async with self._slots.slot_of(owner):
            try:
                async with asyncio.timeout(self._seconds):
                    addresses = await self._addresses(owner, at)
            except TimeoutError as error:
                raise too_slow(self._seconds) from error
            limits = httpx2.Limits(max_connections=connections, max_keepalive_connections=connections)
            async with httpx2.AsyncHTTPTransport(verify=await self._trusted(), limits=limits) as transport:
                yield PostSession(transport, at, addresses, self._seconds)

    async def _follow(self, owner: Owner, at: httpx2.URL, limit: int, accept: str, redirects: int) -> FetchedContent:
        for _ in range(redirects + 1):
            async with self._answer(owner, at, accept) as response:
                if response.status_code not in REDIRECT_STATUSES:
                    return await _read(response, limit)
                at = checked_url(response.headers.get("location", ""), seen_from=at, ports=self._ports)
        if redirects:
            raise FetchRefusal(message("redirects more than %(most)s times", most=redirects), "content")
        raise FetchRefusal(message("redirects to another address"), "content")

    @asynccontextmanager
    async def _answer(
        self,
        owner: Owner,
        url: httpx2.URL,
        accept: str,
        content: bytes | None = None,
        more_headers: Mapping[str, str] = MappingProxyType({}),
    ) -> AsyncGenerator[httpx2.Response]:
        """The answer to one request, with its body unread. With content, the request posts it."""
        method = "GET" if content is None else "POST"
        headers = {
            **more_headers,
            "Host": url.netloc.decode("ascii"),
            "User-Agent": "Holdfast",
            "Accept": accept,
            # A compressed body could become far larger than the bytes that were counted.
            "Accept-Encoding": "identity",
            "Connection": "close",
        }
        # The address replaces the name in the URL; the certificate is still checked against the name.
        extensions = {"sni_hostname": url.raw_host.decode("ascii"), "timeout": {"connect": CONNECT_TIMEOUT_SECONDS}}
        async with httpx2.AsyncHTTPTransport(verify=await self._trusted()) as transport:
            failure: Exception | None = None
            for address in await self._addresses(owner, url):
                at = url.copy_with(host=address)
                request = httpx2.Request(method, at, headers=headers, content=content, extensions=extensions)
                try:
                    with reset_connections():
                        response = await transport.handle_async_request(request)
                except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                    failure = error
                    continue
                yield response
                return
        raise not_connected(failure)

    async def _trusted(self) -> ssl.SSLContext:
        return self._trust or await asyncio.to_thread(trusted_certificates)

    async def _addresses(self, owner: Owner, url: httpx2.URL) -> Sequence[str]:
        """The addresses of a host. Raises `FetchRefusal` unless all of them may be reached."""
        port = url.port or {"http": 80, "https": 443}[url.scheme]
        try:
            texts = await self._look_up_in_turn(owner, url.raw_host.decode("ascii"), port)
            addresses = [ip_address(text) for text in texts]
        except (OSError, ValueError) as error:
            raise not_public() from error
        for address in addresses:
            exempt = (address, port) in self._exempt
            if not exempt and (url.port is not None or not is_public(address)):
                raise not_public()
        return texts

    async def _look_up_in_turn(self, owner: Owner, host: str, port: int) -> Sequence[str]:
        """Look up a name. The slot is held until the look-up ends, also if no caller waits for it any more."""
        slot = await self._look_ups.take(owner)
        looking_up = asyncio.ensure_future(self._look_up(host, port))
        looking_up.add_done_callback(partial(self._end_look_up, slot))
        return await asyncio.shield(looking_up)

    def _end_look_up(self, slot: OwnerNode, looking_up: asyncio.Future[Sequence[str]]) -> None:
        self._look_ups.release(slot)
        if not looking_up.cancelled():
            looking_up.exception()  # it is raised to the request, if that still waits

    async def _resolve(self, host: str, port: int) -> Sequence[str]:
        resolve = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
        results = await asyncio.get_running_loop().run_in_executor(self._threads, resolve)
        return list(dict.fromkeys(str(socket_address[0]) for *_, socket_address in results))


class PostSession:
    """Posts to one URL over connections that stay open, to addresses that were checked."""

    def __init__(
        self, transport: httpx2.AsyncHTTPTransport, url: httpx2.URL, addresses: Sequence[str], seconds: float
    ) -> None:
        self._transport = transport
        self._urls = [url.copy_with(host=address) for address in addresses]
        self._seconds = seconds
        self._headers = {
            "Host": url.netloc.decode("ascii"),
            "User-Agent": "Holdfast",
            "Accept": "*/*",
            "Accept-Encoding": "identity",
        }
        self._extensions = {
            "sni_hostname": url.raw_host.decode("ascii"),
            "timeout": {"connect": CONNECT_TIMEOUT_SECONDS},
        }

    async def post(self, content: bytes, headers: Mapping[str, str]) -> PostAnswer:
        """Post content. Redirects are not followed. Raises `FetchRefusal` if no status comes.

        The status is the answer: a body that breaks off or does not end changes nothing.
        """
        response: httpx2.Response | None = None
        try:
            async with asyncio.timeout(self._seconds):
                response = await self._post_to_any_address(content, {**headers, **self._headers})
                try:
                    await _skip_body(response)
                finally:
                    await response.aclose()
        except TimeoutError as error:
            if response is None:
                raise too_slow(self._seconds) from error
        except httpx2.TransportError as error:
            if response is None:
                raise broken_off() from error
        return PostAnswer(response.status_code, dict(response.headers))

    async def _post_to_any_address(self, content: bytes, headers: Mapping[str, str]) -> httpx2.Response:
        failure: Exception | None = None
        for url in [*self._urls]:
            request = httpx2.Request("POST", url, headers=headers, content=content, extensions=self._extensions)
            try:
                with reset_connections():
                    response = await self._transport.handle_async_request(request)
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                failure = error
                continue
            self._urls = [url]  # the next request uses the connection to the address that answers
            return response
        raise not_connected(failure)


async def _skip_body(response: httpx2.Response) -> None:
    """Read a short body, so that its connection can be used again. One that is longer is left unread."""
    size = 0
    async for chunk in response.aiter_raw():
        size += len(chunk)
        if size > MAX_SKIPPED_BYTES:
            return


async def _read(response: httpx2.Response, limit: int) -> FetchedContent:
    """The body, counted as it arrives. The declared length is only used to refuse early. Raises `FetchRefusal`."""
    if response.status_code != 200:
        raise FetchRefusal(message("is answered with status %(status)s", status=response.status_code), "content")
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise FetchRefusal(message("is answered in compressed form, though that was not asked for"), "content")
    too_large = FetchRefusal(message("holds more than %(most)s bytes", most=limit), "content")
    if int(response.headers.get("content-length", "0")) > limit:
        raise too_large
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > limit:
            raise too_large
    content_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    return FetchedContent(bytes(body), content_type, dict(response.headers))


def _ip_address(host: str) -> IPv4Address | IPv6Address | None:
    """The IP address that a host of a URL is; None if it is a name."""
    try:
        return ip_address(host)
    except ValueError:
        return None
