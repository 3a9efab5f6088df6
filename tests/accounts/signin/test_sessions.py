"""Sessions: listed, ended here and everywhere, and over by themselves."""

import asyncio
import re

import pytest
from psycopg import sql

from holdfast.accounts import sessions
from holdfast.accounts.signin import links
from holdfast.events.settings import Settings
from holdfast.kit.postgres import lookup_cache
from tests.helpers.events_service import Service, running_events
from tests.helpers.form_browser import Browser, token

ANN = "ann@example.com"


def other_sessions(page: str) -> list[str]:
    """The sessions that a page offers to end."""
    return re.findall(r'name="session" value="(\d+)"', page)


async def test_signing_out_ends_this_session_alone(service: Service) -> None:
    here, other = Browser(service), Browser(service)
    for browser in (here, other):
        await browser.sign_in(ANN)
    secret = here.http.cookies["session"]

    left = await here.send("/account", "/sign-out")

    here.http.cookies.set("session", secret, domain="events.test")
    assert (left.status_code, left.headers["location"]) == (303, "/")
    assert [await browser.is_signed_in() for browser in (here, other)] == [False, True]


async def test_a_person_sees_the_sessions_of_other_browsers_and_can_end_one(service: Service) -> None:
    here, second = Browser(service), Browser(service)
    for browser in (here, second):
        await browser.sign_in(ANN)
    page = await here.get("/account")
    [other] = other_sessions(page.text)

    await here.send("/account", session=other)

    assert page.text.count("Firefox of a test") == 2
    assert 'aria-label="Sign out An unknown browser"' in page.text
    assert [await browser.is_signed_in() for browser in (here, second)] == [True, False]


@pytest.mark.usefixtures("only_notices_end_caches")
async def test_all_sessions_can_be_ended_at_once_and_in_every_process(settings: Settings) -> None:
    async with running_events(settings) as one, running_events(settings) as other:
        here, second = Browser(one), Browser(other)
        for browser in (here, second):
            await browser.sign_in(ANN)
            assert await browser.is_signed_in()

        await here.send("/account", session="all")
        await other.wait_for_notices()

        assert not await second.is_signed_in()


async def test_a_person_cannot_end_the_session_of_another_person(service: Service) -> None:
    ann, bob = Browser(service), Browser(service)
    await ann.sign_in(ANN)
    await bob.sign_in("bob@example.com")
    [(of_ann,)] = await service.run_sql("select min(id) from sessions")

    await bob.send("/account", session=str(of_ann))

    assert await ann.is_signed_in()


async def test_a_form_shown_in_another_session_is_refused(service: Service) -> None:
    ann, bob = Browser(service), Browser(service)
    await ann.sign_in(ANN)
    await bob.sign_in("bob@example.com")
    form_token = token(await bob.get("/account"))

    for path in ("/sign-out", "/account"):
        assert (await ann.http.post(path, data={"token": form_token, "session": "all"})).status_code == 403
        assert (await ann.http.post(path, data={"session": "all"})).status_code == 403
    mine = {"token": token(await ann.get("/account")), "session": "all"}
    assert (await ann.http.post("/account", data=mine, headers={"Sec-Fetch-Site": "same-site"})).status_code == 403
    assert await ann.is_signed_in()


@pytest.mark.parametrize(("column", "days"), [("seen_at", 14), ("began_at", 90)])
async def test_a_session_ends_after_two_weeks_without_use_and_after_its_longest_time(
    service: Service, monkeypatch: pytest.MonkeyPatch, column: str, days: int
) -> None:
    monkeypatch.setattr(lookup_cache, "TTL_SECONDS", 0.0)
    ann = Browser(service)
    await ann.sign_in(ANN)
    change = sql.SQL("update sessions set {} = now() - make_interval(days => %(days)s, hours => %(hours)s)")
    change = change.format(sql.Identifier(column))

    await service.run_sql(change, days=days, hours=-2)
    before = await ann.is_signed_in()
    await service.run_sql(change, days=days, hours=0)

    assert (before, await ann.is_signed_in()) == (True, False)
    assert await service.database.transact(sessions.forget_sessions) == 1


async def test_a_session_in_the_frame_of_a_platform_is_listed_until_it_is_over(service: Service) -> None:
    here, framed = Browser(service), Browser(service)
    for browser in (here, framed):
        await browser.sign_in(ANN)
    await service.run_sql("update sessions set way = 'platform' where id = (select max(id) from sessions)")
    assert len(other_sessions((await here.get("/account")).text)) == 1

    await service.run_sql("update sessions set began_at = now() - interval '8 hours'")

    assert other_sessions((await here.get("/account")).text) == []


async def test_a_session_that_is_used_is_prolonged(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup_cache, "TTL_SECONDS", 0.0)
    ann = Browser(service)
    await ann.sign_in(ANN)
    await service.run_sql("update sessions set seen_at = now() - interval '13 days'")

    assert await ann.is_signed_in()

    assert await service.run_sql("select seen_at > now() - interval '1 minute' from sessions") == [(True,)]
    assert await service.database.transact(sessions.forget_sessions) == 0


async def test_a_session_row_that_is_locked_does_not_hold_up_its_person(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookup_cache, "TTL_SECONDS", 0.0)
    ann = Browser(service)
    await ann.sign_in(ANN)
    await service.run_sql("update sessions set seen_at = now() - interval '2 hours'")

    async with service.database.transaction() as other:
        await other.tuples("select from sessions for update")
        async with asyncio.timeout(2):
            assert await ann.is_signed_in()


@pytest.mark.usefixtures("only_notices_end_caches")
async def test_ending_very_many_sessions_reaches_every_process(settings: Settings) -> None:
    async with running_events(settings) as one, running_events(settings) as other:
        here, second = Browser(one), Browser(other)
        for browser in (here, second):
            await browser.sign_in(ANN)
        assert await second.is_signed_in()
        await one.run_sql(
            "insert into sessions (hash, account_id, way, browser)"
            " select sha256(n::text::bytea), account_id, way, browser"
            "   from generate_series(1, 100) as n, (select * from sessions limit 1) as like_this"
        )

        await here.send("/account", session="all")
        await other.wait_for_notices()

        assert not await second.is_signed_in()
        assert await one.run_sql("select count(*) from sessions") == [(0,)]


async def test_a_sign_in_link_is_deleted_a_day_after_it_was_requested(service: Service) -> None:
    await Browser(service).ask(ANN)
    await service.run_sql("update sign_in_links set asked_at = now() - interval '1 day'")
    await Browser(service).ask(ANN)

    assert await service.database.transact(links.forget_links) == 1
    assert await service.database.transact(links.forget_links) == 0


async def test_the_database_stores_no_secret_of_a_link_or_a_session(service: Service) -> None:
    ann = Browser(service)
    link = await ann.ask(ANN)
    await ann.send(link)
    secrets = [link.rpartition("-")[2], ann.http.cookies["session"], ann.http.cookies["browser"]]

    stored = await service.run_sql("select sessions::text from sessions")
    stored += await service.run_sql("select sign_in_links::text from sign_in_links")
    stored += await service.run_sql("select mails::text from mails")

    assert not [secret for secret in secrets for (row,) in stored if secret in row]


async def test_a_session_without_tls_does_not_end_that_of_the_service_on_another_port(
    settings: Settings,
) -> None:
    # Browsers send a cookie to every port of its host.
    browser = None
    for port in (8101, 8102):
        async with running_events(settings.model_copy(update={"base_url": f"http://127.0.0.1:{port}"})) as service:
            person = Browser(service)
            if browser:
                person.http.cookies.update(browser.http.cookies)
            await person.sign_in(ANN)
            browser = person

    assert browser
    assert {name for name in browser.http.cookies if "session" in name} == {"session-8101", "session-8102"}
