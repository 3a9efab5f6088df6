"""The page of a daily limit: an organizer sets how many people a key or an app registers in a day."""

import pytest

from tests.events.console.organizer_scene import OrganizerScene, open_organizer_scene
from tests.helpers.events_service import Service
from tests.helpers.form_browser import main_text


async def page_of_key(scene: OrganizerScene) -> str:
    """The page of the limit of Ada's key."""
    [key] = (await scene.ada.get("/api/keys")).json()["data"]
    return f"/console/agents/limit?key={key['id']}"


async def test_a_saved_limit_applies_at_once_and_is_shown_on_the_card_of_the_key(
    service: Service,
) -> None:
    scene = await open_organizer_scene(service)
    event = await scene.ada.create_event()
    await scene.ada.register(event["id"], email="ann@example.com")

    saved = await scene.post(await page_of_key(scene), daily_limit="1")

    assert (saved.status_code, saved.headers["location"]) == (303, "/console/agents")
    await scene.ada.register(event["id"], email="ben@example.com")
    body = {"registration": {"event_id": event["id"], "email": "cal@example.com"}}
    assert (await scene.ada.post("/api/registrations", body)).json()["code"] == "daily_limit_reached"
    listed = main_text(await scene.browser.get("/console/agents"))
    assert "1 of 1 person registered today." in listed
    assert "Limits and approval" in listed


async def test_an_empty_field_takes_the_limit_away(service: Service) -> None:
    scene = await open_organizer_scene(service)
    event = await scene.ada.create_event()
    await scene.post(await page_of_key(scene), daily_limit="0")

    await scene.post(await page_of_key(scene), daily_limit="")

    await scene.ada.register(event["id"], email="ann@example.com")
    listed = main_text(await scene.browser.get("/console/agents"))
    assert "Limits and approval" in listed
    assert "registered today" not in listed


@pytest.mark.parametrize("text", ["many", "-1", "1.5", "1,50"])
async def test_an_invalid_daily_limit_is_refused_beside_the_field_and_stays_in_it(service: Service, text: str) -> None:
    scene = await open_organizer_scene(service)

    refusal = await scene.post(await page_of_key(scene), daily_limit=text)

    assert refusal.status_code == 422
    assert "Enter a whole number, such as 20, or leave it empty." in refusal.text
    assert f'value="{text}"' in refusal.text


async def test_a_number_may_have_groups_of_three_digits(service: Service) -> None:
    scene = await open_organizer_scene(service)

    await scene.post(await page_of_key(scene), daily_limit="1.500")

    assert await service.run_sql("select daily_limit from agent_limits") == [(1_500,)]


async def test_an_unknown_key_and_that_of_another_organizer_have_no_page(service: Service) -> None:
    scene = await open_organizer_scene(service)
    [key] = (await scene.bob.get("/api/keys")).json()["data"]

    for query in (f"key={key['id']}", "key=x", "key=999999", "app=unknown", "", f"key={key['id']}&app=x"):
        path = f"/console/agents/limit?{query}"
        assert (await scene.browser.get(path)).status_code == 404, query
        assert (await scene.post(path, daily_limit="3")).status_code == 404, query
    assert await service.run_sql("select count(*) from agent_limits") == [(0,)]


async def test_a_daily_limit_cannot_be_set_from_another_site(service: Service) -> None:
    scene = await open_organizer_scene(service)

    assert (await scene.foreign(await page_of_key(scene), daily_limit="3")).status_code == 403


async def test_the_page_of_a_daily_limit_is_in_german_too(service: Service) -> None:
    scene = await open_organizer_scene(service, language="de")

    page = main_text(await scene.browser.get(await page_of_key(scene)))

    assert "Limits" in page
    assert "Personen pro Tag" in page
