"""Webhooks: they are signed and repeated until they are accepted, and can be delayed, doubled or lost on request."""

import stripe

from tests.demo.stripe.processor import SECRET, ProcessorScene, run_processor
from tests.helpers.events_service import eventually


async def pay(scene: ProcessorScene, account: str) -> str:
    session = await scene.session(account)
    scene.processor.pay(session.id)
    return session.id


def paid_sessions(scene: ProcessorScene) -> list[str]:
    return [webhook.body["data"]["object"]["id"] for webhook in scene.recorder.named("checkout.session.completed")]


async def wait_until_sent(scene: ProcessorScene) -> None:
    """Wait until everything was sent."""
    await eventually(lambda: scene.processor.webhooks.waiting() == 0)


async def wait_for_attempts(scene: ProcessorScene, times: int) -> None:
    """Wait until a payment was told `times` times, and the answer was read."""
    await scene.recorder.wait_for("checkout.session.completed", times)
    await eventually(lambda: scene.processor.webhooks.on_their_way() == 0)


async def test_a_webhook_is_signed_as_stripe_signs(scene: ProcessorScene) -> None:
    session = await pay(scene, await scene.account())
    heard = await scene.recorder.wait_for("checkout.session.completed")

    event = scene.client.construct_event(heard.raw, heard.headers["stripe-signature"], SECRET)

    assert event.type == "checkout.session.completed"
    assert event.data.object["id"] == session
    assert event.api_version == "2026-10-28.endive"
    retrieved = await scene.do(scene.client.v1.events.retrieve, event.id)
    assert retrieved.data.object["id"] == session


async def test_a_webhook_that_is_not_taken_comes_again(scene: ProcessorScene) -> None:
    account = await scene.account()
    await wait_until_sent(scene)
    scene.recorder.answers = [500, 404, 503]

    session = await pay(scene, account)
    await scene.recorder.wait_for("checkout.session.completed", 4)
    await wait_until_sent(scene)

    assert paid_sessions(scene) == [session] * 4
    assert len({webhook.body["id"] for webhook in scene.recorder.named("checkout.session.completed")}) == 1


async def test_pauses_grow_from_one_attempt_to_the_next(scene: ProcessorScene) -> None:
    account = await scene.account()
    await wait_until_sent(scene)
    scene.processor.webhooks.first_pause = 100
    scene.recorder.answers = [500, 500]

    await pay(scene, account)
    await wait_for_attempts(scene, 1)
    scene.processor.clock.advance(101)
    await wait_for_attempts(scene, 2)
    scene.processor.clock.advance(101)
    await scene.account()
    await scene.recorder.wait_for("v2.core.account.created", 2)
    assert len(paid_sessions(scene)) == 2
    scene.processor.clock.advance(100)
    await scene.recorder.wait_for("checkout.session.completed", 3)


async def test_webhooks_can_be_held_back_and_let_go(scene: ProcessorScene) -> None:
    account = await scene.account()
    await wait_until_sent(scene)
    before = len(scene.recorder.received)
    scene.processor.webhooks.hold = True

    await pay(scene, account)
    assert len(scene.recorder.received) == before
    assert scene.processor.webhooks.waiting() == 1
    scene.processor.webhooks.hold = False

    await scene.recorder.wait_for("checkout.session.completed")


async def test_webhooks_can_come_in_the_opposite_order(scene: ProcessorScene) -> None:
    account = await scene.account()
    await wait_until_sent(scene)
    scene.processor.webhooks.hold = True
    scene.processor.webhooks.newest_first = True
    paid = [await pay(scene, account) for _ in range(4)]

    scene.processor.webhooks.hold = False
    await scene.recorder.wait_for("checkout.session.completed", 4)

    assert paid_sessions(scene) == paid[::-1]


async def test_webhooks_can_be_doubled_and_sent_again(scene: ProcessorScene) -> None:
    account = await scene.account()
    scene.processor.webhooks.copies = 3
    session = await pay(scene, account)
    event = (await scene.recorder.wait_for("checkout.session.completed", 3)).body

    scene.processor.webhooks.send_again(event["id"])
    await scene.recorder.wait_for("checkout.session.completed", 4)

    assert paid_sessions(scene) == [session] * 4


async def test_a_lost_webhook_leaves_its_event_readable(scene: ProcessorScene) -> None:
    account = await scene.account()
    scene.processor.webhooks.dropped = {"checkout.session.completed"}

    await pay(scene, account)
    await wait_until_sent(scene)

    assert paid_sessions(scene) == []
    listed = await scene.do(scene.client.v1.events.list, {"type": "checkout.session.completed"})
    assert len(listed.data) == 1


async def test_webhooks_can_be_late(scene: ProcessorScene) -> None:
    account = await scene.account()
    await wait_until_sent(scene)
    scene.processor.webhooks.delay = 600
    late = await pay(scene, account)
    scene.processor.webhooks.delay = 0
    prompt = await pay(scene, account)
    await scene.recorder.wait_for("checkout.session.completed")
    assert paid_sessions(scene) == [prompt]

    scene.processor.clock.advance(601)

    await scene.recorder.wait_for("checkout.session.completed", 2)
    assert paid_sessions(scene) == [prompt, late]


async def test_an_event_type_without_a_listener_sends_no_webhook(scene: ProcessorScene) -> None:
    await pay(scene, await scene.account())
    await wait_until_sent(scene)

    assert not scene.recorder.named("charge.succeeded")
    assert [event for event in scene.processor.things("event") if event["type"] == "charge.succeeded"]


async def test_a_thin_event_names_the_account_and_the_rest_is_fetched(scene: ProcessorScene) -> None:
    account = await scene.account()
    type = "v2.core.account[configuration.recipient].capability_status_updated"
    heard = await scene.recorder.wait_for(type)

    notification = scene.client.parse_event_notification(heard.raw, heard.headers["stripe-signature"], SECRET)
    fetched = await scene.do(scene.client.v2.core.events.retrieve, notification.id)

    assert heard.body["related_object"] == {
        "id": account,
        "type": "v2.core.account",
        "url": f"/v2/core/accounts/{account}",
    }
    assert "data" not in heard.body
    assert isinstance(fetched, stripe.events.V2CoreAccountIncludingConfigurationRecipientCapabilityStatusUpdatedEvent)
    assert fetched.data.updated_capability == "stripe_balance.stripe_transfers"


async def test_a_listener_that_is_away_gets_everything_when_it_is_back() -> None:
    async with run_processor() as scene:
        url = scene.processor.webhooks.endpoints[0]
        scene.processor.webhooks.endpoints[0] = type(url)("http://127.0.0.1:9/hook", SECRET)
        account = await scene.account()
        session = await pay(scene, account)
        scene.processor.webhooks.endpoints[0] = url

        await scene.recorder.wait_for("checkout.session.completed")
        assert paid_sessions(scene) == [session]
