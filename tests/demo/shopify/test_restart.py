"""A platform whose file outlives it."""

from pathlib import Path

from holdfast_demo.shopify.orders import SaleLine
from tests.demo.shopify.stage import DOMAIN, run_platform, run_platform_with_app


async def test_shops_tokens_levels_and_messages_are_there_after_a_restart(tmp_path: Path) -> None:
    file = tmp_path / "shops.sqlite"
    async with run_platform_with_app(file) as stage:
        await stage.subscribe("ORDERS_CREATE")
        stage.double.webhooks.hold = True
        order = stage.double.sell(DOMAIN, SaleLine(stage.variants[1].id, 2))
        token = stage.token
        stage.double.bulks.hold = True
        begun = await stage.data(
            "mutation($bulk: String!) { bulkOperationRunQuery(query: $bulk) { bulkOperation { id } } }",
            bulk="{ products { edges { node { id } } } }",
        )

    async with run_platform(file) as stage:
        stage.token = token
        message = await stage.recorder.wait_for("orders/create")
        assert message.body["id"] == order.id
        assert stage.double.available(DOMAIN, order.lines[0].variant) == 6
        data = await stage.data("{ shop { name } currentBulkOperation { id } }")
        assert data["shop"] == {"name": "First"}
        assert data["currentBulkOperation"] == begun["bulkOperationRunQuery"]["bulkOperation"]
