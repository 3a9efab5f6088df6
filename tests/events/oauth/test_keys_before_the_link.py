"""Who registered an address first keeps nothing when its owner comes: the first link by address ends the keys."""

import asyncio

import pytest
from structlog.testing import capture_logs

from holdfast.kit import lookups
from tests.accounts.browser import Browser
from tests.events.oauth.scene import Scene, refused
from tests.kit.mcp.wire import STATELESS, Agent
from tests.support import Client, eventually, running

EVERY_SCOPE = "read_events write_events manage_keys"


async def spare_key(client: Client, name: str = "Spare") -> Client:
    made = await client.post("/api/keys", {"api_key": {"name": name}})
    assert made.status_code == 201, made.text
    return Client(client.http, made.json()["data"]["key"])


async def told(client: Client) -> tuple[int, str]:
    return refused(await client.get("/api/events"))


async def test_the_keys_of_whoever_registered_an_address_end_when_its_owner_is_linked(scene: Scene) -> None:
    """Through REST and through the endpoint for agents, in every process, at once."""
    first, spare = scene.ada, await spare_key(scene.ada)
    async with running(scene.service.database.resources.settings) as other:
        elsewhere = Client(other.http, first.key)
        assert (await elsewhere.get("/api/events")).status_code == 200

        assert await scene.organizer() == scene.ada.id

        for client in (first, spare):
            assert await told(client) == (401, "invalid_api_key")
            for version in ("2025-11-25", STATELESS):
                assert refused(await Agent(scene.service.app, client.key, version).ask("tools/list")) == (
                    401,
                    "invalid_api_key",
                )
        await eventually(lambda: _is_refused(elsewhere))


async def _is_refused(client: Client) -> bool:
    return (await client.get("/api/events")).status_code == 401


async def test_whoever_used_such_a_key_is_told_why_it_ended_and_what_to_do(scene: Scene) -> None:
    await scene.organizer()

    refusal = (await scene.ada.get("/api/events")).json()

    assert refusal["error"] == "This API key ended when the owner of the organizer's e-mail address was verified."
    assert refusal["hint"] == "Make a new key with create_api_key, as the person who owns the address."


async def test_a_key_that_was_revoked_by_hand_is_not_said_to_have_ended_otherwise(scene: Scene) -> None:
    spare = await spare_key(scene.ada)
    [_, listed] = (await scene.ada.get("/api/keys")).json()["data"]
    await scene.ada.delete(f"/api/keys/{listed['id']}")
    await scene.organizer()

    assert (await spare.get("/api/events")).json()["error"] == "The API key is unknown or has been revoked."


async def test_the_operator_reads_in_the_log_that_keys_ended(scene: Scene) -> None:
    await spare_key(scene.ada)

    with capture_logs() as lines:
        await scene.organizer()
        await scene.organizer()

    said = [line for line in lines if line["event"] == "keys ended by the first link of a verified address"]
    assert [(line["organizer"], line["keys"], line["log_level"]) for line in said] == [(scene.ada.slug, 2, "warning")]


async def test_the_owner_makes_new_keys_which_last(scene: Scene) -> None:
    made = (await scene.agent(scope=EVERY_SCOPE).call("create_api_key", name="Mine"))["structuredContent"]
    await scene.organizer()
    await scene.organizer(sub="ada")

    assert (await Client(scene.service.http, made["key"]).get("/api/events")).status_code == 200
    listed = (await scene.agent(scope=EVERY_SCOPE).call("list_api_keys"))["structuredContent"]["data"]
    assert [each["name"] for each in listed] == ["Mine"]


async def test_the_password_that_was_set_before_ends_too(scene: Scene) -> None:
    ben = await scene.service.organizer(email="ben@example.com", password="correct horse battery")

    await scene.organizer(sub="ben", email="ben@example.com")

    assert await scene.service.run_sql("select password_hash from users where id = %(id)s", id=ben.id) == [(None,)]


async def test_whoever_is_signed_in_with_that_password_is_signed_out(scene: Scene) -> None:
    await scene.service.organizer(email="ben@example.com", password="correct horse battery")
    thief = Browser(scene.service)
    await thief.send("/sign-in", email="ben@example.com", password="correct horse battery")
    assert await thief.is_signed_in()

    await scene.organizer(sub="ben", email="ben@example.com")

    assert not await thief.is_signed_in()


@pytest.mark.parametrize("claims", [{"email_verified": False}, {"email": None}, {"email": "else@example.com"}])
async def test_an_address_that_is_not_proved_ends_no_key(scene: Scene, claims: dict[str, object]) -> None:
    await scene.refusal(**claims)

    assert (await scene.ada.get("/api/events")).status_code == 200


async def test_a_link_that_the_operator_makes_ends_no_key(scene: Scene) -> None:
    await scene.link(scene.ada.slug, "ada")
    assert await scene.organizer() == scene.ada.id

    assert (await scene.ada.get("/api/events")).status_code == 200


async def test_another_organizer_keeps_its_keys(scene: Scene) -> None:
    ben = await scene.service.organizer()

    await scene.organizer()

    assert (await ben.get("/api/events")).status_code == 200


async def test_no_key_is_made_with_a_key_that_ends_at_the_same_moment(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else whoever registered the address would keep a way in: its request waits, and is refused after the link."""
    monkeypatch.setattr(lookups, "TTL", 3600.0)
    assert (await scene.ada.get("/api/events")).status_code == 200
    async with scene.service.database.transaction() as tx:
        await tx.value("select true from users where id = %(id)s for no key update", {"id": scene.ada.id})
        making = asyncio.create_task(scene.ada.post("/api/keys", {"api_key": {"name": "Mine"}}))
        await eventually(lambda: scene.service.run_sql("select from pg_locks where not granted"))
        await tx.run(
            "update api_keys set active = false, revoked_at = now() where user_id = %(id)s", {"id": scene.ada.id}
        )
    made = await making

    assert refused(made) == (401, "invalid_api_key")
    assert await scene.service.run_sql("select from api_keys where active") == []
