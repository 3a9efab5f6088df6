"""Questions before something ends: they name it, say what happens, and have the way out before the dangerous button."""

import re
from collections.abc import Awaitable, Callable

import pytest

from tests.events.console.organizer_scene import OrganizerScene, open_organizer_scene
from tests.helpers.events_service import Service
from tests.helpers.people import handle_of, sign_up


async def revoke_a_key(scene: OrganizerScene) -> tuple[str, str]:
    [key] = (await scene.ada.get("/api/keys")).json()["data"]
    return f"/console/agents/keys/{key['id']}/revoke", key["name"]


async def delete_a_room(scene: OrganizerScene) -> tuple[str, str]:
    queue = await scene.ada.create_queue(title="Winter sale")
    return f"/console/queues/{queue['id']}/delete", "Winter sale"


async def cancel_an_event(scene: OrganizerScene) -> tuple[str, str]:
    event = await scene.ada.create_event(title="Jazz night")
    return f"/console/events/{event['id']}/cancel", "Jazz night"


async def webhook(scene: OrganizerScene) -> str:
    made = await scene.ada.post("/api/webhook_endpoints", {"webhook_endpoint": {"url": "https://shop.example/hooks"}})
    return f"/console/webhooks/{made.json()['data']['id']}"


async def delete_a_webhook(scene: OrganizerScene) -> tuple[str, str]:
    return f"{await webhook(scene)}/delete", "https://shop.example/hooks"


async def pause_a_webhook(scene: OrganizerScene) -> tuple[str, str]:
    return f"{await webhook(scene)}/pause", "https://shop.example/hooks"


async def renew_a_secret(scene: OrganizerScene) -> tuple[str, str]:
    return f"{await webhook(scene)}/secret", "https://shop.example/hooks"


async def end_all_access(scene: OrganizerScene) -> tuple[str, str]:
    return "/account/secure", "All your API keys stop working."


async def register_person(scene: OrganizerScene) -> tuple[str, str]:
    """The path of an event, and the public id of a person who is registered for it."""
    event = await scene.ada.create_event()
    await sign_up(scene.service, event, "ann")
    return f"/console/events/{event['id']}", await handle_of(scene.service, "ann@example.com")


async def move_a_person(scene: OrganizerScene) -> tuple[str, str]:
    event, person = await register_person(scene)
    return f"{event}/registrations/{person}?do=wait", "ann@example.com"


async def remove_people(scene: OrganizerScene) -> tuple[str, str]:
    event, person = await register_person(scene)
    return f"{event}/several-registrations?do=remove&p-{person}=on", "Remove 1 registration?"


QUESTIONS = (
    revoke_a_key,
    delete_a_room,
    cancel_an_event,
    delete_a_webhook,
    pause_a_webhook,
    renew_a_secret,
    end_all_access,
    move_a_person,
    remove_people,
)


@pytest.mark.parametrize("question", QUESTIONS)
async def test_a_question_names_what_ends_and_offers_the_way_out_first(
    service: Service, question: Callable[[OrganizerScene], Awaitable[tuple[str, str]]]
) -> None:
    scene = await open_organizer_scene(service)
    path, name = await question(scene)

    page = (await scene.page(path)).partition("<main>")[2].partition("</main>")[0]

    buttons = re.findall(r'<(?:a|button) class="button ?([a-z]*)', page)
    assert name in page
    assert "What happens then" in page
    assert buttons[-2] == "secondary"
    assert "danger" not in buttons[:-1]
