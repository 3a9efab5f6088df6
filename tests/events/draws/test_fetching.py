"""Only the valid signature of the requested round is accepted, from any server."""

import datetime as dt

import pytest

from holdfast.events.draws.drawing import fetch_signature
from holdfast.kit.outbound.refusals import FetchRefusal
from holdfast_verify.formats import beacon
from tests.events.draws.beacon_double import serving_beacon
from tests.events.draws.rounds import ROUNDS
from tests.helpers.outside_servers import client_reaching

ROUND = 657413


async def test_a_round_is_fetched_from_its_time_on_and_accepted_only_with_its_signature() -> None:
    at = beacon.time_of(ROUND)
    async with serving_beacon(at - dt.timedelta(seconds=1)) as double:
        client, address = client_reaching(double.server), double.server.url.rstrip("/")
        with pytest.raises(FetchRefusal, match="status 425"):
            await fetch_signature(client, address, ROUND)
        double.now = at
        assert (await fetch_signature(client, address, ROUND)).hex() == ROUNDS[ROUND]
        with pytest.raises(FetchRefusal, match="status 500"):
            await fetch_signature(client, address, 7)
        double.rounds[ROUND] = ROUNDS[42]
        with pytest.raises(beacon.InvalidRound, match="is not that of round 657413"):
            await fetch_signature(client, address, ROUND)
        double.answer = lambda path: ("200 OK", '{"round": 657413, "signature": "zz"}')
        with pytest.raises(beacon.InvalidRound, match="not a round as the beacon writes it"):
            await fetch_signature(client, address, ROUND)
        double.answer = lambda path: ("200 OK", f'{{"round": 42, "signature": "{ROUNDS[42]}"}}')
        with pytest.raises(beacon.InvalidRound, match="is round 42, and round 657413 was asked for"):
            await fetch_signature(client, address, ROUND)
