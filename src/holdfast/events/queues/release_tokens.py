"""Release tokens: a released visitor shows one at the merchant's site. Each is a JWT that anybody can verify.

A visitor has one token, which is created when it is first picked up. A later request gets the same token, byte for
byte, with the same expiry. A visitor's id alone is not enough to get its token: the request needs an API key of the
queue's organizer, or the cookie of the visitor's browser.
"""

import asyncio
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, NamedTuple
from urllib.parse import quote, urlsplit

import msgspec
from msgspec import Meta, Struct
from prometheus_client import Counter

from holdfast.events.problems import INVALID_TOKEN
from holdfast.events.queues import sql
from holdfast.events.queues.model import LONGEST_TTL, Standing, TokenData
from holdfast.events.resources import Tx
from holdfast.events.settings import Settings
from holdfast.kit.batch import Locked
from holdfast.kit.caller import Caller
from holdfast.kit.problems import Problem
from holdfast.kit.signing import InvalidToken, Keys, KeySet

KEYS = KeySet("queue_signing_keys", "RS256", LONGEST_TTL * 60)
TYP = "queue-release+jwt"

ISSUED = Counter("holdfast_queue_tokens_issued", "Release tokens picked up for the first time.")
VERIFIED = Counter("holdfast_queue_tokens_verified", "Release tokens shown to be verified.", ["outcome"])


class Claims(Struct, frozen=True):
    """The claims of a release token: those of RFC 7519, and the queue, its organizer and the ticket."""

    iss: str
    aud: list[str]
    sub: Annotated[str, Meta(description="The visitor.")]
    jti: str
    iat: int
    nbf: int
    exp: int
    qid: int
    org: int
    tkt: int


class ReleaseToken(NamedTuple):
    """A token, and the address at which its visitor enters the merchant's site."""

    token: str
    expires_at: datetime
    redirect_url: str


async def issue(
    tx: Tx, standings: Sequence[Standing], *, waits: bool = True
) -> dict[tuple[int, str], ReleaseToken | Locked]:
    """The tokens of visitors who were released and may pick up a token, or have done so, by queue and visitor.

    waits    whether to wait for visitors that others have locked
    """
    released = [each for each in standings if each.where == "released"]
    if not released:
        return {}
    locked: set[tuple[int, str]] = set()
    fresh = [(each, secrets.token_urlsafe(16)) for each in released if each.token_id is None]
    if fresh:
        if waits:
            await sql.wait_for_visitors(tx, [each.place for each, _ in fresh])
        locked = await sql.pick_up(tx, fresh)
        ISSUED.inc(len(fresh) - len(locked))
    keys = await KEYS.read(tx)
    # A signature takes half a millisecond, so it is computed in a thread and does not block the event loop.
    tokens = await asyncio.to_thread(
        lambda: {each.place: _token(each, keys, tx.resources.settings) for each in released if each.token_id}
    )
    return tokens | {each.place: Locked(each.place, each.organizer_id) for each in released if each.place in locked}


async def verify(tx: Tx, caller: Caller, token: str, *, consume: bool) -> TokenData:
    """The data in a valid token of the caller's queues. Counts the use of the token. Raises `invalid_token`."""
    try:
        data = await _verified(tx, caller, token, consume)
    except Problem as problem:
        VERIFIED.labels(problem.extra.get("reason", problem.code)).inc()
        raise
    VERIFIED.labels("valid").inc()
    return data


async def _verified(tx: Tx, caller: Caller, token: str, consume: bool) -> TokenData:
    keys = await KEYS.read(tx)
    try:
        claims = msgspec.json.decode(keys.opened(token, {TYP})[1], type=Claims)
    except (InvalidToken, ValueError) as error:
        raise _refused("This is not a release token of this service.", "signature") from error
    if not tx.resources.settings.is_issuer(claims.iss) or _audience(claims.qid) not in claims.aud:
        raise _refused("The token is for somebody else.", "audience")
    if not caller.may_access(claims.org):
        # Nothing is revealed about tokens of other organizers, not even that they have expired.
        raise _refused("The token is not for a queue of yours.", "audience")
    if claims.exp <= keys.now:
        raise _refused("The token has expired.", "expired")
    used = await sql.use_token(tx, claims.qid, claims.sub, claims.jti, consume=consume)
    if used is None:
        if await sql.was_used_up(tx, claims.qid, claims.sub, claims.jti):
            raise _refused("The token was used up.", "used")
        raise _refused("The token was revoked.", "revoked")
    return TokenData(
        queue_id=claims.qid,
        visitor_id=claims.sub,
        token_id=claims.jti,
        issued_at=datetime.fromtimestamp(claims.iat, UTC),
        expires_at=datetime.fromtimestamp(claims.exp, UTC),
        target_url=used.target_url,
        use_count=used.use_count,
        first_use=used.use_count == 1,
    )


async def rotate_queue_keys(tx: Tx) -> int:
    """Add a key for release tokens, and delete those that are no longer needed. Returns how many keys changed."""
    return await KEYS.rotate(tx)


def _refused(message: str, reason: str) -> Problem:
    return INVALID_TOKEN(message, valid=False, reason=reason)


def _token(standing: Standing, keys: Keys, settings: Settings) -> ReleaseToken:
    assert standing.token_id is not None
    assert standing.ticket is not None
    assert standing.issued_at is not None
    assert standing.expires_at is not None
    claims = Claims(
        iss=settings.base_url,
        aud=[_audience(standing.queue_id), origin(standing.target_url)],
        sub=standing.visitor_id,
        jti=standing.token_id,
        iat=standing.issued_at,
        nbf=standing.issued_at,
        exp=standing.expires_at,
        qid=standing.queue_id,
        org=standing.organizer_id,
        tkt=standing.ticket,
    )
    # Signed with the key of that time, so that the visitor gets the same token also after a rotation of the keys.
    token = keys.sign(TYP, msgspec.structs.asdict(claims), at=standing.issued_at)
    expires_at = datetime.fromtimestamp(standing.expires_at, UTC)
    return ReleaseToken(token, expires_at, with_token(standing.target_url, token))


def _audience(queue_id: int) -> str:
    return f"queue:{queue_id}"


def origin(url: str) -> str:
    """The origin of an address, as browsers write it."""
    parts = urlsplit(url)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    port = "" if parts.port in (None, {"http": 80, "https": 443}[parts.scheme]) else f":{parts.port}"
    return f"{parts.scheme}://{host}{port}"


def with_token(target_url: str, token: str) -> str:
    """The address with `queue_token` added to its query. The rest of the query and the fragment are kept."""
    address, hash, fragment = target_url.partition("#")
    separator = "&" if "?" in address and not address.endswith(("?", "&")) else "" if "?" in address else "?"
    return quote(f"{address}{separator}queue_token={token}{hash}{fragment}", safe=_AS_THEY_ARE)


_AS_THEY_ARE = "%:/?#[]@!$&'()*+,;=|^`{}~\"<>"
"""The ASCII characters besides letters and digits that stay as they are; others are escaped, as browsers do."""
