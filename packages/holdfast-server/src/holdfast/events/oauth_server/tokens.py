"""Access and refresh tokens: random texts, of which only the hashes are stored.

An access token is looked up at each use, like an API key: a signed token could not be ended before it expires. A
refresh token works once, for the next pair of tokens. If it is used again, either the client or a thief has that pair,
and the server cannot tell which: so the grant ends.

For a short time after its use, a refresh token is answered with the same pair again: several processes of one client
may use it at once, or the answer got lost. A thief who does that gets nothing of its own: the pair is the client's, and
the next use of its refresh token by both of them ends the grant.
"""

import base64
import hashlib
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from cryptography.fernet import Fernet
from msgspec import Struct
from msgspec.structs import replace

from holdfast.accounts.agents.limits import GRANT_ASKS_FIRST, LIMIT_OF_GRANT
from holdfast.events.oauth_server import grants
from holdfast.events.oauth_server.model import ACCESS_SECONDS, REFRESH_DAYS, OAuthTokens
from holdfast.events.oauth_server.oauth_problems import INVALID_GRANT, INVALID_SCOPE
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import Problem
from holdfast.kit.postgres.database import Reader, Tx
from holdfast.kit.security.api_keys import digest

ACCESS = "hfat_"
REFRESH = "hfrt_"
"""The prefixes of tokens; API keys have neither."""

REPEAT_SECONDS = 60
"""Seconds for which a used refresh token is answered with the same tokens again, unless these were refreshed."""

DELETE_BATCH_SIZE = 5_000
"""Rows that one statement deletes."""


class _CodeRow(Struct):
    """A code, with the grant that it is for."""

    grant_id: int
    client_id: str
    scopes: list[str]
    redirect_uri: str
    challenge: str
    is_used: bool
    is_late: bool
    has_ended: bool


class _RefreshTokenRow(Struct):
    """A refresh token, with its grant.

    age    seconds since it was used, if it was
    """

    grant_id: int
    client_id: str
    scopes: list[str]
    is_used: bool
    is_late: bool
    has_ended: bool
    age: float
    sealed_successor: bytes | None


async def redeem(
    tx: Tx[Any], code: str, client_id: str, verifier: str, redirect_uri: str | None
) -> OAuthTokens | Problem:
    """Exchange a code for the first tokens. A code works once.

    A second or invalid attempt shows that the code has leaked, so the grant ends. A problem is returned, not raised, so
    that ending the grant is committed.
    """
    grant = await tx.row(
        _CodeRow,
        """
        select grants.id as grant_id, client_id, scopes, redirect_uri, challenge, codes.used_at is not null as is_used,
               codes.expires_at <= clock_timestamp() as is_late, ended_at is not null as has_ended
          from oauth_codes as codes join oauth_grants as grants on grants.id = grant_id
         where hash = %(hash)s for update
        """,
        {"hash": digest(code)},
    )
    if grant is None:
        return INVALID_GRANT("The code is not known.")
    if grant.has_ended:
        return INVALID_GRANT("The code is not valid any more.")
    wrong = (
        "The code was used before."
        if grant.is_used
        else "The code is another client's."
        if grant.client_id != client_id
        else "The code was asked for with another redirect_uri."
        if redirect_uri not in (None, grant.redirect_uri)
        else "The code_verifier does not belong to the code."
        if not secrets.compare_digest(challenge_of(verifier), grant.challenge)
        else None
    )
    if wrong:
        await grants.end(tx, [grant.grant_id], "code_misused")
        return INVALID_GRANT(f"{wrong} What was allowed with it has ended.")
    if grant.is_late:
        return INVALID_GRANT("The code has expired.")
    await tx.run("update oauth_codes set used_at = now() where hash = %(hash)s", {"hash": digest(code)})
    return await _issue(tx, grant.grant_id, grant.scopes)


async def refresh(
    tx: Tx[Any], token: str, client_id: str, requested_scopes: Sequence[str] | None
) -> OAuthTokens | Problem:
    """Exchange a refresh token for the next tokens.

    A problem is returned, not raised, so that ending the grant is committed.

    requested_scopes    the scopes for the access token; None: all that were granted
    """
    grant = await tx.row(
        _RefreshTokenRow,
        """
        select grants.id as grant_id, client_id, scopes, tokens.used_at is not null as is_used,
               tokens.expires_at <= clock_timestamp() as is_late, ended_at is not null as has_ended,
               extract(epoch from clock_timestamp() - tokens.used_at)::float8 as age, tokens.sealed_successor
          from oauth_refresh_tokens as tokens join oauth_grants as grants on grants.id = grant_id
         where hash = %(hash)s for update
        """,
        {"hash": digest(token)},
    )
    if grant is None:
        return INVALID_GRANT("The refresh token is not known.")
    if grant.has_ended or grant.is_late:
        return INVALID_GRANT("The refresh token is not valid any more.")
    is_repeat = grant.is_used and grant.sealed_successor is not None and grant.age < REPEAT_SECONDS
    wrong = (
        "The refresh token was used before."
        if grant.is_used and not is_repeat
        else "The refresh token is another client's."
        if grant.client_id != client_id
        else None
    )
    if wrong:
        await grants.end(tx, [grant.grant_id], "refresh_token_misused")
        return INVALID_GRANT(f"{wrong} What was allowed has ended.")
    scopes = [scope for scope in grant.scopes if requested_scopes is None or scope in requested_scopes]
    if not scopes or not {*(requested_scopes or ())} <= {*grant.scopes}:
        return INVALID_SCOPE(f"Only these scopes were granted: {' '.join(grant.scopes)}.")
    if is_repeat and grant.sealed_successor is not None:
        return _exchanged_tokens(token, grant.sealed_successor, grant.age)
    return await _issue(tx, grant.grant_id, scopes, token)


async def revoke(tx: Tx[Any], token: str, client_id: str) -> Problem | None:
    """End a token for its client (RFC 7009): an access token alone, a refresh token with its whole grant.

    Does nothing for a token that is not known, or has ended. Returns a problem if it is another client's.
    """
    rows = await tx.tuples(
        """
        select grants.id, client_id, is_refresh
          from (select grant_id, false as is_refresh from oauth_access_tokens where hash = %(hash)s
                union all
                select grant_id, true from oauth_refresh_tokens where hash = %(hash)s) as tokens
          join oauth_grants as grants on grants.id = grant_id for update of grants
        """,
        {"hash": digest(token)},
    )
    if not rows:
        return None
    grant_id, grant_client_id, is_refresh = rows[0]
    if grant_client_id != client_id:
        return INVALID_GRANT("The token is another client's.")
    if is_refresh:
        await grants.end(tx, [grant_id], "revoked")
    else:
        await tx.run("delete from oauth_access_tokens where hash = %(hash)s", {"hash": digest(token)})
        await grants.announce(tx, [digest(token)])
    return None


async def _issue(tx: Tx[Any], grant_id: int, scopes: Sequence[str], used_token: str | None = None) -> OAuthTokens:
    """Issue tokens of a grant, which the transaction has locked.

    used_token    the refresh token that they are issued for; None: it was a code
    """
    access, refresh = f"{ACCESS}{secrets.token_urlsafe(32)}", f"{REFRESH}{secrets.token_urlsafe(32)}"
    issued_tokens = OAuthTokens(access, refresh, scopes)
    if used_token is not None:
        # What came of earlier refresh tokens is not answered again: its own refresh token is used now.
        await tx.run(
            """
            update oauth_refresh_tokens
               set used_at = coalesce(used_at, now()),
                   sealed_successor = case when hash = %(hash)s then %(sealed)s::bytea end
             where grant_id = %(id)s and (hash = %(hash)s or sealed_successor is not null)
            """,
            {
                "id": grant_id,
                "hash": digest(used_token),
                "sealed": _seal_of(used_token).encrypt(msgspec.json.encode(issued_tokens)),
            },
        )
    await tx.run(
        """
        with used_grant as (
            update oauth_grants set used_at = now(), expires_at = now() + make_interval(days => %(days)s)
             where id = %(id)s returning id, expires_at),
        new_access_token as (
            insert into oauth_access_tokens (hash, grant_id, scopes, expires_at)
            select %(access)s, id, %(scopes)s, now() + make_interval(secs => %(seconds)s) from used_grant)
        insert into oauth_refresh_tokens (hash, grant_id, expires_at) select %(refresh)s, id, expires_at from used_grant
        """,
        {
            "id": grant_id,
            "days": REFRESH_DAYS,
            "access": digest(access),
            "scopes": list(scopes),
            "seconds": ACCESS_SECONDS,
            "refresh": digest(refresh),
        },
    )
    return issued_tokens


def _seal_of(token: str) -> Fernet:
    """The seal of what a refresh token was exchanged for. Only a caller with the token can open it."""
    return Fernet(base64.urlsafe_b64encode(hashlib.sha256(f"successor of {token}".encode()).digest()))


def _exchanged_tokens(token: str, sealed_tokens: bytes, age: float) -> OAuthTokens:
    """The tokens that a refresh token was exchanged for, `age` seconds ago."""
    issued_tokens = msgspec.json.decode(_seal_of(token).decrypt(sealed_tokens), type=OAuthTokens)
    return replace(issued_tokens, seconds=issued_tokens.seconds - int(age))


class CallerToken(Struct):
    """The access token of a caller, by its hash. `limit_id`: of the daily limit of its grant; None: it has none."""

    hash: bytes
    scopes: list[str]
    grant_id: int
    tenant_id: int
    limit_id: int | None
    asks_first: bool


async def find_callers(reader: Reader[Any], hashes: Sequence[bytes]) -> Mapping[bytes, Caller]:
    """The callers, with their scopes, by the hashes that belong to a valid access token."""
    tokens = await reader.rows(
        CallerToken,
        f"""
        select hash, tokens.scopes, grants.id as grant_id, tenant_id, {LIMIT_OF_GRANT} as limit_id,
               {GRANT_ASKS_FIRST} as asks_first
          from oauth_access_tokens as tokens join oauth_grants as grants on grants.id = grant_id
         where hash = any(%(hashes)s) and tokens.expires_at > clock_timestamp() and ended_at is null
        """,
        {"hashes": list(hashes)},
    )
    return {
        token.hash: Caller(
            "access_token",
            f"grant {token.grant_id}",
            token.grant_id,
            token.tenant_id,
            frozenset(token.scopes),
            limit_id=token.limit_id or 0,
            asks_first=token.asks_first,
        )
        for token in tokens
    }


async def forget_tokens(tx: Tx[Any]) -> int:
    """Delete a batch of the tokens that have expired. Returns how many were deleted."""
    return await tx.value(
        """
        with new_access_token as (
            delete from oauth_access_tokens
             where hash = any(array(select hash from oauth_access_tokens where expires_at < now() - interval '1 hour'
                                     limit %(limit)s for update skip locked))
         returning 1),
        refresh as (
            delete from oauth_refresh_tokens
             where hash = any(array(select hash from oauth_refresh_tokens where expires_at < now() - interval '1 hour'
                                     limit %(limit)s for update skip locked))
         returning 1)
        select (select count(*) from new_access_token) + (select count(*) from refresh)
        """,
        {"limit": DELETE_BATCH_SIZE},
    )


def challenge_of(verifier: str) -> str:
    """The challenge for a verifier, by the method S256 (RFC 7636)."""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
