"""Signing in by a link in a mail: it works once, for a quarter of an hour, in the browser that requested it."""

import asyncio
import re

import pytest

from holdfast.events.settings import Settings
from tests.helpers.events_service import Service, running_events
from tests.helpers.form_browser import Browser, main_text, token

ANN = "ann@example.com"


async def test_a_link_signs_in_and_leads_to_the_page_that_was_opened_before(service: Service) -> None:
    ann = Browser(service)
    redirect = await ann.get("/account?lang=de")

    done = await ann.sign_in(ANN, "/account?lang=de")

    assert redirect.headers["location"] == "/sign-in?return_to=%2Faccount%3Flang%3Dde"
    assert done.headers["location"] == "/account?lang=de"
    assert ANN in (await ann.get("/account")).text


async def test_the_sign_in_page_in_another_language_keeps_the_page_to_return_to(service: Service) -> None:
    ann = Browser(service)
    link = 'href="?return_to=%2Fconsole%2Fagents%3Foffset%3D1&amp;lang=de"'
    page = "/sign-in?return_to=%2Fconsole%2Fagents%3Foffset%3D1"

    response = await ann.get(page)
    refusal = await ann.send(page, "/sign-in?lang=en", email="§", return_to="/console/agents?offset=1")
    foreign = await ann.send(page, "/sign-in", email="§", return_to="//evil.example")

    assert link in response.text
    assert (refusal.status_code, link in refusal.text) == (422, True)
    assert 'href="?lang=de"' in foreign.text


async def test_a_sign_in_link_that_is_only_opened_changes_nothing(service: Service) -> None:
    ann = Browser(service)
    link = await ann.ask(ANN)

    for browser in (Browser(service), ann, ann):
        assert (await browser.get(link)).status_code == 200

    assert not await ann.is_signed_in()
    assert await service.run_sql("select count(*) from users") == [(0,)]
    assert (await ann.send(link)).status_code == 303


async def test_a_sign_in_link_does_not_work_in_another_browser(service: Service) -> None:
    ann, thief = Browser(service), Browser(service)
    link = await ann.ask(ANN)
    await thief.ask("thief@example.com")

    seen = await thief.get(link)
    tried = await thief.http.post(link, data={"token": token(await ann.get(link))})

    assert "This link was asked for in another browser." in seen.text
    assert ANN not in seen.text
    assert (tried.status_code, "session" in thief.http.cookies) == (410, False)
    assert (await ann.send(link)).status_code == 303


async def test_a_sign_in_link_works_once(service: Service) -> None:
    ann = Browser(service)
    link = await ann.ask(ANN)
    form = {"token": token(await ann.get(link))}

    answers = await asyncio.gather(*(ann.http.post(link, data=form) for _ in range(10)))

    assert sorted(answer.status_code for answer in answers) == [303, *[410] * 9]
    assert await service.run_sql("select count(*) from sessions") == [(1,)]
    later = Browser(service)
    later.http.cookies.set("browser", ann.http.cookies["browser"])
    assert "This link has already been used." in (await later.get(link)).text


async def test_a_sign_in_link_is_valid_for_a_quarter_of_an_hour(service: Service) -> None:
    ann = Browser(service)
    link = await ann.ask(ANN)
    form = {"token": token(await ann.get(link))}
    await service.run_sql("update sign_in_links set asked_at = now() - interval '15 minutes'")

    late = await ann.http.post(link, data=form)

    assert (late.status_code, "This link is too old." in late.text) == (410, True)
    assert "A link works for 15 minutes." in (await ann.get(link)).text


@pytest.mark.parametrize("link", ["1", "1-" + 64 * "0", "0-" + 64 * "0", "x", "1-" + 64 * "0" + "0", "%00"])
async def test_a_sign_in_link_cannot_be_guessed(service: Service, link: str) -> None:
    ann = Browser(service)
    await ann.ask(ANN)

    assert (await ann.get(f"/sign-in/{link}")).status_code == 404
    assert (await ann.http.post(f"/sign-in/{link}", data={})).status_code == 404


async def test_the_answer_to_a_sign_in_request_does_not_reveal_whether_the_account_exists(service: Service) -> None:
    await service.organizer(email="ada@example.com")
    answers = [
        await Browser(service).send("/sign-in", email=email) for email in ("ada@example.com", "nobody@example.com")
    ]

    known, unknown = [(answer.status_code, answer.headers["location"], answer.content) for answer in answers]

    assert known == unknown
    assert await service.run_sql("select kind, recipient from mails order by id") == [
        ("sign_in", "ada@example.com"),
        ("sign_in", "nobody@example.com"),
    ]


async def test_an_address_without_an_account_gets_one_when_it_signs_in(service: Service) -> None:
    ann = Browser(service)
    await ann.sign_in(ANN)

    assert await service.run_sql("select email, role::text, proved_at is not null from users") == [(ANN, "user", True)]


async def test_an_address_in_capitals_signs_in_to_the_same_account(service: Service) -> None:
    ann = Browser(service)
    await ann.sign_in("Ann@Example.COM ")

    assert await service.run_sql("select email from users") == [(ANN,)]


async def test_a_mailbox_with_tagged_addresses_gets_no_more_links_than_one_address(settings: Settings) -> None:
    """They all reach one person, who did not ask."""
    async with running_events(settings.model_copy(update={"sign_ins_per_address": 2})) as service:
        stranger = Browser(service, address="192.0.2.1")
        statuses = [
            (await stranger.send("/sign-in", email=email)).status_code
            for email in ("ann+1@gmail.com", "a.nn+2@gmail.com", "ann+3@googlemail.com", "bob@gmail.com")
        ]

        assert statuses == [303, 303, 429, 303]
        assert len(await service.run_sql("select from mails")) == 3


@pytest.mark.parametrize(
    "email", ["", "ann", "ann@", "a b@example.com", "ann@example.com\r\nBcc: x@y.z", "x" * 300 + "@a.bc"]
)
async def test_a_sign_in_with_an_invalid_address_is_answered_with_the_form_and_sends_no_mail(
    service: Service, email: str
) -> None:
    answer = await Browser(service).send("/sign-in", email=email)

    assert (answer.status_code, "This is not an e-mail address." in main_text(answer)) == (422, True)
    assert await service.run_sql("select count(*) from mails") == [(0,)]


@pytest.mark.parametrize(
    "address",
    [
        "https://evil.test/",
        "//evil.test",
        "/\\evil.test",
        "\\\\evil.test",
        "javascript:alert(1)",
        "/a\nb",
        "/\t/evil.test",
        "evil.test",
        "/é",
        "",
    ],
)
async def test_a_sign_in_link_never_leads_to_another_site(service: Service, address: str) -> None:
    ann = Browser(service)
    sent = await ann.send("/sign-in", email=ANN, return_to=address)
    assert sent.status_code == 303

    assert await service.run_sql("select return_to from sign_in_links") == [("",)]


async def test_a_sign_in_form_of_another_site_is_refused(service: Service) -> None:
    ann = Browser(service)
    link = await ann.ask(ANN)
    form = {"token": token(await ann.get(link)), "email": ANN}

    for path in ("/sign-in", link):
        for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://evil.test"}):
            assert (await ann.http.post(path, data=form, headers=headers)).status_code == 403
    assert not await ann.is_signed_in()


@pytest.mark.parametrize("planted", ['"a\\015\\012Set-Cookie: session=b"', "x", "é" * 43, ""])
async def test_a_planted_browser_cookie_is_not_sent_back(service: Service, planted: str) -> None:
    ann = Browser(service)
    page = await ann.get("/sign-in")

    cookie = (b"Cookie", f"browser={planted}".encode("latin-1"))
    sent = await ann.http.post("/sign-in", data={"token": token(page), "email": ANN}, headers=[cookie])

    [set_cookie] = sent.headers.get_list("set-cookie")
    assert re.fullmatch(r"browser=[A-Za-z0-9_-]{43}; Path=/; Max-Age=3600; HttpOnly; SameSite=Lax", set_cookie)


async def test_a_planted_session_cookie_is_replaced_at_sign_in(service: Service) -> None:
    ann = Browser(service)
    ann.http.cookies.set("session", "A" * 43, domain="events.test")

    await ann.sign_in(ANN)

    assert ann.http.cookies["session"] != "A" * 43
    assert not await service.run_sql("select from sessions where hash = sha256(%(set)s::bytea)", set="A" * 43)


async def test_the_session_cookie_is_for_this_host_only(service: Service) -> None:
    done = await Browser(service).sign_in(ANN)
    [cookie] = [cookie for cookie in done.headers.get_list("set-cookie") if cookie.startswith("session=")]

    assert cookie.endswith("; Path=/; Max-Age=7776000; HttpOnly; SameSite=Lax")
