"""Credentials at the agent door: API keys, and access tokens of the authorization server, where there is one.

A token acts for the organizer its subject is linked to. The first one with the verified e-mail address of an organizer
makes the link; from then on the subject decides, whatever addresses come and go. See `docs/decisions/0014`.
"""

from contextlib import AbstractContextManager

from msgspec.structs import replace

from holdfast.events.oauth import operations
from holdfast.events.oauth.issuer import Issuer
from holdfast.events.oauth.model import AccessClaims, fingerprint
from holdfast.events.settings import Database
from holdfast.kit.keys import KeyRing
from holdfast.kit.operation import Caller
from holdfast.kit.problems import FORBIDDEN, INVALID_API_KEY, Problem
from holdfast.kit.tokens import InvalidToken

BY_HAND = "let the operator link the subject to it: holdfast events organizer link SLUG SUBJECT"


class Credentials:
    """Tells whose a credential is.

    ring      knows the API keys
    issuer    whose access tokens are accepted; None: nobody's
    """

    def __init__(self, ring: KeyRing, database: Database, issuer: Issuer | None) -> None:
        self._ring = ring
        self._database = database
        self._issuer = issuer
        self._subjects = KeyRing(database, operations.find_callers)

    async def caller(self, credential: str | None) -> Caller:
        """The caller a key or a token belongs to.

        Raises `missing_api_key`, `invalid_api_key`, or `forbidden` for a token of somebody who is no organizer.
        """
        if self._issuer is None or not credential or credential.startswith("hf_"):
            return await self._ring.caller(credential)
        try:
            claims = await self._issuer.verify(credential)
        except InvalidToken as error:
            hint = f"Get a fresh access token from {self._issuer.name}, or use an API key."
            raise INVALID_API_KEY(str(error), hint=hint) from error
        organizer = await self._linked(self._issuer.name, claims) or await self._link(self._issuer.name, claims)
        return replace(organizer, scopes=claims.scopes)

    def hearing(self) -> AbstractContextManager[None]:
        """Forget links as soon as they are announced to have been made by hand, while the block lasts."""
        return self._subjects.hearing()

    async def _linked(self, issuer: str, claims: AccessClaims) -> Caller | None:
        try:
            return await self._subjects.holder(fingerprint(issuer, claims.subject))
        except Problem as problem:
            if problem.kind is INVALID_API_KEY:
                return None
            raise

    async def _link(self, issuer: str, claims: AccessClaims) -> Caller:
        subject, email = claims.subject, claims.email
        if email is None:
            raise FORBIDDEN(
                f"The access token is of {subject!r}, who is no organizer here, and has no verified e-mail address.",
                hint=f"Use a token with the address of an organizer in email (and email_verified), or {BY_HAND}",
            )
        id = await self._database.transact(lambda tx: operations.link_by_email(tx, issuer, subject, email))
        if id is None:
            raise FORBIDDEN(
                f"The access token is of {subject!r}, who is no organizer here, and nor is {email}.",
                hint=f"Register an organizer with that address at POST /api/organizers/register, or {BY_HAND}",
            )
        return Caller(0, id)
