"""A merchant in the admin of a shop that has the app; and one whose shop has something to sell there."""

from collections.abc import AsyncGenerator

import pytest

from holdfast.inventory.shops.model import SCOPES
from tests.helpers.inventory_service import Shop
from tests.helpers.platform_shop import PlatformSource
from tests.inventory.console.merchant_at_platform import MerchantAtPlatform, open_merchant_at_platform
from tests.inventory.console.merchant_scene import Admin, in_the_admin


@pytest.fixture
async def admin(platform_source: PlatformSource) -> AsyncGenerator[Admin]:
    async with in_the_admin(platform_source) as admin:
        yield admin


@pytest.fixture
async def own_shop(admin: Admin) -> Shop:
    """The shop of the merchant, who has opened the app, and its agent."""
    await admin.open()
    shop = await admin.scene.find_shop()
    await admin.inventory.regenerate_key(shop, *SCOPES)
    return shop


@pytest.fixture
async def merchant(platform_source: PlatformSource) -> AsyncGenerator[MerchantAtPlatform]:
    async with open_merchant_at_platform(platform_source) as merchant:
        yield merchant
