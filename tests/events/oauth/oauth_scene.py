"""The service beside an authorization server, and a person who has an account at both."""

import contextlib
from collections.abc import AsyncGenerator
from typing import Any

import httpx2

from holdfast.events.keys.operations import insert_key
from holdfast.events.oauth import operations
from holdfast.events.oauth.model import LinkedSubject, LinkSubject, ListSubjects, UnlinkSubject
from holdfast.events.settings import Settings
from tests.events.oauth.authorization_server import AuthorizationServer
from tests.helpers.agents import Agent
from tests.helpers.events_service import Client, Service, running_events


class OAuthScene:
    """The service, an organizer who has an account at the authorization server too, and agents with tokens."""

    def __init__(self, service: Service, server: AuthorizationServer, ada: Client, email: str) -> None:
        self.service = service
        self.server = server
        self.ada = ada
        self.email = email

    def token(self, **claims: Any) -> str:
        """A token with the organizer's verified address, except for what is given."""
        token_claims: dict[str, Any] = {"sub": "ada", "email": self.email, "email_verified": True, **claims}
        return self.server.token(**token_claims)

    def agent(self, version: str = "2025-11-25", **claims: Any) -> Agent:
        return Agent(self.service.app, self.token(**claims), version)

    async def new_key(self) -> Client:
        """The organizer with a key of its own making."""
        key = await self.service.database.transact(lambda tx: insert_key(tx, self.ada.id, "New"))
        return Client(self.service.http, key.key, self.ada.id, self.ada.slug)

    async def organizer(self, **claims: Any) -> int:
        """The id of the organizer a token acts for, who is the only one it sees."""
        result = await self.agent(**claims).call("list_organizers")
        [seen] = result["structuredContent"]["data"]
        return seen["id"]

    async def refusal(self, **claims: Any) -> dict[str, Any]:
        """What a token is told that acts for no organizer."""
        response = await self.agent(**claims).ask("tools/list")
        assert status_and_code(response) == (403, "forbidden")
        return response.json()

    async def link(self, slug: str, subject: str, *, move: bool = False, issuer: str = "") -> None:
        """Link a subject, of this authorization server if no other is named, as operators do."""
        command = LinkSubject(slug=slug, subject=subject, move=move)
        await self.service.database.transact(lambda tx: operations.link(tx, issuer or self.server.issuer, command))

    async def unlink(self, subject: str) -> str | None:
        """Unlink a subject as operators do; the slug of the organizer it was linked to."""
        command = UnlinkSubject(subject=subject)
        organizer = await self.service.database.transact(lambda tx: operations.unlink(tx, self.server.issuer, command))
        return organizer.slug

    async def subjects(self, slug: str) -> list[LinkedSubject]:
        """The subjects of an organizer, as operators see them."""
        return await self.service.database.transact(lambda tx: operations.list_subjects(tx, ListSubjects(slug=slug)))

    async def by_email(self, subject: str, email: str) -> int:
        """The id of the organizer that a subject with a verified address acts for."""
        return await self.service.database.transact(
            lambda tx: operations.link_by_email(tx, self.server.issuer, subject, email)
        )

    async def links(self) -> list[tuple[Any, ...]]:
        """The linked subjects, each with the account and the address."""
        return await self.service.run_sql("select subject, user_id, email from oauth_subjects order by subject")


@contextlib.asynccontextmanager
async def open_oauth_scene(settings: Settings, server: AuthorizationServer) -> AsyncGenerator[OAuthScene]:
    async with running_events(settings) as service:
        ada = await service.organizer(email="ada@example.com")
        yield OAuthScene(service, server, ada, "ada@example.com")


def status_and_code(response: httpx2.Response) -> tuple[int, str]:
    """The status and the code of a refusal."""
    body = response.json()
    assert {"error", "code", "hint"} <= body.keys()
    return response.status_code, body["code"]
