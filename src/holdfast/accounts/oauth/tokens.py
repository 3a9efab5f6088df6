"""Access and refresh tokens: random texts, of which only the hashes are stored.

An access token is looked up at each use, like an API key: a signed one could not be ended before it expires. A refresh
token is good once, for the next pair of tokens. If one is shown again, either the client or a thief has the pair that
came of it: nobody can tell which, so the grant ends.
"""

import base64
import hashlib
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.accounts.oauth import grants
from holdfast.accounts.oauth.model import ACCESS_SECONDS, REFRESH_DAYS, Tokens
from holdfast.accounts.oauth.problems import INVALID_GRANT, INVALID_SCOPE
from holdfast.kit.caller import Caller
from holdfast.kit.database import Reader, Tx
from holdfast.kit.keys import digest
from holdfast.kit.problems import Problem

ACCESS = "hfat_"
REFRESH = "hfrt_"
"""What every token begins with; API keys begin with neither."""

PORTION = 5_000


async def redeem(tx: Tx[Any], code: str, client_id: str, verifier: str, redirect_uri: str | None) -> Tokens | Problem:
    """The first tokens for a code; or a problem, which must be kept too: a code is good for one try.

    If it is tried again, or in a wrong way, whoever has it should not have it: the grant ends.
    """
    rows = await tx.tuples(
        """
        select grants.id, client_id, scopes, redirect_uri, challenge, codes.used_at is not null,
               codes.expires_at <= clock_timestamp(), ended_at is not null
          from oauth_codes as codes join oauth_grants as grants on grants.id = grant_id
         where hash = %(hash)s for update
        """,
        {"hash": digest(code)},
    )
    if not rows:
        return INVALID_GRANT("The code is not known.")
    grant_id, owner, scopes, address, challenge, is_used, is_late, has_ended = rows[0]
    if has_ended:
        return INVALID_GRANT("The code is not valid any more.")
    wrong = (
        "The code was used before."
        if is_used
        else "The code is another client's."
        if owner != client_id
        else "The code was asked for with another redirect_uri."
        if redirect_uri not in (None, address)
        else "The code_verifier does not belong to the code."
        if not secrets.compare_digest(hashed(verifier), challenge)
        else None
    )
    if wrong:
        await grants.end(tx, [grant_id], "code_misused")
        return INVALID_GRANT(f"{wrong} What was allowed with it has ended.")
    if is_late:
        return INVALID_GRANT("The code has expired.")
    await tx.run("update oauth_codes set used_at = now() where hash = %(hash)s", {"hash": digest(code)})
    return await _issue(tx, grant_id, scopes)


async def refresh(tx: Tx[Any], token: str, client_id: str, asked: Sequence[str] | None) -> Tokens | Problem:
    """The next tokens for a refresh token; or a problem, which must be kept too.

    asked    the scopes that the access token shall have; None: all that were granted
    """
    rows = await tx.tuples(
        """
        select grants.id, client_id, scopes, tokens.used_at is not null, tokens.expires_at <= clock_timestamp(),
               ended_at is not null
          from oauth_refresh_tokens as tokens join oauth_grants as grants on grants.id = grant_id
         where hash = %(hash)s for update
        """,
        {"hash": digest(token)},
    )
    if not rows:
        return INVALID_GRANT("The refresh token is not known.")
    grant_id, owner, granted, is_used, is_late, has_ended = rows[0]
    if has_ended or is_late:
        return INVALID_GRANT("The refresh token is not valid any more.")
    wrong = (
        "The refresh token was used before."
        if is_used
        else "The refresh token is another client's."
        if owner != client_id
        else None
    )
    if wrong:
        await grants.end(tx, [grant_id], "refresh_token_misused")
        return INVALID_GRANT(f"{wrong} What was allowed has ended.")
    scopes = [each for each in granted if asked is None or each in asked]
    if not scopes or not {*(asked or ())} <= {*granted}:
        return INVALID_SCOPE(f"Only these scopes were granted: {' '.join(granted)}.")
    await tx.run("update oauth_refresh_tokens set used_at = now() where hash = %(hash)s", {"hash": digest(token)})
    return await _issue(tx, grant_id, scopes)


async def revoke(tx: Tx[Any], token: str, client_id: str) -> Problem | None:
    """End a token, as its client asks (RFC 7009): an access token alone, and with a refresh token its whole grant.

    A token that is not known, or has ended, needs no end. Returns a problem if it is another client's.
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
    grant_id, owner, is_refresh = rows[0]
    if owner != client_id:
        return INVALID_GRANT("The token is another client's.")
    if is_refresh:
        await grants.end(tx, [grant_id], "revoked")
    else:
        await tx.run("delete from oauth_access_tokens where hash = %(hash)s", {"hash": digest(token)})
        await grants.announce(tx, [digest(token)])
    return None


async def _issue(tx: Tx[Any], grant_id: int, scopes: Sequence[str]) -> Tokens:
    """New tokens of a grant, which is locked."""
    access, refresh = f"{ACCESS}{secrets.token_urlsafe(32)}", f"{REFRESH}{secrets.token_urlsafe(32)}"
    await tx.run(
        """
        with granted as (
            update oauth_grants set used_at = now(), expires_at = now() + make_interval(days => %(days)s)
             where id = %(id)s returning id, expires_at),
        access as (
            insert into oauth_access_tokens (hash, grant_id, scopes, expires_at)
            select %(access)s, id, %(scopes)s, now() + make_interval(secs => %(seconds)s) from granted)
        insert into oauth_refresh_tokens (hash, grant_id, expires_at) select %(refresh)s, id, expires_at from granted
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
    return Tokens(access, refresh, scopes)


async def find_callers(reader: Reader[Any], hashes: Sequence[bytes]) -> Mapping[bytes, Caller]:
    """The callers of those hashes that belong to a valid access token, each with its scopes."""
    rows = await reader.tuples(
        """
        select hash, tokens.scopes, grants.id, tenant_id
          from oauth_access_tokens as tokens join oauth_grants as grants on grants.id = grant_id
         where hash = any(%(hashes)s) and tokens.expires_at > clock_timestamp() and ended_at is null
        """,
        {"hashes": list(hashes)},
    )
    return {
        hash: Caller("access_token", f"grant {grant_id}", grant_id, tenant_id, frozenset(scopes))
        for hash, scopes, grant_id, tenant_id in rows
    }


async def forget_tokens(tx: Tx[Any]) -> int:
    """Delete a portion of the tokens that have expired. Returns how many there were."""
    return await tx.value(
        """
        with access as (
            delete from oauth_access_tokens
             where hash = any(array(select hash from oauth_access_tokens where expires_at < now() - interval '1 hour'
                                     limit %(limit)s for update skip locked))
         returning 1),
        refresh as (
            delete from oauth_refresh_tokens
             where hash = any(array(select hash from oauth_refresh_tokens where expires_at < now() - interval '1 hour'
                                     limit %(limit)s for update skip locked))
         returning 1)
        select (select count(*) from access) + (select count(*) from refresh)
        """,
        {"limit": PORTION},
    )


def hashed(verifier: str) -> str:
    """The challenge for a verifier, by the method S256 (RFC 7636)."""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
