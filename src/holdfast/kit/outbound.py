"""Requests to URLs that users give. They must not reach the operator's own network.

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
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import NamedTuple

import httpx2

from holdfast.kit.problems import SERVICE_UNAVAILABLE
from holdfast.kit.said import said

CONNECT_SECONDS = 3
"""How long one of several addresses may take to connect."""

REDIRECTS = 3
REDIRECTION = {301, 302, 303, 307, 308}

NOT_PUBLIC = said("names a host that has no public address")
"""Said of unknown names too, so that nobody learns which names the operator's own network has."""

AT_ONCE = 32
"""Requests one client makes at the same time, since each may fill its limit."""

LookUp = Callable[[str, int], Awaitable[Sequence[str]]]
"""Returns the addresses of a host name, for a port. Raises OSError when there are none."""


class Refused(Exception):
    """The content of a URL cannot be fetched. The message says why, as the end of a sentence about the URL."""


class Fetched(NamedTuple):
    """The content of a URL.

    content_type    the media type that the server gave: in lower case, without parameters, or empty
    headers         all headers of the answer, by their names in lower case
    """

    content: bytes
    content_type: str
    headers: Mapping[str, str]


class Outbound:
    """A client for public http and https addresses on their default ports.

    seconds    how long a request may take, with its look-ups and redirects
    exempt     pairs of address and port that may be reached although they are not public: only tests have any
    trust      the trusted certificate authorities; None: those that the system trusts
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
        self._look_up = look_up or _look_up
        self._under_way = 0

    async def get(self, url: str, *, limit: int, accept: str = "*/*", redirects: int = REDIRECTS) -> Fetched:
        """Fetch a URL of at most `limit` bytes, following at most so many redirects.

        Raises `Refused`, or `service_unavailable` if too many requests run.
        """
        if self._under_way >= AT_ONCE:
            raise SERVICE_UNAVAILABLE("Too many addresses are being fetched already.", retry_after=10)
        self._under_way += 1
        try:
            async with asyncio.timeout(self._seconds):
                return await self._follow(url, limit, accept, redirects)
        except TimeoutError as error:
            raise Refused(said("took longer than %(seconds)s seconds", seconds=f"{self._seconds:g}")) from error
        except httpx2.TransportError as error:
            raise Refused(said("broke off, or is not answered as HTTP has it")) from error
        finally:
            self._under_way -= 1

    async def _follow(self, url: str, limit: int, accept: str, redirects: int) -> Fetched:
        at = self._checked(url)
        for _ in range(redirects + 1):
            async with self._answer(at, accept) as response:
                if response.status_code not in REDIRECTION:
                    return await _read(response, limit)
                at = self._checked(response.headers.get("location", ""), at)
        if redirects:
            raise Refused(said("redirects more than %(most)s times", most=redirects))
        raise Refused(said("redirects to another address"))

    def _checked(self, url: str, seen_from: httpx2.URL | None = None) -> httpx2.URL:
        """The parsed URL, if all that can be checked without a look-up is acceptable. Raises `Refused`."""
        try:
            parsed = seen_from.join(url) if seen_from else httpx2.URL(url)
        except httpx2.InvalidURL as error:
            raise Refused(said("is not a URL, or redirects to what is none")) from error
        if parsed.scheme not in {"http", "https"} or not parsed.host:
            raise Refused(said("must begin with http:// or https:// and a host"))
        if parsed.userinfo:
            raise Refused(said("must not carry a user name or password"))
        if parsed.port is not None and parsed.port not in self._ports:
            raise Refused(said("must use the default port, 80 for http or 443 for https"))
        return parsed

    @asynccontextmanager
    async def _answer(self, url: httpx2.URL, accept: str) -> AsyncGenerator[httpx2.Response]:
        """The answer to one request; its body is not read yet."""
        headers = {
            "Host": url.netloc.decode("ascii"),
            "User-Agent": "Holdfast",
            "Accept": accept,
            # A compressed body could become far larger than the bytes that were counted.
            "Accept-Encoding": "identity",
            "Connection": "close",
        }
        # The address replaces the name in the URL; the certificate is still checked against the name.
        extensions = {"sni_hostname": url.raw_host.decode("ascii"), "timeout": {"connect": CONNECT_SECONDS}}
        async with httpx2.AsyncHTTPTransport(verify=await self._trusted()) as transport:
            for address in await self._addresses(url):
                request = httpx2.Request("GET", url.copy_with(host=address), headers=headers, extensions=extensions)
                try:
                    response = await transport.handle_async_request(request)
                except (httpx2.ConnectError, httpx2.ConnectTimeout):
                    continue
                yield response
                return
        raise Refused(said("cannot be reached, or has no certificate to be believed"))

    async def _trusted(self) -> ssl.SSLContext:
        if self._trust is None:
            # Reading the certificates of the system is slow, above all the first time.
            self._trust = await asyncio.to_thread(httpx2.create_ssl_context)
        return self._trust

    async def _addresses(self, url: httpx2.URL) -> Sequence[str]:
        """The addresses of a host. Raises `Refused` unless all of them may be reached."""
        port = url.port or {"http": 80, "https": 443}[url.scheme]
        try:
            found = await self._look_up(url.raw_host.decode("ascii"), port)
            addresses = [ip_address(each) for each in found]
        except (OSError, ValueError) as error:
            raise Refused(NOT_PUBLIC) from error
        for address in addresses:
            exempt = (address, port) in self._exempt
            if not exempt and (url.port is not None or not is_public(address)):
                raise Refused(NOT_PUBLIC)
        return found


async def _read(response: httpx2.Response, limit: int) -> Fetched:
    """The body, counted as it arrives. Its announced length is only used to refuse it early. Raises `Refused`."""
    if response.status_code != 200:
        raise Refused(said("is answered with status %(status)s", status=response.status_code))
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise Refused(said("is answered in compressed form, though that was not asked for"))
    too_large = Refused(said("holds more than %(most)s bytes", most=limit))
    if int(response.headers.get("content-length", "0")) > limit:
        raise too_large
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > limit:
            raise too_large
    content_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    return Fetched(bytes(body), content_type, dict(response.headers))


_LOOKING_UP = ThreadPoolExecutor(max_workers=8, thread_name_prefix="look-up")
"""Threads for look-ups only: a look-up cannot be cancelled, and slow ones must not delay anything else."""


async def _look_up(host: str, port: int) -> Sequence[str]:
    ask = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
    found = await asyncio.get_running_loop().run_in_executor(_LOOKING_UP, ask)
    return list(dict.fromkeys(str(place[0]) for *_, place in found))


def is_public(address: IPv4Address | IPv6Address) -> bool:
    """Whether an address, and every IPv4 address embedded in it, belongs to the public internet."""
    if isinstance(address, IPv6Address):
        if wrapped := _wrapped(address):
            return all(is_public(each) for each in wrapped)
        if address not in GLOBAL_UNICAST:
            return False
    return not any(address in network for network in SPECIAL)


def _wrapped(address: IPv6Address) -> tuple[IPv4Address, ...]:
    """The IPv4 addresses that are embedded in an IPv6 address, and so may receive its packets."""
    if address in NAT64:
        return (IPv4Address(int(address) & 0xFFFF_FFFF),)
    inside = address.ipv4_mapped or address.sixtofour
    return (inside,) if inside else address.teredo or ()


GLOBAL_UNICAST = ip_network("2000::/3")
NAT64 = ip_network("64:ff9b::/96")
SPECIAL = tuple(
    ip_network(each)
    for each in """
    0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24
    192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4
    2001::/23 2001:db8::/32 2620:4f:8000::/48 3fff::/20
    168.63.129.16/32
    """.split()
)
"""Networks that are not public: those of the special-purpose registries of IANA (iana-ipv4-special-registry and
iana-ipv6-special-registry), multicast, and the address of a large cloud's internal service for its machines."""
