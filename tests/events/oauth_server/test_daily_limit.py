"""The daily limit of a connected app: all that the app does counts, however often it was connected."""

import json
from typing import Any

from holdfast.accounts.agents.limits import GetLimit, ListLimits, SetLimit, list_limits
from holdfast.events.keys.operations import KEY_LIMITS
from holdfast.kit.contract.caller import system
from tests.events.oauth_server.oauth_server_scene import OAuthServerScene


async def limit(scene: OAuthServerScene, daily_limit: int) -> None:
    command = SetLimit(client_id=scene.app.id, daily_limit=daily_limit)
    await scene.service.database.transact(lambda tx: KEY_LIMITS.store_limit(tx, system(scene.ada.id), command))


async def register(scene: OAuthServerScene, tokens: dict[str, Any], event_id: int, email: str) -> str:
    """Register a person through the tool; the code of the refusal, or `accepted`."""
    call = {"name": "create_registration", "arguments": {"event_id": event_id, "email": email}}
    result = await scene.agent(tokens).result("tools/call", call)
    return json.loads(result["content"][0]["text"])["code"] if result.get("isError") else "accepted"


async def test_an_app_that_is_connected_again_goes_on_with_the_same_count(scene: OAuthServerScene) -> None:
    event = await scene.ada.create_event(capacity=100)
    first = await scene.connect_app()
    await limit(scene, 2)
    second = await scene.connect_app()

    assert await register(scene, first, event["id"], "ann@example.com") == "accepted"
    assert await register(scene, second, event["id"], "ben@example.com") == "accepted"
    assert await register(scene, first, event["id"], "cal@example.com") == "daily_limit_reached"
    assert await register(scene, second, event["id"], "cal@example.com") == "daily_limit_reached"
    [listed] = await scene.service.database.read(lambda reader: list_limits(reader, system(scene.ada.id), ListLimits()))
    read_limit = await scene.service.runner.run_of(KEY_LIMITS.get_limit)(
        system(scene.ada.id), GetLimit(client_id=scene.app.id)
    )
    assert (read_limit.daily_limit, read_limit.used) == (2, 2)
    assert (listed.client_id, listed.daily_limit, listed.used) == (scene.app.id, 2, 2)


async def test_the_key_of_the_organizer_is_not_limited_with_its_app(scene: OAuthServerScene) -> None:
    event = await scene.ada.create_event(capacity=100)
    await scene.connect_app()
    await limit(scene, 0)

    assert await scene.ada.register(event["id"], email="ann@example.com")
