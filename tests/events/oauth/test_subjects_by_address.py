"""The first subject with a verified address of an organizer is linked to it; no other is."""

import asyncio
from typing import Any

import pytest

from tests.events.oauth.oauth_scene import OAuthScene, status_and_code
from tests.helpers.agents import STATELESS, Agent
from tests.helpers.cases import in_turn
from tests.helpers.events_service import running_events
from tests.helpers.locked_rows import hold_locks, without_waiting


@pytest.mark.parametrize("version", ["2025-11-25", STATELESS])
async def test_a_token_with_an_organizers_verified_address_acts_for_the_organizer(
    scene: OAuthScene, version: str
) -> None:
    ben = await scene.service.organizer()
    theirs = await ben.create_event()
    agent = scene.agent(version)

    mine = (await agent.call("list_events"))["structuredContent"]
    assert mine["data"] == []
    event = await (await scene.new_key()).create_event()
    seen = (await agent.call("list_events"))["structuredContent"]["data"]
    assert [organizer["id"] for organizer in seen] == [event["id"]]
    other = await agent.call("get_event", event_id=theirs["id"])
    assert other["isError"] is True
    assert '"forbidden"' in other["content"][0]["text"]


async def test_a_verified_address_finds_its_organizer_in_any_case(scene: OAuthScene) -> None:
    assert await scene.organizer(email="Ada@EXAMPLE.com") == scene.ada.id


@in_turn("verified", [None, False, "true", 1, "yes", [True]])
async def test_an_address_that_is_not_verified_proves_nothing(scene: OAuthScene, verified: Any) -> None:
    refusal = await scene.refusal(email_verified=verified)

    assert "no verified e-mail address" in refusal["error"]
    assert refusal["hint"].startswith("Ask the operator to link it")
    assert await scene.links() == []


async def test_a_subject_without_an_organizer_reads_how_to_register_and_then_works(scene: OAuthScene) -> None:
    refusal = await scene.refusal(sub="new", email="new@example.com")

    assert refusal["error"].endswith("of 'new', and no organizer is registered with new@example.com.")
    assert "POST /api/organizers/register" in refusal["hint"]
    registered = await scene.service.organizer(email="new@example.com")
    assert await scene.organizer(sub="new", email="new@example.com") == registered.id


async def test_no_token_reaches_a_student_or_an_admin(scene: OAuthScene) -> None:
    event = await scene.ada.create_event()
    await scene.ada.register(event["id"], email="student@example.com")
    await scene.service.run_sql(
        "insert into users (public_id, email, role) values ('aaaaaaaa', 'root@example.com', 'admin')"
    )

    student = await scene.refusal(sub="sub-0", email="student@example.com")
    assert student["error"].endswith("and no organizer is registered with student@example.com.")
    assert "POST /api/organizers/register" in student["hint"]
    root = await scene.refusal(sub="sub-1", email="root@example.com")
    assert root["error"].endswith("and root@example.com belongs to an administrator.")
    assert root["hint"].startswith("No organizer can be registered with that address.")
    body = {"organizer": {"name": "Studio", "email": "root@example.com", "slug": "studio"}}
    registered = await scene.service.anonymous.post("/api/organizers/register", body)
    assert registered.json()["errors"] == {"email": ["is already taken"]}
    assert await scene.links() == []


@pytest.mark.parametrize("role", ["admin", "user"])
async def test_a_link_ends_when_its_account_is_no_organizer_any_more(scene: OAuthScene, role: str) -> None:
    assert await scene.organizer() == scene.ada.id
    await scene.service.run_sql(
        "update users set role = %(role)s::user_role where id = %(id)s", role=role, id=scene.ada.id
    )

    await scene.service.organizer(email="ben@example.com")
    async with running_events(scene.service.database.resources.settings) as fresh:  # one that remembers nothing
        for email in (scene.email, "ben@example.com"):
            response = await Agent(fresh.app, scene.token(email=email)).ask("tools/list")
            assert status_and_code(response) == (403, "forbidden")
            assert "acts for no organizer any more" in response.json()["error"]


async def test_a_subject_that_equals_an_id_or_slug_of_ours_is_not_linked_by_it(scene: OAuthScene) -> None:
    [(public_id,)] = await scene.service.run_sql("select public_id from users where id = %(id)s", id=scene.ada.id)

    for subject in (str(scene.ada.id), public_id, scene.ada.slug, scene.email, str(scene.ada.key)):
        await scene.refusal(sub=subject, email=None)


async def test_a_linked_subject_acts_for_its_organizer_whatever_its_address(scene: OAuthScene) -> None:
    ben = await scene.service.organizer(email="ben@example.com")
    assert await scene.organizer() == scene.ada.id

    for claims in ({"email": "ben@example.com"}, {"email": None}, {"email_verified": False}, {"email": "x@y.example"}):
        assert await scene.organizer(**claims) == scene.ada.id
    assert await scene.organizer(sub="ben", email="ben@example.com") == ben.id
    assert await scene.links() == [("ada", scene.ada.id, "ada@example.com"), ("ben", ben.id, "ben@example.com")]


async def test_the_same_subject_of_another_issuer_is_a_different_subject(scene: OAuthScene) -> None:
    ben = await scene.service.organizer()
    await scene.link(ben.slug, "ada", issuer="https://else.example")

    assert await scene.organizer() == scene.ada.id


async def test_concurrent_first_calls_of_a_subject_make_one_link(scene: OAuthScene) -> None:
    async with running_events(scene.service.database.resources.settings) as other:
        tokens = [scene.token(jti=str(number)) for number in range(10)]
        agents = [Agent(process.app, token) for token in tokens for process in (scene.service, other)]
        answers = await asyncio.gather(*(agent.call("list_organizers") for agent in agents))

    assert {answer["structuredContent"]["data"][0]["id"] for answer in answers} == {scene.ada.id}
    assert await scene.links() == [("ada", scene.ada.id, "ada@example.com")]


async def test_first_calls_with_two_addresses_at_once_agree_on_one(scene: OAuthScene) -> None:
    ben = await scene.service.organizer(email="ben@example.com")
    emails = ["ada@example.com", "ben@example.com"] * 10

    seen = await asyncio.gather(*(scene.organizer(email=email) for email in emails))

    [(_, linked, _)] = await scene.links()
    assert set(seen) == {linked} <= {scene.ada.id, ben.id}


@pytest.mark.usefixtures("only_notices_end_caches")
async def test_a_link_is_cached_for_a_second_at_most(scene: OAuthScene) -> None:
    await scene.organizer()
    await scene.organizer()
    await scene.service.run_sql("delete from oauth_subjects")

    assert await scene.organizer(email=None) == scene.ada.id


# A second subject


async def test_an_address_links_the_first_subject_only(scene: OAuthScene) -> None:
    assert await scene.organizer() == scene.ada.id

    refusal = await scene.refusal(sub="social|ada")  # as another way to sign in at the same server would have it
    assert refusal["error"].endswith("has another subject of this authorization server.")
    assert refusal["hint"] == "Sign in there as you did before, or ask the operator to link it."
    assert await scene.organizer() == scene.ada.id
    assert await scene.links() == [("ada", scene.ada.id, "ada@example.com")]


async def test_concurrent_subjects_with_one_address_link_only_one_of_them(scene: OAuthScene) -> None:
    names = [f"ada {number}" for number in range(10)] * 2
    async with running_events(scene.service.database.resources.settings) as other:
        apps = [scene.service.app] * 10 + [other.app] * 10
        agents = [Agent(app, scene.token(sub=name)) for app, name in zip(apps, names, strict=True)]
        answers = await asyncio.gather(*(agent.ask("tools/list") for agent in agents))

    [(linked, user_id, _)] = await scene.links()
    assert user_id == scene.ada.id
    assert {answer.status_code for answer in answers} == {200, 403}
    assert [name for name, answer in zip(names, answers, strict=True) if answer.status_code == 200] == [linked] * 2


async def test_an_organizer_the_operator_linked_is_not_linked_by_address_as_well(scene: OAuthScene) -> None:
    await scene.link(scene.ada.slug, "ada's desk")

    await scene.refusal()
    assert await scene.organizer(sub="ada's desk", email=None) == scene.ada.id
    assert await scene.links() == [("ada's desk", scene.ada.id, None)]


async def test_a_link_of_another_issuer_does_not_prevent_a_link_by_address(scene: OAuthScene) -> None:
    await scene.link(scene.ada.slug, "ada", issuer="https://else.example")

    assert await scene.organizer() == scene.ada.id


async def test_the_operator_links_any_number_of_subjects_to_an_organizer(scene: OAuthScene) -> None:
    await scene.organizer()
    for number in range(3):
        await scene.link(scene.ada.slug, f"ada {number}")
        assert await scene.organizer(sub=f"ada {number}") == scene.ada.id

    assert await scene.organizer() == scene.ada.id


async def test_tokens_that_wait_for_a_locked_organizer_leave_connections_to_others(scene: OAuthScene) -> None:
    ben = await scene.service.organizer()
    locked = "select from users where email = %(email)s for update"

    async with hold_locks(scene.service.database.url, locked, email=scene.email) as operator:
        waiting = [asyncio.create_task(scene.organizer()) for _ in range(12)]
        await operator.wait_for_waiters()
        assert (await without_waiting(ben.get("/api/events"))).status_code == 200

    assert set(await asyncio.gather(*waiting)) == {scene.ada.id}
