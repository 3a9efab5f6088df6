"""An organizer that existed before its owner came with a token: proved owners keep it, others answer a question."""

import asyncio

import pytest

from tests.events.oauth.oauth_scene import OAuthScene, status_and_code
from tests.helpers.agents import STATELESS, Agent
from tests.helpers.events_service import Client, eventually
from tests.helpers.form_browser import Browser

BEN = "ben@example.com"
PASSWORD = "correct horse battery"


async def spare_key(client: Client, name: str = "Spare") -> Client:
    made = await client.post("/api/keys", {"api_key": {"name": name}})
    assert made.status_code == 201, made.text
    return Client(client.http, made.json()["data"]["key"])


async def test_the_keys_of_a_proved_owner_go_on_beside_the_token(scene: OAuthScene) -> None:
    spare = await spare_key(scene.ada)

    assert await scene.organizer() == scene.ada.id

    for client in (scene.ada, spare):
        assert (await client.get("/api/events")).status_code == 200
        for version in ("2025-11-25", STATELESS):
            agent = Agent(scene.service.app, client.key, version)
            assert (await agent.call("list_organizers"))["structuredContent"]["data"][0]["id"] == scene.ada.id


async def test_the_password_and_the_sessions_of_a_proved_owner_go_on(scene: OAuthScene) -> None:
    await scene.service.organizer(email=BEN, password=PASSWORD)
    browser = Browser(scene.service)
    await browser.send("/sign-in", email=BEN, password=PASSWORD)

    await scene.organizer(sub="ben", email=BEN)

    assert await browser.is_signed_in()
    assert (await Browser(scene.service).send("/sign-in", email=BEN, password=PASSWORD)).status_code == 303


async def test_a_token_for_an_unconfirmed_organizer_is_refused_with_a_link_to_the_question(
    scene: OAuthScene,
) -> None:
    ben = await scene.service.organizer(is_proved=False, email=BEN, password=PASSWORD)

    refusal = await scene.refusal(sub="ben", email=BEN)

    base_url = scene.service.database.resources.settings.base_url
    assert (
        "the owner of ben@example.com has not confirmed that the organizer with this address is theirs"
        in refusal["error"]
    )
    assert refusal["hint"].startswith(f"Open {base_url}/console in a browser, sign in by a link")
    assert await scene.links() == []
    assert (await ben.get("/api/events")).status_code == 200


async def test_after_the_answer_that_it_is_theirs_the_token_and_the_keys_work(scene: OAuthScene) -> None:
    ben = await scene.service.organizer(is_proved=False, email=BEN)
    await scene.refusal(sub="ben", email=BEN)

    await answer(scene, "mine")

    assert await scene.organizer(sub="ben", email=BEN) == ben.id
    assert (await ben.get("/api/events")).status_code == 200


async def test_after_the_answer_that_it_is_not_theirs_a_stranger_has_nothing(scene: OAuthScene) -> None:
    ben = await scene.service.organizer(is_proved=False, email=BEN)

    await answer(scene, "other")

    assert status_and_code(await ben.get("/api/events")) == (401, "invalid_api_key")
    refusal = await scene.refusal(sub="ben", email=BEN)
    assert refusal["error"].endswith(f"and no organizer is registered with {BEN}.")


async def test_a_caller_whose_key_ended_with_the_proof_of_the_owner_reads_why(scene: OAuthScene) -> None:
    ben = await scene.service.organizer(is_proved=False, email=BEN)
    spare = await spare_key(ben)
    [_, listed] = (await ben.get("/api/keys")).json()["data"]
    await ben.delete(f"/api/keys/{listed['id']}")

    await answer(scene, "other")

    refusal = (await ben.get("/api/events")).json()
    assert refusal["error"] == "This API key ended when the owner of the organizer's e-mail address was verified."
    assert refusal["hint"] == "Make a new key with create_api_key, as the person who owns the address."
    revoked = (await spare.get("/api/events")).json()
    assert revoked["error"] == "The API key is unknown or has been revoked."


async def answer(scene: OAuthScene, whose: str) -> None:
    """Sign in as the owner of the address, and say whose it is what was made before."""
    browser = Browser(scene.service)
    await browser.sign_in(BEN)
    assert (await browser.send("/console/before", whose=whose)).status_code == 303


@pytest.mark.parametrize("claims", [{"email_verified": False}, {"email": None}, {"email": "else@example.com"}])
async def test_an_address_that_is_not_proved_ends_no_key(scene: OAuthScene, claims: dict[str, object]) -> None:
    await scene.refusal(**claims)

    assert (await scene.ada.get("/api/events")).status_code == 200


async def test_a_link_that_the_operator_makes_ends_no_key(scene: OAuthScene) -> None:
    await scene.link(scene.ada.slug, "ada")
    assert await scene.organizer() == scene.ada.id

    assert (await scene.ada.get("/api/events")).status_code == 200


async def test_an_organizer_with_another_address_keeps_its_keys(scene: OAuthScene) -> None:
    ben = await scene.service.organizer()

    await scene.organizer()

    assert (await ben.get("/api/events")).status_code == 200


@pytest.mark.usefixtures("only_notices_end_caches")
async def test_a_key_that_is_being_ended_cannot_make_another_key(scene: OAuthScene) -> None:
    """Otherwise the organizer who registered the address would keep a way in: its request waits, and is refused
    then.
    """
    assert (await scene.ada.get("/api/events")).status_code == 200
    async with scene.service.database.transaction() as tx:
        await tx.value("select true from users where id = %(id)s for no key update", {"id": scene.ada.id})
        making = asyncio.create_task(scene.ada.post("/api/keys", {"api_key": {"name": "Mine"}}))
        await eventually(lambda: scene.service.run_sql("select from pg_locks where not granted"))
        await tx.run(
            "update api_keys set active = false, revoked_at = now() where user_id = %(id)s", {"id": scene.ada.id}
        )
    made = await making

    assert status_and_code(made) == (401, "invalid_api_key")
    assert await scene.service.run_sql("select from api_keys where active") == []
