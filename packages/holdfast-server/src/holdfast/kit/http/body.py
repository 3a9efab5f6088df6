"""Reads the bodies of requests, with limits on their size, on the time they take, and on what all of them hold."""

import asyncio
from collections import Counter
from collections.abc import Callable

from holdfast.kit.contract import problems
from holdfast.kit.contract.bounds import Bound
from holdfast.kit.contract.client import address, path_of
from holdfast.kit.http.handler import Request

MAX_BODY = 1_048_576
BODY_TIMEOUT_SECONDS = 30
"""Seconds that a client may take to send a body."""

MAX_ARRIVING_BYTES = 256 * 1024 * 1024
"""Bytes of bodies that have arrived in part. Above it, the address with the most of them loses its oldest body."""

ARRIVING_BODIES = Bound(
    name="Bytes of bodies that are arriving",
    service="both",
    total=f"{MAX_ARRIVING_BYTES // 1_048_576} MiB; each body for {BODY_TIMEOUT_SECONDS} seconds",
    tenant="none",
    address="what others leave; the address or /48 with the most loses its oldest body",
    reserved="-",
    stranger="Nothing: its own are refused first.",
)


class Arrival:
    """A body that arrives."""

    __slots__ = ("address", "size", "timeout", "was_stopped")

    def __init__(self, address: str) -> None:
        self.address = address
        self.size = 0
        self.was_stopped = False
        self.timeout: asyncio.Timeout | None = None

    def stop(self) -> None:
        self.was_stopped = True
        if self.timeout:
            self.timeout.reschedule(asyncio.get_running_loop().time())


class ArrivingBodies:
    """The bodies of a process that have arrived in part. Each address gives way when it holds the most."""

    def __init__(self, bound: Bound, max_bytes: int) -> None:
        self.bound = bound
        self.size = 0
        """The bytes that are held."""
        self.received = 0
        """All bytes that were counted so far."""
        self._max_bytes = max_bytes
        self._sizes: Counter[str] = Counter()
        self._arrivals: dict[str, dict[Arrival, None]] = {}
        """The bodies of each address, the oldest first."""

    def begin(self, source: str) -> Arrival:
        arrival = Arrival(path_of(source)[0])
        self._arrivals.setdefault(arrival.address, {})[arrival] = None
        return arrival

    def add(self, arrival: Arrival, size: int) -> None:
        """Count bytes that have arrived. If there are too many, the address with the most loses its oldest body."""
        self.received += size
        self._count(arrival, size)
        while self.size > self._max_bytes:
            [(largest, _)] = self._sizes.most_common(1)
            oldest = next(iter(self._arrivals[largest]))
            self.end(oldest)
            oldest.stop()

    def end(self, arrival: Arrival) -> None:
        """Count a body no longer."""
        arrivals = self._arrivals.get(arrival.address, {})
        if arrival not in arrivals:
            return  # it has given way
        del arrivals[arrival]
        self._count(arrival, -arrival.size)
        if not arrivals:
            del self._arrivals[arrival.address]
            del self._sizes[arrival.address]

    def _count(self, arrival: Arrival, size: int) -> None:
        if not arrival.was_stopped:
            arrival.size += size
            self.size += size
            self._sizes[arrival.address] += size


BODIES = ArrivingBodies(ARRIVING_BODIES, MAX_ARRIVING_BYTES)


async def read_body(request: Request, kind: str = "application/json", *, max_bytes: int = MAX_BODY) -> bytes:
    """Read the whole body. Refuses a missing or wrong media type, a body that is too large, or one that takes too long.

    max_bytes    the maximum size of the body in bytes
    """
    declared = request.headers.get(b"content-type")
    if declared is not None and declared.split(b";")[0].strip().lower() != kind.encode():
        raise wrong_media_type(kind)
    encoding = request.headers.get(b"content-encoding", b"identity").strip().lower()
    if encoding != b"identity":
        name = encoding.decode("latin-1")[:40]
        raise problems.UNSUPPORTED_MEDIA_TYPE(
            f"The body is compressed (Content-Encoding: {name}).", hint="Send it uncompressed, without this header."
        )
    if declared_length(request) > max_bytes:
        raise problems.PAYLOAD_TOO_LARGE()
    if request.has_arrived:
        body = await _receive_body(request, max_bytes)  # it does not wait, so a timeout would only cost time
    else:
        body = await _receive_late_body(request, max_bytes)
    if body and declared is None:
        raise wrong_media_type(kind)
    return body


async def _receive_late_body(request: Request, max_bytes: int) -> bytes:
    """Receive a body that has not arrived whole."""
    bodies = BODIES
    arrival = bodies.begin(address(request.scope))
    try:
        async with asyncio.timeout(BODY_TIMEOUT_SECONDS) as arrival.timeout:
            return await _receive_body(request, max_bytes, lambda size: bodies.add(arrival, size))
    except TimeoutError as error:
        if arrival.was_stopped:
            raise problems.SERVICE_UNAVAILABLE("Too many bodies arrive at the same time.", retry_after=1) from error
        raise problems.BAD_REQUEST("The body took too long to arrive.") from error
    finally:
        arrival.timeout = None
        bodies.end(arrival)


async def _receive_body(request: Request, max_bytes: int, count: Callable[[int], None] | None = None) -> bytes:
    """Receive a body. `count` is called with the size of each piece, if it is given."""
    pieces: list[bytes] = []
    room, more = max_bytes, True
    while more:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise problems.BAD_REQUEST("The client went away before the body was complete.")
        piece = message.get("body", b"")
        pieces.append(piece)
        room -= len(piece)
        if count:
            count(len(piece))
        if room < 0:
            raise problems.PAYLOAD_TOO_LARGE()
        more = message.get("more_body", False)
    return b"".join(pieces)


def has_body(request: Request) -> bool:
    """Whether a request has a body. Without a body, its media type does not matter."""
    return declared_length(request) > 0 or b"transfer-encoding" in request.headers


def declared_length(request: Request) -> int:
    """The length of the body that the headers declare, in bytes; 0 if they declare none. Raises `bad_request`."""
    length = request.headers.get(b"content-length", b"0")
    if not length.isdigit() or len(length) > 18:
        raise problems.BAD_REQUEST("Content-Length is not a number of bytes.")
    return int(length)


def wrong_media_type(kind: str) -> problems.Problem:
    """The problem for a body with a missing or wrong media type."""
    return problems.UNSUPPORTED_MEDIA_TYPE(f"The body is not declared as {kind}.", hint=f"Send Content-Type: {kind}.")
