"""The service as its own authorization server, an organizer at a browser, and clients that ask for access."""

import contextlib
import re
from collections.abc import AsyncGenerator, Mapping
from html import unescape
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx2
from mcp.client.auth import TokenStorage
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

from holdfast.accounts import sessions
from holdfast.events.oauth_server.tokens import challenge_of
from holdfast.events.settings import Settings
from tests.helpers.agents import Agent
from tests.helpers.events_service import Client, Service, running_events
from tests.helpers.form_browser import session_cookie_name, token

VERIFIER = "a-verifier-that-nobody-else-could-know-0123456789"
REDIRECT = "https://app.example/done"

Parameters = Mapping[str, str]


class ConsentingPerson:
    """A person at a browser. It keeps cookies, and follows no redirects by itself."""

    def __init__(self, service: Service, cookie: str | None = None, language: str = "en") -> None:
        address = service.database.resources.settings.base_url
        self.http = httpx2.AsyncClient(
            transport=httpx2.ASGITransport(service.app),
            base_url=address,
            cookies={session_cookie_name(address): cookie} if cookie else None,
            headers={"Accept": "text/html", "Accept-Language": language},
        )

    async def look(self, query: Parameters) -> httpx2.Response:
        """Open the page that a client leads to."""
        return await self.http.get(f"/oauth/authorize?{urlencode(query)}")

    async def decide(self, query: Parameters, decision: str = "allow", **changes: str) -> httpx2.Response:
        """Open the page, and press one of its buttons."""
        page = await self.look(query)
        assert page.status_code == 200, page.text
        form = {"token": token(page), "decision": decision, **changes}
        return await self.http.post(action_in(page), data=form)

    async def allow(self, query: Parameters) -> dict[str, str]:
        """Allow what a client asks for; what the client is told."""
        return redirect_parameters(await self.decide(query))


class App:
    """A client that has registered itself."""

    def __init__(self, http: httpx2.AsyncClient, about: Mapping[str, Any], issuer: str) -> None:
        self.http = http
        self.about = about
        self.issuer = issuer
        self.id: str = about["client_id"]

    def query(self, **changes: str | None) -> dict[str, str]:
        """The query of an authorization request, changed; None leaves a parameter out."""
        query: dict[str, str | None] = {
            "response_type": "code",
            "client_id": self.id,
            "redirect_uri": self.about["redirect_uris"][0],
            "code_challenge": challenge_of(VERIFIER),
            "code_challenge_method": "S256",
            "scope": "read_events write_events",
            "state": "xyz",
            "resource": f"{self.issuer}/mcp",
            **changes,
        }
        return {name: value for name, value in query.items() if value is not None}

    async def ask(self, form: Mapping[str, str | None]) -> httpx2.Response:
        """Ask the token endpoint; None leaves a field out."""
        parameters = {"client_id": self.id, **form}
        data = {name: value for name, value in parameters.items() if value is not None}
        return await self.http.post("/oauth/token", data=data)

    async def redeem(self, code: str, /, **changes: str | None) -> httpx2.Response:
        """Show a code."""
        form = {"grant_type": "authorization_code", "code": code, "code_verifier": VERIFIER}
        return await self.ask({**form, "redirect_uri": self.about["redirect_uris"][0], **changes})

    async def refresh(self, token: str, **changes: str | None) -> httpx2.Response:
        return await self.ask({"grant_type": "refresh_token", "refresh_token": token, **changes})

    async def revoke(self, token: str, **changes: str) -> httpx2.Response:
        return await self.http.post("/oauth/revoke", data={"token": token, "client_id": self.id, **changes})


class OAuthServerScene:
    """The service, an organizer who is signed in, and a client."""

    def __init__(self, service: Service, ada: Client, person: ConsentingPerson, app: App) -> None:
        self.service = service
        self.ada = ada
        self.person = person
        self.app = app

    async def connect_app(self, **changes: str | None) -> dict[str, Any]:
        """Let the organizer allow the app something. Returns its tokens."""
        answer = await self.person.allow(self.app.query(**changes))
        return issued_tokens(await self.app.redeem(answer["code"]))

    def agent(self, tokens: Mapping[str, Any], version: str = "2025-11-25") -> Agent:
        return Agent(self.service.app, tokens["access_token"], version)

    async def works(self, tokens: Mapping[str, Any]) -> bool:
        """Whether an access token is accepted."""
        await self.service.wait_for_notices()
        response = await self.agent(tokens).ask("tools/list")
        assert response.status_code in {200, 401}
        return response.status_code == 200

    async def register(self, **metadata: Any) -> App:
        """Another client."""
        return await register_client(self.service, **metadata)

    async def other_organizer(self, **fields: Any) -> tuple[Client, ConsentingPerson]:
        """Another organizer, who is signed in."""
        other = await self.service.organizer(**fields)
        return other, await sign_in_person(self.service, other.id)


async def sign_in_person(
    service: Service, account_id: int, language: str = "en", way: sessions.SignInWay = "link"
) -> ConsentingPerson:
    """A person who has signed in."""
    if way == "link":
        await service.run_sql("update users set proved_at = now() where id = %(id)s", id=account_id)
    cookie = await service.database.transact(lambda tx: sessions.begin(tx, account_id, way, "a test"))
    return ConsentingPerson(service, cookie, language)


async def register_client(service: Service, **metadata: Any) -> App:
    """A client that registers itself with this metadata."""
    about = {"client_name": "Example App", "redirect_uris": [REDIRECT], **metadata}
    response = await service.http.post("/oauth/register", json=about)
    assert response.status_code == 201, response.text
    return App(service.http, response.json(), service.database.resources.settings.base_url)


@contextlib.asynccontextmanager
async def serve_oauth_scene(settings: Settings, **resources: Any) -> AsyncGenerator[OAuthServerScene]:
    """The service with an organizer and a client."""
    async with running_events(settings, resources=resources) as service:
        yield await prepare_scene(service)


async def prepare_scene(service: Service) -> OAuthServerScene:
    """An organizer and a client in a service."""
    ada = await service.organizer(email="ada@example.com")
    return OAuthServerScene(service, ada, await sign_in_person(service, ada.id), await register_client(service))


def redirect_parameters(response: httpx2.Response) -> dict[str, str]:
    """What a redirect tells the client."""
    assert response.status_code == 303, response.text
    return dict(parse_qsl(urlsplit(response.headers["location"]).query, keep_blank_values=True))


def issued_tokens(response: httpx2.Response) -> dict[str, Any]:
    """The tokens in an answer."""
    assert response.status_code == 200, response.text
    return response.json()


def status_and_error(response: httpx2.Response) -> tuple[int, str]:
    """The status and the code of an error of RFC 6749."""
    body = response.json()
    assert body.keys() >= {"error", "error_description"}
    assert response.headers["cache-control"] == "no-store"
    return response.status_code, body["error"]


def action_in(page: httpx2.Response) -> str:
    match = re.search(r'<form class="form" method="post" action="([^"]*)"', page.text)
    assert match, page.text
    return unescape(match[1])


class ClientStorage(TokenStorage):
    """Where the client keeps what it got."""

    tokens: OAuthToken | None = None
    about: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.about

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.about = client_info
