"""A mail waits until the log covers the place of its recipient, and then names the signed head."""

import json
import re
from typing import Any

from holdfast.events.mails import sending
from holdfast.kit.mail.message import Envelope
from holdfast.kit.mail.outbox import HeldMailResult
from holdfast_verify.formats.tree import parse_bundle
from tests.events.log.log_scene import seal_logs
from tests.events.mails.post import ANN, BOB, CY, Post, body, let_time_pass
from tests.kit.mail.posting import all_due

LINE = re.compile(r"Keep this line to prove the order later: ([\d,]+) (?:entry|entries), [0-9a-f]{4} [0-9a-f]{4}")


async def rendered_mails(post: Post) -> dict[str, Any]:
    """What becomes of each due mail, by its recipient."""
    mails = await all_due(post.service.database)
    results = await sending.render(post.writer, post.service.database, mails)
    return dict(zip([mail.recipient for mail in mails], results, strict=True))


async def covered_entries(post: Post, event: dict[str, Any], mail: Any) -> list[dict[str, Any]]:
    """The entries of the log that the line of a mail covers."""
    match = LINE.search(body(mail))
    assert match, body(mail)
    [(content,)] = await post.service.run_sql(
        "select entries from log_entries join logs on logs.id = log_id where event_id = %(id)s", id=event["id"]
    )
    return [json.loads(entry) for entry in parse_bundle(content)][: int(match[1].replace(",", ""))]


async def test_a_mail_names_a_head_of_the_log_that_covers_the_arrival_of_its_recipient(post: Post) -> None:
    event = await post.organizer.create_event(capacity=5)
    await seal_logs(post.service)
    for number, person in enumerate((ANN, BOB, CY), start=1):
        await post.sign_up(event["id"], person)
        assert [type(result) for result in (await rendered_mails(post)).values()] == [HeldMailResult]
        await seal_logs(post.service)
        [arrived] = await post.deliver()
        numbers = [entry.get("number") for entry in await covered_entries(post, event, arrived.mail)]
        assert number in numbers


async def test_a_mail_about_a_promotion_names_a_head_of_the_log_that_covers_it(post: Post) -> None:
    event = await post.organizer.create_event(capacity=1, waitinglist_capacity=1)
    await post.sign_up(event["id"], ANN)
    await post.sign_up(event["id"], BOB)
    await seal_logs(post.service)
    await post.deliver()
    await post.organizer.delete(await post.path(event["id"], ANN))
    assert isinstance((await rendered_mails(post))[BOB], HeldMailResult)
    await seal_logs(post.service)
    mails = {received.recipient: received.mail for received in await post.deliver()}
    covered = await covered_entries(post, event, mails[BOB])
    assert [entry["to"] for entry in covered if entry["kind"] == "change" and entry["number"] == 2] == ["registered"]


async def test_a_mail_waits_ten_seconds_for_a_log_that_cannot_be_sealed_and_then_names_no_head(post: Post) -> None:
    event = await post.organizer.create_event(capacity=5)
    await seal_logs(post.service)
    await post.sign_up(event["id"], ANN)
    assert isinstance((await rendered_mails(post))[ANN], HeldMailResult)
    assert await rendered_mails(post) == {}, "it is not looked at again at once"
    await let_time_pass(post, "5 seconds")
    assert isinstance((await rendered_mails(post))[ANN], HeldMailResult)
    await let_time_pass(post, "5 seconds")
    result = (await rendered_mails(post))[ANN]
    assert isinstance(result, Envelope)
    assert b"You registered as number 1 of 1." in result.content
    assert b"Keep this line" not in result.content


async def test_a_mail_without_a_number_does_not_wait_for_the_log(post: Post) -> None:
    event = await post.organizer.create_event(capacity=5, public_log=False)
    logged = await post.organizer.create_event(capacity=5)
    await post.sign_up(event["id"], ANN)
    await post.sign_up(logged["id"], BOB)
    await seal_logs(post.service)
    await post.deliver()
    await post.sign_up(event["id"], CY)
    await post.organizer.delete(await post.path(logged["id"], BOB))
    assert {person: type(result) for person, result in (await rendered_mails(post)).items()} == {
        CY: Envelope,
        BOB: Envelope,
    }


async def test_a_mail_of_an_unproved_organizer_does_not_wait_for_the_log_before_it_is_held(post: Post) -> None:
    post.organizer = await post.service.organizer(is_proved=False)
    event = await post.organizer.create_event()
    await post.sign_up(event["id"], ANN)
    assert isinstance((await rendered_mails(post))[ANN], HeldMailResult)
    assert await post.service.run_sql("select hold from mails") == [("organizer",)]
