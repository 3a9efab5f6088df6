"""The page to connect apps without our authorization server, and the texts for agents with it."""

import pytest

from holdfast.events.settings import Settings
from tests.events.oauth_server.oauth_server_scene import OAuthServerScene, sign_in_person
from tests.helpers.events_service import running_events

QUERY = "response_type=code&client_id=x&redirect_uri=https://app.example/"


@pytest.mark.parametrize(
    ("issuer", "text"), [("", "programs use an API key"), ("https://login.example.com", "login.example.com")]
)
async def test_a_service_without_its_authorization_server_says_so_on_the_page_to_connect_apps(
    settings: Settings, issuer: str, text: str
) -> None:
    async with running_events(settings.model_copy(update={"oauth_issuer": issuer})) as service:
        person = await sign_in_person(service, (await service.organizer()).id)
        response = await person.http.get(f"/oauth/authorize?{QUERY}")

    assert response.status_code == 200
    assert text in response.text
    assert "<form" not in response.text


async def test_agents_read_how_they_get_a_token(scene: OAuthServerScene) -> None:
    text = (await scene.service.http.get("/agents.md")).text

    assert "Access tokens of `http://events.test` are accepted" in text
    assert "it opens a page in the browser of the person you work for" in text
    assert "`manage_keys`" in text
