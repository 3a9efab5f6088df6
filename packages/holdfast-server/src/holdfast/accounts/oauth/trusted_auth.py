"""The keys of trusted-auth tokens, with which a service identifies a signed-in person to another authorization server.

They are always published, so that such a server can be set up with their address.
"""

import asyncio
import secrets
from typing import Any

from starlette.routing import BaseRoute, Route

from holdfast.accounts.sessions import Session
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import Problem
from holdfast.kit.http.handler import Access, Handler, Reply, Request, encode, envelope
from holdfast.kit.postgres.database import Database, Tx
from holdfast.kit.running.rate_limits import Limits
from holdfast.kit.security.secrets import SealedTable
from holdfast.kit.security.signing_keys import PUBLISHED_TTL_SECONDS, KeySet

JWKS = "/oauth/trusted-auth/jwks.json"

TOKEN_SECONDS = 300
"""The lifetime of a token."""

KEYS = KeySet("trusted_auth_keys", "RS256", TOKEN_SECONDS)
SEALED = SealedTable("trusted_auth_keys", "kid", "text")


def routes(database: Database[Any], limits: Limits) -> list[BaseRoute]:
    """The route of the public keys."""
    public = [
        (b"cache-control", f"public, max-age={PUBLISHED_TTL_SECONDS}".encode()),
        (b"access-control-allow-origin", b"*"),
    ]

    async def jwks(_: Caller, request: Request) -> Reply:
        keys = await database.transact(KEYS.read)
        return Reply(200, encode(keys.published()), public)

    return [Route(JWKS, Handler(Access("list_trusted_auth_keys"), limits, jwks, envelope(Problem.body)))]


async def token(tx: Tx[Any], session: Session, issuer: str, audience: str) -> str:
    """Return a token that identifies the signed-in person. The owner of the address must have proved it."""
    keys = await KEYS.read(tx)
    now = int(keys.now)
    claims = {
        "iss": issuer,
        "aud": audience,
        "sub": str(session.account_id),
        "email": session.email,
        "email_verified": True,
        "jti": secrets.token_urlsafe(16),
        "iat": now,
        "exp": now + TOKEN_SECONDS,
    }
    # A signature takes half a millisecond, so it is computed in a thread and does not block the event loop.
    return await asyncio.to_thread(keys.sign, "JWT", claims)


async def rotate_trusted_auth_keys(tx: Tx[Any]) -> int:
    """Add a key, and delete those that are no longer needed. Returns how many keys changed."""
    return await KEYS.rotate(tx)
