"""Release tokens: a released visitor shows one at the organizer's site. A token is a JWT, verified with public keys.

A visitor has one token, which is created when it is first picked up. A later request gets the same token, byte for
byte, with the same expiry. A visitor's id alone is not enough to get its token: the request needs an API key of the
queue's organizer, or the cookie of the visitor's browser.
"""

import asyncio
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, NamedTuple
from urllib.parse import quote, unquote, urlsplit

from msgspec import Meta, Struct
from prometheus_client import Counter

from holdfast.events.problems import INVALID_TOKEN
from holdfast.events.queues import sql
from holdfast.events.queues.model import MAX_TTL_MINUTES, TokenData, VisitorStatus, target_of
from holdfast.events.resources import Tx
from holdfast.events.settings import Settings
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import Problem
from holdfast.kit.postgres.group_commit import LockedRow
from holdfast.kit.security.signed_tokens import ForeignToken, InvalidToken, SigningKeySet, SigningKeyTable, TokenType

MAX_LABEL_CHARACTERS = 63
"""The most characters of a part of a host name (RFC 1035, section 2.3.4)."""

ISSUED = Counter("holdfast_queue_tokens_issued", "Release tokens picked up for the first time.")
VERIFIED = Counter("holdfast_queue_tokens_verified", "Release tokens shown to be verified.", ["outcome"])

_AS_THEY_ARE = "%:/?#[]@!$&'()*+,;=|^`{}~\"<>"
"""The ASCII characters besides letters and digits that are not percent-encoded, as in browsers."""


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


RELEASE = TokenType("queue-release+jwt", Claims, lambda claims: _audience(claims.qid), lifetime=MAX_TTL_MINUTES * 60)
RELEASE_SIGNING_KEYS = SigningKeyTable("queue_signing_keys", "RS256", RELEASE.lifetime)


class ReleaseToken(NamedTuple):
    """A token, and the address at which the visitor enters the organizer's site with it."""

    token: str
    expires_at: datetime
    redirect_url: str


async def issue(
    tx: Tx, visitors: Sequence[VisitorStatus], *, waits: bool = True
) -> dict[tuple[int, str], ReleaseToken | LockedRow]:
    """The tokens of released visitors who may pick up a token or have picked it up, by queue and visitor.

    waits    whether to wait for visitors that other transactions have locked
    """
    released = [visitor for visitor in visitors if visitor.status == "released"]
    if not released:
        return {}
    locked: set[tuple[int, str]] = set()
    fresh = [(visitor, secrets.token_urlsafe(16)) for visitor in released if visitor.token_id is None]
    if fresh:
        if waits:
            await sql.wait_for_visitors(tx, [visitor.key for visitor, _ in fresh])
        locked = await sql.store_tokens(tx, fresh)
        # Two requests of one visitor get the same token.
        ISSUED.inc(len({visitor.key for visitor, _ in fresh if visitor.token_id}))
    keys = await RELEASE_SIGNING_KEYS.read_or_create(tx)
    # A signature takes half a millisecond, so it is computed in a thread and does not block the event loop.
    tokens = await asyncio.to_thread(
        lambda: {visitor.key: _token(visitor, keys, tx.resources.settings) for visitor in released if visitor.token_id}
    )
    return tokens | {
        visitor.key: LockedRow(visitor.key, visitor.organizer_id) for visitor in released if visitor.key in locked
    }


async def verify(tx: Tx, caller: Caller, token: str, *, consume: bool) -> TokenData:
    """The data of a valid token of a queue of the caller. Counts the use of the token. Raises `invalid_token`."""
    try:
        data = await _read_valid(tx, caller, token, consume)
    except Problem as problem:
        VERIFIED.labels(problem.extra.get("reason", problem.code)).inc()
        raise
    VERIFIED.labels("valid").inc()
    return data


async def _read_valid(tx: Tx, caller: Caller, token: str, consume: bool) -> TokenData:
    keys = await RELEASE_SIGNING_KEYS.read_or_create(tx)
    try:
        _, claims = keys.verify(token, [RELEASE], tx.resources.settings.is_issuer)
    except ForeignToken as error:
        raise _refusal("The token is for another audience.", "audience") from error
    except InvalidToken as error:
        raise _refusal("This is not a release token of this service.", "signature") from error
    if not caller.may_access(claims.org):
        # Callers learn nothing about tokens of other organizers, not even that they have expired.
        raise _refusal("The token is not for a queue of yours.", "audience")
    try:
        RELEASE.require_current(claims, keys.now)
    except InvalidToken as error:
        raise _refusal(str(error), "expired") from error
    token_use = await sql.use_token(tx, claims.qid, claims.sub, claims.jti, consume=consume)
    if token_use is None:
        if await sql.is_used_up(tx, claims.qid, claims.sub, claims.jti):
            raise _refusal("The token was used up.", "used")
        raise _refusal("The token was revoked.", "revoked")
    return TokenData(
        queue_id=claims.qid,
        visitor_id=claims.sub,
        token_id=claims.jti,
        issued_at=datetime.fromtimestamp(claims.iat, UTC),
        expires_at=datetime.fromtimestamp(claims.exp, UTC),
        target_url=target_of(token_use, tx.resources.settings),
        use_count=token_use.use_count,
        first_use=token_use.use_count == 1,
    )


async def rotate_queue_keys(tx: Tx) -> int:
    """Add a signing key for release tokens, and delete old keys. Returns the number of changed keys."""
    return await RELEASE_SIGNING_KEYS.rotate(tx)


def _refusal(message: str, reason: str) -> Problem:
    return INVALID_TOKEN(message, valid=False, reason=reason)


def _token(visitor: VisitorStatus, keys: SigningKeySet, settings: Settings) -> ReleaseToken:
    assert visitor.token_id is not None
    assert visitor.ticket is not None
    assert visitor.issued_at is not None
    assert visitor.expires_at is not None
    target_url = target_of(visitor, settings)
    claims = Claims(
        iss=settings.base_url,
        aud=[_audience(visitor.queue_id), origin(target_url)],
        sub=visitor.visitor_id,
        jti=visitor.token_id,
        iat=visitor.issued_at,
        nbf=visitor.issued_at,
        exp=visitor.expires_at,
        qid=visitor.queue_id,
        org=visitor.organizer_id,
        tkt=visitor.ticket,
    )
    # Signed with the key of that time, so that the visitor gets the same token even after a rotation of the keys.
    token = keys.sign(RELEASE, claims, at=visitor.issued_at)
    expires_at = datetime.fromtimestamp(visitor.expires_at, UTC)
    return ReleaseToken(token, expires_at, with_token(target_url, token))


def _audience(queue_id: int) -> str:
    return f"queue:{queue_id}"


def origin(url: str) -> str:
    """The origin of an address, as browsers write it."""
    parts = urlsplit(url)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    port = "" if parts.port in (None, {"http": 80, "https": 443}[parts.scheme]) else f":{parts.port}"
    return f"{parts.scheme}://{host}{port}"


def host(url: str) -> str:
    """The host of an address in ASCII, since letters of other scripts look like ours. With an unusual port."""
    parts = urlsplit(origin(url))
    name = parts.hostname or ""
    port = f":{parts.port}" if parts.port else ""
    return f"[{name}]{port}" if ":" in name else f"{_ascii_host(name)}{port}"


def _ascii_host(name: str) -> str:
    """The name of the host to which browsers go (UTS #46). The codec `idna` would name another: `ss` for `ß`."""
    import idna  # its tables are large, and few addresses need them

    try:
        labels = idna.uts46_remap(unquote(name, errors="strict"), std3_rules=False).split(".")
    except (idna.IDNAError, UnicodeError):  # no host has such a name
        return quote(name)
    encoded = [label if label.isascii() else f"xn--{label.encode('punycode').decode()}" for label in labels]
    return ".".join(encoded) if all(len(label) <= MAX_LABEL_CHARACTERS for label in encoded) else quote(name)


def with_token(target_url: str, token: str) -> str:
    """The address with `queue_token` added to its query. The rest of the query and the fragment are kept."""
    address, hash, fragment = target_url.partition("#")
    separator = "&" if "?" in address and not address.endswith(("?", "&")) else "" if "?" in address else "?"
    return quote(f"{address}{separator}queue_token={token}{hash}{fragment}", safe=_AS_THEY_ARE)
