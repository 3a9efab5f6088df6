"""Connecting apps in every installation: the sign-in page, and the public keys for another authorization server."""

from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from joserfc.jwk import KeySet

from holdfast.events.oauth.external_consent import rotate_trusted_auth_keys
from holdfast.events.settings import Settings
from tests.contract.requirements import requirement
from tests.events.oauth_server.oauth_server_scene import ConsentingPerson
from tests.helpers.events_service import Service, running_events

QUERY = urlencode({"response_type": "code", "client_id": "x", "redirect_uri": "https://app.example/", "state": "a b&c"})


@requirement("connect.authorize")
@pytest.mark.parametrize(
    "changes", [{}, {"oauth_builtin": True}, {"oauth_issuer": "https://login.example.com"}], ids=str
)
async def test_a_person_who_is_not_signed_in_signs_in_and_returns_with_the_same_query(
    settings: Settings, changes: dict[str, Any]
) -> None:
    async with running_events(settings.model_copy(update=changes)) as service:
        response = await ConsentingPerson(service).http.get(f"/oauth/authorize?{QUERY}")

    sign_in = urlsplit(response.headers["location"])
    assert (response.status_code, sign_in.path) == (303, "/sign-in")
    assert parse_qs(sign_in.query)["return_to"] == [f"/oauth/authorize?{QUERY}"]


@requirement("connect.jwks")
async def test_the_keys_of_trusted_auth_tokens_are_public(new_service: Service) -> None:
    first = await new_service.http.get("/oauth/trusted-auth/jwks.json")
    assert first.status_code == 200
    assert first.headers["content-type"] == "application/json"
    assert first.headers["access-control-allow-origin"] == "*"
    assert "max-age=300" in first.headers["cache-control"]
    [key] = KeySet.import_key_set(first.json()).keys
    assert (key.key_type, key.is_private) == ("RSA", False)
    assert first.json()["keys"][0].keys() == {"kty", "n", "e", "kid", "use", "alg"}

    await new_service.database.transact(rotate_trusted_auth_keys)
    later = (await new_service.http.get("/oauth/trusted-auth/jwks.json")).json()["keys"]
    assert len(later) == 2
    assert first.json()["keys"][0] in later
