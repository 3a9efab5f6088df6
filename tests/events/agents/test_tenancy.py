"""No tool lets an organizer read, change or probe for data of another one.

Every tool is tried in every way it can name something, by an agent with a key and by one with an access token. A new
tool fails here until its maintainer has thought about it.
"""

import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import pytest_asyncio

from holdfast.events.settings import Settings
from tests.events.agents.samples import TOOLS, agent, both_eras
from tests.events.agents.two_organizers import LISTS, UPLOAD, ProbedOrganizer, TwoOrganizers, content_text
from tests.events.oauth.authorization_server import authorization_server
from tests.events.refusal_scene import in_one_loop
from tests.helpers.agents import problem_of
from tests.helpers.databases import scratch_database
from tests.helpers.events_service import running_events, unlimited
from tests.helpers.stored_rows import read_all_rows

CREDENTIALS = ["with a key", "with an access token"]


@asynccontextmanager
async def two_organizers(settings: Settings, credential: str) -> AsyncGenerator[TwoOrganizers]:
    """Two organizers, of whom Eve asks with this credential."""
    async with (
        authorization_server() as server,
        running_events(settings.model_copy(update={"oauth_issuer": server.issuer})) as service,
    ):
        eve = ProbedOrganizer(await service.organizer("Eve Events", email="eve@example.com"))
        await eve.prepare(service, "ann")
        await service.settle()
        token = server.token(sub="eve", email="eve@example.com", email_verified=True)
        scene = TwoOrganizers(service, eve, token if credential == "with an access token" else str(eve.client.key))
        await scene.ada_comes()
        yield scene


@pytest.fixture(params=CREDENTIALS)
async def scene(settings: Settings, request: pytest.FixtureRequest) -> AsyncIterator[TwoOrganizers]:
    async with two_organizers(settings, request.param) as scene:
        yield scene


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=CREDENTIALS)
async def shared_scene(
    template_url: str, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> AsyncIterator[TwoOrganizers]:
    """For tests that change nothing."""
    with scratch_database(template_url, "tenancy") as url:
        async with two_organizers(unlimited(url, tmp_path_factory.mktemp("data")), request.param) as scene:
            yield scene


def words(result: dict[str, Any], arguments: dict[str, Any]) -> str:
    """What an agent reads of a refusal, except what it has asked for itself."""
    text: str = result["content"][0]["text"]
    for key in (arguments.get("key", "key"), *arguments.get("image_keys", ())):
        text = text.replace(key, "key")
    for name in ("user_id", "event_id", "queue_id", "endpoint_id", "id"):
        text = text.replace(str(arguments.get(name, name)), name)
    return text


@in_one_loop
@both_eras
@pytest.mark.parametrize("tool", TOOLS)
async def test_an_organizer_never_reads_or_changes_data_of_another_one_through_a_tool(
    shared_scene: TwoOrganizers, tool: str, version: str
) -> None:
    scene = shared_scene
    eve = scene.agent(version)
    before = await read_all_rows(scene.service.run_sql)

    if tool in LISTS:
        assert await scene.lists(tool, version) == scene.alone[tool]
    else:
        for code, calls in scene.probes()[tool]:
            answers = [(await eve.call(tool, **call), call) for call in calls]
            assert {problem_of(result)["code"] for result, _ in answers} == {code}
            assert len({words(*answer) for answer in answers}) == 1
    assert await read_all_rows(scene.service.run_sql) == before


async def test_every_attempt_is_on_a_tool_there_is(scene: TwoOrganizers) -> None:
    assert {*LISTS, *scene.probes()} == {*TOOLS}, "`LISTS` or `probes` in two_organizers.py"
    assert all(calls for probes in scene.probes().values() for _, calls in probes)


async def test_data_that_is_refused_to_other_organizers_is_readable_by_its_owner(scene: TwoOrganizers) -> None:
    """Else the refusals above would prove nothing."""
    ada, theirs = agent(scene.service, scene.ada.client), scene.ada
    who = {"event_id": theirs.events[0], "user_id": theirs.people[0]}

    seen = {tool: len((await ada.call(tool))["structuredContent"]["data"]) for tool in LISTS}
    assert seen == {
        "list_api_keys": 2,
        "list_webhooks": 1,
        "list_organizers": 1,
        "list_users": 3,
        "list_events": 3,
        "list_registrations": 2,
        "list_queues": 1,
    }
    for tool in ("get_event", "get_price_history"):
        for id in theirs.events:
            content_text(await ada.call(tool, event_id=id))
    for tool in ("get_queue", "update_queue", "delete_queue"):
        content_text(await ada.call(tool, queue_id=theirs.queue))
    for tool in ("get_registration", "update_registration", "delete_registration"):
        content_text(await ada.call(tool, **who))
    [first, *_], [public, spare, uploaded] = theirs.events, theirs.photos
    for key in (spare, uploaded):
        content_text(await ada.call("add_event_photo", event_id=first, key=key))
    content_text(await ada.call("set_primary_photo", event_id=first, key=uploaded))
    content_text(await ada.call("remove_event_photo", event_id=first, key=public))
    hooked = {"endpoint_id": theirs.endpoint}
    content_text(await ada.call("set_webhook", **hooked, active=True))
    content_text(await ada.call("ping_webhook", **hooked))
    content_text(await ada.call("resend_webhook_messages", **hooked, since="2026-01-01T00:00:00Z"))
    content_text(await ada.call("list_webhook_deliveries", **hooked))
    content_text(await ada.call("list_webhook_attempts", **hooked, message_id="msg_1"))
    content_text(await ada.call("delete_webhook", **hooked))
    for tool, arguments in (("revoke_api_key", {"id": theirs.key}), ("cancel_event", {"event_id": theirs.events[0]})):
        content_text(await ada.call(tool, **arguments))


async def test_an_upload_belongs_to_the_organizer_who_presigned_it(scene: TwoOrganizers) -> None:
    eve = scene.agent()

    for filename in (*scene.ada.photos, f"../{scene.ada.id}/a.jpg"):
        upload = (await eve.call("presign_upload", **UPLOAD, filename=filename))["structuredContent"]
        assert upload["key"].startswith(f"photos/{scene.eve.id}/")
        assert f"/{scene.ada.id}/" not in upload["upload_url"]


async def test_a_person_known_to_two_organizers_is_shown_to_each_as_its_own(scene: TwoOrganizers) -> None:
    eve, ada = scene.agent(), agent(scene.service, scene.ada.client)
    ann = scene.eve.people[0]
    assert ann == scene.ada.people[0]

    seen = [(await organizer.call("list_registrations"))["structuredContent"]["data"] for organizer in (eve, ada)]

    assert {registration["event_id"] for registration in seen[0] if registration["user_id"] == ann} == {
        scene.eve.events[0]
    }
    assert {registration["event_id"] for registration in seen[1] if registration["user_id"] == ann} == {
        scene.ada.events[0]
    }


async def test_a_registration_does_not_reveal_whether_the_address_is_known_to_others(scene: TwoOrganizers) -> None:
    """Ben has an account, for Ada has registered him; Zoe has none."""
    eve = scene.agent()
    await scene.eve.client.patch(f"/api/events/{scene.eve.events[0]}", {"event": {"capacity": 10}})

    problem_of = [
        content_text(await eve.call("create_registration", event_id=scene.eve.events[0], email=f"{name}@example.com"))
        for name in ("ben", "zoe")
    ]

    handles = [text.split('","action')[0][-8:] for text in problem_of]
    assert handles[0] == scene.ada.people[1]
    # A receipt has a random nonce.
    answers = [json.loads(text.replace(handle, "")) for text, handle in zip(problem_of, handles, strict=True)]
    assert {*answers[0].pop("receipt")} == {*answers[1].pop("receipt")}
    assert answers[0] == answers[1]


async def test_an_admin_reaches_everything(scene: TwoOrganizers) -> None:
    """As the contract has it: its keys are unrestricted."""
    admin = agent(scene.service, await scene.service.admin())

    for organizer in (scene.eve, scene.ada):
        for id in organizer.events:
            assert (await admin.call("get_event", event_id=id))["structuredContent"]["organizer_id"] == organizer.id
    assert len((await admin.call("list_organizers"))["structuredContent"]["data"]) == 2
