"""Planned faults of the demo platform, and the cost of requests."""

from typing import Any

import httpx2
import pytest

from holdfast_demo.shopify.errors import Fault
from tests.demo.shopify.stage import DOMAIN, PlatformStage

NAME = "{ shop { name } }"
QUANTITY = (
    'query($id: ID!) { inventoryItem(id: $id) { inventoryLevels(first: 1) { nodes { quantities(names: ["available"])'
    " { quantity } } } } }"
)


async def available_quantity(stage: PlatformStage) -> int:
    data = await stage.data(QUANTITY, id=stage.item())
    return data["inventoryItem"]["inventoryLevels"]["nodes"][0]["quantities"][0]["quantity"]


async def test_a_planned_error_comes_before_or_after_the_request_is_done(stage: PlatformStage) -> None:
    request = stage.setting(44, key="one", before=50)
    stage.double.plan(Fault("before", "Set"))
    assert (await stage.post(request)).status_code == 500
    assert stage.double.available(DOMAIN, stage.variants[0].id) == 50

    stage.double.plan(Fault("after", "Set"))
    assert (await stage.post(request)).status_code == 500
    assert stage.double.available(DOMAIN, stage.variants[0].id) == 44

    answer = await stage.set(44, key="one", before=50)
    assert answer["userErrors"] == []


async def test_the_demo_platform_can_be_made_unavailable(stage: PlatformStage) -> None:
    stage.double.plan(Fault("down", times=2))

    answers = [await stage.post({"query": NAME}) for _ in range(3)]

    assert [answer.status_code for answer in answers] == [503, 503, 200]
    assert not answers[0].headers["content-type"].startswith("application/json")


async def test_a_fault_hits_the_requests_it_is_planned_for_and_can_be_healed(stage: PlatformStage) -> None:
    stage.double.plan(Fault("before", "inventorySet"))
    stage.double.plan(Fault("before", shop="other.myshopify.com"))

    assert (await stage.post({"query": NAME})).status_code == 200
    stage.double.plan(Fault("before", times=100))
    assert (await stage.post({"query": NAME})).status_code == 500
    stage.double.heal()
    assert (await stage.post({"query": NAME})).status_code == 200


async def test_an_answer_can_be_slow_and_is_done_all_the_same(stage: PlatformStage) -> None:
    stage.double.plan(Fault("slow", seconds=0.01))

    assert (await stage.set(44, key="one", before=50))["userErrors"] == []
    assert stage.double.available(DOMAIN, stage.variants[0].id) == 44


async def test_levels_can_be_read_as_they_were_before(stage: PlatformStage) -> None:
    stage.double.count(DOMAIN, stage.variants[0].id, 44)
    stage.double.plan(Fault("stale"))

    assert [await available_quantity(stage), await available_quantity(stage)] == [50, 44]


async def test_a_planned_answer_can_be_incomplete_with_errors(stage: PlatformStage) -> None:
    stage.double.plan(Fault("half"))
    half = await stage.ask(QUANTITY, id=stage.item())

    assert half["data"] == {"inventoryItem": None}
    assert half["errors"][0]["extensions"]["code"] == "INTERNAL_SERVER_ERROR"
    assert half["errors"][0]["path"] == ["inventoryItem"]


async def test_an_idempotency_key_can_be_reported_as_in_use(stage: PlatformStage) -> None:
    stage.double.plan(Fault("busy"))

    busy = await stage.set(44, key="one", before=50)
    answer = await stage.set(44, key="one", before=50)

    assert [error["code"] for error in busy["userErrors"]] == ["IDEMPOTENCY_CONCURRENT_REQUEST"]
    assert answer["userErrors"] == []


def cost_of(answer: httpx2.Response) -> Any:
    return answer.json()["extensions"]["cost"]


@pytest.mark.parametrize(
    ("query", "cost"),
    [
        (NAME, 1),
        ("{ products(first: 10) { nodes { id } } }", 12),
        ("{ products(first: 10) { edges { node { variants(first: 5) { nodes { id } } } } } }", 82),
        ('{ nodes(ids: ["gid://shopify/Product/1", "gid://shopify/Product/2"]) { id ... on Product { title } } }', 2),
        ("query { ...shop } fragment shop on QueryRoot { shop { id } }", 1),
        ('mutation { bulkOperationRunQuery(query: "") { userErrors { message } } }', 11),
    ],
)
async def test_a_request_costs_what_it_could_answer(stage: PlatformStage, query: str, cost: int) -> None:
    cost_of_answer = cost_of(await stage.post({"query": query}))

    assert cost_of_answer["requestedQueryCost"] == cost
    assert 0 <= cost_of_answer["actualQueryCost"] <= cost


async def test_a_client_that_spends_too_many_points_is_throttled_until_the_bucket_is_full(stage: PlatformStage) -> None:
    dear = {"query": "{ products(first: 50) { nodes { variants(first: 16) { nodes { id } } } } }"}
    stage.double.open("slow.myshopify.com", points=10)
    stage.double.install("slow.myshopify.com")
    token = stage.double.token("slow.myshopify.com")

    large = await stage.post(dear, shop="slow.myshopify.com", token=token)
    small = await stage.post({"query": NAME}, shop="slow.myshopify.com", token=token)

    assert large.status_code == 200
    assert large.json()["errors"][0]["extensions"]["code"] == "THROTTLED"
    assert "data" not in large.json()
    assert cost_of(large)["actualQueryCost"] is None
    status = cost_of(large)["throttleStatus"]
    assert (status["maximumAvailable"], status["restoreRate"]) == (200, 10)
    assert small.json()["data"]


async def test_points_come_back_with_time(stage: PlatformStage) -> None:
    name = {"query": NAME}
    stage.double.open("slow.myshopify.com", points=1)
    stage.double.install("slow.myshopify.com")
    token = stage.double.token("slow.myshopify.com")

    async def left() -> float:
        """What is left after a request for a point, which may have been refused."""
        answer = await stage.post(name, shop="slow.myshopify.com", token=token)
        return cost_of(answer)["throttleStatus"]["currentlyAvailable"]

    for expected in range(19, -1, -1):
        assert await left() in {expected, expected + 1}
    throttled = await stage.post(name, shop="slow.myshopify.com", token=token)
    stage.double.clock.advance(10)

    assert throttled.json()["errors"][0]["message"] == "Throttled"
    assert await left() >= 9


async def test_points_that_a_request_did_not_use_are_returned_at_once(stage: PlatformStage) -> None:
    dear = {"query": "{ products(first: 20) { nodes { variants(first: 40) { nodes { id } } } } }"}

    cost = cost_of(await stage.post(dear))

    assert cost["requestedQueryCost"] == 862
    assert cost["actualQueryCost"] < 20
    assert cost["throttleStatus"]["currentlyAvailable"] > 1950


async def test_a_planned_throttle_can_be_answered_with_429(stage: PlatformStage) -> None:
    stage.double.plan(Fault("throttle"))
    stage.double.admin.throttle_status = 429

    throttled = await stage.post({"query": NAME})

    assert throttled.status_code == 429
    assert throttled.json()["errors"][0]["message"] == "Throttled"
