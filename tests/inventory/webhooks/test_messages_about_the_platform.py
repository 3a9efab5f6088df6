"""Programs of a shop are told when the app is connected with the platform, and when quantities there drift."""

from contextlib import asynccontextmanager

import pytest

from holdfast.inventory.shopify.domains import REQUIRED
from holdfast_demo.shopify.model import gid
from tests.helpers.platform_shop import DOMAIN, PlatformSource, open_platform_scene
from tests.inventory.sync.sync_scene import SyncScene, open_pooled_shop
from tests.inventory.webhooks.programs import programs_of

opened = asynccontextmanager(programs_of)


@pytest.mark.parametrize("policy", ["adopt", "enforce", "flag"])
async def test_an_external_change_of_quantities_is_reported_with_the_policy_of_the_pool(
    platform_source: PlatformSource, policy: str
) -> None:
    async with open_pooled_shop(platform_source, policy=policy) as scene, opened(scene.inventory) as programs:
        program = await programs.add(scene.shop, "reconcile.drift_found")

        await edit_and_reconcile(scene, dry_run=False)

        six_pack = gid("ProductVariant", scene.variants["6-pack"].id)
        assert await program.contents() == [
            (
                "reconcile.drift_found",
                f"pool {scene.pool_id}",
                {"pool_id": scene.pool_id, "policy": policy, "variants": {six_pack: 2}},
            )
        ]


async def test_a_dry_run_of_reconcile_sends_no_message(platform_source: PlatformSource) -> None:
    async with open_pooled_shop(platform_source) as scene, opened(scene.inventory) as programs:
        program = await programs.add(scene.shop, "reconcile.drift_found")

        await edit_and_reconcile(scene, dry_run=True)

        assert await program.contents() == []


async def edit_and_reconcile(scene: SyncScene, *, dry_run: bool) -> None:
    scene.count("6-pack", 10)
    report = await scene.shop.call("reconcile", pool_id=scene.pool_id, dry_run=dry_run)
    assert [difference["difference"] for difference in report["drift"]] == [2]


async def test_an_app_that_is_installed_again_sends_a_message_with_the_granted_scopes(
    platform_source: PlatformSource,
) -> None:
    async with open_platform_scene(platform_source) as scene, opened(scene.inventory) as programs:
        shop = await scene.install_shop("read_pools", "write_pools")
        program = await programs.add(shop, "app.connected")

        await scene.install()
        assert await program.contents() == []
        await scene.inventory.sql("update installs set uninstalled_at = now()")
        await scene.install()

        assert await program.contents() == [("app.connected", "app", {"shop": DOMAIN, "scopes": sorted(REQUIRED)})]
