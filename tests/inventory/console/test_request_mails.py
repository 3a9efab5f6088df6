"""The mails to the people of a shop when an agent waits for their approval."""

from typing import Any

import pytest

from holdfast.accounts.agents.limits import SetLimit
from holdfast.inventory.mails import sending
from holdfast.inventory.mails.writing import write
from holdfast.inventory.shops.operations import SHOP_LIMITS
from holdfast.kit.contract.caller import system
from holdfast.kit.mail.message import Envelope
from tests.helpers.inventory_service import Inventory, Shop
from tests.inventory.console.signing_in import EMAIL, Owner, add_merchant
from tests.kit.mail.posting import all_due, text_of


@pytest.fixture
async def tea(inventory: Inventory, shop: Shop) -> dict[str, Any]:
    """A pool of a shop whose owner has signed in, and whose agent asks first."""
    await add_merchant(inventory, shop)
    await Owner(inventory).sign_in()
    pool = await shop.create_pool(15, name="Tea")
    await limit(inventory, shop, asks_first=True)
    return {"pool_id": pool["id"]}


async def limit(inventory: Inventory, shop: Shop, **fields: Any) -> None:
    [(key_id,)] = await inventory.sql("select id from api_keys where shop_id = %(id)s and active", id=shop.id)
    command = SetLimit(key_id=key_id, **fields)
    await inventory.database.transact(lambda tx: SHOP_LIMITS.store_limit(tx, system(shop.id), command))


async def planned_mails(inventory: Inventory) -> list[tuple[str, int]]:
    """The recipients of the mails that are not sent yet, and in how many minutes each is due."""
    return await inventory.sql(
        """
        select recipient, ceil(extract(epoch from due_at - now()) / 60)::int from mails
         where kind = 'agent_requests' and ended_at is null order by id
        """
    )


async def request_mails(inventory: Inventory) -> list[str]:
    """The texts of the mails about requests, as they are sent when they are due."""

    async def writer(batch: Any) -> list[bytes]:
        return write(batch)

    await inventory.sql("update mails set due_at = now() where kind = 'agent_requests' returning id")
    mails = [mail for mail in await all_due(inventory.database) if mail.kind == "agent_requests"]
    rendered = await sending.render(writer, inventory.database, mails)
    return [text_of(envelope) for envelope in rendered if isinstance(envelope, Envelope)]


async def test_merchants_are_mailed_in_the_language_of_their_last_sign_in(
    inventory: Inventory, shop: Shop, tea: dict[str, Any]
) -> None:
    await add_merchant(inventory, shop, "ben@example.com")
    await Owner(inventory, "de").sign_in("ben@example.com")
    await shop.refusal("set_pool_quantity", **tea, quantity=12)

    texts = sorted(await request_mails(inventory))

    assert [("möchte" in text, "wants" in text) for text in texts] == [(False, True), (True, False)]


async def test_the_people_of_a_shop_are_mailed_what_its_agent_asks_for(
    inventory: Inventory, shop: Shop, tea: dict[str, Any]
) -> None:
    waiting = await shop.refusal("set_pool_quantity", **tea, quantity=12)

    assert await planned_mails(inventory) == [(EMAIL, 1)]
    [mail] = await request_mails(inventory)
    assert mail.startswith(f"{EMAIL}: An agent asks for your approval\n")
    assert "* An agent wants to set Tea to 12 units. Now: 15 units." in mail
    assert f"http://inventory.test/console/agents/requests/{waiting['request_id']}?lang=en" in mail
    assert "Stop all e-mails" in mail


async def test_many_requests_are_one_mail_with_the_first_five_and_how_many_more(
    inventory: Inventory, shop: Shop, tea: dict[str, Any]
) -> None:
    for delta in range(1, 9):
        await shop.refusal("adjust_pool_quantity", **tea, delta=delta)

    assert await planned_mails(inventory) == [(EMAIL, 1)]
    [mail] = await request_mails(inventory)
    assert mail.startswith(f"{EMAIL}: An agent asks for your approval of 8 changes\n")
    assert [f"wants to add {delta} unit" in mail for delta in range(1, 9)] == [True] * 5 + [False] * 3
    assert "* and 3 more" in mail
    assert "http://inventory.test/console/agents?lang=en" in mail


async def test_the_next_mail_about_a_credential_is_due_an_hour_after_the_one_before(
    inventory: Inventory, shop: Shop, tea: dict[str, Any]
) -> None:
    await shop.refusal("adjust_pool_quantity", **tea, delta=1)
    passed = "update {} set {} = {} - interval '2 minutes' returning id"
    await inventory.sql(passed.format("agent_limits", "mail_at", "mail_at"))
    await inventory.sql(
        "update mails set ended_at = now(), outcome = 'sent' where kind = 'agent_requests' returning id"
    )
    await shop.refusal("adjust_pool_quantity", **tea, delta=2)

    assert await planned_mails(inventory) == [(EMAIL, 59)]
    await shop.refusal("adjust_pool_quantity", **tea, delta=3)
    assert await planned_mails(inventory) == [(EMAIL, 59)]


async def test_requests_that_have_ended_are_not_mailed(inventory: Inventory, shop: Shop, tea: dict[str, Any]) -> None:
    await shop.refusal("adjust_pool_quantity", **tea, delta=1)
    await inventory.sql(
        "update agent_requests set status = 'declined', slot = null, sealed = '', ended_at = now() returning id"
    )

    assert await request_mails(inventory) == []


async def test_the_mails_can_be_turned_off_for_an_agent(inventory: Inventory, shop: Shop, tea: dict[str, Any]) -> None:
    await shop.refusal("adjust_pool_quantity", **tea, delta=1)
    await limit(inventory, shop, mails_requests=False)

    assert await request_mails(inventory) == []
    await inventory.sql("update agent_limits set mail_at = null returning id")
    await shop.refusal("adjust_pool_quantity", **tea, delta=2)
    assert len(await planned_mails(inventory)) == 1


async def test_mails_about_requests_go_to_proved_addresses_of_the_shop_alone(
    inventory: Inventory, shop: Shop, tea: dict[str, Any]
) -> None:
    other = await inventory.create_shop()
    await add_merchant(inventory, other, "ben@example.com")
    await inventory.sql("update merchants set proved_at = now() returning id")
    await add_merchant(inventory, shop, "cy@example.com")

    await shop.refusal("adjust_pool_quantity", **tea, delta=1)

    assert await planned_mails(inventory) == [(EMAIL, 1)]


async def test_a_merchant_who_no_longer_works_in_the_shop_gets_no_mail(
    inventory: Inventory, shop: Shop, tea: dict[str, Any]
) -> None:
    await shop.refusal("adjust_pool_quantity", **tea, delta=1)
    await inventory.sql("update merchants set email = 'somebody-else@example.com' returning id")

    assert await request_mails(inventory) == []


async def test_a_mail_to_a_person_without_a_language_has_that_in_which_the_limit_was_set(
    inventory: Inventory, shop: Shop, tea: dict[str, Any]
) -> None:
    await limit(inventory, shop, language="de")
    await inventory.sql("update merchants set language = null returning id")
    await shop.refusal("adjust_pool_quantity", **tea, delta=1)

    [mail] = await request_mails(inventory)

    assert mail.startswith(f"{EMAIL}: Ein Agent bittet um Ihre Zustimmung\n")
    assert "?lang=de" in mail
