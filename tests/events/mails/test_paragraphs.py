"""Paragraphs of organizers in mails are marked as theirs and escaped."""

import re
from typing import Any

import pytest

from holdfast.events.mails import paragraphs
from holdfast.events.mails.paragraphs import PARAGRAPH_KINDS, UpdateMailParagraphs
from holdfast.kit.contract.caller import api_key
from tests.events.events.series import continue_series_now, create_past_series
from tests.events.mails.post import ANN, BOB, CY, Post, body
from tests.helpers.event_visitor import Visitor

ALL = {kind: f"Paragraph of {kind}." for kind in PARAGRAPH_KINDS}


async def add(post: Post, event: dict[str, Any], **texts: str) -> None:
    """Let these be the only paragraphs in the mails about an event."""
    caller = api_key(1, post.organizer.id)

    async def added(tx: Any) -> bool:
        of = await paragraphs.get(tx, caller, paragraphs.GetMailParagraphs(event_id=event["id"]))
        command = UpdateMailParagraphs(event_id=event["id"], version=of.version, **texts)
        return await paragraphs.update(tx, caller, command)

    assert await post.service.database.transact(added)


async def paragraphs_sent(post: Post) -> dict[str, str]:
    """The paragraph in each mail that arrives now, by recipient."""
    texts = {received.recipient: body(received.mail) for received in await post.deliver()}
    return {who: " ".join(re.findall(r"Paragraph of (\w+)\.", text)) for who, text in texts.items()}


async def test_kinds_of_mails_have_paragraphs_of_their_own(post: Post) -> None:
    event = await post.organizer.create_event(capacity=1, waitinglist_capacity=1)
    path = f"/api/events/{event['id']}"
    await add(post, event, **ALL)

    await post.register(event["id"], ANN, BOB)
    await post.service.run_sql("update events set waitinglist_capacity = 2")
    await post.organizer.register(event["id"], email=CY)
    await post.service.run_sql("update events set waitinglist_capacity = 1")
    await post.service.settle()
    assert await paragraphs_sent(post) == {ANN: "seat", BOB: "waitlisted", CY: "refused"}

    await post.organizer.delete(await post.path(event["id"], ANN))
    assert await paragraphs_sent(post) == {ANN: "removed", BOB: "promoted"}

    await post.organizer.patch(path, {"event": {"address": "Elsewhere 5"}})
    assert await paragraphs_sent(post) == {BOB: "event_changed"}

    await post.organizer.delete(path)
    assert await paragraphs_sent(post) == {BOB: "event_cancelled"}


async def test_a_mail_that_is_sent_again_has_the_paragraph_that_it_had(post: Post) -> None:
    event = await post.organizer.create_event(capacity=1, waitinglist_capacity=2)
    await add(post, event, **ALL)
    for email in (ANN, BOB):
        await post.sign_up(event["id"], email)
    await post.deliver()
    await post.service.run_sql("update registrations set received_at = received_at - interval '16 minutes'")

    for email in (ANN, BOB):
        await Visitor(post.service).send(event["id"], email=email)

    assert await paragraphs_sent(post) == {ANN: "seat", BOB: "waitlisted"}


async def test_the_paragraph_stands_below_our_sentences_as_the_organizers_words(post: Post) -> None:
    event = await post.organizer.create_event()
    await add(post, event, seat="Bring a pencil.\n\nThe door is on the left.")
    await post.sign_up(event["id"], ANN)
    await post.sign_up(event["id"], BOB, None, "de")

    arrived = {received.recipient: received.mail for received in await post.deliver()}

    quoted = "> Bring a pencil.\n>\n> The door is on the left.\n\n"
    text = body(arrived[ANN])
    name = re.findall(r"for an event of (.*)\.\n", text)[0]
    assert f"\n\n{name} writes:\n{quoted}Can't come?" in text.partition("View your registration:")[2]
    assert f"\n\n{name} schreibt:\n{quoted}Verhindert?" in body(arrived[BOB])
    html = " ".join(body(arrived[ANN], "html").split())
    assert (
        f'<p class="soft"><bdi>{name}</bdi> writes:</p> <blockquote dir="auto"> '
        "<bdi>Bring a pencil.</bdi> <br><bdi></bdi> <br><bdi>The door is on the left.</bdi> </blockquote> <p>"
        in html.partition("</dl>")[2]
    )


async def test_a_waiting_mail_has_the_paragraph_that_was_stored_last(post: Post) -> None:
    event = await post.organizer.create_event()
    await add(post, event, **ALL)
    await post.register(event["id"], ANN)
    await add(post, event, seat="Come early.")

    [arrived] = await post.deliver()

    assert "Come early." in body(arrived.mail)
    assert "Paragraph of" not in body(arrived.mail)


async def test_an_event_without_a_paragraph_has_mails_as_before(post: Post) -> None:
    event, other = await post.organizer.create_event(), await post.organizer.create_event(title="Pottery")
    await add(post, event, **ALL)
    await add(post, event, promoted="Paragraph of promoted.", seat="\u202e\u2066")
    await post.register(event["id"], ANN)
    await post.register(other["id"], BOB)

    for arrived in await post.deliver():
        assert "writes:" not in body(arrived.mail) + body(arrived.mail, "html")
        assert "<blockquote" not in body(arrived.mail, "html")


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        '"><img src=https://evil.example/x.png>',
        "</blockquote></main><h1>You have won</h1>",
        "%(title)s %s {{ 7777 * 7777 }} {% raw %}",
        "=?utf-8?q?=0D=0ABcc:_eve=40example.com?=",
        "Hello\r\nBcc: eve@example.com\r\n\r\n--==boundary\r\nContent-Type: text/html\r\n\r\n<b>",
        "\u202egnp.exe\u2066 \x07\x1b[31m\x85\u2028next\ufeff",
        ".\r\nQUIT\r\n",
        "\U0001f44d" * 1_000,
        "https://evil.example/pay javascript:alert(1)",
    ],
)
async def test_a_paragraph_with_markup_or_headers_is_plain_text_in_the_mail(post: Post, text: str) -> None:
    event = await post.organizer.create_event()
    await post.sign_up(event["id"], ANN, None, "de")
    [(before,)] = await post.service.run_sql("select count(*) from mails")
    await add(post, event, seat=text)

    [arrived] = await post.deliver()

    mail, html = arrived.mail, body(arrived.mail, "html")
    assert not mail.defects
    assert (before, mail["To"], mail["Bcc"], mail["Subject"]) == (1, ANN, None, "Sie haben einen Platz: Life drawing")
    assert [part.get_content_type() for part in mail.walk() if not part.is_multipart()] == [
        *("text/plain", "text/html", "image/png", "text/calendar"),
    ]
    assert not re.search(r"<script|<img(?! class=\"code\")|<h1>You|60481729", html)
    assert (html.count("</blockquote>"), html.count("</main>")) == (1, 1)
    assert not {*"\u202e\u2066\ufeff\x07\x1b\x85\u2028"} & {*html, *body(mail)}
    assert all(url.startswith(("http://events.test/", "cid:")) for url in re.findall(r"(?:href|src)=\"([^\"]*)", html))
    quoted = body(mail).partition("schreibt:\n")[2].partition("\n\n")[0]
    assert all(line.startswith(">") for line in quoted.splitlines())


async def test_the_next_date_of_a_series_says_the_same_in_its_mails(post: Post) -> None:
    event = await create_past_series(post.service, post.organizer)
    once = await create_past_series(post.service, post.organizer, recurrence_frequency="none")
    await add(post, event, seat="Bring a pencil.", event_cancelled="We are sorry.")
    await add(post, once, seat="Bring clay.")

    assert await continue_series_now(post.service) == 1

    [(next_one,)] = await post.service.run_sql("select id from events where follows_id = %(id)s", id=event["id"])
    rows = await post.service.run_sql(
        "select kind, text from mail_paragraphs where event_id = %(id)s order by kind", id=next_one
    )
    assert rows == [("event_cancelled", "We are sorry."), ("seat", "Bring a pencil.")]
    await post.register(next_one, ANN)
    assert "> Bring a pencil.\n" in body((await post.deliver())[0].mail)


@pytest.mark.parametrize(
    "values", ["'seat_again', 'x'", "'seat', ''", "'seat', repeat('x', 1001)", "'seat', null"], ids=str
)
async def test_the_schema_refuses_invalid_paragraphs(post: Post, values: str) -> None:
    event = await post.organizer.create_event()

    with pytest.raises(Exception, match="mail_paragraphs"):
        await post.service.run_sql(
            f"insert into mail_paragraphs (event_id, kind, text) values (%(id)s, {values})", id=event["id"]
        )
