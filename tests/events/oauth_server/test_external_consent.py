"""The handover: another authorization server sends people here to sign in and consent, and gets their identity."""

import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import KeySet
from pydantic import ValidationError

from holdfast.events.settings import Settings
from tests.events.oauth_server.connected_apps import AUDIENCE, CLIENT, PROFILE, REDIRECT, ConnectedApps, connected_apps
from tests.events.oauth_server.oauth_server_scene import (
    ConsentingPerson,
    action_in,
    redirect_parameters,
    sign_in_person,
)
from tests.helpers.events_service import Client, Service, running_events
from tests.helpers.form_browser import token

CHALLENGE = "c" * 43
QUERY = {
    "response_type": "code",
    "client_id": CLIENT,
    "redirect_uri": REDIRECT,
    "scope": "read_events openid root",
    "state": "a b&c",
    "nonce": "n",
    "code_challenge": CHALLENGE,
    "code_challenge_method": "S256",
    "resource": "http://events.test/mcp",
}


class ExternalConsentScene:
    """The service beside the other server, and an organizer who is signed in."""

    def __init__(self, service: Service, server: ConnectedApps, ada: Client, person: ConsentingPerson) -> None:
        self.service = service
        self.server = server
        self.ada = ada
        self.person = person


@pytest.fixture
async def scene(settings: Settings) -> AsyncIterator[ExternalConsentScene]:
    async with connected_apps() as server, running_events(settings.model_copy(update=server.settings)) as service:
        ada = await service.organizer(email="ada@example.com")
        yield ExternalConsentScene(service, server, ada, await sign_in_person(service, ada.id))


async def test_a_person_who_allows_is_sent_back_with_the_code_of_the_other_server(scene: ExternalConsentScene) -> None:
    page = await scene.person.look(QUERY)
    assert "Let <bdi>Connected App</bdi> act for you?" in page.text
    assert "View events, prices, registrations and the people in them." in page.text
    assert "Know &lt;b&gt;who&lt;/b&gt; you are" in page.text
    assert page.text.count("<li>") == 2  # the third cannot be granted

    response = await scene.person.decide(QUERY)
    assert response.headers["location"].startswith(f"{REDIRECT}?")
    assert redirect_parameters(response) == {"code": "code-1", "state": "a b&c"}
    path, decided = scene.server.requests[-1]
    assert path == "/v1/idp/oauth/authorize"
    assert decided == {
        "consent_granted": True,
        "client_id": CLIENT,
        "redirect_uri": REDIRECT,
        "response_type": "code",
        "scopes": ["read_events", "openid"],
        "state": "a b&c",
        "nonce": "n",
        "code_challenge": CHALLENGE,
        "resources": ["http://events.test/mcp"],
        "session_token": "session-1",
    }


async def test_a_person_who_refuses_is_sent_back_with_access_denied(scene: ExternalConsentScene) -> None:
    assert redirect_parameters(await scene.person.decide(QUERY, "refuse")) == {
        "error": "access_denied",
        "state": "a b&c",
    }


async def test_the_trusted_auth_token_is_short_and_can_be_checked_with_the_published_keys(
    scene: ExternalConsentScene,
) -> None:
    for _ in range(2):
        await scene.person.look(QUERY)
    [first, second] = [body["token"] for path, body in scene.server.requests if path == "/v1/sessions/attest"]

    keys = KeySet.import_key_set((await scene.service.http.get("/oauth/trusted-auth/jwks.json")).json())
    decoded = jwt.decode(first, keys, ["RS256"])
    assert (decoded.header["alg"], decoded.header["typ"]) == ("RS256", "JWT")
    claims = dict(decoded.claims)
    assert claims.pop("jti") != jwt.decode(second, keys, ["RS256"]).claims["jti"]
    assert claims.pop("exp") - claims["iat"] == 300
    assert abs(claims.pop("iat") - time.time()) < 60
    assert claims == {
        "iss": "http://events.test",
        "aud": AUDIENCE,
        "sub": str(scene.ada.id),
        "email": "ada@example.com",
        "email_verified": True,
    }
    assert scene.server.requests[0][1]["profile_id"] == PROFILE


async def test_an_unproved_or_signed_out_person_is_not_revealed_to_the_other_server(
    scene: ExternalConsentScene,
) -> None:
    await scene.service.run_sql("update users set proved_at = null where id = %(id)s", id=scene.ada.id)
    squatter = await sign_in_person(scene.service, scene.ada.id, way="password")
    assert (await squatter.look(QUERY)).status_code == 403
    assert (await ConsentingPerson(scene.service).look(QUERY)).headers["location"].startswith("/sign-in?")

    assert scene.server.requests == []


@pytest.mark.parametrize(
    "changes",
    [
        {"client_id": ""},
        {"client_id": "unknown"},
        {"redirect_uri": "https://evil.example/"},
        {"redirect_uri": "javascript:alert(1)"},
        {"redirect_uri": ""},
        {"response_type": "token"},
        {"code_challenge_method": "plain"},
        {"code_challenge": ""},
    ],
    ids=str,
)
async def test_a_request_that_either_server_refuses_leads_nowhere(
    scene: ExternalConsentScene, changes: dict[str, str]
) -> None:
    response = await scene.person.look({**QUERY, **changes})

    assert response.status_code == 400
    assert "location" not in response.headers
    assert "<form" not in response.text
    assert "<i>" not in response.text
    assert not any(path == "/v1/idp/oauth/authorize" for path, _ in scene.server.requests)


async def test_a_form_of_another_site_or_session_decides_no_handover(scene: ExternalConsentScene) -> None:
    page = await scene.person.look(QUERY)
    form = {"token": token(page), "decision": "allow"}
    for changes, headers in (({}, {"Sec-Fetch-Site": "cross-site"}), ({"token": "0-0"}, {})):
        response = await scene.person.http.post(action_in(page), data={**form, **changes}, headers=headers)
        assert response.status_code == 403

    assert not any(path == "/v1/idp/oauth/authorize" for path, _ in scene.server.requests)


@pytest.mark.parametrize(
    "address", ["https://evil.example/done", f"{REDIRECT}.evil", "https://app.example@evil.example/done"]
)
async def test_a_redirect_of_the_other_server_to_a_foreign_address_is_refused(
    scene: ExternalConsentScene, address: str
) -> None:
    scene.server.leads = address
    response = await scene.person.decide(QUERY)

    assert response.status_code == 400
    assert "location" not in response.headers


async def test_a_server_that_fails_is_our_503_and_says_nothing_of_itself(scene: ExternalConsentScene) -> None:
    scene.server.down = True
    response = await scene.person.look(QUERY)

    assert response.status_code == 503
    assert "sorry" not in response.text


async def test_a_handover_page_can_be_opened_twenty_times_a_minute_by_one_account(scene: ExternalConsentScene) -> None:
    statuses = [(await scene.person.look(QUERY)).status_code for _ in range(21)]

    assert statuses == [200] * 20 + [429]


@pytest.mark.parametrize(
    "changes",
    [
        {"OAUTH_HANDOVER_SECRET": ""},
        {"OAUTH_HANDOVER_AUDIENCE": ""},
        {"OAUTH_HANDOVER_URL": ""},
        {"OAUTH_ISSUER": ""},
        {"OAUTH_HANDOVER_URL": "http://api.example.com/v1"},
        {"OAUTH_HANDOVER_URL": "nonsense"},
    ],
    ids=str,
)
def test_settings_of_the_handover_are_complete_or_refused(changes: dict[str, str]) -> None:
    fine = {
        "OAUTH_ISSUER": "https://login.example.com",
        "OAUTH_HANDOVER_URL": "https://api.example.com/v1/",
        "OAUTH_HANDOVER_ID": "project",
        "OAUTH_HANDOVER_SECRET": "secret",
        "OAUTH_HANDOVER_PROFILE": "profile",
        "OAUTH_HANDOVER_AUDIENCE": "audience",
    }
    assert _settings(fine).handover_url == "https://api.example.com/v1"
    assert _settings({}).handover_url == ""

    with pytest.raises(ValidationError, match=r"set together|must be|must look like"):
        _settings({**fine, **changes})


def _settings(variables: dict[str, Any]) -> Settings:
    return Settings(_env_file=None, **variables)  # pyright: ignore[reportCallIssue]
