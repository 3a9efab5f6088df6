"""The keys of trusted-auth tokens, with which a service tells another authorization server who is signed in.

They are published whether or not there is such a server, so that one can be set up with their address.
"""

import asyncio
import secrets
from typing import Any

from starlette.routing import BaseRoute, Route

from holdfast.accounts.sessions import Session
from holdfast.kit.caller import Caller
from holdfast.kit.database import Database, Tx
from holdfast.kit.handler import Access, Handler, Reply, Request, encode, envelope
from holdfast.kit.limits import Limits
from holdfast.kit.problems import Problem
from holdfast.kit.rotation import Sealed
from holdfast.kit.signing import PUBLISHED, KeySet

JWKS = "/oauth/trusted-auth/jwks.json"

SECONDS = 300
"""How long a token is good."""

KEYS = KeySet("trusted_auth_keys", "RS256", SECONDS)
SEALED = Sealed("trusted_auth_keys", "kid", "text")


def routes(database: Database[Any], limits: Limits) -> list[BaseRoute]:
    """The route of the public keys."""
    public = [(b"cache-control", f"public, max-age={PUBLISHED}".encode()), (b"access-control-allow-origin", b"*")]

    async def jwks(_: Caller, request: Request) -> Reply:
        keys = await database.transact(KEYS.read)
        return Reply(200, encode(keys.published()), public)

    return [Route(JWKS, Handler(Access("list_trusted_auth_keys"), limits, jwks, envelope(Problem.body)))]


async def token(tx: Tx[Any], session: Session, issuer: str, audience: str) -> str:
    """A token that says who is signed in. The owner of the address must have proved it."""
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
        "exp": now + SECONDS,
    }
    # A signature takes half a millisecond, so it is computed in a thread and does not block the event loop.
    return await asyncio.to_thread(keys.sign, "JWT", claims)


async def rotate_trusted_auth_keys(tx: Tx[Any]) -> int:
    """Add a key, and delete those that are no longer needed. Returns how many keys changed."""
    return await KEYS.rotate(tx)
