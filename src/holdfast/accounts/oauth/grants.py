"""What people allow clients: a grant, the code that the client gets for it, and its end.

A grant is made by a person's consent, each time anew. All tokens that come of it end with it, at once and everywhere.
"""

import secrets
from collections.abc import Sequence
from typing import Any, Literal

from holdfast.accounts import sessions
from holdfast.accounts.oauth.model import CODE_SECONDS, Allowed
from holdfast.accounts.oauth.problems import INVALID_CLIENT
from holdfast.kit import keys
from holdfast.kit.database import Tx
from holdfast.kit.keys import digest

Reason = Literal["disconnected", "revoked", "code_misused", "refresh_token_misused"]

CODE = "hfoc_"
"""Every code begins with this."""

ANNOUNCED = 20
"""If more tokens end at once, all look-ups are forgotten instead of theirs alone."""

PORTION = 5_000


async def allow(tx: Tx[Any], allowed: Allowed) -> str | None:
    """Store that somebody allows something. Returns the code for the client, of which only the hash is stored.

    Returns None if the session has ended. Raises `invalid_client` if the client was deleted meanwhile.
    """
    # Who ends all sessions, and then all that was allowed, also ends what is being allowed at this moment.
    if not await sessions.goes_on(tx, allowed.session_id):
        return None
    code = f"{CODE}{secrets.token_urlsafe(32)}"
    granted = await tx.value(
        """
        with client as (
            update oauth_clients set used_at = now() where id = %(client_id)s returning id),
        made as (
            insert into oauth_grants (account_id, tenant_id, client_id, scopes, expires_at)
            select %(account_id)s, %(tenant_id)s, id, %(scopes)s, now() + make_interval(secs => %(seconds)s) from client
            returning id, expires_at)
        insert into oauth_codes (hash, grant_id, redirect_uri, challenge, expires_at)
        select %(hash)s, id, %(redirect_uri)s, %(challenge)s, expires_at from made
        returning grant_id
        """,
        {
            "account_id": allowed.account_id,
            "tenant_id": allowed.tenant_id,
            "client_id": allowed.client_id,
            "scopes": list(allowed.scopes),
            "seconds": CODE_SECONDS,
            "hash": digest(code),
            "redirect_uri": allowed.redirect_uri,
            "challenge": allowed.challenge,
        },
    )
    if granted is None:
        raise INVALID_CLIENT()
    return code


async def end(tx: Tx[Any], grants: Sequence[int], reason: Reason) -> None:
    """End grants with all their tokens, which are refused everywhere as soon as this is committed."""
    await tx.run(
        """
        update oauth_grants set ended_at = now(), reason = %(reason)s
         where id = any(%(grants)s) and ended_at is null
        """,
        {"grants": list(grants), "reason": reason},
    )
    ended = await tx.tuples(
        "delete from oauth_access_tokens where grant_id = any(%(grants)s) returning hash", {"grants": list(grants)}
    )
    await announce(tx, [hash for (hash,) in ended])


async def announce(tx: Tx[Any], ended: Sequence[bytes]) -> None:
    """Tell every process that access tokens with these hashes have ended."""
    for payload in [hash.hex() for hash in ended] if len(ended) <= ANNOUNCED else [""]:
        await tx.revoke(keys.CHANNEL, payload)


async def end_all(tx: Tx[Any], account_id: int, reason: Reason = "disconnected") -> int:
    """End everything that an account has allowed. Returns how many grants there were."""
    rows = await tx.tuples(
        """
        select id from oauth_grants
         where account_id = %(account_id)s and ended_at is null and expires_at > now() for no key update
        """,
        {"account_id": account_id},
    )
    await end(tx, [id for (id,) in rows], reason)
    return len(rows)


async def goes_on(tx: Tx[Any], id: int) -> bool:
    """Whether a grant has not ended. If so, nobody ends it until the transaction ends."""
    found = await tx.value("select ended_at is null from oauth_grants where id = %(id)s for share", {"id": id})
    return bool(found)


async def forget_grants(tx: Tx[Any]) -> int:
    """Delete a portion of the grants that ended a day ago, with their codes and tokens. Returns how many there were."""
    return await tx.value(
        """
        with deleted as (
            delete from oauth_grants
             where id = any(array(select id from oauth_grants
                                   where least(expires_at, ended_at) < now() - interval '1 day'
                                   limit %(limit)s for update skip locked))
         returning 1)
        select count(*) from deleted
        """,
        {"limit": PORTION},
    )
