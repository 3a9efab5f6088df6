"""A person ends all access to an account, and gets the data of it."""

import pytest

from tests.events.console.organizer_scene import FOREIGN, KEY_PATTERN, create_key, open_organizer_scene
from tests.events.console.organizing import PASSWORD
from tests.helpers.events_service import Client, Service
from tests.helpers.form_browser import Browser, token

ANN = "ann@example.com"


async def grants(service: Service) -> list[tuple[int, str | None]]:
    return await service.run_sql("select account_id, reason from oauth_grants order by account_id")


async def connect(service: Service, *accounts: int) -> None:
    """Let an app act for accounts."""
    await service.run_sql(
        "insert into oauth_clients (id, redirect_uris) values ('client_1', array['https://a.example'])"
    )
    await service.run_sql(
        """
        insert into oauth_grants (account_id, tenant_id, client_id, scopes, expires_at)
        select id, id, 'client_1', array['read_events'], now() + interval '1 day' from unnest(%(ids)s::bigint[]) as id
        """,
        ids=[*accounts],
    )


async def test_one_button_ends_keys_apps_password_and_sessions_of_this_account_only(service: Service) -> None:
    scene = await open_organizer_scene(service)
    [key] = KEY_PATTERN.findall((await create_key(scene, "Ticket machine")).text)
    await connect(service, scene.ada.id, scene.bob.id)
    thief = Browser(service)
    await thief.send("/sign-in", email="ada@example.com", password=PASSWORD)
    bob = Browser(service)
    await bob.sign_in("bob@example.com")
    question = await scene.page("/account/secure")

    done = await scene.browser.send("/account/secure")

    assert "All your API keys stop working." in question
    assert "All access has ended." in done.text
    assert "session" not in scene.browser.http.cookies
    assert [await browser.is_signed_in() for browser in (scene.browser, thief, bob)] == [False, False, True]
    assert [
        (await client.get("/api/events")).status_code for client in (scene.ada, Client(service.http, key), scene.bob)
    ] == [
        401,
        401,
        200,
    ]
    assert await grants(service) == [(scene.ada.id, "disconnected"), (scene.bob.id, None)]
    assert (await thief.send("/sign-in", email="ada@example.com", password=PASSWORD)).status_code == 422
    assert (await scene.browser.sign_in("ada@example.com")).headers["location"] == "/console"


async def test_opening_the_question_ends_no_access(service: Service) -> None:
    scene = await open_organizer_scene(service)

    await scene.page("/account/secure")

    assert await scene.browser.is_signed_in()
    assert (await scene.ada.get("/api/events")).status_code == 200


@pytest.mark.parametrize("path", ["/account/secure", "/account/data"])
async def test_a_form_of_another_site_or_person_is_refused(service: Service, path: str) -> None:
    scene, bob = await open_organizer_scene(service), Browser(service)
    await bob.sign_in("bob@example.com")
    form_token = token(await bob.get("/account"))

    assert (await scene.foreign(path)).status_code == 403
    assert (await scene.browser.http.post(path, data={"token": form_token})).status_code == 403
    assert (await scene.browser.http.post(path, headers={"Sec-Fetch-Site": "none"})).status_code == 403
    assert (await Browser(service).http.post(path, headers=FOREIGN)).headers["location"].startswith("/sign-in?")
    assert await scene.browser.is_signed_in()
    assert await service.run_sql("select from users where data_link_at is not null") == []


async def test_the_page_of_an_organizers_account_says_what_signing_out_does_not_end(service: Service) -> None:
    scene = await open_organizer_scene(service)
    ann = Browser(service)
    await ann.sign_in(ANN)

    for_organizers, for_people = await scene.page("/account"), (await ann.get("/account")).text

    assert 'href="/account/secure"' in for_organizers
    assert '<a href="/console/agents">' in for_organizers
    assert "/account/secure" not in for_people
    assert 'href="/account/data"' in for_people
    # Organizers are told what they can do, instead of being led to a page that refuses them.
    assert 'href="/account/data"' not in for_organizers
    assert '<a href="/console/agents">Remove your keys</a>' in for_organizers


async def test_a_person_who_has_just_signed_in_by_mail_goes_straight_to_the_data(service: Service) -> None:
    ann = Browser(service)
    await ann.sign_in(ANN)

    led = await ann.send("/account/data")
    page = await ann.get(led.headers["location"])
    form = {"token": token(page), "held": page.text.split('name="held" value="')[1].split('"')[0]}
    file = await ann.http.post(f"{led.headers['location']}/export", data=form)

    assert led.headers["location"].startswith("/people/")
    assert file.json()["account"]["email"] == ANN
    assert await service.run_sql("select from mails where kind = 'own_data'") == []


async def test_an_older_session_gets_a_mail_for_the_data_at_most_once_an_hour(service: Service) -> None:
    ann = Browser(service)
    await ann.sign_in(ANN)
    await service.run_sql("update sessions set began_at = now() - interval '61 minutes'")

    answers = [await ann.send("/account/data") for _ in range(2)]

    assert [("Check your inbox" in answer.text, ANN in answer.text) for answer in answers] == [(True, True)] * 2
    assert await service.run_sql("select recipient, arguments ->> 'language' from mails where kind = 'own_data'") == [
        (ANN, "en")
    ]


async def test_an_organizer_reads_what_to_do_instead_of_erasing(service: Service) -> None:
    scene = await open_organizer_scene(service)

    page, sent = await scene.browser.get("/account/data"), await scene.post("/account/data")

    for response in (page, sent):
        assert (response.status_code, "This address belongs to an organizer." in response.text) == (403, True)
    assert await service.run_sql("select from users where data_link_at is not null") == []


@pytest.mark.usefixtures("only_notices_end_caches")
async def test_an_account_that_was_erased_a_moment_ago_has_no_data(service: Service) -> None:
    ann = Browser(service)
    await ann.sign_in(ANN)
    await service.wait_for_notices()
    form_token = token(await ann.get("/account/data"))
    await service.run_sql("update users set email = null, proved_at = null, erased_at = now()")

    assert (await ann.http.post("/account/data", data={"token": form_token})).status_code == 404
