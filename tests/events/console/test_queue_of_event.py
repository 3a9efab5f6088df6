"""Making a waiting room for an event of the organizer in the console."""

from typing import Any

from tests.events.console.organizer_scene import OrganizerScene, hidden_field, open_organizer_scene
from tests.helpers.event_visitor import page_text
from tests.helpers.events_service import Service, event_fields
from tests.helpers.form_browser import token


async def make(scene: OrganizerScene, event_id: str, **fields: str) -> Any:
    page = await scene.browser.get(f"/console/queues/new?event={event_id}")
    form = {
        "token": token(page),
        "once": hidden_field(page, "once"),
        "kind": hidden_field(page, "kind"),
        "event_id": event_id,
        "title": "Rush",
        "release_rate": "60",
        "token_ttl_minutes": "10",
        **fields,
    }
    return await scene.browser.http.post("/console/queues/new", data=form)


async def test_a_room_is_made_for_an_event_that_is_chosen(service: Service) -> None:
    scene = await open_organizer_scene(service)
    event = await scene.ada.create_event(title="Night of the lamps")

    choice = await scene.page("/console/queues/new")
    assert "One of my events" in choice
    assert "Another site" in choice
    form = await scene.browser.get(f"/console/queues/new?event={event['id']}")
    assert f'<option value="{event["id"]}" selected>Night of the lamps' in form.text
    assert hidden_field(form, "kind") == "event"
    assert "target_url" not in form.text

    made = (await make(scene, str(event["id"]))).headers["location"]
    room = await scene.browser.get(made)
    assert "For your event Night of the lamps" in page_text(room)
    assert "people register on the page of the event. Each turn is for one person." in page_text(room)
    assert "Connect your site" not in room.text
    assert "for Night of the lamps" in page_text(await scene.browser.get("/console/queues"))


async def test_the_page_of_the_event_shows_its_room_or_offers_one(service: Service) -> None:
    scene = await open_organizer_scene(service)
    event = await scene.ada.create_event()
    path = f"/console/events/{event['id']}"

    assert f"/console/queues/new?event={event['id']}" in await scene.page(path)
    made = (await make(scene, str(event["id"]))).headers["location"]

    page = await scene.browser.get(path)
    assert made in page.text
    assert "People register when it is their turn." in page_text(page)
    await scene.ada.patch(f"/api/queues/{made.rpartition('/')[2]}", {"queue_event": {"active": False}})
    assert "Nobody new can register while it is paused." in page_text(await scene.browser.get(path))
    assert "while this waiting room is paused" in page_text(await scene.browser.get(made))


async def test_the_question_before_a_room_is_deleted_says_that_the_event_opens(service: Service) -> None:
    scene = await open_organizer_scene(service)
    event = await scene.ada.create_event(title="Night of the lamps")
    made = (await make(scene, str(event["id"]))).headers["location"]

    question = page_text(await scene.browser.get(f"{made}/delete"))

    assert "Everybody can register for “ Night of the lamps ” at once, without waiting." in question


async def test_the_form_of_a_queue_asks_for_an_event_if_none_is_chosen(service: Service) -> None:
    scene = await open_organizer_scene(service)
    await scene.ada.create_event()

    answer = await make(scene, "")

    assert answer.status_code == 422
    assert "Choose one of your events." in answer.text
    assert answer.text.count('class="error"') == 1


async def test_events_of_others_are_not_offered_for_a_queue_and_are_refused(service: Service) -> None:
    scene = await open_organizer_scene(service)
    await scene.ada.create_event()
    other = await scene.bob.create_event(title="Secret party")

    assert "Secret party" not in await scene.page("/console/queues/new?event=")
    answer = await make(scene, str(other["id"]))
    assert answer.status_code == 422
    assert (await scene.bob.get(f"/api/events/{other['id']}")).json()["data"]["waiting_room_url"] is None


async def test_only_events_to_come_without_a_room_are_offered(service: Service) -> None:
    scene = await open_organizer_scene(service)
    guarded, cancelled = await scene.ada.create_event(title="Guarded"), await scene.ada.create_event(title="Called off")
    await scene.ada.create_event(**event_fields(title="Free to choose", published=False))
    await scene.ada.delete(f"/api/events/{cancelled['id']}")
    await make(scene, str(guarded["id"]))

    form = await scene.page("/console/queues/new?event=")

    assert "Free to choose" in form
    assert "Guarded" not in form
    assert "Called off" not in form


async def test_the_first_step_says_why_no_event_can_be_chosen(service: Service) -> None:
    scene = await open_organizer_scene(service)

    no_event = await scene.page("/console/queues/new")
    event = await scene.ada.create_event()
    await make(scene, str(event["id"]))
    all_guarded = await scene.page("/console/queues/new")

    assert "You have no upcoming event yet. Create an event first." in no_event
    assert "All your upcoming events have one already." in all_guarded


async def test_a_room_before_another_site_names_only_its_host_in_the_list(service: Service) -> None:
    scene = await open_organizer_scene(service)
    await scene.ada.create_queue(target_url="https://shop.example/sale?of=spring")

    assert "for shop.example" in page_text(await scene.browser.get("/console/queues"))


async def test_a_room_before_another_site_shows_the_steps_to_connect_it(service: Service) -> None:
    scene = await open_organizer_scene(service)
    queue = await scene.ada.create_queue()

    page = page_text(await scene.browser.get(f"/console/queues/{queue['id']}"))

    assert "Connect your site" in page
    assert "http://events.test/.well-known/queue-jwks.json" in page
    assert f"queue:{queue['id']}" in page
    assert "Until your site checks the token, people can go around the waiting room." in page


async def test_a_room_that_leads_to_an_event_here_without_guarding_it_says_so(service: Service) -> None:
    scene = await open_organizer_scene(service)
    event = await scene.ada.create_event()
    queue = await scene.ada.create_queue(target_url=event["public_url"])

    page = page_text(await scene.browser.get(f"/console/queues/{queue['id']}"))

    assert "People can register on the page behind this waiting room without waiting." in page
