"""A server of drand's HTTP interface, as strict as the real one (drand/http-relay, at api.drand.sh), with real rounds.

It refuses what that refuses: 400 for another chain or what is no number, 425 for a round that is still to come, 500 for
one that it does not have.
"""

import asyncio
import datetime as dt
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from holdfast_verify.formats import beacon
from tests.events.draws.rounds import ROUNDS
from tests.helpers.outside_servers import OutsideServer, outside_server


class BeaconDouble:
    """The server. `now` is its clock, which a test moves by hand; `rounds` can be altered, as by an impostor."""

    def __init__(self, now: dt.datetime) -> None:
        self.now = now
        self.rounds = dict(ROUNDS)
        self.server: OutsideServer

    def answer(self, path: str) -> tuple[str, str]:
        """The status and the body for a path."""
        match path.strip("/").split("/"):
            case [chain, "public", digits]:
                pass
            case _:
                return "404 Not Found", "/{chainhash}/public/{round}"
        if not digits.isdecimal():
            return "400 Bad Request", "Failed to parse round."
        if chain != beacon.CHAIN:
            return "400 Bad Request", "unknown chain hash"
        round = int(digits)
        if beacon.time_of(round) > self.now:
            return "425 Too Early", "Requested future beacon"
        if round not in self.rounds:
            return "500 Internal Server Error", "Failed to get beacon"
        signature = self.rounds[round]
        randomness = beacon.randomness(bytes.fromhex(signature)).hex()
        return "200 OK", json.dumps({"round": round, "randomness": randomness, "signature": signature})


@asynccontextmanager
async def serving_beacon(now: dt.datetime) -> AsyncGenerator[BeaconDouble]:
    double = BeaconDouble(now)

    async def script(writer: asyncio.StreamWriter, request: str) -> None:
        status, body = double.answer(request.split()[1])
        head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write((head + body).encode())
        await writer.drain()

    async with outside_server(script) as server:
        double.server = server
        yield double
