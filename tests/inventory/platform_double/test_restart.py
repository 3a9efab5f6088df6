"""A platform whose file outlives it."""

from pathlib import Path

from holdfast.inventory.shopify.double.orders import Sold
from tests.inventory.platform_double.stage import DOMAIN, installed, playing


async def test_shops_tokens_levels_and_messages_are_there_after_a_restart(tmp_path: Path) -> None:
    file = tmp_path / "shops.sqlite"
    async with installed(file) as stage:
        await stage.subscribe("ORDERS_CREATE")
        stage.double.webhooks.hold = True
        order = stage.double.sell(DOMAIN, Sold(stage.variants[1].id, 2))
        token = stage.token
        stage.double.bulks.hold = True
        begun = await stage.data(
            "mutation($bulk: String!) { bulkOperationRunQuery(query: $bulk) { bulkOperation { id } } }",
            bulk="{ products { edges { node { id } } } }",
        )

    async with playing(file) as stage:
        stage.token = token
        told = await stage.listener.hears("orders/create")
        assert told.body["id"] == order.id
        assert stage.double.available(DOMAIN, order.lines[0].variant) == 6
        shown = await stage.data("{ shop { name } currentBulkOperation { id } }")
        assert shown["shop"] == {"name": "First"}
        assert shown["currentBulkOperation"] == begun["bulkOperationRunQuery"]["bulkOperation"]
