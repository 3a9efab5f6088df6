"""Regenerating a shop's key: one key is valid at a time, with no more scopes than requested."""

import asyncio

from holdfast.inventory.shops import operations as shops
from tests.inventory.agents.conftest import AgentScene


async def test_keys_regenerated_at_once_leave_one_that_works_with_the_scopes_of_the_first(scene: AgentScene) -> None:
    await scene.run_sql("update api_keys set scopes = '{read_pools}'")
    made = await asyncio.gather(*(scene.regenerate() for _ in range(8)))

    answers = [await scene.who(key) for key in made]
    (good,) = [answer.json() for answer in answers if answer.status_code == 200]
    assert good["scopes"] == ["read_pools"]
    shop_key = await scene.database.transact(lambda tx: shops.show_key(tx, scene.shop_id))
    assert (await scene.who(shop_key)).status_code == 200


async def test_a_key_made_without_scopes_may_do_nothing(scene: AgentScene) -> None:
    key = await scene.database.transact(lambda tx: shops.regenerate_key(tx, scene.shop_id, ()))

    assert (await scene.who(key)).json()["scopes"] == []
