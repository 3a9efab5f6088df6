"""The mail to an organizer when an agent waits for approval: its sentences, and what of them is no web address."""

from typing import Any

import pytest

from holdfast.events.mails import sending
from holdfast.events.mails.writing import write
from holdfast.kit.mail.message import Envelope
from tests.events.agents.asking import NIGHT, decide, open_asking_scene
from tests.helpers.agents import problem_of
from tests.helpers.events_service import Service
from tests.kit.mail.posting import all_due, text_of


async def request_mails(service: Service) -> list[str]:
    """The texts of the mails about requests, as they are sent when they are due."""

    async def writer(batch: Any) -> list[bytes]:
        return write(batch)

    await service.run_sql("update mails set due_at = now() where kind = 'agent_requests' returning id")
    mails = [mail for mail in await all_due(service.database) if mail.kind == "agent_requests"]
    rendered = await sending.render(writer, service.database, mails)
    return [text_of(envelope) for envelope in rendered if isinstance(envelope, Envelope)]


async def test_an_organizer_is_mailed_what_an_agent_asks_for_with_its_name(service: Service) -> None:
    scene, agent = await open_asking_scene(service)
    event = await scene.ada.create_event(title="Jazz night")
    await agent.call("create_registration", event_id=event["id"], email="ben@example.com")
    waiting = problem_of(await agent.call("update_event", event_id=event["id"], capacity=30))

    [mail] = await request_mails(service)

    assert "Claude asks for your approval of 2 changes\n" in mail
    assert "* Claude wants to register ben@example.com for Jazz night." in mail
    assert "* Claude wants to change Jazz night." in mail
    assert waiting["approve_url"].rpartition("/requests/")[0] in mail


async def test_a_text_that_an_agent_writes_brings_no_web_address_into_the_mail(service: Service) -> None:
    _, agent = await open_asking_scene(service)
    await agent.call("create_event", **{**NIGHT, "title": "Sign in again at evil.com now"})

    [mail] = await request_mails(service)

    assert "wants to create the event Sign in again at … now." in mail


@pytest.mark.parametrize("decision", ["approve", "decline"])
async def test_a_request_that_was_decided_meanwhile_is_not_mailed(service: Service, decision: str) -> None:
    scene, agent = await open_asking_scene(service)
    waiting = problem_of(await agent.call("create_event", **NIGHT))

    assert await decide(scene, f"/console/agents/requests/{waiting['request_id']}", decision) == 303

    assert await request_mails(service) == []


async def test_an_organizer_whose_address_changed_since_gets_the_mail_nowhere(service: Service) -> None:
    _, agent = await open_asking_scene(service)
    await agent.call("create_event", **NIGHT)
    await service.run_sql("update users set email = 'new@example.com' where email = 'ada@example.com' returning id")

    assert await request_mails(service) == []


async def test_an_organizer_turns_the_mails_about_a_key_off_on_its_page(service: Service) -> None:
    scene, agent = await open_asking_scene(service)
    [(key_id,)] = await service.run_sql("select max(id) from api_keys where name = 'Claude'")
    path = f"/console/agents/limit?key={key_id}"
    form = await scene.browser.get(path)

    await scene.post(path, daily_limit="", asks_first="yes")
    await agent.call("create_event", **NIGHT)

    assert 'name="mails_requests" value="yes" checked' in form.text
    assert 'name="mails_requests" value="yes" checked' not in (await scene.browser.get(path)).text
    assert await service.run_sql("select from mails where kind = 'agent_requests'") == []
