"""Signing in by password from a browser that the owner has used before: its tries are counted apart."""

import pytest

from holdfast.accounts import known_browsers
from holdfast.events.people.model import AccountSelector
from holdfast.events.settings import Settings
from tests.helpers.events_service import Service, running_events
from tests.helpers.form_browser import Browser
from tests.helpers.people import erase

ADA = "ada@example.com"
PASSWORD = "correct horse battery"


async def counts_as_owner(service: Service, cookie: str) -> bool:
    """Whether a browser with this cookie may still try, after others have used up their tries."""
    others = Browser(service, address="192.0.2.9")
    while (await others.send("/sign-in", email=ADA, password="wrong password")).status_code != 429:
        pass
    browser = Browser(service)
    browser.http.cookies.set("known", cookie)
    return (await browser.send("/sign-in", email=ADA, password="wrong password")).status_code == 422


@pytest.fixture
def few_sign_ins(settings: Settings) -> Settings:
    return settings.model_copy(update={"sign_ins_per_address": 2, "sign_ins_per_hour": 1000})


async def signed_in(service: Service) -> Browser:
    browser = Browser(service)
    await browser.sign_in(ADA)
    return browser


async def test_the_cookie_of_a_known_browser_lasts_90_days(few_sign_ins: Settings) -> None:
    async with running_events(few_sign_ins) as service:
        await service.organizer(email=ADA, password=PASSWORD)
        browser = Browser(service)
        done = await browser.sign_in(ADA)

        [header] = [cookie for cookie in done.headers.get_list("set-cookie") if cookie.startswith("known=")]
        assert f"Max-Age={90 * 86_400};" in header
        assert await counts_as_owner(service, browser.http.cookies["known"])
        await service.run_sql("update known_browsers set known_at = now() - interval '90 days 1 second'")
        assert not await counts_as_owner(service, browser.http.cookies["known"])
        assert await service.database.transact(known_browsers.forget_browsers) == 1


async def test_a_browser_is_not_known_any_more_after_the_owner_says_not_mine(few_sign_ins: Settings) -> None:
    async with running_events(few_sign_ins) as service:
        await service.organizer(email=ADA, password=PASSWORD)
        stranger = await signed_in(service)
        await service.run_sql("update users set proved_at = null where email = %(email)s", email=ADA)
        await (await signed_in(service)).send("/console/before", whose="other")

        assert not await counts_as_owner(service, stranger.http.cookies["known"])


async def test_a_browser_is_not_known_any_more_when_all_access_is_ended(few_sign_ins: Settings) -> None:
    async with running_events(few_sign_ins) as service:
        await service.organizer(email=ADA, password=PASSWORD)
        browser = await signed_in(service)
        await browser.send("/account/secure")

        assert not await counts_as_owner(service, browser.http.cookies["known"])


async def test_a_browser_is_not_known_any_more_when_the_person_is_erased(few_sign_ins: Settings) -> None:
    async with running_events(few_sign_ins) as service:
        browser = await signed_in(service)
        await erase(service, AccountSelector(email=ADA))

        assert await service.run_sql("select from known_browsers") == []
        assert not await counts_as_owner(service, browser.http.cookies["known"])


async def test_a_sign_in_by_password_with_an_unproved_address_makes_no_browser_known(service: Service) -> None:
    await service.organizer(email=ADA, password=PASSWORD, is_proved=False)
    stranger = Browser(service)

    await stranger.send("/sign-in", email=ADA, password=PASSWORD)

    assert await stranger.is_signed_in()
    assert "known" not in stranger.http.cookies
