"""Signing in by password: tries are limited, and do not lock the owner out."""

import asyncio
from collections import Counter

from holdfast.accounts.signin import operations
from holdfast.events.settings import Settings
from holdfast.kit.contract.caller import Caller, stranger
from tests.accounts.races import ending_transaction
from tests.helpers.events_service import Service, eventually, running_events
from tests.helpers.form_browser import Browser

ADA = "ada@example.com"
PASSWORD = "correct horse battery"


async def ada(service: Service) -> None:
    await service.organizer(email=ADA, password=PASSWORD)


async def test_the_right_password_signs_in(service: Service) -> None:
    await ada(service)
    browser = Browser(service)

    done = await browser.send("/sign-in", email=ADA, password=PASSWORD, return_to="/account")

    assert (done.status_code, done.headers["location"]) == (303, "/account")
    assert await browser.is_signed_in()


async def test_a_wrong_password_and_an_address_without_one_get_the_same_answer(service: Service) -> None:
    await ada(service)
    await service.organizer(email="without@example.com")
    browser = Browser(service)

    for email in (ADA, "without@example.com", "nobody@example.com"):
        answer = await browser.send("/sign-in", email=email, password="a wrong password")
        assert (answer.status_code, "do not match" in answer.text) == (422, True)
    assert not await browser.is_signed_in()


async def test_a_sign_in_while_the_password_is_removed_leaves_no_session(service: Service) -> None:
    await ada(service)
    thief = Browser(service)

    async with ending_transaction(service) as this:
        await this.tx.run("update users set password_hash = null")
        await this.tx.run("delete from sessions")
        trying = await this.meanwhile(thief.send("/sign-in", email=ADA, password=PASSWORD))

    assert (await trying).status_code == 422
    assert await service.run_sql("select from sessions") == []


async def test_a_password_try_beyond_the_waiting_limit_is_refused_before_the_database_is_read(service: Service) -> None:
    await ada(service)
    most = 1 + operations.MAX_WAITING
    browsers = [Browser(service) for _ in range(most + 5)]

    async with service.database.transaction() as tx:
        await tx.run("lock table users in access exclusive mode")
        await tx.value("select true")  # now it is locked
        tries = [
            asyncio.create_task(browser.send("/sign-in", email=ADA, password="a wrong password"))
            for browser in browsers
        ]
        await eventually(lambda: sum(task.done() for task in tries) == 5)
    answers = Counter([(await task).status_code for task in tries])

    assert answers == {422: most, 503: 5}


async def wait_for_place(caller: Caller) -> None:
    async with operations.password_turn(caller):
        pass


async def test_a_crowd_from_one_address_delays_a_password_of_another_by_one_turn(service: Service) -> None:
    await ada(service)
    crowd = [stranger(f"network {0x20010DB8_0000_0000 + number:016x}") for number in range(40)]
    end = asyncio.Event()

    async def hold(caller: Caller) -> None:
        async with operations.password_turn(caller):
            await end.wait()

    holding = [asyncio.create_task(hold(caller)) for caller in crowd]
    await asyncio.sleep(0)
    done = await Browser(service, address="192.0.2.1").send("/sign-in", email=ADA, password=PASSWORD)
    end.set()
    await asyncio.gather(*holding, return_exceptions=True)

    assert done.status_code == 303


async def test_a_password_try_that_would_wait_too_long_is_refused_and_does_not_count(service: Service) -> None:
    await ada(service)
    browser = Browser(service)

    caller = stranger("address 127.0.0.1")
    async with operations.password_turn(caller):
        waiting = [asyncio.create_task(wait_for_place(caller)) for _ in range(operations.MAX_WAITING)]
        await asyncio.sleep(0)
        refusals = [await browser.send("/sign-in", email=ADA, password=PASSWORD) for _ in range(11)]
    await asyncio.gather(*waiting)
    done = await browser.send("/sign-in", email=ADA, password=PASSWORD)

    assert {answer.status_code for answer in refusals} == {503}
    assert 1 <= int(refusals[0].headers["retry-after"]) <= 10
    assert "Very many people are signing in" in refusals[0].text
    assert f'value="{ADA}"' in refusals[0].text
    assert done.status_code == 303


async def test_password_tries_are_limited_and_the_owner_is_not_locked_out(settings: Settings) -> None:
    settings = settings.model_copy(update={"sign_ins_per_address": 3})
    async with running_events(settings) as service:
        await ada(service)
        at_home = Browser(service)
        await at_home.send("/sign-in", email=ADA, password=PASSWORD)
        thief = Browser(service, address="192.0.2.1")

        tries = [
            (await thief.send("/sign-in", email=ADA, password=f"wrong {number}")).status_code for number in range(6)
        ]
        right = await thief.send("/sign-in", email=ADA, password=PASSWORD)
        known = Browser(service)
        known.http.cookies.set("known", at_home.http.cookies["known"])

        assert tries == [422, 422, 429, 429, 429, 429]
        assert right.status_code == 429
        assert (await known.send("/sign-in", email=ADA, password=PASSWORD)).status_code == 303
        assert (await Browser(service).send("/sign-in", email=ADA)).status_code == 303


async def test_one_stranger_does_not_use_up_the_passwords_or_links_of_others(settings: Settings) -> None:
    settings = settings.model_copy(update={"sign_ins_per_address": 10})
    async with running_events(settings) as service:
        await ada(service)
        thieves = [Browser(service, address=f"2001:db8:1:{number:x}::1") for number in range(4)]

        tries = [
            (await thief.send("/sign-in", email=ADA, password="a wrong one")).status_code
            for thief in thieves
            for _ in range(5)
        ]
        links = [(await thief.send("/sign-in", email=ADA)).status_code for thief in thieves for _ in range(5)]
        on_the_way = Browser(service, address="198.51.100.1")

        assert (tries.count(422), links.count(303)) == (5, 10)
        assert (await on_the_way.send("/sign-in", email=ADA, password=PASSWORD)).status_code == 303
        assert (await Browser(service, address="198.51.100.2").send("/sign-in", email=ADA)).status_code == 303


async def test_many_strangers_together_have_few_links_sent_to_an_address(settings: Settings) -> None:
    async with running_events(settings.model_copy(update={"sign_ins_per_address": 4})) as service:
        answers = [
            await Browser(service, address=f"198.51.100.{number}").send("/sign-in", email=ADA) for number in range(20)
        ]

        assert [answer.status_code for answer in answers] == [303] * 12 + [429] * 8
        assert len(await service.run_sql("select from mails")) == 12


async def test_the_cookie_of_another_address_is_no_way_around_the_bound(settings: Settings) -> None:
    settings = settings.model_copy(update={"sign_ins_per_address": 2})
    async with running_events(settings) as service:
        await ada(service)
        thief = Browser(service)
        await thief.sign_in("thief@example.com")

        thief.http.cookies.delete("session")
        tries = [
            (await thief.send("/sign-in", email=ADA, password=f"wrong {number}")).status_code for number in range(4)
        ]

        assert tries == [422, 422, 429, 429]


async def test_one_client_can_try_a_limited_number_of_addresses(settings: Settings) -> None:
    settings = settings.model_copy(update={"sign_ins_per_hour": 3})
    async with running_events(settings) as service:
        thief = Browser(service)

        tries = [(await thief.send("/sign-in", email=f"a{number}@example.com")).status_code for number in range(5)]

        assert tries == [303, 303, 303, 429, 429]
