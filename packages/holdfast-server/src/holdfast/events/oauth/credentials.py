"""Credentials at `/mcp`: API keys, and access tokens of the authorization server, another one or our own.

A token of our own server acts for the organizer who allowed it; see decision 40. A token of another server
acts for the organizer to which its subject is linked. The first token with the verified e-mail address of an organizer
creates the link. From then on only the subject counts: the address links no other subject. See decision 14.
"""

import contextlib
from collections.abc import Generator

from msgspec.structs import replace

from holdfast.events.oauth import operations
from holdfast.events.oauth.issuer import Issuer
from holdfast.events.oauth.model import AccessClaims, fingerprint
from holdfast.events.oauth_server import tokens
from holdfast.events.oauth_server.tokens import ACCESS
from holdfast.events.resources import Database
from holdfast.kit.contract.bounds import bound_without_strangers
from holdfast.kit.contract.caller import Caller, access_token
from holdfast.kit.contract.problems import FORBIDDEN, INVALID_API_KEY, Problem
from holdfast.kit.operations.slots import MAX_WAITING, SLOT_TIMEOUT_SECONDS, Slots
from holdfast.kit.security.api_keys import PREFIX, KeyRing, digest
from holdfast.kit.security.signed_tokens import InvalidToken

LINKS = bound_without_strangers(
    name="First requests with the access tokens of another server",
    service="events",
    total="none",
    tenant=f"1 for one e-mail address; {MAX_WAITING} wait",
)


class Credentials:
    """Finds the caller of a credential.

    ring                  finds the callers of API keys
    issuer                the issuer whose access tokens are accepted; None: no other server is accepted
    accepts_own_tokens    whether access tokens of this service are accepted
    """

    def __init__(
        self, ring: KeyRing, database: Database, issuer: Issuer | None, *, accepts_own_tokens: bool = False
    ) -> None:
        self._ring = ring
        self._database = database
        self._issuer = issuer
        self._own_tokens = (
            KeyRing(database, tokens.find_callers, "find_access_tokens", ring.wait_context)
            if accepts_own_tokens
            else None
        )
        self._links = Slots(LINKS, 1, timeout=SLOT_TIMEOUT_SECONDS)
        self._subjects = KeyRing(database, operations.find_callers, "find_subjects", ring.wait_context)

    async def caller(self, credential: str | None) -> Caller:
        """The caller of a key or a token.

        Raises `missing_api_key`, `invalid_api_key`, or `forbidden` for a token whose subject is not an organizer.
        """
        if self._own_tokens and credential and credential.startswith(ACCESS):
            return await self._own_token_caller(self._own_tokens, credential)
        if self._issuer is None or not credential or credential.startswith(PREFIX):
            return await self._ring.caller(credential)
        try:
            claims = await self._issuer.verify(credential)
        except InvalidToken as error:
            hint = f"Get a fresh access token from {self._issuer.name}, or use an API key."
            raise INVALID_API_KEY(str(error), hint=hint) from error
        organizer = await self._find_linked(self._issuer.name, claims) or await self._link(self._issuer.name, claims)
        return replace(organizer, scopes=claims.scopes)

    @contextlib.contextmanager
    def forgetting(self) -> Generator[None]:
        """While the block lasts, remove links from the cache as soon as an operator changes them."""
        forgetting_own_tokens = self._own_tokens.forgetting() if self._own_tokens else contextlib.nullcontext()
        with self._subjects.forgetting(), forgetting_own_tokens:
            try:
                yield
            finally:
                if self._issuer:
                    self._issuer.close()

    async def _own_token_caller(self, ring: KeyRing, credential: str) -> Caller:
        try:
            return await ring.caller_of_digest(digest(credential))
        except Problem as problem:
            if problem.type is not INVALID_API_KEY:
                raise
            hint = "Get a fresh one with the refresh token at /oauth/token, or connect again."
            raise INVALID_API_KEY("The access token is not known, or not valid any more.", hint=hint) from problem

    async def _find_linked(self, issuer: str, claims: AccessClaims) -> Caller | None:
        try:
            return await self._subjects.caller_of_digest(fingerprint(issuer, claims.subject))
        except Problem as problem:
            if problem.type is INVALID_API_KEY:
                return None
            raise

    async def _link(self, issuer: str, claims: AccessClaims) -> Caller:
        subject, email = claims.subject, claims.email
        if email is None:
            raise FORBIDDEN(
                f"The access token is of {subject!r}, who acts for no organizer, and has no verified e-mail address.",
                hint="Ask the operator to link it, or get one with an organizer's address in email and email_verified.",
            )
        # Linking locks the organizer: of several requests, one at a time takes a connection.
        async with self._links.slot_of((email,)):
            organizer_id = await self._database.transact(
                lambda tx: operations.link_by_email(tx, issuer, subject, email)
            )
        return access_token(organizer_id)
