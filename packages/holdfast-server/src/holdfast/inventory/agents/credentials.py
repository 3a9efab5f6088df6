"""Credentials: a shop's key, the identity that an agent got for it, and the access token for that identity.

All of them end when the key ends. An assertion or a token has the scopes that it names, as far as its key has them at
the time of the call. The operations and the statements for agents are here.
"""

import secrets

from msgspec.structs import replace

from holdfast.inventory.agents.model import (
    BEARER,
    LIFETIME,
    SERVICE_AUTH,
    AccessToken,
    AgentClaims,
    Grant,
    Identity,
    Registration,
    ordered_scopes,
)
from holdfast.inventory.agents.tokens import LEEWAY_SECONDS, TokenSigner
from holdfast.inventory.problems import INVALID_GRANT, INVALID_SCOPE
from holdfast.inventory.resources import Tx
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import INVALID_API_KEY, Problem
from holdfast.kit.security.api_keys import PREFIX, KeyRing, digest
from holdfast.kit.security.signed_tokens import InvalidToken, TokenType

ASSERTION = TokenType("oauth-id-jag+jwt", AgentClaims, lambda claims: claims.iss, LIFETIME, LEEWAY_SECONDS)
ACCESS_TOKEN = TokenType("at+jwt", AgentClaims, lambda claims: f"{claims.iss}/mcp", LIFETIME, LEEWAY_SECONDS)


async def store_registration(tx: Tx, key_hash: bytes, id: str, id_hash: bytes) -> Registration | None:
    """The registration of an active key, a new one under this id if it has none; None without such a key."""
    return await tx.row(
        Registration,
        """
        with key as (select id, shop_id, scopes from api_keys where hash = %(key_hash)s and active for share),
             registration as (
                insert into agent_registrations (id, shop_id, api_key_id, hash)
                select %(id)s, shop_id, id, %(id_hash)s from key
                    on conflict (api_key_id) do update set api_key_id = excluded.api_key_id
                returning id)
        select registration.id, shops.domain as shop, key.scopes
          from registration, key join shops on shops.id = key.shop_id
        """,
        {"key_hash": key_hash, "id": id, "id_hash": id_hash},
    )


class Credentials:
    """Gives agents their credentials, and finds the caller of a credential.

    base_url    the service's address, without a slash at the end
    """

    def __init__(self, ring: KeyRing, tokens: TokenSigner, base_url: str) -> None:
        self._ring = ring
        self.tokens = tokens
        self.token_endpoint = f"{base_url}/oauth/token"
        self.resources = frozenset({base_url, f"{base_url}/mcp"})

    async def caller(self, credential: str | None) -> Caller:
        """The caller of a credential. Raises `missing_api_key` or `invalid_api_key`."""
        if not credential or credential.startswith(PREFIX):
            return await self._ring.caller(credential)
        try:
            claims = await self.tokens.verify(credential, ASSERTION, ACCESS_TOKEN)
        except InvalidToken as error:
            raise INVALID_API_KEY(
                str(error), hint="Use the shop's API key, or get a fresh identity with POST /api/agent/identity."
            ) from error
        return await self._holder(claims)

    async def identify(self, registration: Registration) -> Identity:
        """A fresh assertion of a registered agent's identity."""
        scopes = ordered_scopes(frozenset(registration.scopes))
        assertion, expires_at = await self.tokens.sign(
            ASSERTION,
            registration.id,
            shop=registration.shop,
            scope=" ".join(scopes),
            client_id=registration.id,
            registration_type=SERVICE_AUTH,
        )
        return Identity(
            registration_id=registration.id,
            registration_type=SERVICE_AUTH,
            identity_assertion=assertion,
            assertion_expires=expires_at,
            scopes=scopes,
            token_type=BEARER,
            expires_in=LIFETIME,
            token_endpoint=self.token_endpoint,
        )

    async def exchange(self, grant: Grant) -> AccessToken:
        """An access token for an assertion, any number of times while it lasts.

        Raises `invalid_grant`, or `invalid_scope` for scopes that the identity does not have.
        """
        try:
            claims = await self.tokens.verify(grant.assertion, ASSERTION)
            present = (await self._holder(claims)).scopes or frozenset()
        except InvalidToken as error:
            raise INVALID_GRANT(str(error)) from error
        except Problem as problem:
            if problem.type is INVALID_API_KEY:
                raise INVALID_GRANT("The API key behind the assertion has been revoked.") from problem
            raise
        requested = present if grant.scopes is None else grant.scopes
        if not requested or requested - present:
            raise INVALID_SCOPE()
        scope = " ".join(ordered_scopes(requested))
        token, _ = await self.tokens.sign(
            ACCESS_TOKEN,
            claims.sub,
            shop=claims.shop,
            scope=scope,
            client_id=claims.client_id,
            registration_type=claims.registration_type,
        )
        return AccessToken(token, BEARER, LIFETIME, scope)

    async def _holder(self, claims: AgentClaims) -> Caller:
        """The caller of an assertion or a token: limits and the ledger know it by the key it came from."""
        key = await self._ring.caller_of_digest(digest(claims.sub))
        scopes = (key.scopes or frozenset()) & frozenset(claims.scope.split())
        return replace(key, principal="access_token", scopes=scopes)


async def register(tx: Tx, key: str) -> Registration:
    """The registration of an API key, made if there is none. Raises `invalid_api_key`."""
    id = f"reg_{secrets.token_urlsafe(16)}"
    if registration := await store_registration(tx, digest(key), id, digest(id)):
        return registration
    raise INVALID_API_KEY()
