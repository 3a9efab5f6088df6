"""The lock and the version of a shop. Each change of its pools, members or stock increases the version."""

from holdfast.inventory.resources import Reader, Tx

STOCK_CHANNEL = "stock"
"""The channel on which a change is announced; the payload is `shop version`."""


async def lock_shop(tx: Tx, shop_id: int) -> None:
    """Lock a shop: no other transaction changes anything of it until this one ends."""
    await tx.run("select from shared_inventories where shop_id = %(shop_id)s for no key update", {"shop_id": shop_id})


async def increase_version(tx: Tx, shop_id: int) -> int:
    """Count a change that is not in the ledger. Returns the new version of the shop, which must be locked."""
    return await tx.value(
        "update shared_inventories set version = version + 1 where shop_id = %(shop_id)s returning version",
        {"shop_id": shop_id},
    )


async def present_version(reader: Reader, shop_id: int) -> int:
    """The version of a shop as it is now."""
    return await reader.value(
        "select version from shared_inventories where shop_id = %(shop_id)s", {"shop_id": shop_id}
    )
