"""The page of mails: those about the organizer's events and what came of each, and none of anybody else."""

from html import unescape

import pytest

from tests.events.console.scene import Desk, desk
from tests.support import Client, Service


async def caused(at: Desk, who: Client, title: str, *names: str) -> None:
    """An event, and a mail to each of these people, who are registered for it."""
    event = await who.create_event(title=title)
    for name in names:
        await who.register(event["id"], email=f"{name}@example.com")
    await at.service.settle()


async def test_it_is_said_what_came_of_each_mail(service: Service) -> None:
    at = await desk(service)
    await caused(at, at.ada, "Life drawing", "ann", "bob", "cleo", "dan", "eve")
    for name, change in (
        ("bob", "outcome = 'sent', ended_at = now(), attempts = 1"),
        ("cleo", "outcome = 'failed', ended_at = now(), attempts = 3, error = '550 no such user'"),
        ("dan", "outcome = 'superseded', ended_at = now()"),
        ("eve", "attempts = 1, due_at = now() + interval '1 minute', error = '451 later'"),
    ):
        await service.run_sql(f"update mails set {change} where recipient = '{name}@example.com'")

    page = await at.page("/console/mails")

    of = {each.partition("@")[0]: unescape(each) for each in page.split("<p><bdi>")[1:]}
    assert [*of] == ["eve", "dan", "cleo", "bob", "ann"]
    assert "Waits since" in of["ann"]
    assert ". Sent " not in of["bob"]
    assert "Sent " in of["bob"]
    assert "Failed " in of["cleo"]
    assert "The mail server said: <bdi>550 no such user</bdi>" in of["cleo"]
    assert "Not sent: it was no longer true" in of["dan"]
    assert "Put off by the mail server." in of["eve"]
    assert "451 later" in of["eve"]


async def test_mails_of_another_organizer_and_mails_to_sign_in_are_not_shown(service: Service) -> None:
    at = await desk(service)
    await at.browser.ask("somebody@example.com")
    await caused(at, at.bob, "Secret meeting", "ann")

    page = await at.page("/console/mails")

    assert await service.run_sql("select count(*) from mails") == [(2,)]
    assert "No mails." in page
    assert "Secret meeting" not in page
    assert "@example.com" not in page.replace("ada@example.com", "")


async def test_a_long_list_is_shown_a_part_at_a_time(service: Service) -> None:
    at = await desk(service)
    await caused(at, at.ada, "First", *(f"person{number}" for number in range(30)))
    await caused(at, at.ada, "Second", *(f"person{number}" for number in range(30)))
    await caused(at, at.bob, "Secret meeting", "ann")

    first = await at.page("/console/mails")
    later = first.partition("/console/mails?before=")[2].partition('"')[0]
    second = await at.page(f"/console/mails?before={later}")

    assert (first.count('class="card"'), second.count('class="card"')) == (50, 10)
    assert "Secret" not in first + second
    assert "before=" not in second


@pytest.mark.parametrize("before", ["", "0", "-1", "x", "9" * 30, "1'--", "%00"])
async def test_a_part_that_cannot_exist_is_the_first_part(service: Service, before: str) -> None:
    at = await desk(service)
    await caused(at, at.ada, "Life drawing", "ann")

    assert "ann@example.com" in await at.page(f"/console/mails?before={before}")


async def test_what_strangers_wrote_is_shown_as_text_only(service: Service) -> None:
    at = await desk(service)
    await caused(at, at.ada, "<script>alert(1)</script>", "ann")
    await service.run_sql("update mails set attempts = 1, error = '<img src=x onerror=alert(1)>'")

    page = await at.page("/console/mails")

    assert "<script>" not in page
    assert "<img" not in page
    assert "<bdi>&lt;img src=x" in page


async def test_the_page_is_in_german_too(service: Service) -> None:
    at = await desk(service, language="de")
    await caused(at, at.ada, "Aktzeichnen", "ann")

    assert "Wartet seit" in await at.page("/console/mails")
