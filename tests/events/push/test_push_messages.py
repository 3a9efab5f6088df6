"""Push messages to waiting people who asked for one, when their seat is there."""

import re
from collections.abc import AsyncIterator
from dataclasses import replace
from html import unescape

import httpx2
import pytest

from holdfast.events.people import sql as people
from holdfast.events.push import sending
from holdfast.events.push.encryption import SenderKey, sender_keys
from holdfast.events.push.subscriptions import MAX_SUBSCRIPTIONS, forget_old
from holdfast.kit.outbound.requests import OutboundClient
from tests.events.pages.own_registration import cancel_registration, register_in_order
from tests.events.push.push_service import LOCAL, BrowserDouble, PushServiceDouble, push_service
from tests.helpers.event_visitor import Visitor
from tests.helpers.events_service import Service
from tests.helpers.row_work import handle_all


@pytest.fixture
async def pushes(service: Service) -> AsyncIterator[PushServiceDouble]:
    """A push service that the service may reach though it is not public."""
    resources = service.database.resources
    async with push_service() as double:
        reaching = OutboundClient(exempt=[(LOCAL, double.port)], seconds=5)
        service.database.resources = replace(resources, push=reaching)
        yield double
        service.database.resources = resources


async def post(service: Service, address: str, language: str = "en", **fields: str) -> httpx2.Response:
    return await Visitor(service, language=language).http.post(f"{address}/push", data=fields)


async def subscribe_browser(
    service: Service, pushes: PushServiceDouble, address: str, language: str = "en"
) -> BrowserDouble:
    """A browser that was told to subscribe by the page of a person who waits."""
    page = await Visitor(service).http.get(address)
    match = re.search(r'data-key="([^"]+)"', page.text)
    assert match, page.text
    browser = pushes.subscribe(unescape(match[1]))
    answer = await post(service, address, language, **browser.fields)
    assert answer.status_code == 204, answer.text
    return browser


async def test_push_messages_are_sent_in_turns_of_organizers(service: Service, pushes: PushServiceDouble) -> None:
    organizers: list[int] = []
    for number, count in enumerate((1, 1, 5)):
        ada, _, [_, ben] = await register_in_order(service, f"ann{number}", f"ben{number}")
        organizers.append(ada.id)
        for _ in range(count):
            await subscribe_browser(service, pushes, ben)
    await service.run_sql("update push_subscriptions set due_at = now() - id * interval '1 second'")
    work = sending.PushWork(service.database)

    owners = [row.owner for _ in range(3) for row in await work.lease(1, (), scan_all=True)]

    assert sorted(owners) == sorted(organizers)


async def count_subscriptions(service: Service) -> int:
    [(number,)] = await service.run_sql("select count(*) from push_subscriptions")
    return number


async def test_a_push_message_is_sent_when_the_seat_is_there_and_not_before(
    service: Service, pushes: PushServiceDouble
) -> None:
    _, event, [ann, ben, cal] = await register_in_order(service, "ann", "ben", "cal", title="Life drawing")
    browser = await subscribe_browser(service, pushes, ben)
    other = await subscribe_browser(service, pushes, cal, "de")
    assert await handle_all(sending.PushWork(service.database)) == 0

    await cancel_registration(service, ann)
    assert await handle_all(sending.PushWork(service.database)) == 1

    [message] = browser.messages
    assert (message["title"], message["body"]) == ("You have a seat!", event["title"])
    assert message["url"] == ben
    assert other.messages == []
    assert pushes.statuses == [201]
    assert await count_subscriptions(service) == 1
    await cancel_registration(service, ben)
    await handle_all(sending.PushWork(service.database))
    assert [message["title"] for message in other.messages] == ["Sie haben einen Platz!"]
    assert await count_subscriptions(service) == 0


async def test_a_push_message_contains_no_web_address_except_that_of_the_page(
    service: Service, pushes: PushServiceDouble
) -> None:
    _, _, [ann, ben] = await register_in_order(service, "ann", "ben", title="Win at https://evil.example.com/a now")
    browser = await subscribe_browser(service, pushes, ben)

    await cancel_registration(service, ann)
    await handle_all(sending.PushWork(service.database))

    [message] = browser.messages
    assert "evil" not in message["body"]
    assert message["body"].startswith("Win at ")


async def test_a_push_message_is_offered_to_waiting_people_only_and_hidden_at_first(service: Service) -> None:
    _, _, [ann, ben] = await register_in_order(service, "ann", "ben")
    http = Visitor(service).http

    pages = [(await http.get(address)).text for address in (ann, ben)]

    assert ["push/push" in page or 'id="push"' in page for page in pages] == [False, True]
    assert re.search(r'id="push"[^>]* hidden>', pages[1])
    assert await count_subscriptions(service) == 0


async def test_a_person_with_a_seat_cannot_subscribe_to_push(service: Service, pushes: PushServiceDouble) -> None:
    _, _, [ann, _] = await register_in_order(service, "ann", "ben")
    browser = pushes.subscribe(sender_keys(service.database.resources.secret)[0].public_key)

    assert (await post(service, ann, **browser.fields)).status_code == 404


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("endpoint", "ftp://push.example/1"),
        ("endpoint", "push"),
        ("endpoint", "http://[x"),
        ("endpoint", f"https://push.example/{'x' * 1_000}"),
        ("p256dh", "AAAA"),
        ("auth", "x"),
        ("sender_key", "AAAA"),
    ],
)
async def test_an_invalid_push_subscription_is_refused(
    service: Service, pushes: PushServiceDouble, field: str, text: str
) -> None:
    _, _, [_, ben] = await register_in_order(service, "ann", "ben")
    browser = pushes.subscribe(sender_keys(service.database.resources.secret)[0].public_key)

    assert (await post(service, ben, **{**browser.fields, field: text})).status_code == 422
    assert await count_subscriptions(service) == 0


async def test_a_browser_that_is_gone_is_forgotten(service: Service, pushes: PushServiceDouble) -> None:
    for status in (404, 410, 400):
        _, _, [ann, ben] = await register_in_order(service, "ann", "ben")
        (await subscribe_browser(service, pushes, ben)).status = status

        await cancel_registration(service, ann)
        await handle_all(sending.PushWork(service.database))

        assert (pushes.statuses[-1], await count_subscriptions(service)) == (status, 0)


async def test_a_push_service_in_trouble_is_retried_a_limited_number_of_times(
    service: Service, pushes: PushServiceDouble
) -> None:
    _, _, [ann, ben] = await register_in_order(service, "ann", "ben")
    browser = await subscribe_browser(service, pushes, ben)
    browser.status = 503
    await cancel_registration(service, ann)

    await handle_all(sending.PushWork(service.database))
    assert await count_subscriptions(service) == 1
    [(seconds, error)] = await service.run_sql(
        "select extract(epoch from due_at - now())::float8, error from push_subscriptions"
    )
    assert 0 < seconds <= sending.RETRY_BACKOFF.first
    assert error == "The push service answered 503."

    browser.status = 201
    await service.run_sql("update push_subscriptions set due_at = now()")
    await handle_all(sending.PushWork(service.database))
    assert len(browser.messages) == 1
    assert await count_subscriptions(service) == 0

    _, _, [ann, ben] = await register_in_order(service, "ann", "ben")
    (await subscribe_browser(service, pushes, ben)).status = 429
    await cancel_registration(service, ann)
    await service.run_sql("update push_subscriptions set attempts = %(attempts)s", attempts=sending.MAX_ATTEMPTS - 1)
    await handle_all(sending.PushWork(service.database))
    assert await count_subscriptions(service) == 0


async def test_a_push_address_in_the_network_of_the_operator_is_not_called(
    service: Service, pushes: PushServiceDouble
) -> None:
    _, _, [ann, ben] = await register_in_order(service, "ann", "ben")
    browser = await subscribe_browser(service, pushes, ben)
    service.database.resources = replace(service.database.resources, push=OutboundClient(seconds=5))

    await cancel_registration(service, ann)
    await handle_all(sending.PushWork(service.database))

    assert browser.messages == []
    assert pushes.statuses == []
    [(error,)] = await service.run_sql("select error from push_subscriptions")
    assert error.startswith("The push service")


async def test_a_push_subscription_can_be_withdrawn(service: Service, pushes: PushServiceDouble) -> None:
    _, _, [ann, ben] = await register_in_order(service, "ann", "ben")
    browser = await subscribe_browser(service, pushes, ben)

    assert (await post(service, ben, endpoint=browser.endpoint, stop="yes")).status_code == 204
    await cancel_registration(service, ann)

    assert await handle_all(sending.PushWork(service.database)) == 0
    assert browser.messages == []


async def test_a_registration_has_few_browsers_and_each_of_them_once(
    service: Service, pushes: PushServiceDouble
) -> None:
    _, _, [ann, ben] = await register_in_order(service, "ann", "ben")
    browsers = [await subscribe_browser(service, pushes, ben) for _ in range(MAX_SUBSCRIPTIONS + 2)]
    await post(service, ben, **browsers[-1].fields)

    assert await count_subscriptions(service) == MAX_SUBSCRIPTIONS
    await cancel_registration(service, ann)
    await handle_all(sending.PushWork(service.database))

    assert [len(browser.messages) for browser in browsers] == [0, 0, *[1] * MAX_SUBSCRIPTIONS]


async def test_a_push_subscription_is_stored_sealed_and_deleted_with_its_registration(
    service: Service, pushes: PushServiceDouble
) -> None:
    _, _, [_, ben] = await register_in_order(service, "ann", "ben")
    browser = await subscribe_browser(service, pushes, ben)
    [(sealed,)] = await service.run_sql("select sealed from push_subscriptions")
    assert browser.endpoint.encode() not in sealed

    await cancel_registration(service, ben)

    assert await count_subscriptions(service) == 0


async def test_the_browsers_of_a_person_are_forgotten_with_the_data_of_the_person(
    service: Service, pushes: PushServiceDouble
) -> None:
    _, _, [_, ben] = await register_in_order(service, "ann", "ben")
    await subscribe_browser(service, pushes, ben)
    [(user_id,)] = await service.run_sql("select user_id from push_subscriptions")

    await service.database.transact(lambda tx: people.delete_personal_details(tx, user_id))

    assert await count_subscriptions(service) == 0


async def test_a_message_of_a_replaced_key_is_not_sent(service: Service, pushes: PushServiceDouble) -> None:
    _, _, [ann, ben] = await register_in_order(service, "ann", "ben")
    await subscribe_browser(service, pushes, ben)
    secret = service.database.resources.secret
    await cancel_registration(service, ann)
    [(sealed,)] = await service.run_sql("select sealed from push_subscriptions")
    other = secret.unseal(sealed).replace(sender_keys(secret)[0].public_key, SenderKey(b"x").public_key)
    await service.run_sql("update push_subscriptions set sealed = %(sealed)s", sealed=secret.seal(other))

    await handle_all(sending.PushWork(service.database))

    assert pushes.statuses == []
    assert await count_subscriptions(service) == 0


async def test_old_subscriptions_are_forgotten(service: Service, pushes: PushServiceDouble) -> None:
    _, _, [_, ben] = await register_in_order(service, "ann", "ben")
    await subscribe_browser(service, pushes, ben)

    assert await service.database.transact(forget_old) == 0
    await service.run_sql("update push_subscriptions set forget_at = now() - interval '1 minute'")
    assert await service.database.transact(forget_old) == 1
    assert await count_subscriptions(service) == 1  # the event was put off
    await service.run_sql("update events set datetime = now() - interval '2 days'")
    await service.run_sql("update push_subscriptions set forget_at = now() - interval '1 minute'")
    assert await service.database.transact(forget_old) == 1
    assert await count_subscriptions(service) == 0


async def test_organizers_get_turns_of_push_messages(service: Service, pushes: PushServiceDouble) -> None:
    _, _, many = await register_in_order(service, *(f"p{number}" for number in range(6)), capacity=3)
    _, _, few = await register_in_order(service, "ann", "ben")
    browsers = [await subscribe_browser(service, pushes, address) for address in (*many[3:], few[1])]
    for address in (*many[:3], few[0]):
        await cancel_registration(service, address)
    work = sending.PushWork(service.database)

    owners = [row.owner for _ in range(4) for row in await work.lease(1, (), scan_all=True)]

    assert len(browsers) == 4
    assert owners[0] != owners[1]


async def test_a_push_subscription_from_another_site_is_refused(service: Service, pushes: PushServiceDouble) -> None:
    _, _, [_, ben] = await register_in_order(service, "ann", "ben")
    browser = pushes.subscribe(sender_keys(service.database.resources.secret)[0].public_key)

    answer = await Visitor(service).http.post(
        f"{ben}/push", data=browser.fields, headers={"Origin": "https://evil.example"}
    )

    assert (answer.status_code, await count_subscriptions(service)) == (403, 0)


async def test_the_push_worker_is_a_script_that_may_load_nothing(service: Service) -> None:
    script = await Visitor(service).http.get("/registrations/push-worker.js")

    assert script.headers["content-type"].startswith("text/javascript")
    assert script.headers["content-security-policy"] == "default-src 'none'"
    assert "showNotification" in script.text
