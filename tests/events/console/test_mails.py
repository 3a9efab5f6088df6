"""The page of mails: those about the organizer's own events, with the status of each."""

import re
from html import unescape

import httpx2
import pytest

from tests.events.console.organizer_scene import OrganizerScene, open_organizer_scene
from tests.helpers.events_service import Client, Service
from tests.helpers.form_browser import Browser

RECIPIENT = re.compile(r'<th scope="row"><a [^>]*><bdi>')
"""What stands before the address in a row."""


async def cause_mails(scene: OrganizerScene, who: Client, title: str, *names: str) -> None:
    """An event, and a mail to each of these people, who are registered for it."""
    event = await who.create_event(title=title)
    for name in names:
        await who.register(event["id"], email=f"{name}@example.com")
    await scene.service.settle()


async def test_the_page_of_mails_shows_the_status_of_each_mail(service: Service) -> None:
    scene = await open_organizer_scene(service)
    await cause_mails(scene, scene.ada, "Life drawing", "ann", "bob", "cleo", "dan", "eve")
    for name, change in (
        ("bob", "outcome = 'sent', ended_at = now(), attempts = 1"),
        ("cleo", "outcome = 'failed', ended_at = now(), attempts = 3, error = '550 no such user'"),
        ("dan", "outcome = 'superseded', ended_at = now()"),
        ("eve", "attempts = 1, due_at = now() + interval '1 minute', error = '451 later'"),
    ):
        await service.run_sql(f"update mails set {change} where recipient = '{name}@example.com'")

    page = await scene.page("/console/mails")

    of = {row.partition("@")[0]: unescape(row) for row in RECIPIENT.split(page)[1:]}
    assert [*of] == ["eve", "dan", "cleo", "bob", "ann"]
    chips = {name: re.findall(r'<span class="chip[^"]*">([^<]+)<', row)[0] for name, row in of.items()}
    assert chips == {"eve": "Queued", "dan": "Not sent", "cleo": "Failed", "bob": "Sent", "ann": "Queued"}
    assert ['<tr class="about">' in row for row in (of["ann"], of["bob"])] == [False, False]
    assert "Answer of the mail server: <bdi>550 no such user</bdi>" in of["cleo"]
    assert "Not sent: it was no longer true" in of["dan"]
    assert "The mail server asked us to try later." in of["eve"]
    assert "451 later" in of["eve"]


async def fail_mail(scene: OrganizerScene, name: str, error: str = "550 5.1.1 no such user") -> str:
    """Let the mail to a person fail. Returns the path of the button that tries it again."""
    [(id,)] = await scene.service.run_sql(
        "update mails set outcome = 'failed', ended_at = now(), attempts = 3, error = %(error)s"
        " where recipient = %(recipient)s returning id",
        recipient=f"{name}@example.com",
        error=error,
    )
    return f"/console/mails/{id}/retry"


async def mail_statuses(scene: OrganizerScene) -> list[tuple[str | None, int]]:
    return await scene.service.run_sql("select outcome, attempts from mails order by id")


async def test_mails_can_be_filtered_by_their_status(service: Service) -> None:
    scene = await open_organizer_scene(service)
    await cause_mails(
        scene, scene.ada, "Life drawing", *(f"person{number}" for number in range(60)), "bob", "cleo", "dan"
    )
    await cause_mails(scene, scene.bob, "Secret meeting", "eve")
    await fail_mail(scene, "bob")
    await fail_mail(scene, "eve")
    for name, outcome in (("cleo", "sent"), ("dan", "superseded")):
        await service.run_sql(
            f"update mails set outcome = '{outcome}', ended_at = now() where recipient = '{name}@example.com'"
        )

    pages = {
        status: await scene.page(f"/console/mails?status={status}")
        for status in ("waiting", "sent", "failed", "", "none")
    }

    names = {status: re.findall(RECIPIENT.pattern + r"(\w+)@", page) for status, page in pages.items()}
    assert [*map(len, names.values())] == [40, 1, 1, 40, 40]
    assert (names["sent"], names["failed"], names[""][:3]) == (["cleo"], ["bob"], ["dan", "cleo", "bob"])
    assert {name[:6] for name in names["waiting"]} == {"person"}
    [more] = re.findall(r'href="([^"]*)" rel="next"', pages["waiting"])
    rest = await scene.page(unescape(more))
    assert len(re.findall(RECIPIENT.pattern + r"person\d+@", rest)) == 20
    assert 'href="/console/mails?status=waiting" aria-current="page"' in rest
    assert "No e-mails failed in the last 30 days." in await scene.page("/console/mails?status=failed&before=1")


async def test_mails_to_one_address_are_found_whatever_their_status(service: Service) -> None:
    scene = await open_organizer_scene(service)
    await cause_mails(scene, scene.ada, "Life drawing", "ann", "bob")
    await cause_mails(scene, scene.ada, "Pottery", "ann")
    await cause_mails(scene, scene.bob, "Secret meeting", "ann")
    await service.run_sql("update mails set outcome = 'sent', ended_at = now() where recipient = 'ann@example.com'")

    page = await scene.page("/console/mails?q=+Ann%40Example.com&status=failed")

    assert re.findall(RECIPIENT.pattern + "([^<]+)<", page) == ["ann@example.com"] * 2
    assert "Secret meeting" not in page
    assert "No e-mails to this address in the last 30 days." in await scene.page("/console/mails?q=ann")


async def test_a_mail_that_failed_is_tried_again(service: Service) -> None:
    scene = await open_organizer_scene(service)
    await cause_mails(scene, scene.ada, "Life drawing", "ann", "bob")
    path = await fail_mail(scene, "ann")
    page = await scene.page("/console/mails?status=failed")

    done = await scene.post(path, status="failed")

    assert (f'action="{path}"' in page, page.count("Try again: e-mail to")) == (True, 1)
    assert (done.status_code, done.headers["location"]) == (303, "/console/mails?status=failed&done=again")
    assert "The e-mail is being sent again." in await scene.page(done.headers["location"])
    assert await mail_statuses(scene) == [(None, 0), (None, 0)]


async def test_a_mail_that_was_sent_or_does_not_exist_is_not_retried(service: Service) -> None:
    scene = await open_organizer_scene(service)
    await cause_mails(scene, scene.ada, "Life drawing", "ann")
    path = await fail_mail(scene, "ann")
    await service.run_sql("update mails set outcome = 'sent'")

    paths = (path, "/console/mails/99999/retry", "/console/mails/x/retry", "/console/mails/0/retry")
    sent = [await scene.post(path, status="<script>") for path in paths]

    assert {(response.status_code, response.headers["location"]) for response in sent} == {
        (303, "/console/mails?done=nothing")
    }
    assert "There is nothing to try again" in await scene.page("/console/mails?done=nothing")
    assert await mail_statuses(scene) == [("sent", 3)]


async def test_mails_of_another_organizer_and_mails_to_sign_in_are_not_tried_again(service: Service) -> None:
    scene = await open_organizer_scene(service)
    await cause_mails(scene, scene.bob, "Secret meeting", "ann")
    await Browser(service).ask("somebody@example.com")
    paths = [await fail_mail(scene, name) for name in ("ann", "somebody")]
    before = await mail_statuses(scene)

    sent = [await scene.post(path) for path in paths]

    assert {response.headers["location"] for response in sent} == {"/console/mails?done=nothing"}
    assert await mail_statuses(scene) == before


async def test_a_button_of_another_site_tries_nothing_again(service: Service) -> None:
    scene = await open_organizer_scene(service)
    await cause_mails(scene, scene.ada, "Life drawing", "ann")
    path = await fail_mail(scene, "ann")

    refusals: list[httpx2.Response] = [
        await scene.foreign(path),
        await scene.browser.http.post(path, data={"token": "x"}),
    ]
    opened = await scene.browser.get(path)

    assert [response.status_code for response in refusals] == [403, 403]
    assert (opened.status_code, opened.headers["location"]) == (303, "/console/mails")
    assert await mail_statuses(scene) == [("failed", 3)]


async def test_the_page_of_mails_says_in_plain_words_why_a_mail_failed_and_what_to_do(service: Service) -> None:
    scene = await open_organizer_scene(service)
    await cause_mails(scene, scene.ada, "Life drawing", "ann", "bob")
    await fail_mail(scene, "ann", "552 5.2.2 mailbox full")
    await fail_mail(scene, "bob", "it could not be written: KeyError('internals')")

    page = await scene.page("/console/mails")

    assert "The mailbox is full. Try again in a few days" in page
    assert "Answer of the mail server: <bdi>552 5.2.2 mailbox full</bdi>" in page
    assert "It could not be created. That is a fault of this site" in page
    assert "internals" not in page


async def test_mails_of_another_organizer_and_mails_to_sign_in_are_not_shown(service: Service) -> None:
    scene = await open_organizer_scene(service)
    await Browser(service).ask("somebody@example.com")
    await cause_mails(scene, scene.bob, "Secret meeting", "ann")

    page = await scene.page("/console/mails")

    assert await service.run_sql("select count(*) from mails") == [(2,)]
    assert "No e-mails yet." in page
    assert "Secret meeting" not in page
    assert "@example.com" not in page.replace("ada@example.com", "")


async def test_mails_of_an_event_that_is_handed_over_go_with_it(service: Service) -> None:
    scene = await open_organizer_scene(service)
    await cause_mails(scene, scene.bob, "Kept", "ann")
    await cause_mails(scene, scene.bob, "Life drawing", "cleo", "dan")
    [(event,)] = await service.run_sql("select id from events where title = 'Life drawing'")
    assert "Life drawing" not in await scene.page("/console/mails")

    admin = await service.admin()
    handed = await admin.patch(f"/api/events/{event}", {"event": {"organizer_id": scene.ada.id}})
    await scene.ada.register(event, email="eve@example.com")
    await service.settle()

    assert handed.status_code == 200, handed.text
    page = await scene.page("/console/mails")
    assert [row.partition("@")[0] for row in RECIPIENT.split(page)[1:]] == ["eve", "dan", "cleo"]
    assert "Kept" not in page


async def test_a_long_list_of_mails_is_paged(service: Service) -> None:
    scene = await open_organizer_scene(service)
    await cause_mails(scene, scene.ada, "First", *(f"person{number}" for number in range(30)))
    await cause_mails(scene, scene.ada, "Second", *(f"person{number}" for number in range(30)))
    await cause_mails(scene, scene.bob, "Secret meeting", "ann")

    first = await scene.page("/console/mails")
    later = first.partition("/console/mails?before=")[2].partition('"')[0]
    second = await scene.page(f"/console/mails?before={later}")

    assert (first.count('<th scope="row">'), second.count('<th scope="row">')) == (40, 20)
    assert "Secret" not in first + second
    assert "/console/mails?before=" not in second


@pytest.mark.parametrize("before", ["", "0", "-1", "x", "9" * 30, "1'--", "%00"])
async def test_an_invalid_page_of_mails_is_the_first_page(service: Service, before: str) -> None:
    scene = await open_organizer_scene(service)
    await cause_mails(scene, scene.ada, "Life drawing", "ann")

    assert "ann@example.com" in await scene.page(f"/console/mails?before={before}")


async def test_texts_of_strangers_are_escaped_on_the_page_of_mails(service: Service) -> None:
    scene = await open_organizer_scene(service)
    await cause_mails(scene, scene.ada, "<script>alert(1)</script>", "ann")
    await service.run_sql("update mails set attempts = 1, error = '<img src=x onerror=alert(1)>'")

    page = await scene.page("/console/mails")

    assert "<script>" not in page
    assert "<img" not in page
    assert "<bdi>&lt;img src=x" in page


async def test_the_page_of_mails_is_in_german_too(service: Service) -> None:
    scene = await open_organizer_scene(service, language="de")
    await cause_mails(scene, scene.ada, "Aktzeichnen", "ann")

    assert "Wartet</span>" in await scene.page("/console/mails")
