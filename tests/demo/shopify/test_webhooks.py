"""Webhooks: they are signed and repeated until they are accepted, and can be delayed, doubled or lost on request."""

import base64
import hmac
import json

from shopify_app import ShopifyApp  # pyright: ignore[reportMissingTypeStubs]

from holdfast_demo.shopify.model import Subscription
from holdfast_demo.shopify.orders import SaleLine
from holdfast_demo.shopify.webhooks import RandomDelivery
from tests.demo.shopify.stage import ADDRESS, CLIENT, DOMAIN, SECRET, PlatformStage
from tests.helpers.events_service import eventually


def sell(stage: PlatformStage, times: int = 1) -> list[int]:
    return [stage.double.sell(DOMAIN, SaleLine(stage.variants[0].id, 1)).id for _ in range(times)]


def order_ids(stage: PlatformStage) -> list[int]:
    return [message.body["id"] for message in stage.recorder.named("orders/create")]


async def wait_until_sent(stage: PlatformStage) -> None:
    """Wait until everything was sent."""
    await eventually(lambda: stage.double.webhooks.waiting() + stage.double.webhooks.on_their_way() == 0)


async def test_a_webhook_is_signed_as_the_platform_signs(stage: PlatformStage) -> None:
    await stage.subscribe("ORDERS_CREATE")
    [order] = sell(stage)
    heard = await stage.recorder.wait_for("orders/create")

    official = ShopifyApp(client_id=CLIENT, client_secret=SECRET)
    request = {"method": "POST", "url": "/hook", "headers": heard.headers, "body": heard.raw.decode()}
    assert official.verify_webhook_req(request).ok  # pyright: ignore[reportArgumentType]
    assert heard.headers["x-shopify-shop-domain"] == DOMAIN
    assert heard.headers["x-shopify-api-version"] == "2026-10"
    assert heard.body["id"] == order


async def test_webhooks_are_signed_with_the_old_secret_for_a_while_after_a_rotation(stage: PlatformStage) -> None:
    await stage.subscribe("ORDERS_CREATE")
    stage.double.state.app.client_secret, stage.double.state.app.webhook_secret = "new", SECRET
    sell(stage)

    heard = await stage.recorder.wait_for("orders/create")

    expected = base64.b64encode(hmac.digest(SECRET.encode(), heard.raw, "sha256")).decode()
    assert heard.headers["x-shopify-hmac-sha256"] == expected


async def test_a_topic_without_a_subscription_sends_no_webhook(stage: PlatformStage) -> None:
    await stage.subscribe("ORDERS_CANCELLED")

    sell(stage)

    assert stage.double.webhooks.waiting() == 0


async def test_a_webhook_that_is_not_accepted_is_sent_again_unchanged(stage: PlatformStage) -> None:
    await stage.subscribe("ORDERS_CREATE")
    stage.recorder.answers = [500, 401, 302]

    sell(stage)
    await stage.recorder.wait_for("orders/create", 4)
    await wait_until_sent(stage)

    heard = stage.recorder.named("orders/create")
    assert len(heard) == 4
    assert len({message.headers["x-shopify-webhook-id"] for message in heard}) == 1
    assert len({message.raw for message in heard}) == 1


async def test_a_subscription_ends_after_nine_attempts_in_four_hours(stage: PlatformStage) -> None:
    await stage.subscribe("ORDERS_CREATE", "ORDERS_CANCELLED")
    stage.recorder.answers = [500] * 9

    sell(stage)
    await stage.recorder.wait_for("orders/create", 9)
    await wait_until_sent(stage)

    left = stage.double.state.store.select(Subscription, DOMAIN)
    assert [subscription.topic for subscription in left] == ["ORDERS_CANCELLED"]


async def test_pauses_between_attempts_follow_the_clock_of_the_demo(stage: PlatformStage) -> None:
    stage.double.webhooks.haste = 1
    await stage.subscribe("ORDERS_CREATE")
    stage.recorder.answers = [500]

    sell(stage)
    await stage.recorder.wait_for("orders/create")
    await eventually(lambda: stage.double.webhooks.on_their_way() == 0)
    assert stage.double.webhooks.waiting() == 1
    stage.double.clock.advance(11)
    await stage.recorder.wait_for("orders/create", 2)


async def test_webhooks_can_be_held_back_turned_round_and_doubled(stage: PlatformStage) -> None:
    await stage.subscribe("ORDERS_CREATE")
    stage.double.webhooks.hold, stage.double.webhooks.newest_first = True, True
    stage.double.webhooks.delays_of = lambda _: (0, 0)
    one, two = sell(stage, 2)

    assert order_ids(stage) == []
    stage.double.webhooks.hold = False
    await stage.recorder.wait_for("orders/create", 4)

    assert order_ids(stage) == [two, two, one, one]


async def test_webhooks_can_be_lost_and_late_at_random(stage: PlatformStage) -> None:
    await stage.subscribe("ORDERS_CREATE")
    stage.double.webhooks.delays_of = RandomDelivery(7, lost=30, doubled=30, late=0.05)
    orders = sell(stage, 40)
    await wait_until_sent(stage)

    heard = order_ids(stage)
    assert 0 < len(set(heard)) < 40
    assert len(heard) > len(set(heard))
    assert sorted(set(heard)) != heard
    assert set(heard) < set(orders)


async def test_a_webhook_can_be_a_week_late(stage: PlatformStage) -> None:
    await stage.subscribe("ORDERS_CREATE")
    delays = iter((7 * 86_400, 0))
    stage.double.webhooks.delays_of = lambda _: (next(delays),)
    late, prompt = sell(stage, 2)
    await stage.recorder.wait_for("orders/create")
    assert order_ids(stage) == [prompt]

    stage.double.clock.advance(7 * 86_400 + 1)

    await stage.recorder.wait_for("orders/create", 2)
    assert order_ids(stage) == [prompt, late]


async def test_a_webhook_can_be_sent_again(stage: PlatformStage) -> None:
    await stage.subscribe("ORDERS_CREATE")
    sell(stage)
    await stage.recorder.wait_for("orders/create")
    await wait_until_sent(stage)

    [delivery] = stage.double.webhooks.newest(DOMAIN)
    stage.double.webhooks.send_again(DOMAIN, delivery.webhook)

    await stage.recorder.wait_for("orders/create", 2)
    assert (delivery.answer, delivery.attempts) == ("200", 1)


async def test_a_webhook_has_only_the_fields_of_its_subscription(stage: PlatformStage) -> None:
    made = await stage.data(
        "mutation($to: WebhookSubscriptionInput!) { webhookSubscriptionCreate(topic: ORDERS_CREATE,"
        " webhookSubscription: $to) { webhookSubscription { includeFields name } userErrors { message } } }",
        to={"uri": f"{ADDRESS}/hook", "includeFields": ["id", "updated_at", "line_items"], "name": "orders"},
    )
    sell(stage)
    heard = await stage.recorder.wait_for("orders/create")

    assert made["webhookSubscriptionCreate"]["userErrors"] == []
    assert set(heard.body) == {"id", "updated_at", "line_items"}
    assert heard.headers["x-shopify-name"] == "orders"


async def test_a_subscription_is_refused_for_a_topic_or_an_address_that_cannot_be(stage: PlatformStage) -> None:
    create = (
        "mutation($topic: WebhookSubscriptionTopic!, $to: WebhookSubscriptionInput!) { webhookSubscriptionCreate("
        "topic: $topic, webhookSubscription: $to) { webhookSubscription { id } userErrors { field message } } }"
    )
    await stage.subscribe("ORDERS_CREATE")

    async def refusal(topic: str, **to: object) -> str:
        made = (await stage.data(create, topic=topic, to=to))["webhookSubscriptionCreate"]
        assert made["webhookSubscription"] is None
        return made["userErrors"][0]["message"]

    assert "already been taken" in await refusal("ORDERS_CREATE", uri=f"{ADDRESS}/hook")
    assert "http:// is not supported" in await refusal("ORDERS_CREATE", uri="http://stock.example.com/hook")
    assert "is not supported" in await refusal("ORDERS_CREATE", uri="")
    assert "do not have permission" in await refusal("CUSTOMERS_UPDATE", uri="https://stock.example.com/hook")
    assert "JSON alone" in await refusal("ORDERS_CREATE", uri="https://stock.example.com/hook", format="XML")


async def test_a_subscription_is_changed_and_ended(stage: PlatformStage) -> None:
    await stage.subscribe("ORDERS_CREATE")
    listed = await stage.data("{ webhookSubscriptions(first: 5, topics: [ORDERS_CREATE]) { nodes { id uri topic } } }")
    [node] = listed["webhookSubscriptions"]["nodes"]
    change = (
        "mutation($id: ID!, $to: WebhookSubscriptionInput!) { webhookSubscriptionUpdate(id: $id,"
        " webhookSubscription: $to) { webhookSubscription { uri } userErrors { message } } }"
    )
    end = (
        "mutation($id: ID!) { webhookSubscriptionDelete(id: $id) {"
        " deletedWebhookSubscriptionId userErrors { message } } }"
    )

    changed = await stage.data(change, id=node["id"], to={"uri": "https://stock.example.com/new"})
    ended = await stage.data(end, id=node["id"])
    again = await stage.data(end, id=node["id"])

    assert node["uri"] == f"{ADDRESS}/hook"
    assert changed["webhookSubscriptionUpdate"]["webhookSubscription"]["uri"] == "https://stock.example.com/new"
    assert ended["webhookSubscriptionDelete"]["deletedWebhookSubscriptionId"] == node["id"]
    assert again["webhookSubscriptionDelete"]["userErrors"] == [{"message": "Webhook subscription does not exist"}]


async def test_the_three_privacy_webhooks_need_no_subscription(stage: PlatformStage) -> None:
    stage.double.uninstall(DOMAIN)
    for topic in ("customers/data_request", "customers/redact", "shop/redact"):
        stage.double.comply(DOMAIN, topic)
        heard = await stage.recorder.wait_for(topic)
        assert heard.body["shop_domain"] == DOMAIN
        assert ("customer" in heard.body) == (topic != "shop/redact")


async def test_products_locations_and_items_have_webhooks_too(stage: PlatformStage) -> None:
    await stage.subscribe(
        "PRODUCTS_UPDATE", "INVENTORY_ITEMS_DELETE", "INVENTORY_LEVELS_DISCONNECT", "LOCATIONS_CREATE"
    )

    stage.double.add_location(DOMAIN, "Shop")
    stage.double.remove_variant(DOMAIN, stage.variants[2].id)

    assert (await stage.recorder.wait_for("locations/create")).body["name"] == "Shop"
    assert len((await stage.recorder.wait_for("products/update")).body["variants"]) == 2
    assert (await stage.recorder.wait_for("inventory_items/delete")).body == {"id": stage.variants[2].item}
    assert json.loads((await stage.recorder.wait_for("inventory_levels/disconnect")).raw)["inventory_item_id"]
