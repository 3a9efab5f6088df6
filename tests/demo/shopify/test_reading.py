"""Reading a shop: its products, stock and places, a page at a time, sorted and searched."""

from typing import Any

from holdfast_demo.shopify.errors import Fault
from holdfast_demo.shopify.model import format_time
from holdfast_demo.shopify.orders import SaleLine
from holdfast_demo.shopify.shops import NewVariant, set_location
from tests.demo.shopify.stage import DOMAIN, PlatformStage

VARIANTS = """
query($first: Int, $after: String, $last: Int, $before: String, $reverse: Boolean, $query: String) {
  productVariants(first: $first, after: $after, last: $last, before: $before, reverse: $reverse, query: $query) {
    nodes { sku } edges { cursor } pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
  }
}
"""
ALL = ["HONEY-1", "HONEY-6", "HONEY-12", "TEA-100", "TEA-250"]


async def page_of_variants(stage: PlatformStage, **variables: Any) -> tuple[list[str], Any]:
    connection = (await stage.data(VARIANTS, **variables))["productVariants"]
    return [node["sku"] for node in connection["nodes"]], connection["pageInfo"]


async def test_a_list_is_paged_forwards_and_backwards(stage: PlatformStage) -> None:
    first, info = await page_of_variants(stage, first=2)
    assert (first, info["hasNextPage"], info["hasPreviousPage"]) == (ALL[:2], True, False)
    second, info = await page_of_variants(stage, first=2, after=info["endCursor"])
    assert (second, info["hasNextPage"], info["hasPreviousPage"]) == (ALL[2:4], True, True)
    third, info = await page_of_variants(stage, first=2, after=info["endCursor"])
    assert (third, info["hasNextPage"]) == (ALL[4:], False)
    back, info = await page_of_variants(stage, last=3, before=info["startCursor"])
    assert (back, info["hasNextPage"], info["hasPreviousPage"]) == (ALL[1:4], True, True)
    turned, _ = await page_of_variants(stage, first=5, reverse=True)
    assert turned == ALL[::-1]
    end, _ = await page_of_variants(stage, last=1, reverse=True)
    assert end == ALL[:1]


async def test_variants_are_found_by_words_and_by_their_sku(stage: PlatformStage) -> None:
    for query, skus in {
        "honey": ALL[:3],
        "HONEY jars 6-pack": ["HONEY-6"],
        "sku:HONEY-6": ["HONEY-6"],
        "sku:'HONEY-6'": ["HONEY-6"],
        "tea*": ALL[3:],
        "100%": [],
        f"id:{stage.variants[1].id}": ["HONEY-6"],
        f"id:>{stage.variants[1].id}": ALL[2:],
        "updated_at:>'2100-01-01'": [],
        "updated_at:>=2020-01-01T00:00:00Z": ALL,
        "": ALL,
    }.items():
        assert (await page_of_variants(stage, first=10, query=query))[0] == skus, query


async def test_items_are_found_by_their_own_ids(stage: PlatformStage) -> None:
    find = "query($words: String) { inventoryItems(first: 5, query: $words) { nodes { id } } }"

    one = await stage.data(find, words=f"id:{stage.variants[1].item}")
    later = await stage.data(find, words=f"id:>{stage.variants[1].item} honey")

    assert one["inventoryItems"]["nodes"] == [{"id": stage.item(1)}]
    assert later["inventoryItems"]["nodes"] == [{"id": stage.item(2)}]


async def test_a_product_shows_its_variants_their_stock_and_places(stage: PlatformStage) -> None:
    store = stage.double.add_location(DOMAIN, "Store")
    stage.double.stock(DOMAIN, stage.variants[0].id, store.id, 7)

    data = await stage.data(
        """query($id: ID!, $item: ID!, $place: ID!) {
          productVariant(id: $id) {
            displayName sku inventoryPolicy inventoryQuantity
            product { title totalInventory variantsCount { count } variants(first: 1) { nodes { title } } }
            inventoryItem { id tracked inventoryLevels(first: 5) {
              nodes { location { name } quantities(names: ["available"]) { name quantity } } } }
          }
          inventoryItem(id: $item) { variant { id } variants(first: 1) { nodes { id } }
            inventoryLevel(locationId: $place) { id quantities(names: ["on_hand", "incoming"]) { quantity } } }
          location(id: $place) { name hasActiveInventory inventoryLevel(inventoryItemId: $item) { id }
            inventoryLevels(first: 5) { nodes { item { sku } } } }
        }""",
        id=stage.variants[0].gid,
        item=stage.item(),
        place=store.gid,
    )

    variant = data["productVariant"]
    assert variant["displayName"] == "Honey jars - Single"
    assert variant["inventoryQuantity"] == 57
    assert variant["product"]["totalInventory"] == 69
    assert variant["product"]["variantsCount"] == {"count": 3}
    levels = variant["inventoryItem"]["inventoryLevels"]["nodes"]
    assert [(level["location"]["name"], level["quantities"][0]["quantity"]) for level in levels] == [
        ("Warehouse", 50),
        ("Store", 7),
    ]
    item = data["inventoryItem"]
    assert item["variant"]["id"] == item["variants"]["nodes"][0]["id"] == stage.variants[0].gid
    assert [quantity["quantity"] for quantity in item["inventoryLevel"]["quantities"]] == [7, 0]
    assert data["location"]["inventoryLevel"] == {"id": item["inventoryLevel"]["id"]}
    assert data["location"]["inventoryLevels"]["nodes"] == [{"item": {"sku": "HONEY-1"}}]


async def test_nodes_of_every_type_are_found_by_their_ids(stage: PlatformStage) -> None:
    level = stage.double.level(DOMAIN, stage.variants[0].id)
    ids = [
        stage.variants[0].gid,
        level.gid,
        stage.item(),
        stage.location,
        "gid://shopify/Product/7",
        stage.double.shop(DOMAIN).gid,
    ]

    data = await stage.data("query($ids: [ID!]!) { nodes(ids: $ids) { __typename id } }", ids=ids)

    kinds = [node and node["__typename"] for node in data["nodes"]]
    assert kinds == ["ProductVariant", "InventoryLevel", "InventoryItem", "Location", None, "Shop"]
    assert [node["id"] for node in data["nodes"] if node] == [id for id in ids if "Product/7" not in id]


async def test_closed_locations_are_listed_only_with_include_inactive(stage: PlatformStage) -> None:
    closed = stage.double.add_location(DOMAIN, "Attic")
    set_location(stage.double.state, DOMAIN, closed.id, active=False)

    data = await stage.data(
        "{ open: locations(first: 5) { nodes { name } } all: locations(first: 5, includeInactive: true) {"
        " nodes { name isActive } } }"
    )

    assert [location["name"] for location in data["open"]["nodes"]] == ["Warehouse"]
    assert [location["name"] for location in data["all"]["nodes"]] == ["Attic", "Warehouse"]


async def test_orders_that_have_changed_since_are_found_in_the_order_of_their_changes(stage: PlatformStage) -> None:
    orders = [stage.double.sell(DOMAIN, SaleLine(stage.variants[0].id, 1)) for _ in range(3)]
    stage.double.clock.advance(60)
    stage.double.send(DOMAIN, orders[0].id)
    find = '{ orders(first: 5, sortKey: UPDATED_AT, query: "%s") { nodes { name } } }'

    everything = await stage.data(find % "")
    since = stage.double.orders(DOMAIN)[0].updated - 30
    lately = await stage.data(find % f"updated_at:>='{format_time(since)}' status:any")

    assert [order["name"] for order in everything["orders"]["nodes"]] == ["#1002", "#1003", "#1001"]
    assert [order["name"] for order in lately["orders"]["nodes"]] == ["#1001"]


async def test_the_app_keeps_notes_of_its_own_at_a_shop(stage: PlatformStage) -> None:
    write = (
        "mutation($notes: [MetafieldsSetInput!]!) { metafieldsSet(metafields: $notes) {"
        " metafields { value compareDigest } userErrors { code field elementIndex } } }"
    )
    shop = stage.double.shop(DOMAIN).gid
    note = {"ownerId": shop, "namespace": "$app", "key": "state", "type": "single_line_text_field", "value": "one"}

    first = (await stage.data(write, notes=[note]))["metafieldsSet"]
    digest = first["metafields"][0]["compareDigest"]
    second = (await stage.data(write, notes=[note | {"value": "two", "compareDigest": digest}]))["metafieldsSet"]
    stale = (await stage.data(write, notes=[note | {"value": "three", "compareDigest": digest}]))["metafieldsSet"]
    wrong = (await stage.data(write, notes=[note, note | {"key": "!"}]))["metafieldsSet"]
    nobody = (await stage.data(write, notes=[note | {"ownerId": "gid://shopify/Metaobject/7"}]))["metafieldsSet"]
    data = await stage.data('{ shop { metafield(namespace: "$app", key: "state") { value } } }')

    assert second["userErrors"] == []
    assert stale["userErrors"][0]["code"] == "STALE_OBJECT"
    assert wrong["userErrors"] == [{"code": "INVALID", "field": ["metafields", "1", "key"], "elementIndex": 1}]
    assert nobody["userErrors"][0]["code"] == "INVALID"
    assert data["shop"]["metafield"] == {"value": "two"}


async def test_the_installation_says_what_the_app_may_do(stage: PlatformStage) -> None:
    data = await stage.data("{ currentAppInstallation { accessScopes { handle } app { title apiKey } } }")

    scopes = {scope["handle"] for scope in data["currentAppInstallation"]["accessScopes"]}
    assert scopes == {"read_products", "read_inventory", "write_inventory", "read_orders", "read_locations"}


async def test_a_planned_fault_shifts_the_pages_of_a_list(stage: PlatformStage) -> None:
    _, info = await page_of_variants(stage, first=2)
    stage.double.plan(Fault("shifted"))

    moved, _ = await page_of_variants(stage, first=2, after=info["endCursor"])
    after, _ = await page_of_variants(stage, first=2, after=info["endCursor"])

    assert moved == ALL[1:3]
    assert after == ALL[2:4]


async def test_a_deleted_variant_reads_as_null(stage: PlatformStage) -> None:
    [card] = stage.double.add_product(DOMAIN, "Card", [NewVariant("Printed")])
    stage.double.remove_variant(DOMAIN, card.id)

    assert (await stage.data("query($id: ID!) { productVariant(id: $id) { id } }", id=card.gid))[
        "productVariant"
    ] is None
