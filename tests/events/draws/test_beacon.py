"""Rounds of the beacon: which one belongs to a time, and whether a signature is that of a round."""

import datetime as dt

import pytest

from holdfast_verify.formats import beacon
from tests.events.draws.rounds import RANDOMNESS, ROUNDS

SIGNATURE = bytes.fromhex(ROUNDS[42])
OF_ANOTHER_CHAIN = "8990e7a9aaed2ffed73dbd7092123d6f289930540d7651336225dc172e51b2ce"


@pytest.mark.parametrize("round", ROUNDS)
def test_real_rounds_verify(round: int) -> None:
    signature = bytes.fromhex(ROUNDS[round])
    beacon.verify(beacon.CHAIN, round, signature)
    assert beacon.randomness(signature).hex().startswith(RANDOMNESS[round])


def test_a_time_has_the_first_round_that_is_not_before_it() -> None:
    at = beacon.time_of(657413)
    assert at == dt.datetime(2023, 9, 15, 11, 0, 3, tzinfo=dt.UTC)
    assert beacon.first_round(at) == 657413
    assert beacon.first_round(at + dt.timedelta(microseconds=1)) == 657414
    assert beacon.first_round(at - dt.timedelta(seconds=3)) == 657412
    assert beacon.first_round(beacon.GENESIS - dt.timedelta(days=1)) == beacon.first_round(beacon.GENESIS) == 1


@pytest.mark.parametrize(
    ("chain", "round", "signature", "reason"),
    [
        (beacon.CHAIN, 43, SIGNATURE, "is not that of round 43"),
        (beacon.CHAIN, 0, SIGNATURE, "has no round 0"),
        (beacon.CHAIN, 2**64, SIGNATURE, "has no round"),
        (OF_ANOTHER_CHAIN, 42, SIGNATURE, "is not the beacon of draws"),
        (beacon.CHAIN, 42, bytes.fromhex(ROUNDS[657413]), "is not that of round 42"),
        (beacon.CHAIN, 42, SIGNATURE[:-1], "has 48 bytes, and this one has 47"),
        (beacon.CHAIN, 42, b"\xc0" + bytes(47), "identity point"),
        (beacon.CHAIN, 42, b"\xff" * 48, "identity point"),
        (beacon.CHAIN, 42, bytes(48), "not a point of the curve"),
        (beacon.CHAIN, 42, b"\x80" + bytes(46) + b"\x02", "not a point of the curve"),
    ],
)
def test_a_round_of_another_chain_or_with_another_signature_is_refused(
    chain: str, round: int, signature: bytes, reason: str
) -> None:
    with pytest.raises(beacon.InvalidRound, match=reason):
        beacon.verify(chain, round, signature)


def test_a_signature_with_any_other_byte_is_refused() -> None:
    for index in range(len(SIGNATURE)):
        altered = bytearray(SIGNATURE)
        altered[index] ^= 1
        with pytest.raises(beacon.InvalidRound):
            beacon.verify(beacon.CHAIN, 42, bytes(altered))
