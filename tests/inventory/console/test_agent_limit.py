"""The page of the daily limit of a shop's key: a merchant sets how many units agents move in a day."""

from tests.helpers.form_browser import main_text
from tests.helpers.inventory_service import run_sql
from tests.inventory.console.merchant_scene import Admin


async def test_a_merchant_sets_the_limit_of_the_key_of_the_shop_and_sees_it_in_the_settings(admin: Admin) -> None:
    await admin.open()
    [(key_id,)] = await run_sql(admin.inventory.database, "select id from api_keys where active")
    path = f"/console/agents/limit?key={key_id}"
    assert "How many units the agent may sell" in main_text(await admin.get(path))

    saved = await admin.send(path, daily_limit="20")

    assert saved.status_code == 303
    assert "0 of 20 units moved today." in main_text(await admin.get("/console/agents"))
    assert await run_sql(admin.inventory.database, "select key_id, daily_limit from agent_limits") == [(key_id, 20)]
