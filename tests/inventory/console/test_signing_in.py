"""The console in a window of its own: merchants whom an operator has named sign in by a link to their address."""

import pytest

from holdfast.inventory.mails import sending
from holdfast.inventory.mails.writing import MailBatch, write
from holdfast.inventory.merchants import operations
from holdfast.inventory.merchants.model import ListActors
from holdfast.kit.contract.caller import person
from holdfast.kit.contract.problems import NOT_FOUND, VALIDATION_FAILED, Problem
from holdfast.kit.mail.message import Envelope
from tests.helpers.form_browser import main_text
from tests.helpers.inventory_service import Inventory, Shop
from tests.inventory.console.signing_in import EMAIL, Owner, add_merchant
from tests.kit.mail.posting import all_due


@pytest.fixture
async def owner(inventory: Inventory, shop: Shop) -> Owner:
    await add_merchant(inventory, shop)
    return Owner(inventory)


async def test_an_owner_signs_in_and_sees_the_pools_of_the_shop(owner: Owner, shop: Shop) -> None:
    await shop.create_pool(7, name="Honey jars")

    redirect = await owner.get("/console?cursor=x")
    page = await (await owner.sign_in()).get("/console")

    assert (redirect.status_code, redirect.headers["location"]) == (303, "/sign-in?return_to=%2Fconsole%3Fcursor%3Dx")
    assert "7 units can be sold" in main_text(page)
    assert f"Sign out {EMAIL}" in page.text
    assert page.headers["x-frame-options"] == "DENY"
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
    assert "shopify" not in page.text


async def test_the_account_page_names_its_shop_and_signs_out(owner: Owner, shop: Shop) -> None:
    await owner.sign_in()

    account = await owner.get("/account")
    left = await owner.send("/account", "/sign-out")

    assert shop.domain in main_text(account)
    assert left.status_code == 303
    assert (await owner.get("/console")).status_code == 303


async def test_the_mail_has_the_link_once_and_no_longer_when_it_was_used(owner: Owner) -> None:
    path = await owner.ask()

    async def writer(batch: MailBatch) -> list[bytes]:
        return write(batch)

    async def written() -> list[str]:
        due = await all_due(owner.inventory.database)
        rendered = await sending.render(writer, owner.inventory.database, due)
        return [envelope.content.decode() for envelope in rendered if isinstance(envelope, Envelope)]

    [mail] = await written()
    await owner.send(path)

    assert "Subject: Sign in to Holdfast Inventory" in mail
    assert path in mail.replace("=\r\n", "").replace("=\n", "")
    assert await written() == []


async def test_an_unknown_address_signs_in_to_no_shop(owner: Owner) -> None:
    done = await owner.send(await owner.ask("eve@example.com"))

    assert done.status_code == 410
    assert main_text(done).startswith("There is no account with this address.")
    assert "You asked for a link to eve@example.com ." in main_text(done)
    assert "holdfast inventory shop owner SHOP_DOMAIN eve@example.com" in main_text(done)
    assert await owner.inventory.sql("select from sessions") == []
    assert await owner.inventory.sql("select email from merchants") == [(EMAIL,)]


async def test_a_merchant_cannot_sign_in_by_password(owner: Owner) -> None:
    refusal = await owner.send("/sign-in", email=EMAIL, password="correct horse battery")

    assert refusal.status_code == 422
    assert "set-cookie" not in refusal.headers


async def test_a_session_by_a_link_is_refused_in_a_frame(owner: Owner, shop: Shop) -> None:
    await owner.sign_in()

    # Without the app at the platform no page is shown in a frame, whatever its address says.
    page = await owner.get(f"/console?shop={shop.domain}")

    assert page.headers["x-frame-options"] == "DENY"


async def test_an_address_can_be_named_for_one_shop_only(inventory: Inventory, owner: Owner, shop: Shop) -> None:
    other = await inventory.create_shop()

    again = await add_merchant(inventory, shop, f" {EMAIL.upper()} ")
    with pytest.raises(Problem, match="email") as refusal:
        await add_merchant(inventory, other)
    with pytest.raises(Problem, match="email") as malformed:
        await add_merchant(inventory, other, "nobody")

    assert await inventory.sql("select id, email from merchants") == [(again, EMAIL)]
    assert refusal.value.type is malformed.value.type is VALIDATION_FAILED


async def test_an_operator_makes_a_link_that_works_once_in_any_browser(owner: Owner, shop: Shop) -> None:
    id = await owner.inventory.database.transact(lambda tx: operations.console_link(tx, shop.id))

    first = await owner.send(owner.path(id))
    second = await Owner(owner.inventory).get(owner.path(id))

    assert (first.status_code, first.headers["location"]) == (303, "/console")
    assert (await owner.get("/console")).status_code == 200
    assert main_text(second).startswith("This link has already been used.")
    assert "holdfast inventory console-link SHOP_DOMAIN" in main_text(second)


async def test_a_link_that_was_mailed_is_not_replaced_by_a_command(owner: Owner) -> None:
    path = await owner.ask()
    await owner.send(path)

    again = await Owner(owner.inventory).get(path)

    assert main_text(again).startswith("This link was asked for in another browser.")
    assert "console-link" not in main_text(again)


async def test_the_sign_in_form_says_who_can_sign_in(owner: Owner) -> None:
    assert "If your shop has the app, open the app in the admin of your shop" in main_text(await owner.get("/sign-in"))


async def test_a_link_of_an_operator_needs_an_owner(inventory: Inventory, shop: Shop) -> None:
    with pytest.raises(Problem, match="has no owner who signs in") as refusal:
        await inventory.database.transact(lambda tx: operations.console_link(tx, shop.id))

    assert refusal.value.type is NOT_FOUND


async def test_an_owner_of_a_shop_that_uninstalled_the_app_cannot_sign_in(owner: Owner, shop: Shop) -> None:
    await owner.inventory.sql(
        "insert into installs (shop_id, scopes, uninstalled_at) values (%(id)s, '{}', now())", id=shop.id
    )

    done = await owner.send(await owner.ask())

    assert main_text(done).startswith("There is no account with this address.")


async def test_a_change_is_attributed_to_the_address_of_a_merchant_or_the_key_of_an_agent(
    owner: Owner, shop: Shop
) -> None:
    [(id,)] = await owner.inventory.sql("select id from merchants")
    pool = await shop.create_pool(10)
    await owner.inventory.sql(
        "insert into ledger (shop_id, id, pool_id, seq, kind, delta, held_delta, balance_after, held_after, below_zero,"
        " version, actor, actor_id, source, created_at)"
        " values (%(shop)s, 2, %(pool)s, 2, 'adjust', 1, 0, 11, 0, false, 9, 'staff', %(id)s, 'test', now())",
        shop=shop.id,
        pool=pool["id"],
        id=id,
    )

    actors = await owner.inventory.database.read(
        lambda reader: operations.list_actors(reader, person(id, shop.id), ListActors(entry_ids=[1, 2, 3])), shop.id
    )

    [agent, merchant] = actors
    assert (merchant.entry_id, merchant.email, merchant.staff_id, merchant.key_id) == (2, EMAIL, None, None)
    assert (agent.entry_id, agent.email, agent.staff_id) == (1, None, None)
    assert await owner.inventory.sql("select id from api_keys where active") == [(agent.key_id,)]
