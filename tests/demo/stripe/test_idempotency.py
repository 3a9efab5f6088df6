"""Requests that come again with their key."""

import asyncio
from typing import Any

import pytest
import stripe

from holdfast_demo.stripe.errors import Fault, Kind
from tests.demo.stripe.processor import ACCOUNT_V2, ProcessorScene
from tests.helpers.events_service import eventually

KEYED: Any = {"idempotency_key": "checkout:7"}


async def test_the_same_request_is_done_once_and_answered_twice(scene: ProcessorScene) -> None:
    params = scene.params(await scene.account())
    create = scene.client.v1.checkout.sessions.create

    first = await scene.do(create, params, KEYED)
    again = await scene.do(create, params, KEYED)

    assert again.id == first.id
    assert again.last_response is not None
    assert again.last_response.headers["Idempotent-Replayed"] == "true"
    assert first.last_response is not None
    assert "Idempotent-Replayed" not in first.last_response.headers
    assert len(scene.processor.things("checkout.session")) == 1


async def test_a_different_request_with_the_same_key_is_refused(scene: ProcessorScene) -> None:
    account = await scene.account()
    create = scene.client.v1.checkout.sessions.create
    params = scene.params(account)
    await scene.do(create, params, KEYED)

    error = await scene.fails(create, {**params, "cancel_url": "https://other.example"}, KEYED)

    assert isinstance(error, stripe.IdempotencyError)
    assert error.http_status == 400
    assert len(scene.processor.things("checkout.session")) == 1


async def test_a_request_with_a_key_in_use_is_a_conflict(scene: ProcessorScene) -> None:
    params = scene.params(await scene.account())
    create = scene.client.v1.checkout.sessions.create
    scene.processor.plan(Fault("slow", "/checkout/sessions", seconds=0.5))
    first = asyncio.create_task(scene.do(create, params, KEYED))
    await eventually(lambda: scene.processor.things("checkout.session"))
    error = await scene.fails(create, params, KEYED)
    session = await first
    again = await scene.do(create, params, KEYED)

    assert error.error is not None
    assert (error.http_status, error.error.code) == (409, "idempotency_key_in_use")
    assert again.id == session.id


@pytest.mark.parametrize(
    ("kind", "done", "again"),
    [("before", 0, 200), ("after", 1, 200), ("remembered", 1, 500), ("down", 0, 200)],
)
async def test_a_failed_request_that_comes_again_is_done_at_most_once(
    scene: ProcessorScene, kind: Kind, done: int, again: int
) -> None:
    params = scene.params(await scene.account())
    create = scene.client.v1.checkout.sessions.create
    scene.processor.plan(Fault(kind, "/checkout/sessions"))

    error = await scene.fails(create, params, KEYED)
    made = len(scene.processor.things("checkout.session"))

    assert isinstance(error, stripe.APIError)
    assert made == done
    if again == 200:
        await scene.do(create, params, KEYED)
    else:
        assert (await scene.fails(create, params, KEYED)).http_status == again
    assert len(scene.processor.things("checkout.session")) == 1


async def test_a_refusal_is_kept_with_the_key_unless_the_parameters_were_wrong(scene: ProcessorScene) -> None:
    account = await scene.account(done=False)
    create = scene.client.v1.checkout.sessions.create
    params = scene.params(account)

    await scene.refuses(create, {**params, "wrong": "1"}, KEYED)
    first = await scene.refuses(create, params, KEYED)
    scene.processor.finish(account)
    again = await scene.refuses(create, params, KEYED)

    assert first.code == again.code == "insufficient_capabilities_for_transfer"
    assert (await scene.do(create, params, {"idempotency_key": "checkout:8"})).status == "open"


async def test_the_second_version_does_again_what_has_failed(scene: ProcessorScene) -> None:
    scene.processor.refuse_accounts_v2()
    create = scene.client.v2.core.accounts.create
    await scene.refuses(create, ACCOUNT_V2, {"idempotency_key": "account:1"})
    scene.processor.refuse_accounts_v2(False)

    made = await scene.do(create, ACCOUNT_V2, {"idempotency_key": "account:1"})
    again = await scene.do(create, ACCOUNT_V2, {"idempotency_key": "account:1"})

    assert again.id == made.id


async def test_an_idempotency_key_is_forgotten_after_a_day(scene: ProcessorScene) -> None:
    params = scene.params(await scene.account())
    del params["expires_at"]  # so that it does not end before the key is forgotten
    create = scene.client.v1.checkout.sessions.create
    first = await scene.do(create, params, KEYED)

    scene.processor.clock.advance(24 * 3600 + 1)
    again = await scene.do(create, params, KEYED)

    assert again.id != first.id
