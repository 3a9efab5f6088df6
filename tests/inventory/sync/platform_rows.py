"""What the service has stored of the platform, changed by tests as the platform would bring it about only slowly."""

from tests.helpers.inventory_service import Inventory


async def park_levels(inventory: Inventory, reason: str) -> None:
    """Let all levels wait for the merchant."""
    await inventory.sql("update levels set parked = %(reason)s where target is not null", reason=reason)


async def park_level(inventory: Inventory, target: int, reason: str) -> None:
    """Let the level that should have this quantity wait for the merchant."""
    await inventory.sql("update levels set parked = %(reason)s where target = %(target)s", target=target, reason=reason)


async def add_to_levels(inventory: Inventory, quantity: int) -> None:
    """Let the platform have this much more of each variant than was set."""
    await inventory.sql(
        "update levels set available = available + %(quantity)s where target is not null", quantity=quantity
    )


async def have_two_locations(inventory: Inventory, rule: str, *, are_active: bool) -> None:
    """Add a market stall to the only location, with a rule of how both show the stock."""
    await inventory.sql("update catalogs set rule = %(rule)s", rule=rule)
    await inventory.sql("update locations set active = %(active)s", active=are_active)
    await inventory.sql(
        """insert into locations (shop_id, gid, name, active)
           select shop_id, 'gid://shopify/Location/9', 'Market stall', active from locations"""
    )


async def use_fulfillment_service(inventory: Inventory) -> None:
    """Let the locations be those of a fulfillment service."""
    await inventory.sql("update locations set fulfillment_service = true")


async def refuse_subscription(inventory: Inventory, error: str) -> None:
    """Let the platform not report everything."""
    await inventory.sql("update installs set subscription_errors = array[%(error)s]", error=error)


async def withdraw_access(inventory: Inventory) -> None:
    """Let the service have no token of the shop any more."""
    await inventory.sql("delete from platform_tokens")


async def fail_first_import(inventory: Inventory, error: str) -> None:
    """Let the import of the shop have stored nothing and have failed."""
    await inventory.sql("delete from catalog_variants")
    await inventory.sql("update catalogs set finished_at = null, error = %(error)s", error=error)


async def store_lag(inventory: Inventory, shop_id: int, seconds: float) -> None:
    """Let a sale have reached the platform after this time."""
    await inventory.sql(
        "insert into sync_lags (shop_id, pushed_at, seconds) values (%(id)s, now(), %(seconds)s)",
        id=shop_id,
        seconds=seconds,
    )


async def store_failed_order(inventory: Inventory, shop_id: int, error: str) -> None:
    """Let a webhook of an order have failed three times, and wait for another attempt."""
    await inventory.sql(
        """insert into webhooks (shop_id, topic, webhook_id, due_at, payload, attempts, error)
           values (%(id)s, 'orders/create', 'w', now() + interval '1 hour', '{}', 3, %(error)s)""",
        id=shop_id,
        error=error,
    )
