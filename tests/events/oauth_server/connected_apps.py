"""Another authorization server, with the API that Stytch Connected Apps has, for the calls that are made to it."""

import contextlib
from base64 import b64encode
from collections.abc import AsyncGenerator, Mapping
from typing import Any
from urllib.parse import urlencode

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.helpers.serving import bind_port, serve_app

PROJECT, SECRET, PROFILE, AUDIENCE = "project-test-1", "correct horse", "trusted-auth-token-profile-1", "project-1"
CLIENT, REDIRECT = "connected-app-1", "https://app.example/done"
GRANTABLE = {"read_events": "Read the events of an organizer", "openid": "Know <b>who</b> you are"}


class ConnectedApps:
    """The server, and what it was asked. It knows one client.

    down    whether it fails
    leads   where it sends browsers, instead of to the client
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self.down = False
        self.leads = REDIRECT

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings of a service that uses it."""
        return {
            "oauth_issuer": "https://login.example.com",
            "handover_url": f"{self.url}/v1",
            "handover_id": PROJECT,
            "handover_secret": SECRET,
            "handover_profile": PROFILE,
            "handover_audience": AUDIENCE,
        }

    async def attest(self, request: Request) -> Response:
        arguments = await self._arguments(request)
        if arguments["profile_id"] != PROFILE or not arguments["session_duration_minutes"] >= 5:
            return _refusal(400, "unknown profile, or no session")
        return JSONResponse({"user_id": "user-1", "session_token": "session-1", "session_jwt": "x", "user": {}})

    async def start(self, request: Request) -> Response:
        arguments = await self._arguments(request)
        if wrong := self._wrong(arguments):
            return _refusal(400, wrong)
        results = [
            {"scope": scope, "description": GRANTABLE.get(scope, "?"), "is_grantable": scope in GRANTABLE}
            for scope in arguments["scopes"]
        ]
        client = {"client_id": CLIENT, "client_name": "Connected App", "client_description": "", "client_type": "x"}
        return JSONResponse({"user_id": "user-1", "client": client, "consent_required": True, "scope_results": results})

    async def authorize(self, request: Request) -> Response:
        arguments = await self._arguments(request)
        if wrong := self._wrong(arguments):
            return _refusal(400, wrong)
        answer = {"code": "code-1"} if arguments["consent_granted"] else {"error": "access_denied"}
        return JSONResponse({"redirect_uri": f"{self.leads}?{urlencode({**answer, 'state': arguments['state']})}"})

    async def _arguments(self, request: Request) -> dict[str, Any]:
        arguments = await request.json()
        self.requests.append((request.url.path, arguments))
        basic = b64encode(f"{PROJECT}:{SECRET}".encode()).decode()
        assert request.headers["authorization"] == f"Basic {basic}"
        if self.down:
            raise RuntimeError("down")
        return arguments

    def _wrong(self, arguments: Mapping[str, Any]) -> str | None:
        if arguments["session_token"] != "session-1":
            return "session_not_found"
        if arguments["client_id"] != CLIENT:
            return "no such <i>client</i>"
        return None if arguments["redirect_uri"] == REDIRECT else "redirect_uri is not registered"


def _refusal(status: int, message: str) -> Response:
    return JSONResponse({"status_code": status, "error_type": "x", "error_message": message, "error_url": ""}, status)


@contextlib.asynccontextmanager
async def connected_apps() -> AsyncGenerator[ConnectedApps]:
    port = bind_port()
    server = ConnectedApps(port.url)

    async def failed(request: Request, error: Exception) -> Response:
        return Response("sorry", 503)

    app = Starlette(
        routes=[
            Route("/v1/sessions/attest", server.attest, methods=["POST"]),
            Route("/v1/idp/oauth/authorize/start", server.start, methods=["POST"]),
            Route("/v1/idp/oauth/authorize", server.authorize, methods=["POST"]),
        ],
        exception_handlers={RuntimeError: failed},
    )
    async with serve_app(app, port):
        yield server
