"""The reader of a mailbox stops all mails to it with one click, and allows them again."""

import pytest

from holdfast.events.people import operations as people
from holdfast.events.people.model import AccountSelector
from tests.events.mails.post import ANN, BOB, Post, let_time_pass
from tests.helpers.event_visitor import Visitor, page_text
from tests.helpers.form_browser import Browser
from tests.helpers.smtp import ReceivedMail

TAGGED = "Ann+news@example.com"
ONE_CLICK = {"List-Unsubscribe": "One-Click"}


def stop_of(mail: ReceivedMail) -> str:
    """The address in a mail that stops mails, as mail programs find it."""
    assert mail.mail["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    return str(mail.mail["List-Unsubscribe"]).strip("<>")


async def first_mail(post: Post) -> ReceivedMail:
    event = await post.organizer.create_event()
    await post.register(event["id"], ANN)
    [mail] = await post.deliver()
    return mail


async def test_one_click_in_a_mail_program_stops_the_mails_of_all_organizers(post: Post) -> None:
    stop = stop_of(await first_mail(post))

    # RFC 8058 allows both kinds of forms. No cookie, no token and no language come with them.
    assert (await post.service.http.post(stop, data=ONE_CLICK)).status_code == 200
    assert (await post.service.http.post(stop, files={"List-Unsubscribe": (None, "One-Click")})).status_code == 200

    post.organizer = await post.service.organizer()
    event = await post.organizer.create_event()
    await post.register(event["id"], ANN, TAGGED, BOB)
    assert await post.sent_kinds() == [(BOB, "seat")]
    assert await post.service.run_sql("select outcome from mails where recipient <> %(bob)s order by id", bob=BOB) == [
        ("sent",),
        ("superseded",),
        ("superseded",),
    ]


async def test_requested_links_are_sent_although_mails_are_stopped(post: Post) -> None:
    await post.service.http.post(stop_of(await first_mail(post)))

    await Browser(post.service).ask(ANN)
    [mail] = await post.deliver()

    assert mail.mail["Subject"] == "Sign in to Holdfast Events"
    assert stop_of(mail)


async def test_opening_the_page_stops_no_mails(post: Post) -> None:
    stop = stop_of(await first_mail(post))

    page = await Visitor(post.service).http.get(stop)

    assert "Stop all e-mails from this site?" in page_text(page)
    event = await post.organizer.create_event()
    await post.register(event["id"], ANN)
    assert await post.sent_kinds() == [(ANN, "seat")]


@pytest.mark.parametrize(
    ("language", "stopped"),
    [("en", "You get no more e-mails from this site."), ("de", "Sie bekommen keine E-Mails mehr von dieser Website.")],
)
async def test_the_page_of_stopped_mails_says_what_was_stopped_and_lets_mails_come_again(
    post: Post, language: str, stopped: str
) -> None:
    visitor = Visitor(post.service, language=language)
    stop = stop_of(await first_mail(post))

    assert stopped in page_text(await visitor.http.post(stop))
    assert stopped in page_text(await visitor.http.get(stop))
    assert (await visitor.http.get(f"{stop}/again")).status_code == 303
    assert stopped in page_text(await visitor.http.get(stop))
    assert (await visitor.http.post(f"{stop}/again")).status_code == 303
    assert stopped not in (await visitor.http.get(stop)).text

    event = await post.organizer.create_event()
    await post.register(event["id"], ANN)
    assert await post.sent_kinds() == [(ANN, "seat")]


async def test_a_link_to_stop_mails_with_a_forged_signature_is_answered_with_404(post: Post) -> None:
    stop = stop_of(await first_mail(post))
    signature = stop.rpartition("-")[2]
    forged = stop.replace(signature, "0" * len(signature))

    for path in (forged, f"{forged}/again", "/mails/nothing"):
        assert (await post.service.http.post(path)).status_code == 404
    assert await post.service.run_sql("select from stopped_mails") == []


async def test_no_address_of_a_person_who_stops_mails_is_stored(post: Post) -> None:
    await post.service.http.post(stop_of(await first_mail(post)))

    [(row,)] = await post.service.run_sql("select stopped_mails::text from stopped_mails")
    assert "ann" not in row


async def test_mails_of_a_hundred_new_organizers_to_one_mailbox_are_few_and_end_with_one_click(
    post: Post,
) -> None:
    attackers = [await post.service.organizer(is_proved=False) for _ in range(100)]
    for attacker in attackers:
        for _ in range(10):
            event = await attacker.create_event(title="URGENT: your account is locked")
            await attacker.register(event["id"], email=ANN)
    await post.service.settle()
    sent = [len(await post.deliver())]

    for attacker in attackers:
        await post.service.set_proof_age(attacker, days=1)
    arrived: list[ReceivedMail] = []
    for _ in range(4):
        arrived += (mails := await post.deliver())
        sent.append(len(mails))
        await let_time_pass(post, "1 hour")
    await post.service.http.post(stop_of(arrived[0]), data=ONE_CLICK)
    for interval in ("1 hour", "1 day", "1 day"):
        await let_time_pass(post, interval)
        sent.append(len(await post.deliver()))

    assert sent == [0, 6, 6, 6, 2, 0, 0, 0]
    outcomes = "select outcome, count(*) from mails group by outcome order by outcome"
    assert await post.service.run_sql(outcomes) == [("sent", 20), ("superseded", 980)]


async def test_an_export_says_since_when_mails_are_stopped(post: Post) -> None:
    stop = stop_of(await first_mail(post))
    named = AccountSelector(email=ANN)
    before = await post.service.database.read(lambda reader: people.export(reader, named))

    await post.service.http.post(stop)

    after = await post.service.database.read(lambda reader: people.export(reader, named))
    assert before.mails_stopped_at is None
    assert after.mails_stopped_at is not None
