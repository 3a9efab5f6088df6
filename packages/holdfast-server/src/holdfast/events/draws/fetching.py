"""Fetches the signature of a round of the beacon. Whoever serves it need not be trusted: it is verified."""

import msgspec
from msgspec import Struct

from holdfast.kit.outbound.requests import OutboundClient
from holdfast_verify.formats import beacon

MAX_BYTES = 4_096
OWNER = ("draws",)
"""The owner of these requests: they are the operator's own."""


class PublicRound(Struct):
    """An answer of the HTTP interface of drand, as far as it is needed: the round, and its signature in hex."""

    round: int
    signature: str


async def fetch_signature(outbound: OutboundClient, address: str, round: int) -> bytes:
    """The verified signature of a round.

    address    the base address of a server of drand's HTTP interface, without a slash at the end

    Raises `FetchRefusal` if there is no answer with status 200, as before the time of the round, and `InvalidRound` if
    the answer is not that round.
    """
    answer = await outbound.get(f"{address}/{beacon.CHAIN}/public/{round}", owner=OWNER, limit=MAX_BYTES)
    try:
        published = msgspec.json.decode(answer.content, type=PublicRound)
        signature = bytes.fromhex(published.signature)
    except (msgspec.DecodeError, ValueError) as error:
        raise beacon.InvalidRound("The answer is not a round as the beacon writes it.") from error
    if published.round != round:
        raise beacon.InvalidRound(f"The answer is round {published.round}, and round {round} was asked for.")
    beacon.verify(beacon.CHAIN, round, signature)
    return signature
