"""An uninstall or a deletion is done only after the platform confirms that the shop does not have the app.

So a webhook that a stranger could forge does nothing.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from holdfast.inventory.installs import uninstalling
from holdfast.inventory.installs.model import ShopTask
from holdfast.inventory.shopify.platform_client import Platform
from holdfast.inventory.shopify.platform_tokens import TokenEndpoint
from holdfast_demo.shopify.errors import Fault
from tests.helpers.inventory_service import Shop
from tests.helpers.platform_shop import CLIENT, DOMAIN, SECRET, PlatformScene, key_in
from tests.helpers.platform_webhooks import deliver, handle
from tests.inventory.installs.uninstalling import move_uninstall_back, tell_of_uninstall


@pytest.fixture
async def shop(scene: PlatformScene) -> Shop:
    """A shop that has the app, with a pool of 50."""
    shop = await scene.find_shop(key_in((await scene.install()).text))
    await shop.create_golden_pool()
    return shop


async def deliver_deletion(scene: PlatformScene, shop: Shop) -> None:
    """Let the service hear that everything of the shop is to be deleted, whether the platform wants that or not."""
    assert (await deliver(shop, "shop/redact", {"shop_domain": shop.domain})).status_code == 200
    await handle(scene.inventory)


ENDS: list[Callable[[PlatformScene, Shop], Awaitable[None]]] = [tell_of_uninstall, deliver_deletion]


async def state(scene: PlatformScene) -> tuple[bool, bool]:
    """Whether the shop has uninstalled the app, and whether everything of it is to be deleted."""
    uninstalled, redacted = await scene.row("uninstalled_at is not null, redacted_at is not null")
    return uninstalled, redacted


async def due_again(scene: PlatformScene) -> int:
    """Let what waits be tried again now. Returns how many deliveries that were."""
    await scene.inventory.sql("update webhooks set due_at = now() where handled_at is null and due_at is not null")
    await scene.inventory.sql("update platform_tokens set leased_until = null")
    return await handle(scene.inventory)


@pytest.mark.parametrize("end", ENDS)
async def test_a_shop_that_has_the_app_keeps_its_data_whatever_webhooks_say(
    scene: PlatformScene, shop: Shop, end: Callable[[PlatformScene, Shop], Awaitable[None]]
) -> None:
    await end(scene, shop)

    assert await state(scene) == (False, False)
    assert await shop.on_hand(1) == 50
    assert await scene.row("count(*)", "platform_tokens") == (1,)


@pytest.mark.parametrize("end", ENDS)
async def test_an_expired_access_token_is_refreshed_before_the_platform_is_called(
    scene: PlatformScene, shop: Shop, end: Callable[[PlatformScene, Shop], Awaitable[None]]
) -> None:
    scene.platform.clock.advance(3 * 3600)
    await scene.inventory.sql("update platform_tokens set generation = 1, expires_at = now() - interval '1 hour'")

    await end(scene, shop)

    assert await state(scene) == (False, False)
    assert await scene.row("generation", "platform_tokens") == (2,)


@pytest.mark.parametrize("end", ENDS)
async def test_a_shop_whose_tokens_the_platform_has_ended_but_that_has_the_app_keeps_everything(
    scene: PlatformScene, shop: Shop, end: Callable[[PlatformScene, Shop], Awaitable[None]]
) -> None:
    scene.platform.oauth.revoke(DOMAIN)

    await end(scene, shop)

    assert await state(scene) == (False, False)
    assert await shop.on_hand(1) == 50


async def test_a_shop_that_was_installed_again_at_the_platform_is_not_deleted(scene: PlatformScene, shop: Shop) -> None:
    """Its merchant has not opened the app since, so the service has no token for it."""
    scene.platform.uninstall(DOMAIN)
    await tell_of_uninstall(scene, shop)
    scene.platform.install(DOMAIN)
    await move_uninstall_back(scene)

    await deliver_deletion(scene, shop)
    await scene.inventory.sql("update installs set uninstalled_at = now() - interval '31 days'")

    assert await uninstalling.redact_forgotten(scene.steps) == 0
    assert await state(scene) == (True, False)


async def test_a_shop_without_the_app_is_deleted_even_if_its_uninstall_was_never_received(
    scene: PlatformScene, shop: Shop
) -> None:
    scene.platform.uninstall(DOMAIN)

    await deliver_deletion(scene, shop)

    assert await state(scene) == (True, True)
    await uninstalling.delete(scene.steps, ShopTask(shop.id))
    assert await scene.inventory.sql("select from shops") == []


@pytest.mark.parametrize("end", ENDS)
async def test_while_the_platform_does_not_answer_the_webhook_waits_and_is_then_done(
    scene: PlatformScene, shop: Shop, end: Callable[[PlatformScene, Shop], Awaitable[None]]
) -> None:
    scene.platform.uninstall(DOMAIN)
    scene.platform.plan(Fault("down", times=2))

    await end(scene, shop)
    assert await state(scene) == (False, False)
    assert await scene.row("attempts, handled_at is null, due_at > now()", "webhooks") == (1, True, True)
    await due_again(scene)
    assert await state(scene) == (False, False)

    await due_again(scene)
    assert (await state(scene))[0]
    assert await scene.row("attempts, handled_at is null", "webhooks") == (3, False)


@pytest.mark.parametrize("end", ENDS)
async def test_a_refusal_caused_by_our_settings_does_not_end_an_install(
    scene: PlatformScene, shop: Shop, end: Callable[[PlatformScene, Shop], Awaitable[None]]
) -> None:
    scene.platform.oauth.revoke(DOMAIN)
    database = scene.inventory.database
    mistaken = TokenEndpoint(database.resources.platform, CLIENT, f"not {SECRET}")
    database.resources = replace(database.resources, token_endpoint=mistaken)

    await end(scene, shop)

    assert await state(scene) == (False, False)
    assert await scene.row("handled_at is null, due_at > now()", "webhooks") == (True, True)


@pytest.mark.parametrize("end", ENDS)
async def test_a_shop_whose_tokens_cannot_be_read_keeps_everything_until_the_platform_has_refused_them(
    scene: PlatformScene, shop: Shop, end: Callable[[PlatformScene, Shop], Awaitable[None]]
) -> None:
    """The app is of another organization than the shop: the platform gives it no token by itself, whatever it has."""
    scene.platform.state.app.of_shops = False
    [(sealed,)] = await scene.inventory.sql("select sealed from platform_tokens")
    await scene.inventory.sql("update platform_tokens set sealed = 'under another secret key'")

    await end(scene, shop)
    assert await state(scene) == (False, False)
    assert await scene.row("handled_at is null, due_at > now()", "webhooks") == (True, True)

    await scene.inventory.sql("update platform_tokens set sealed = %(sealed)s", sealed=sealed)
    await due_again(scene)
    assert await state(scene) == (False, False)
    assert await shop.on_hand(1) == 50


@pytest.mark.parametrize("end", ENDS)
async def test_a_shop_of_another_organization_that_refuses_its_tokens_has_uninstalled_the_app(
    scene: PlatformScene, shop: Shop, end: Callable[[PlatformScene, Shop], Awaitable[None]]
) -> None:
    scene.platform.state.app.of_shops = False
    scene.platform.uninstall(DOMAIN)

    await end(scene, shop)

    assert (await state(scene))[0]


async def test_a_shop_the_platform_gives_no_answer_about_is_not_deleted_after_30_days(
    scene: PlatformScene, shop: Shop
) -> None:
    scene.platform.uninstall(DOMAIN)
    await tell_of_uninstall(scene, shop)
    await scene.inventory.sql("update installs set uninstalled_at = now() - interval '31 days'")
    database = scene.inventory.database
    nowhere = Platform("http://127.0.0.1:9/{shop}", "2026-10", seconds=2)
    resources = database.resources
    database.resources = replace(resources, token_endpoint=TokenEndpoint(nowhere, CLIENT, SECRET))

    assert await uninstalling.redact_forgotten(scene.steps) == 0
    database.resources = resources
    assert await uninstalling.redact_forgotten(scene.steps) == 1


class InstalledMeanwhile(TokenEndpoint):
    """Answers that the shop does not have the app; and then its merchant installs it."""

    def __init__(self, scene: PlatformScene) -> None:
        super().__init__(scene.inventory.database.resources.platform, CLIENT, SECRET)
        self._scene = scene

    async def has_app(self, shop: str) -> bool | None:
        has_app = await super().has_app(shop)
        await self._scene.install()
        return has_app


@pytest.mark.parametrize("end", ENDS)
async def test_a_shop_installed_again_while_the_platform_is_called_keeps_its_data(
    scene: PlatformScene, shop: Shop, end: Callable[[PlatformScene, Shop], Awaitable[None]]
) -> None:
    scene.platform.uninstall(DOMAIN)
    database = scene.inventory.database
    database.resources = replace(database.resources, token_endpoint=InstalledMeanwhile(scene))

    await end(scene, shop)

    assert await state(scene) == (False, False)
    assert await scene.row("count(*)", "platform_tokens") == (1,)


async def test_a_shop_that_is_no_more_at_the_platform_does_not_have_the_app(scene: PlatformScene, shop: Shop) -> None:
    scene.platform.uninstall(DOMAIN)
    scene.platform.state.store.remove(DOMAIN, scene.platform.shop(DOMAIN))

    await tell_of_uninstall(scene, shop)

    assert await state(scene) == (True, False)
