"""Limits of mails to other people: none from unproved organizers, and few from new ones."""

import asyncio

from holdfast.events.events import hand_over_filing
from holdfast.events.mails import sending
from holdfast.events.resources import Tx
from holdfast.kit.mail.message import Envelope
from holdfast.kit.mail.outbox import HeldMailResult, Mail
from holdfast.kit.operations.steps import Steps
from tests.events.console.organizing import sign_in_organizer
from tests.events.log.log_scene import seal_logs
from tests.events.mails.post import ANN, BOB, Post, let_time_pass
from tests.helpers.event_visitor import Visitor, page_text
from tests.helpers.events_service import Client
from tests.helpers.form_browser import main_text
from tests.kit.mail.posting import all_due

TAGGED = [f"Ann+{number}@example.com" for number in range(8)]


async def unproved_organizer(post: Post) -> Client:
    post.organizer = await post.service.organizer(is_proved=False)
    return post.organizer


async def newly_proved_organizer(post: Post) -> Client:
    return await post.service.set_proof_age(await unproved_organizer(post), days=1)


async def due_mails(post: Post, *busy: int) -> list[Mail]:
    """The mails that could be sent now, without those that are being sent."""
    return [mail for mail in await all_due(post.service.database) if mail.id not in busy]


async def holds(post: Post) -> list[str | None]:
    return [hold for (hold,) in await post.service.run_sql("select hold from mails order by id")]


async def test_mails_wait_until_the_organizer_has_proved_its_address(post: Post) -> None:
    ada = await unproved_organizer(post)
    event = await ada.create_event()
    await post.register(event["id"], ANN, BOB)

    assert await post.sent_kinds() == []
    assert await holds(post) == ["organizer", "organizer"]

    await post.service.set_proof_age(ada)
    assert await post.sent_kinds() == [(ANN, "seat"), (BOB, "seat")]
    assert await holds(post) == [None, None]


async def test_mails_of_one_registration_stay_in_order_after_they_waited(post: Post) -> None:
    ada = await unproved_organizer(post)
    event = await ada.create_event(capacity=1, waitinglist_capacity=5)
    await post.register(event["id"], BOB, ANN)
    assert await post.sent_kinds() == []
    await ada.patch(f"/api/events/{event['id']}", {"event": {"address": "Somewhere else"}})
    assert await post.sent_kinds() == []
    assert await holds(post) == ["organizer"] * 4

    await post.service.set_proof_age(ada)
    kinds = await post.sent_kinds()

    assert [kind for to, kind in kinds if to == ANN] == ["waitlisted", "event_changed"]
    assert [kind for to, kind in kinds if to == BOB] == ["seat", "event_changed"]


async def test_a_mail_that_waited_and_is_no_longer_true_is_not_sent(post: Post) -> None:
    ada = await unproved_organizer(post)
    event = await ada.create_event()
    await post.register(event["id"], ANN)
    await post.deliver()
    await ada.delete(await post.path(event["id"], ANN))

    await post.service.set_proof_age(ada)

    assert await post.sent_kinds() == [(ANN, "removed")]


async def test_a_mail_does_not_wait_longer_than_seven_days(post: Post) -> None:
    ada = await unproved_organizer(post)
    event = await ada.create_event()
    await post.register(event["id"], ANN)
    await post.deliver()
    await let_time_pass(post, "7 days")

    assert await post.sent_kinds() == []
    assert await post.service.run_sql("select outcome from mails") == [("superseded",)]
    await post.service.set_proof_age(ada)
    assert await post.sent_kinds() == []


async def test_an_event_that_is_handed_to_a_proved_organizer_takes_its_mails_along(post: Post) -> None:
    bob, ada = post.organizer, await unproved_organizer(post)
    event = await ada.create_event()
    await post.register(event["id"], ANN)
    assert await post.sent_kinds() == []

    await post.service.run_sql("update events set organizer_id = %(to)s where id = %(id)s", to=bob.id, id=event["id"])
    await hand_over_filing.file_again(Steps(post.service.database))

    assert await post.sent_kinds() == [(ANN, "seat")]


async def test_a_mailbox_gets_six_mails_an_hour_from_new_organizers(post: Post) -> None:
    event = await (await newly_proved_organizer(post)).create_event()
    await post.register(event["id"], *TAGGED)
    assert len(await post.deliver()) == 6
    assert await holds(post) == [None] * 6 + ["recipient"] * 2

    another = await (await newly_proved_organizer(post)).create_event()
    await post.register(another["id"], ANN, BOB)
    assert await post.sent_kinds() == [(BOB, "seat")]

    await let_time_pass(post, "1 hour")
    assert len(await post.deliver()) == 3


async def test_a_mailbox_gets_twenty_mails_a_day_from_new_organizers(post: Post) -> None:
    event = await (await newly_proved_organizer(post)).create_event(capacity=30)
    await post.register(event["id"], *(f"a.n.n+{number}@gmail.com" for number in range(24)))
    counts: list[int] = []
    for _ in range(5):
        counts.append(len(await post.deliver()))
        await let_time_pass(post, "1 hour")
    assert counts == [6, 6, 6, 2, 0]

    await let_time_pass(post, "20 hours")
    assert len(await post.deliver()) == 4


async def test_mails_of_organizers_with_a_history_count_for_no_limit(post: Post) -> None:
    event = await post.organizer.create_event(capacity=30)
    await post.register(event["id"], *TAGGED)
    assert len(await post.deliver()) == 8

    another = await (await newly_proved_organizer(post)).create_event()
    await post.register(another["id"], *TAGGED)
    assert len(await post.deliver()) == 6


async def test_the_answer_to_a_registration_says_that_mails_wait(post: Post) -> None:
    ada = await unproved_organizer(post)
    event = await ada.create_event()

    async def message(**fields: object) -> str:
        body = {"registration": {"event_id": event["id"], **fields}}
        return (await ada.post("/api/registrations", body)).json()["message"]

    assert "mails about its events wait" in await message(email=ANN)
    assert "mails" not in await message(email=BOB, notify=False)
    await post.service.set_proof_age(ada)
    assert "mails" not in await message(email="cy@example.com")


async def test_a_person_who_registers_with_an_unproved_organizer_reads_that_mails_wait(post: Post) -> None:
    ada = await unproved_organizer(post)
    event = await ada.create_event()
    visitor = Visitor(post.service)
    outcome = await visitor.register(event["id"], ANN)
    await post.service.settle()

    waits = "The organizer has not confirmed their e-mail address yet."
    assert waits in page_text(await visitor.http.get(outcome))
    again = page_text(await Visitor(post.service).send(event["id"], email=ANN))
    assert waits in again
    assert "You get its e-mail again" not in again
    await post.service.set_proof_age(ada)
    assert waits not in page_text(await visitor.http.get(outcome))


async def test_the_console_says_which_mails_wait_and_why(post: Post) -> None:
    ada, browser = await sign_in_organizer(post.service)
    await post.service.set_proof_age(ada, days=None)
    event = await ada.create_event()
    await ada.register(event["id"], email=ANN)
    await post.service.settle()
    await post.deliver()

    page = main_text(await browser.get("/console/mails"))
    assert "Waits until you have confirmed your address." in page
    assert "E-mails about your events wait until you confirm your address" in page
    assert "E-mails about your events wait" in main_text(await browser.get("/console"))

    await post.service.set_proof_age(ada, days=1)
    post.organizer = ada
    await post.register(event["id"], *TAGGED)
    await post.deliver()
    page = main_text(await browser.get("/console/mails"))
    assert "this recipient has received many e-mails from new organizers" in page
    assert "E-mails about your events wait" not in page


async def test_mails_that_are_sent_while_the_organizer_proves_its_address_do_not_stay_behind(post: Post) -> None:
    ada = await unproved_organizer(post)
    event = await ada.create_event()
    await post.register(event["id"], ANN)

    async def prove(tx: Tx) -> None:
        await tx.tuples(
            "update users set proved_at = now() - interval '60 days' where id = %(id)s returning id", {"id": ada.id}
        )
        # The sender does not see yet what this transaction does, and does not wait for it.
        async with asyncio.timeout(4):
            held = await sending.render(post.writer, post.service.database, await due_mails(post))
        assert [*map(type, held)] == [HeldMailResult]

    await post.service.database.transact(prove)
    assert await holds(post) == [None]
    assert await post.sent_kinds() == [(ANN, "seat")]


async def test_mails_that_another_process_is_sending_count_towards_the_limit(post: Post) -> None:
    event = await (await newly_proved_organizer(post)).create_event()
    await post.register(event["id"], *TAGGED[:4])
    await seal_logs(post.service)
    first = await due_mails(post)
    rendered = await sending.render(post.writer, post.service.database, first)
    assert [*map(type, rendered)] == [Envelope] * 4

    another = await (await newly_proved_organizer(post)).create_event()
    await post.register(another["id"], *TAGGED)
    await seal_logs(post.service)
    later = await due_mails(post, *(mail.id for mail in first))
    rendered = await sending.render(post.writer, post.service.database, later)

    assert [*map(type, rendered)] == [Envelope] * 2 + [HeldMailResult] * 6
