"""The script of the theme block alone: its texts, the stream that it reads, and its requests after failures."""

from urllib.parse import urlsplit

import pytest
from playwright.async_api import Browser, expect

from tests.browser.theme_page import FORM, ONE, OTHER, SIX, block, theme
from tests.helpers.events_service import eventually

ASK, STREAM = "/apps/holdfast/availability", "/stream"


async def test_the_theme_script_has_a_text_for_each_state_and_writes_numbers_in_the_page_language(
    chromium: Browser,
) -> None:
    async with theme(chromium) as view:
        view.service.numbers = {ONE: 1234}
        await view.open(FORM + block(most="2000"))
        await view.expect_text("1.234 in stock")
        await view.wait_until_live()

        for number, text in ((2500, "more than 2.000"), (5, "only 5"), (0, "sold out"), (3, "back: 3")):
            view.service.tell(one=number)
            await view.expect_text(text)
        view.service.tell(removed=(ONE,))
        await view.expect_text("")
        await expect(view.line).to_have_attribute("data-state", "")


async def test_a_merchant_shows_numbers_only_when_few_are_left(chromium: Browser) -> None:
    async with theme(chromium) as view:
        await view.open((FORM + block()).replace('data-always=""', ""))
        await view.wait_until_live()
        await view.expect_text("")

        view.service.tell(one=5)
        await view.expect_text("only 5")


async def test_the_theme_script_follows_the_variant_however_the_theme_chooses_it(chromium: Browser) -> None:
    async with theme(chromium) as view:
        others = FORM.replace('value="7"', 'value="8"').replace('value="1"', 'value="6"')
        await view.open(f'<div class="shopify-section">{others}{FORM}{block()}</div>')
        await view.expect_text("50 in stock")

        # A hidden field that a script sets.
        await view.page.evaluate("document.forms[1].elements.id.value = '6'")
        await view.expect_text("8 in stock")
        # One that is in no pool: the shop's own text says what there is.
        await view.page.evaluate("document.forms[1].elements.id.value = '9'")
        await view.expect_text("")
        # Radio buttons, in a form that does not name the product, and a section that the theme has rendered again.
        radios = '<input type="radio" name="id" value="1"><input type="radio" name="id" value="6" checked>'
        again = f'<form action="/cart/add">{radios}</form>{block()}'
        await view.page.evaluate("html => document.querySelector('.shopify-section').innerHTML = html", again)
        await view.expect_text("8 in stock")
        await view.page.locator(".shopify-section [value='1']").check()
        await view.expect_text("50 in stock")
        assert view.service.times(ASK) <= 2


async def test_the_platforms_own_event_names_the_variant_where_there_is_no_form(chromium: Browser) -> None:
    async with theme(chromium) as view:
        await view.open(block())
        await view.expect_text("50 in stock")

        select = """([product, id]) => {
          const event = new Event("shopify:product:select", { bubbles: true });
          event.product = { id: `gid://shopify/Product/${product}` };
          event.promise = id ? Promise.resolve({ variant: id > "" ? { id } : null }) : Promise.reject(new Error("no"));
          document.body.dispatchEvent(event);
        }"""
        await view.page.evaluate(select, ["8", OTHER])
        await view.page.evaluate(select, ["7", None])
        await view.page.evaluate(select, ["7", SIX])
        await view.expect_text("8 in stock")


async def test_all_blocks_of_a_page_share_one_stream_which_ends_with_the_last(chromium: Browser) -> None:
    async with theme(chromium) as view:
        lines = f'<span data-variant="{ONE}"></span><span data-variant="{SIX}"></span>'
        await view.open(FORM + block() + block(lines))
        await expect(view.page.locator("[data-variant]")).to_have_text(["50 in stock", "50 in stock", "8 in stock"])
        await view.wait_until_live()
        assert (view.service.times(ASK), view.service.times(STREAM)) == (1, 1)

        await view.page.evaluate("document.querySelectorAll('live-stock').forEach((element) => element.remove())")
        await eventually(lambda: view.service.open == 0)


async def test_a_screen_reader_announces_a_new_state_but_not_each_number(chromium: Browser) -> None:
    async with theme(chromium) as view:
        await view.open(FORM + block())
        await view.expect_text("50 in stock")
        await view.wait_until_live()
        for number in (49, 48):
            view.service.tell(one=number)
            await view.expect_text(f"{number} in stock")
        await view.expect_announcement("")

        view.service.tell(one=5)
        await view.expect_announcement("only 5")
        # The next one about the same variant waits, and tells what is true then.
        view.service.tell(one=0)
        await view.expect_text("sold out")
        view.service.tell(one=2)
        await view.expect_text("back: 2")
        await view.expect_announcement("only 5")
        await view.advance_clock(11)
        await view.expect_announcement("back: 2")
        # A buyer who chooses another variant hears of it at once.
        await view.page.evaluate("document.querySelector('[name=id]').value = '6'")
        await view.expect_announcement("8 in stock")
        await view.advance_clock(11)
        await view.expect_announcement("")


async def test_one_of_several_blocks_of_a_product_announces_its_new_state(chromium: Browser) -> None:
    async with theme(chromium) as view:
        section = f'<div class="shopify-section">{FORM}{block()}{block()}</div>'
        await view.open(section + block(product="8", first=SIX))
        await view.wait_until_live()

        view.service.tell(one=5, six=0)
        await expect(view.page.get_by_role("status").first).to_have_text("only 5")

        assert await view.page.get_by_role("status").all_text_contents() == ["only 5", "", "sold out"]


async def test_a_page_without_a_stream_asks_less_and_less_often(chromium: Browser) -> None:
    async with theme(chromium) as view:
        view.service.streams = "refused"
        await view.open(FORM + block())
        await view.wait_for_failures(1)
        await view.pause_clock()

        # Pauses of at most 2, 4, 8, 16, 32 and 60 seconds, and no shorter than half of that; eight streams are tried.
        for number, most in enumerate((2, 4, 8, 16, 32, 60, 60, 60, 60), 2):
            await view.wait_for_failures(min(number - 1, 8))
            view.service.numbers = {ONE: 100 + number}
            await view.advance_clock(max(0, most / 2 - 3))
            assert view.service.times(ASK) == number - 1
            for _ in range(most // 2 + 5):
                if view.service.times(ASK) < number:
                    await view.advance_clock(1)
            await view.expect_text(f"{100 + number} in stock")
        assert (view.service.times(ASK), view.service.times(STREAM)) == (10, 8)


async def test_a_stream_that_sends_nothing_is_replaced_by_polling(chromium: Browser) -> None:
    async with theme(chromium) as view:
        view.service.streams = "silent"
        await view.open(FORM + block())
        await view.wait_for_requests(STREAM, 1)
        view.service.numbers = {ONE: 44}
        view.service.streams = "open"

        await view.advance_clock(10)
        await view.advance_clock(2)
        await view.expect_text("44 in stock")
        await view.wait_until_live()


async def test_a_stream_that_ends_is_opened_again_with_a_fresh_token(chromium: Browser) -> None:
    async with theme(chromium) as view:
        await view.open(FORM + block())
        await view.wait_until_live()
        for times in (1, 2):
            view.service.end()
            await view.wait_for_failures(times)
            await view.advance_clock(4)
            await view.wait_until_live()

        opened = [url for url in view.service.requests if url.startswith(STREAM)]
        assert len({*opened}) == len(opened) == view.service.times(ASK) == 3
        await view.expect_text("50 in stock")


async def test_a_poll_now_and_then_finds_what_a_silent_stream_has_missed(chromium: Browser) -> None:
    async with theme(chromium) as view:
        await view.open(FORM + block())
        await view.wait_until_live()
        await view.advance_clock(301)
        await view.wait_for_requests(ASK, 2)
        assert view.service.times(STREAM) == 1

        view.service.numbers = {ONE: 44}
        await view.advance_clock(301)
        await view.expect_text("44 in stock")
        await view.wait_for_requests(STREAM, 2)


async def test_an_old_number_says_when_it_was_right_until_it_is_too_old(chromium: Browser) -> None:
    async with theme(chromium) as view:
        await view.open(FORM + block() + block(hides=""))
        await view.expect_text("50 in stock")
        await view.wait_until_live()
        view.service.answer = (502, "The app did not answer.")
        view.service.end()

        await expect(view.line).to_have_attribute("data-state", "old")
        assert (await view.line.inner_text()).startswith("50 at ")
        await expect(view.page.locator("[data-variant]").last).to_have_text("")
        for _ in range(20):
            await view.advance_clock(61)
        await view.expect_text("")

        view.service.answer = None
        await view.advance_clock(61)
        await view.expect_text("50 in stock")


@pytest.mark.parametrize("answer", ["<html>", "null", "{}", '{"variants": null}', f'{{"variants":{{"{ONE}":"<b>"}}}}'])
async def test_an_answer_that_is_no_availability_shows_nothing_and_breaks_nothing(
    chromium: Browser, answer: str
) -> None:
    async with theme(chromium) as view:
        view.service.answer = (200, answer)
        await view.open(FORM + block())
        await view.wait_for_answers(ASK, 1)
        await view.expect_text("")

        view.service.answer = None
        await view.advance_clock(2)
        await view.expect_text("50 in stock")


async def test_the_theme_script_sends_no_request_to_another_site(chromium: Browser) -> None:
    async with theme(chromium) as view:
        urls: list[str] = []
        view.page.on("request", lambda request: urls.append(request.url))
        addresses = ("//elsewhere.example", "http://[", "/apps/holdfast")
        await view.open(FORM + "".join(block(proxy=address) for address in addresses))
        lines = view.page.locator("[data-variant]")
        await expect(lines).to_have_text(["", "", "50 in stock"])

        await view.wait_for_answers(ASK, 1)

        await expect(lines).to_have_text(["", "", "50 in stock"])
        assert [url for url in urls if "availability" in url] == [f"{view.address}apps/holdfast/availability"]
        assert {urlsplit(url).hostname for url in urls} == {"127.0.0.1"}


async def test_a_page_that_is_hidden_during_a_request_drops_the_answer(chromium: Browser) -> None:
    async with theme(chromium) as view:
        await view.open(FORM + block())
        await view.wait_until_live()
        view.service.tell(one=5)
        await view.expect_announcement("only 5")

        await view.set_hidden(hidden=True)
        await view.expect_announcement("")
        count = len(view.service.requests)
        await view.page.clock.run_for(3_600_000)
        assert len(view.service.requests) == count
        await view.set_hidden(hidden=False)
        await view.wait_for_requests(STREAM, 2)
        await view.set_hidden(hidden=False)
        assert len(view.service.requests) == count + 2
