"""Credentials at the agent door: API keys, and access tokens of the authorization server, where there is one.

A token acts for the organizer its subject is linked to. The first one with the verified e-mail address of an organizer
makes the link; from then on the subject decides, and the address makes no other. See `docs/decisions/0014`.
"""

import contextlib
from collections.abc import Generator

from msgspec.structs import replace

from holdfast.events.oauth import operations
from holdfast.events.oauth.issuer import Issuer
from holdfast.events.oauth.model import AccessClaims, fingerprint
from holdfast.events.settings import Database
from holdfast.kit.keys import PREFIX, KeyRing
from holdfast.kit.operation import Caller
from holdfast.kit.problems import FORBIDDEN, INVALID_API_KEY, Problem
from holdfast.kit.signing import InvalidToken


class Credentials:
    """Tells whose a credential is.

    ring      knows the API keys
    issuer    whose access tokens are accepted; None: nobody's
    """

    def __init__(self, ring: KeyRing, database: Database, issuer: Issuer | None) -> None:
        self._ring = ring
        self._database = database
        self._issuer = issuer
        self._subjects = KeyRing(database, operations.find_callers, "find_subjects")

    async def caller(self, credential: str | None) -> Caller:
        """The caller a key or a token belongs to.

        Raises `missing_api_key`, `invalid_api_key`, or `forbidden` for a token of somebody who is no organizer.
        """
        if self._issuer is None or not credential or credential.startswith(PREFIX):
            return await self._ring.caller(credential)
        try:
            claims = await self._issuer.verify(credential)
        except InvalidToken as error:
            hint = f"Get a fresh access token from {self._issuer.name}, or use an API key."
            raise INVALID_API_KEY(str(error), hint=hint) from error
        organizer = await self._linked(self._issuer.name, claims) or await self._link(self._issuer.name, claims)
        return replace(organizer, scopes=claims.scopes)

    @contextlib.contextmanager
    def hearing(self) -> Generator[None]:
        """Forget links as soon as they are announced to have been changed by hand, while the block lasts.

        With it ends what goes on in the background.
        """
        with self._subjects.hearing():
            try:
                yield
            finally:
                if self._issuer:
                    self._issuer.close()

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
                f"The access token is of {subject!r}, who acts for no organizer, and has no verified e-mail address.",
                hint="Ask the operator to link it, or get one with an organizer's address in email and email_verified.",
            )
        return Caller(0, await self._database.transact(lambda tx: operations.link_by_email(tx, issuer, subject, email)))
