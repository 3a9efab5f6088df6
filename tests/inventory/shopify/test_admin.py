"""The Admin API: the requests that are sent, and the meaning of its answers."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec import Struct

from holdfast.inventory.shopify.admin import MAX_ATTEMPTS, AdminApi, Query
from holdfast.inventory.shopify.platform_client import PlatformRefusal, PlatformUnreachable, TokenRefusal
from tests.inventory.shopify.standin import SHOP, ReceivedRequest, ScriptedAnswer, platform


class QueriedShop(Struct):
    name: str


class QueriedShopData(Struct):
    shop: QueriedShop


NAME = Query("shop_name", "query Name { shop { name } }", QueriedShopData, cost=1)
DATA = {"shop": {"name": "Ada"}}
THROTTLED = [{"message": "Throttled", "extensions": {"code": "THROTTLED"}}]


def cost(available: float, requested: float = 1, rate: float = 1000) -> dict[str, Any]:
    """What an answer says about points."""
    throttle = {"maximumAvailable": 2000, "currentlyAvailable": available, "restoreRate": rate}
    return {"cost": {"requestedQueryCost": requested, "actualQueryCost": None, "throttleStatus": throttle}}


async def run_query(
    *answers: ScriptedAnswer, seconds: float = 10, query: Query[Any] = NAME
) -> tuple[Any, Sequence[ReceivedRequest]]:
    """What a query is answered when the platform tells these things in order, and what the platform was asked."""
    left = list(answers)
    async with platform(lambda _: left.pop(0), seconds=seconds) as (client, requests):
        return await AdminApi(client).call(SHOP, "shpat_1", query, {"first": 1}), requests


async def test_a_query_is_sent_with_the_token_to_the_version_that_is_set() -> None:
    data, [request] = await run_query(ScriptedAnswer({"data": DATA, "extensions": cost(1999)}))

    assert data == QueriedShopData(QueriedShop("Ada"))
    assert request.path == f"/{SHOP}/admin/api/2026-10/graphql.json"
    assert request.headers["x-shopify-access-token"] == "shpat_1"
    assert request.json == {"query": NAME.text, "variables": {"first": 1}}


@pytest.mark.parametrize("status", [200, 429])
async def test_a_call_that_came_too_early_is_made_again(status: int) -> None:
    throttled = ScriptedAnswer({"errors": THROTTLED, "extensions": cost(0)}, status)

    data, requests = await run_query(throttled, throttled, ScriptedAnswer({"data": DATA}))

    assert (data.shop.name, len(requests)) == ("Ada", 3)


async def test_a_throttled_call_is_repeated_at_the_time_the_platform_named() -> None:
    data, requests = await run_query(
        ScriptedAnswer(b"busy", 429, {"Retry-After": "0.01"}), ScriptedAnswer({"data": DATA})
    )

    assert (data.shop.name, len(requests)) == ("Ada", 2)


async def test_a_platform_that_is_always_busy_is_left_alone_in_the_end() -> None:
    busy = ScriptedAnswer(b"busy", 429, {"Retry-After": "0.01"})
    with pytest.raises(PlatformUnreachable, match="too often") as error:
        await run_query(*[busy] * MAX_ATTEMPTS)

    assert error.value.retry_after == 0.01


async def test_a_call_whose_points_take_too_long_is_not_made() -> None:
    with pytest.raises(PlatformUnreachable, match="wait already"):
        await run_query(query=Query("large", NAME.text, QueriedShopData, cost=100_000))


async def test_an_answer_with_errors_is_refused_even_if_it_has_data() -> None:
    errors = [{"message": "Access denied for name", "path": ["shop"], "extensions": {"code": "ACCESS_DENIED"}}]
    with pytest.raises(PlatformRefusal, match="Access denied for name") as refusal:
        await run_query(ScriptedAnswer({"data": DATA, "errors": errors}))

    assert refusal.value.code == "ACCESS_DENIED"


async def test_a_query_that_is_wrong_is_refused_in_the_platforms_words() -> None:
    errors = [{"message": "Field 'x' doesn't exist"}, {"message": "Variable $y is unused"}]
    with pytest.raises(PlatformRefusal, match=r"Field 'x' doesn't exist; Variable \$y is unused"):
        await run_query(ScriptedAnswer({"errors": errors}))


async def test_an_answer_for_an_invalid_token_raises_token_refusal() -> None:
    with pytest.raises(TokenRefusal, match="Invalid API key or access token"):
        await run_query(ScriptedAnswer({"errors": "[API] Invalid API key or access token"}, 401))


@pytest.mark.parametrize("status", [302, 402, 403, 404, 423])
async def test_an_answer_of_an_unavailable_shop_raises_platform_refusal(status: int) -> None:
    with pytest.raises(PlatformRefusal, match=f"status {status}") as refusal:
        await run_query(ScriptedAnswer({"errors": "Unavailable Shop"}, status))

    assert not isinstance(refusal.value, TokenRefusal)


@pytest.mark.parametrize(
    "answer",
    [
        ScriptedAnswer(b"<html>", 500),
        ScriptedAnswer({"errors": "fault"}, 502),
        ScriptedAnswer(b'{"data": {"shop": {"name": "A'),
        ScriptedAnswer({"data": None}),
        ScriptedAnswer({"data": {"shop": {"name": 7}}}),
        ScriptedAnswer(
            {"data": None, "errors": [{"message": "oops", "extensions": {"code": "INTERNAL_SERVER_ERROR"}}]}
        ),
        ScriptedAnswer(hang=True),
    ],
    ids=["fault", "fault in JSON", "half an answer", "no data", "other data", "fault in GraphQL", "silence"],
)
async def test_an_answer_that_is_not_understood_raises_platform_unreachable(answer: ScriptedAnswer) -> None:
    with pytest.raises(PlatformUnreachable):
        await run_query(answer, seconds=0.3 if answer.hang else 10)


async def test_the_points_of_a_call_that_was_given_up_are_there_for_the_next() -> None:
    async with platform(lambda _: ScriptedAnswer({"data": DATA, "extensions": cost(60, rate=1)})) as (client, requests):
        admin = AdminApi(client)
        await admin.call(SHOP, "shpat_1", NAME)
        waits = asyncio.create_task(admin.call(SHOP, "shpat_1", Query("large", NAME.text, QueriedShopData, cost=100)))
        await asyncio.sleep(0)
        waits.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waits

        async with asyncio.timeout(10):
            await admin.call(SHOP, "shpat_1", NAME)

    assert len(requests) == 2
