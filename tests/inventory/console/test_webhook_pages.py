"""The pages of webhooks of merchants: addresses, secrets that are shown once, tests, and what was sent."""

import re
from collections.abc import AsyncGenerator

import pytest
from standardwebhooks.webhooks import Webhook

from holdfast.inventory.webhooks.messages import MESSAGES
from tests.helpers.form_browser import main_text
from tests.helpers.platform_shop import PlatformSource
from tests.helpers.webhook_receiver import ReceiverAnswer
from tests.inventory.console.merchant_at_platform import MerchantAtPlatform, open_merchant_at_platform
from tests.inventory.webhooks.programs import ShopProgram, ShopPrograms, programs_of

SECRET = re.compile(r"whsec_[A-Za-z0-9+/=]+")
PAGE = "/console/webhooks"


@pytest.fixture
async def programs(merchant: MerchantAtPlatform) -> AsyncGenerator[ShopPrograms]:
    """Programs that receive webhooks."""
    async for programs in programs_of(merchant.inventory):
        yield programs


@pytest.fixture
async def program(merchant: MerchantAtPlatform, programs: ShopPrograms) -> ShopProgram:
    return await programs.add(merchant.shop, "stock.changed", "stock.low")


def path_of(program: ShopProgram) -> str:
    return f"{PAGE}/{program.endpoint['id']}"


async def endpoints(merchant: MerchantAtPlatform) -> list[tuple[object, ...]]:
    return await merchant.inventory.sql("select url, types, is_ordered, status from webhook_endpoints order by id")


async def test_a_new_address_gets_a_secret_that_is_shown_once(merchant: MerchantAtPlatform) -> None:
    fields = {"url": "https://shop.example/hooks", "which": "chosen", "stock.low": "on", "ordered": "on"}
    made = await merchant.send(f"{PAGE}/new", **fields)

    [secret] = {*SECRET.findall(made.text)}
    assert made.status_code == 200
    assert await endpoints(merchant) == [("https://shop.example/hooks", ["stock.low"], True, "active")]
    for path in (PAGE, f"{PAGE}/1", f"{PAGE}/1/edit"):
        page = await merchant.get(path)
        assert "https://shop.example/hooks" in page.text
        assert secret not in page.text


async def test_a_form_that_is_sent_twice_makes_one_address_and_shows_the_same_secret(
    merchant: MerchantAtPlatform,
) -> None:
    form = await merchant.get(f"{PAGE}/new")
    fields = {"url": "https://shop.example/", "which": "all"}
    pages = [await merchant.confirm(form, f"{PAGE}/new", **fields) for _ in range(2)]

    assert SECRET.findall(pages[0].text) == SECRET.findall(pages[1].text) != []
    assert await endpoints(merchant) == [("https://shop.example/", [], False, "active")]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"url": ""}, "Enter the address of your program, such as https://shop.example/webhooks."),
        ({"url": "http://shop.example/"}, "must begin with https://"),
        ({"url": "https://shop.example/", "which": "chosen"}, "Choose at least one message, or all."),
    ],
)
async def test_a_form_that_is_refused_says_what_to_enter_and_keeps_what_was_typed(
    merchant: MerchantAtPlatform, fields: dict[str, str], reason: str
) -> None:
    refusal = await merchant.send(f"{PAGE}/new", **{"which": "all", **fields})

    assert refusal.status_code == 422
    assert reason in main_text(refusal)
    assert f'value="{fields["url"]}"' in refusal.text
    assert await endpoints(merchant) == []


async def test_a_test_is_sent_and_stands_in_the_list_with_its_answer(
    merchant: MerchantAtPlatform, program: ShopProgram
) -> None:
    sent = await merchant.send(path_of(program), do="test")
    [message] = await program.messages()

    assert sent.headers["location"] == merchant.address_of(f"{path_of(program)}?done=test")
    assert message.type == "ping"
    assert "Delivered" in main_text(await merchant.get(path_of(program)))
    page = main_text(await merchant.get(f"{path_of(program)}/messages/{message.id}"))
    assert "Delivered: your program answered with the status 204." in page


async def test_a_message_that_failed_is_shown_with_its_attempt_and_sent_again(
    merchant: MerchantAtPlatform, program: ShopProgram
) -> None:
    statuses = [500, 204]
    program.receiver.answer = lambda _: ReceiverAnswer(statuses.pop(0))
    await merchant.shop.create_pool(name="<i>Honey</i>")
    [message] = await program.messages()
    path = f"{path_of(program)}/messages/{message.id}"

    page = await merchant.get(path)
    listed = main_text(await merchant.get(PAGE))
    messages = await merchant.get(path_of(program))
    again = await merchant.send(path)
    await program.messages()

    assert "Your program answered with the status 500." in main_text(page)
    assert "stock.changed" in main_text(page)
    assert "stock.changed no. 1 <i>Honey</i> Today" in main_text(messages)
    assert "<i>Honey" not in messages.text
    assert "Nothing has been delivered since" in listed
    assert "Your program answered with the status 500. Today" in main_text(messages)
    assert again.headers["location"] == merchant.address_of(f"{path}?done=resend")
    assert [received.id for received in program.receiver.received] == [message.id] * 2
    assert "Nothing has been delivered since" not in main_text(await merchant.get(PAGE))


async def test_an_address_is_changed_paused_activated_and_deleted(merchant: MerchantAtPlatform) -> None:
    await merchant.send(f"{PAGE}/new", url="https://shop.example/", which="all")
    await merchant.send(f"{PAGE}/1/edit", url="https://shop.example/new", which="chosen", **{"hold.placed": "on"})
    await merchant.send(f"{PAGE}/1/pause", f"{PAGE}/1", do="pause")
    assert await endpoints(merchant) == [("https://shop.example/new", ["hold.placed"], False, "paused")]
    assert "Paused" in main_text(await merchant.get(f"{PAGE}/1"))
    await merchant.send(f"{PAGE}/1", do="activate")
    assert await endpoints(merchant) == [("https://shop.example/new", ["hold.placed"], False, "active")]

    assert "This cannot be undone." in main_text(await merchant.get(f"{PAGE}/1/delete"))
    await merchant.send(f"{PAGE}/1/delete")

    assert await endpoints(merchant) == []
    assert "No webhooks yet." in main_text(await merchant.get(PAGE))


async def test_a_new_secret_is_shown_once_and_signs_beside_the_one_before(
    merchant: MerchantAtPlatform, program: ShopProgram
) -> None:
    made = await merchant.send(f"{path_of(program)}/secret")
    await merchant.send(path_of(program), do="test")
    [message] = await program.messages()

    [secret] = {*SECRET.findall(made.text)}
    assert secret != program.endpoint["secret"]
    for present in (secret, program.endpoint["secret"]):
        Webhook(present).verify(message.body, message.headers)
    assert secret not in (await merchant.get(path_of(program))).text


async def test_failed_messages_are_listed_and_all_sent_again(
    merchant: MerchantAtPlatform, program: ShopProgram
) -> None:
    program.receiver.answer = lambda _: ReceiverAnswer(500)
    for name in ("Honey", "Tea", "Soap"):
        await merchant.shop.create_pool(name=name)
    await program.messages()
    await merchant.inventory.sql("update webhook_deliveries set status = 'failed', due_at = null, ended_at = now()")
    failed = await merchant.get(f"{path_of(program)}?delivery=failed")
    assert len({*re.findall("messages/(msg_[0-9]+)", failed.text)}) == 3
    program.receiver.answer = lambda _: ReceiverAnswer()

    await merchant.send(f"{path_of(program)}?delivery=failed", path_of(program), do="resend")
    await merchant.inventory.sql("update webhook_deliveries set due_at = now() where due_at is not null")
    await merchant.inventory.sql("update webhook_endpoints set leased_until = now(), next_due_at = now()")
    await program.messages()

    assert "No messages failed." in main_text(await merchant.get(f"{path_of(program)}?delivery=failed"))


async def test_the_manual_of_webhooks_has_every_type(merchant: MerchantAtPlatform) -> None:
    manual = await merchant.get(f"{PAGE}/receive")

    assert f"{PAGE}/receive" in (await merchant.get(PAGE)).text
    assert re.findall("<summary><code>(.*?)</code>", manual.text) == [type.name for type in MESSAGES]


async def test_an_address_of_another_shop_is_not_found(merchant: MerchantAtPlatform, programs: ShopPrograms) -> None:
    foreign = await programs.add(await merchant.inventory.create_shop("write_pools"), "stock.low")
    path = path_of(foreign)
    token = {"do": "pause", "url": "https://evil.example/", "which": "all"}

    for page in ("", "/edit", "/secret", "/delete", "/resend", "/messages/msg_1"):
        assert (await merchant.get(path + page)).status_code == 404
        assert (await merchant.send(PAGE + "/new", path + page, **token)).status_code == 404
    assert await merchant.inventory.sql("select status from webhook_endpoints") == [("active",)]


async def test_the_pages_are_in_german_too(platform_source: PlatformSource) -> None:
    async with open_merchant_at_platform(platform_source, "de") as merchant:
        await merchant.send(f"{PAGE}/new", url="https://shop.example/", which="all")

        assert "Senden Sie einen Test, um zu sehen" in main_text(await merchant.get(f"{PAGE}/1"))
        assert "Bestand wurde reserviert." in main_text(await merchant.get(f"{PAGE}/new"))
