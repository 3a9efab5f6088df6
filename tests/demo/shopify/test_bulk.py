"""Bulk operations: everything in a file, with a line for each object."""

import json
from typing import Any

import pytest

from holdfast_demo.shopify.model import Bulk
from holdfast_demo.shopify.shops import NewVariant
from tests.demo.shopify.stage import DOMAIN, PlatformStage
from tests.helpers.events_service import eventually

RUN = """
mutation($query: String!, $grouped: Boolean!) {
  bulkOperationRunQuery(query: $query, groupObjects: $grouped) {
    bulkOperation { id status } userErrors { code field message }
  }
}
"""
SHOW = """
query($id: ID!) {
  bulkOperation(id: $id) { status errorCode objectCount rootObjectCount url partialDataUrl fileSize }
}
"""
VARIANTS = """
{ productVariants { edges { node {
  id sku product { id }
  inventoryItem {
    id inventoryLevels { edges { node { location { id } quantities(names: ["available"]) { quantity } } } }
  }
} } } }
"""
BELOW = "{ products { edges { node { id variants { edges { node { %s } } } } } } }"
MANY = (
    BELOW.replace(
        "variants", " ".join(f"{alias}: variants {{ edges {{ node {{ id }} }} }}" for alias in "abcd") + " variants"
    )
    % "id"
)


async def begin(stage: PlatformStage, query: str = VARIANTS, *, grouped: bool = False) -> str:
    made = (await stage.data(RUN, query=query, grouped=grouped))["bulkOperationRunQuery"]
    assert made["userErrors"] == []
    assert made["bulkOperation"]["status"] == "CREATED"
    return made["bulkOperation"]["id"]


async def wait_until_over(stage: PlatformStage, id: str) -> Any:
    """An operation that has ended."""

    async def is_over() -> bool:
        bulks = stage.double.state.store.select(Bulk, DOMAIN)
        return all(bulk.completed for bulk in bulks)

    await eventually(is_over)
    return (await stage.data(SHOW, id=id))["bulkOperation"]


async def lines_of(stage: PlatformStage, url: str) -> list[Any]:
    answer = await stage.http.get(url)
    assert answer.status_code == 200
    return [json.loads(line) for line in answer.text.splitlines()]


async def test_every_node_is_in_the_bulk_file_and_children_name_their_parents(stage: PlatformStage) -> None:
    await stage.subscribe("BULK_OPERATIONS_FINISH")
    id = await begin(stage)
    operation = await wait_until_over(stage, id)
    lines = await lines_of(stage, operation["url"])

    assert (operation["status"], operation["objectCount"], operation["rootObjectCount"]) == ("COMPLETED", "10", "5")
    variants = [line for line in lines if "sku" in line]
    levels = {line["__parentId"]: line["quantities"] for line in lines if "sku" not in line}
    assert [variant["sku"] for variant in variants] == ["HONEY-1", "HONEY-6", "HONEY-12", "TEA-100", "TEA-250"]
    assert variants[0]["inventoryItem"] == {"id": stage.item()}
    assert levels[stage.variants[1].gid] == [{"quantity": 8}]
    assert int(operation["fileSize"]) == len((await stage.http.get(operation["url"])).content)
    message = await stage.recorder.wait_for("bulk_operations/finish")
    assert (message.body["admin_graphql_api_id"], message.body["status"]) == (id, "completed")


async def test_children_come_after_all_parents_unless_they_are_grouped(stage: PlatformStage) -> None:
    query = "{ products { edges { node { id variants { edges { node { id } } } } } } }"
    loose = await lines_of(stage, (await wait_until_over(stage, await begin(stage, query)))["url"])
    grouped = await lines_of(stage, (await wait_until_over(stage, await begin(stage, query, grouped=True)))["url"])

    assert ["__parentId" in line for line in loose] == [False, False, True, True, True, True, True]
    assert ["__parentId" in line for line in grouped] == [False, True, True, True, False, True, True]


async def test_more_than_one_step_is_read_and_a_file_can_be_fetched_from_the_middle(stage: PlatformStage) -> None:
    stage.double.add_product(DOMAIN, "Socks", [NewVariant(str(size), f"SOCKS-{size}") for size in range(250)])
    operation = await wait_until_over(stage, await begin(stage, "{ productVariants { edges { node { sku } } } }"))

    full_file = await stage.http.get(operation["url"])
    rest = await stage.http.get(operation["url"], headers={"Range": "bytes=100-"})

    assert len(full_file.text.splitlines()) == 255
    assert rest.status_code == 206
    assert rest.content == full_file.content[100:]
    assert (await stage.http.get(operation["url"].replace("bulk/", "bulk/1"))).status_code == 404


async def test_an_operation_that_finds_nothing_has_no_file(stage: PlatformStage) -> None:
    operation = await wait_until_over(stage, await begin(stage, "{ orders { edges { node { id } } } }"))

    assert (operation["status"], operation["url"], operation["objectCount"]) == ("COMPLETED", None, "0")


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("{ products { edges", "Syntax Error"),
        ("{ products { edges { node { password } } } }", "Cannot query field"),
        ('mutation { bulkOperationRunQuery(query: "") { userErrors { message } } }', "exactly one query"),
        ("{ shop { id } }", "at least one connection"),
        ("{ products { nodes { id } } }", "edges { node"),
        ('{ node(id: "gid://shopify/Product/1") { id } }', "neither `node`"),
        ("{ products { edges { node { variants { edges { node { id } } } } } } }", "must select the 'id' field"),
        (BELOW % "id inventoryItem { inventoryLevels { edges { node { id } } } }", "nesting depth"),
        (MANY, "more than 5 connections"),
    ],
)
async def test_a_query_that_cannot_be_run_in_bulk_is_refused(stage: PlatformStage, query: str, reason: str) -> None:
    made = (await stage.data(RUN, query=query, grouped=False))["bulkOperationRunQuery"]

    assert made["bulkOperation"] is None
    assert made["userErrors"][0]["code"] == "INVALID"
    assert reason in made["userErrors"][0]["message"]


async def test_at_most_five_bulk_operations_run_at_once(stage: PlatformStage) -> None:
    stage.double.bulks.hold = True
    ids = [await begin(stage) for _ in range(5)]

    sixth = (await stage.data(RUN, query=VARIANTS, grouped=False))["bulkOperationRunQuery"]
    stage.double.bulks.hold = False

    assert sixth["userErrors"][0]["code"] == "LIMIT_REACHED"
    assert (await wait_until_over(stage, ids[-1]))["status"] == "COMPLETED"


async def test_an_operation_can_be_stopped_or_break_in_the_middle(stage: PlatformStage) -> None:
    cancel = "mutation($id: ID!) { bulkOperationCancel(id: $id) { bulkOperation { status } userErrors { message } } }"
    stage.double.bulks.hold = True
    stopped = await begin(stage)
    assert (await stage.data(cancel, id=stopped))["bulkOperationCancel"]["bulkOperation"]["status"] == "CANCELING"
    stage.double.bulks.hold = False
    assert (await wait_until_over(stage, stopped))["status"] == "CANCELED"
    assert (await stage.data(cancel, id=stopped))["bulkOperationCancel"]["userErrors"]

    stage.double.bulks.break_after = 3
    broken = await wait_until_over(stage, await begin(stage))
    assert (broken["status"], broken["errorCode"], broken["url"]) == ("FAILED", "INTERNAL_SERVER_ERROR", None)
    assert await lines_of(stage, broken["partialDataUrl"])


async def test_an_operation_ends_when_the_app_is_uninstalled(stage: PlatformStage) -> None:
    stage.double.bulks.hold = True
    id = await begin(stage)
    stage.double.uninstall(DOMAIN)
    stage.double.install(DOMAIN, ["read_orders"])
    stage.token = stage.double.token(DOMAIN)
    stage.double.bulks.hold = False

    assert (await wait_until_over(stage, id))["errorCode"] == "ACCESS_DENIED"
