"""The texts of mails: what has happened, when and where, then how to cancel; texts of strangers are escaped."""

import re
from base64 import b64decode
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from holdfast.events.organizers.accent import OUR_ACCENT, dark_accent
from tests.events.mails.post import ANN, BOB, CY, Post, body, entry, links
from tests.events.pages.own_registration import cancel_registration, own_path
from tests.helpers.event_visitor import Visitor
from tests.helpers.photos import accept_photos, key_of

HOSTILE = [
    "<script>alert(1)</script>",
    "\u202egnp.exe\u2066",
    "Hello\r\nBcc: eve@example.com",
    "x" * 300,
    "%(title)s %s {{ 7777 * 7777 }}",
    '"><img src=https://evil.example/x.png>',
]


async def event_of(post: Post, **fields: Any) -> dict[str, Any]:
    day = {"datetime": "2031-05-01T18:00:00Z", "timezone": "Europe/Berlin", "location_name": "The hall"}
    return await post.organizer.create_event(**{"capacity": 1, "waitinglist_capacity": 1, **day, **fields})


async def test_a_mail_about_a_seat_has_the_details_of_the_day(post: Post) -> None:
    event = await event_of(post, price=2500, pricing_mode="fixed", address="Main street 1", cancellation_hours=24)
    await post.sign_up(event["id"], ANN, "Ann")

    [arrived] = await post.deliver()

    text = body(arrived.mail)
    assert arrived.mail["Subject"] == "You have a seat: Life drawing"
    assert text.startswith("Hello Ann,\n\nYou have a seat at “Life drawing”.\n\nYour code")
    assert "Date: Thursday, May 1, 2031, 8:00\u202fPM\u00a0CEST\n" in text
    assert "Place: The hall, Main street 1\n" in text
    assert "Paid: $25.00\n" in text
    cancelling = "Can't come? Please cancel by April 30, 2031, 8:00\u202fPM\u00a0CEST. Cancel your registration:\nhttp://events.test/registrations/"
    assert re.search(rf"{re.escape(cancelling)}\S+/cancel\?lang=en\n", text)
    assert "\nhttp://events.test/registrations/" in text
    assert event["public_url"] in text
    assert [part.get_content_type() for part in arrived.mail.walk() if not part.is_multipart()] == [
        "text/plain",
        "text/html",
        "image/png",
        "text/calendar",
    ]
    assert 'src="cid:code"' in body(arrived.mail, "html")
    stop = str(arrived.mail["List-Unsubscribe"]).strip("<>")
    assert stop.startswith("http://events.test/mails/")
    assert f"Stop all e-mails of Holdfast Events to this address:\n{stop}?lang=en\n" in text
    assert f'href="{stop}?lang=en"' in body(arrived.mail, "html")


async def test_a_mail_has_the_code_for_the_entrance_first_and_the_order_last(post: Post) -> None:
    event = await event_of(post, cancellation_hours=24)
    await post.sign_up(event["id"], ANN, "Ann")

    [arrived] = await post.deliver()

    html = body(arrived.mail, "html")
    parts = [
        "You have a seat at",
        "cid:code",
        "Your code for the entrance",
        "<dl>",
        f"http://events.test/events/{event['id']}/calendar.ics",
        "cancel by",
        "You registered as number 1",
    ]
    assert sorted(parts, key=html.index) == parts
    assert sorted(
        ("You registered as number 1", "View your registration", "cancel by"), key=body(arrived.mail).index
    ) == [
        "View your registration",
        "cancel by",
        "You registered as number 1",
    ]


async def test_a_mail_about_the_waiting_list_leads_to_no_calendar(post: Post) -> None:
    event = await event_of(post)
    await post.sign_up(event["id"], ANN)
    await post.sign_up(event["id"], BOB)

    mails = {received.recipient: body(received.mail, "html") for received in await post.deliver()}

    assert ("calendar.ics" in mails[ANN], "calendar.ics" in mails[BOB]) == (True, False)


async def test_a_mail_about_the_waiting_list_says_the_place(post: Post) -> None:
    event = await event_of(post, waitinglist_capacity=2)
    for email, language in ((ANN, "en"), (BOB, "en"), (CY, "de")):
        await post.sign_up(event["id"], email, language=language)

    mails = {received.recipient: received.mail for received in await post.deliver()}

    for part in ("plain", "html"):
        assert "in line." not in body(mails[ANN], part)
        assert "At the moment you are number 1 in line." in body(mails[BOB], part)
        assert "Im Moment stehen Sie dort an 2. Stelle." in body(mails[CY], part)


async def test_a_mail_about_a_cancelled_registration_says_if_the_organizer_cancelled_it(post: Post) -> None:
    event = await event_of(post, capacity=2)
    await post.sign_up(event["id"], ANN)
    await post.sign_up(event["id"], BOB)
    await post.deliver()

    await post.organizer.delete(await post.path(event["id"], ANN))
    page = await own_path(post.service, event["id"], BOB)
    await cancel_registration(post.service, page)
    texts = {received.recipient: body(received.mail) for received in await post.deliver()}

    assert "The organizer has cancelled your registration for “Life drawing”." in texts[ANN]
    assert "Your registration for “Life drawing” was cancelled." in texts[BOB]
    assert f"To the organizer:\nhttp://events.test/organizers/{post.organizer.slug}" in texts[ANN]
    assert f"About the event:\n{event['public_url']}" in texts[ANN]
    assert f"Register again:\n{event['public_url']}" in texts[BOB]
    assert f"To the organizer:\nhttp://events.test/organizers/{post.organizer.slug}" in texts[BOB]


async def test_a_mail_asks_to_confirm_the_entry_of_a_draw_and_says_until_when(post: Post) -> None:
    event = await event_of(post, opens_at="2031-04-01T10:00:00Z")
    await post.sign_up(event["id"], ANN, "Ann")
    await post.sign_up(event["id"], BOB, language="de")

    mails = {received.recipient: received.mail for received in await post.deliver()}
    english, german = mails[ANN], mails[BOB]

    text = body(english)
    assert english["Subject"] == "Please confirm your entry: Life drawing"
    assert text.startswith("Hello Ann,\n\nPlease confirm your entry in the draw for “Life drawing”.\n")
    assert "Confirm by April 1, 2031, 12:00\u202fPM\u00a0CEST that this address is yours." in text
    assert "Confirm your entry:\nhttp://events.test/registrations/" in text.partition("Date: ")[0]
    assert german["Subject"] == "Bitte bestätigen Sie Ihr Los: Life drawing"


async def test_an_entry_that_is_confirmed_or_too_late_gets_no_mail_to_confirm(post: Post) -> None:
    event = await event_of(post, opens_at="2031-04-01T10:00:00Z")
    await post.sign_up(event["id"], ANN)
    await post.service.run_sql("update users set proved_at = now() where email = %(email)s", email=ANN)
    await post.sign_up(event["id"], BOB)
    assert [received.recipient for received in await post.deliver()] == [BOB]
    await post.sign_up(event["id"], CY)
    await post.service.run_sql("update events set draw_at = now()")
    assert await post.deliver() == []


async def test_a_mail_about_the_outcome_says_the_number_and_the_signed_head_of_the_log(post: Post) -> None:
    event = await event_of(post)
    await post.sign_up(event["id"], ANN)
    await post.sign_up(event["id"], BOB, language="de")
    [seat, before] = await post.deliver()
    assert "prove the order later: 4 entries, " in body(seat.mail)
    assert "bitte aufheben: 4 Einträge, " in body(before.mail)

    await post.organizer.delete(await post.path(event["id"], ANN))
    await post.sign_up(event["id"], CY)
    mails = {received.recipient: received.mail for received in await post.deliver()}

    checkpoint = await post.service.http.get(f"/log/events/{event['id']}/checkpoint")
    size, digits = checkpoint.text.splitlines()[1], b64decode(checkpoint.text.splitlines()[2]).hex()
    root = f"{digits[:4]} {digits[4:8]}"
    assert size == "8"
    assert (
        "You registered as number 3 of 3. The organizer has removed 1 of them. Check it yourself:\n"
        f"http://events.test/verify?lang=en#/log/events/{event['id']}/proofs/3\n"
        f"Keep this line to prove the order later: 8 entries, {root}\n"
    ) in body(mails[CY])
    for part in ("plain", "html"):
        assert "Sie haben sich als Nummer 2 von 3 angemeldet. Der Veranstalter hat 1 davon entfernt." in body(
            mails[BOB], part
        )
        assert f"bitte aufheben: 8 Einträge, {root}" in body(mails[BOB], part)
    assert "/log/" not in body(mails[ANN])


async def test_a_mail_has_the_accent_and_the_logo_of_its_organizer(post: Post) -> None:
    event = await event_of(post)
    logo = key_of(post.organizer.id, "l")
    await accept_photos(post.service, logo)
    look = "update users set accent = '#8a1f6b', logo_key = %(logo)s where id = %(id)s"
    await post.service.run_sql(look, logo=logo, id=post.organizer.id)
    await post.sign_up(event["id"], ANN)

    [arrived] = await post.deliver()

    html = body(arrived.mail, "html")
    assert f'<img class="logo" src="http://events.test/media/{logo}" height="44" alt="">' in html
    assert "background: #8a1f6b; color: #ffffff;" in html
    assert f"background: {dark_accent('#8a1f6b')}; color: #111315;" in html
    assert OUR_ACCENT not in html
    assert logo not in body(arrived.mail)


async def test_a_mail_and_its_calendar_file_say_until_when_the_event_lasts(post: Post) -> None:
    event = await event_of(post, ends_at="2031-05-01T20:30:00Z")
    await post.sign_up(event["id"], ANN)

    [arrived] = await post.deliver()

    expected = "Date: Thursday, May 1, 2031, 8:00\u202fPM \u2013 10:30\u202fPM\u00a0CEST\n"
    assert expected in body(arrived.mail)
    assert entry(arrived.mail)["DTEND"] == datetime(2031, 5, 1, 20, 30, tzinfo=UTC)


async def test_the_link_in_a_mail_opens_the_registration(post: Post) -> None:
    event = await event_of(post)
    await post.sign_up(event["id"], ANN)

    [arrived] = await post.deliver()

    [url] = [link for link in links(body(arrived.mail)) if "/registrations/" in link and "/cancel" not in link]
    page = await post.service.http.get(url)
    assert page.status_code == 200
    # It also says the code that can be read out at the entrance, and so does the mail.
    [typed] = re.findall(r'<strong class="code">([0-9A-Z-]+)</strong>', page.text)
    assert f"Your code for the entrance:\n{typed}\n" in body(arrived.mail)
    assert f"<strong>{typed}</strong>" in body(arrived.mail, "html")
    assert "Life drawing" in page.text


async def test_people_get_mails_in_the_language_in_which_they_registered(post: Post) -> None:
    event = await event_of(post, price=2500, pricing_mode="fixed", currency="EUR")
    await post.sign_up(event["id"], ANN, "Ann", "de")

    [arrived] = await post.deliver()

    text = body(arrived.mail)
    assert arrived.mail["Subject"] == "Sie haben einen Platz: Life drawing"
    assert "Sie haben einen Platz bei „Life drawing“." in text
    assert "Termin: Donnerstag, 1. Mai 2031, 20:00\u00a0MESZ" in text
    assert "Bezahlt: 25,00\u00a0€" in text
    assert "?lang=de" in text
    assert '<html lang="de">' in body(arrived.mail, "html")


async def test_a_calendar_keeps_one_entry_that_changes_and_is_taken_out(post: Post) -> None:
    event = await event_of(post)
    await post.register(event["id"], ANN)
    [seat] = await post.deliver()
    await post.organizer.patch(f"/api/events/{event['id']}", {"event": {"datetime": "2031-06-01T18:00:00Z"}})
    [changed] = await post.deliver()
    await post.organizer.delete(f"/api/events/{event['id']}")
    [cancelled] = await post.deliver()

    first, second, third = entry(seat.mail), entry(changed.mail), entry(cancelled.mail)
    user = (await post.path(event["id"], ANN)).rpartition("/")[2]
    assert first["UID"] == f"registration-{event['id']}-{user}@events.test"
    assert first["UID"] == second["UID"] == third["UID"]
    assert [entry["METHOD"] for entry in (first, second, third)] == ["PUBLISH", "PUBLISH", "CANCEL"]
    assert [entry["SEQUENCE"] for entry in (first, second, third)] == [0, 1, 2]
    assert first["DTSTART"] == datetime(2031, 5, 1, 18, tzinfo=UTC)
    assert second["DTSTART"] == datetime(2031, 6, 1, 18, tzinfo=UTC)
    assert third["STATUS"] == "CANCELLED"
    assert first["DTSTAMP"] <= second["DTSTAMP"] <= third["DTSTAMP"]
    assert first["LOCATION"] == "The hall"


async def test_a_mail_has_a_calendar_file_only_for_a_person_with_a_seat(post: Post) -> None:
    event = await event_of(post)
    await post.register(event["id"], ANN, BOB)
    await post.deliver()

    await post.organizer.patch(f"/api/events/{event['id']}", {"event": {"datetime": "2031-06-01T18:00:00Z"}})

    changed = {received.recipient: received.mail for received in await post.deliver()}
    assert entry(changed[ANN])["DTSTART"] == datetime(2031, 6, 1, 18, tzinfo=UTC)
    assert not [*changed[BOB].iter_attachments()]


async def test_a_moment_in_utc_names_the_zone_once(post: Post) -> None:
    event = await event_of(post, timezone=None)
    await post.register(event["id"], ANN)

    [arrived] = await post.deliver()

    assert "Date: Thursday, May 1, 2031, 6:00\u202fPM\u00a0UTC\n" in body(arrived.mail)


async def test_a_mail_to_a_person_who_moves_up_late_allows_to_cancel_until_the_event_begins(post: Post) -> None:
    soon = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=3)
    event = await event_of(post, datetime=soon.isoformat(), cancellation_hours=24, timezone=None)
    await post.register(event["id"], ANN, BOB)
    await post.organizer.delete(await post.path(event["id"], ANN))

    [promoted] = [received for received in await post.deliver() if received.recipient == BOB]

    assert "Please cancel by " in body(promoted.mail)
    assert "You have moved up from the waiting list." in body(promoted.mail)


async def test_a_mail_after_the_deadline_does_not_say_how_to_cancel(post: Post) -> None:
    soon = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=3)
    event = await event_of(post, datetime=soon.isoformat(), cancellation_hours=24)
    await post.register(event["id"], ANN)

    [arrived] = await post.deliver()

    assert "Please cancel by" not in body(arrived.mail)


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("language", ["en", "de"])
async def test_no_text_of_a_stranger_becomes_a_part_of_a_mail(text: str, language: str, post: Post) -> None:
    organizer = await post.service.organizer(text[:90])
    fields: dict[str, Any] = {"title": text, "address": text, "location_name": text}
    event = await organizer.create_event(datetime="2031-05-01T18:00:00Z", **fields)
    await post.sign_up(event["id"], ANN, text[:200], language)

    [arrived] = await post.deliver()

    html = body(arrived.mail, "html")
    assert "Bcc" not in arrived.mail
    assert arrived.mail["To"] == ANN
    assert not re.search(r"<script|<img(?! class=\"code\")|60481729", html.partition("<main>")[2])
    assert not {*"\u202e\u2066"} & {*html, *body(arrived.mail), *arrived.mail["Subject"]}
    addresses = re.findall(r"(?:href|src)=\"([^\"]*)\"", html)
    assert all(url.startswith(("http://events.test/", "cid:")) for url in addresses)
    assert not arrived.mail.defects
    assert entry(arrived.mail)["STATUS"] == "CONFIRMED"


async def test_addresses_of_the_web_in_texts_of_strangers_are_not_mailed(post: Post) -> None:
    organizer = await post.service.organizer("Bank www.evil.example.com")
    event = await organizer.create_event(
        datetime="2031-05-01T18:00:00Z",
        title="Sign in at https://evil.example/a?b=c now",
        location_name="Hall evil.com",
        address="http://evil.example/map",
    )
    await post.sign_up(event["id"], ANN, "Kim evil.com", "de")

    [arrived] = await post.deliver()

    calendar = entry(arrived.mail)
    texts = [arrived.mail["Subject"], body(arrived.mail), body(arrived.mail, "html"), str(calendar)]
    assert not [text for text in texts if "evil" in text]
    assert "Sign in at (siehe Seite der Veranstaltung) now" in arrived.mail["Subject"]
    assert "Hall (siehe Seite der Veranstaltung), (siehe Seite der Veranstaltung)" in body(arrived.mail)


async def test_a_mail_loads_nothing_from_anywhere(post: Post) -> None:
    event = await event_of(post)
    await post.sign_up(event["id"], ANN, "Ann")

    [arrived] = await post.deliver()

    html = body(arrived.mail, "html")
    assert re.findall(r"(?:src|background|poster|srcset)=\"([^\"]*)\"", html) == ["cid:code"]
    assert "url(" not in html
    assert "@import" not in html
    assert "<link" not in html


async def test_a_mail_to_an_invalid_address_fails_and_delays_no_other(post: Post) -> None:
    event = await post.organizer.create_event()
    await post.register(event["id"], BOB, ANN)
    # As an address may be stored since a time before addresses were checked.
    await post.service.run_sql("update mails set recipient = 'a<b>@example.com' where recipient = %(bob)s", bob=BOB)

    assert [received.recipient for received in await post.deliver()] == [ANN]
    [(error,)] = await post.service.run_sql("select error from mails where outcome = 'failed'")
    assert error.startswith("Mail cannot be sent to this address")


async def test_a_person_who_registers_again_gets_a_mail_with_the_same_details(post: Post) -> None:
    event = await event_of(post)
    await post.organizer.patch(f"/api/events/{event['id']}", {"event": {"waitinglist_capacity": 2}})
    for email in (ANN, BOB):
        await post.sign_up(event["id"], email)
    first = {received.recipient: body(received.mail) for received in await post.deliver()}
    await post.service.run_sql("update registrations set received_at = received_at - interval '16 minutes'")

    for email in (ANN, BOB):
        await Visitor(post.service).send(event["id"], email=email)
    again = {received.recipient: received.mail for received in await post.deliver()}

    assert again.keys() == first.keys() == {ANN, BOB}
    for email in (ANN, BOB):
        text = body(again[email])
        assert "your address was entered in the form again." in text
        assert text.splitlines()[0] == first[email].splitlines()[0]
        assert links(text) == links(first[email])
        assert again[email]["List-Unsubscribe"]
    assert entry(again[ANN])["METHOD"] == "PUBLISH"


BACK = {
    None: "You get $4.50 back that you paid for “Life drawing”.",
    "by_organizer": "The organizer of “Life drawing” gives you $4.50 back.",
    "no_seat": "You get ¥450 back: when your payment for “Life drawing” arrived, all seats were taken.",
    "seat_lost": "You get $4.50 back, because you no longer have a seat at “Life drawing”.",
    "event_cancelled": "“Life drawing” is cancelled, and you get $4.50 back.",
}


async def test_a_mail_about_a_refund_says_why_and_how_much_and_what_the_organizer_adds(post: Post) -> None:
    event = await event_of(post, price=2500, pricing_mode="fixed")
    await post.service.run_sql("insert into mail_paragraphs values (%(id)s, 'refund', 'Come again.')", id=event["id"])
    for reason in BACK:
        await post.service.run_sql(
            """
            insert into mails (kind, thread, recipient, arguments)
            values ('refund', %(thread)s, 'ann@example.com',
                    jsonb_build_object('event_id', %(id)s::bigint, 'user_id', 'gone1234', 'arrival', 1, 'amount', 450,
                                       'language', 'en', 'reason', %(reason)s::text, 'currency', %(currency)s::text))
            """,
            thread=f"refund {reason}",
            id=event["id"],
            reason=reason,
            currency="JPY" if reason == "no_seat" else None,
        )

    mails = [received.mail for received in await post.deliver()]
    texts = [body(mail) for mail in mails]

    assert {text.splitlines()[2] for text in texts} == {*BACK.values()}
    subjects = {f"You get {amount} back: Life drawing" for amount in ("$4.50", "¥450")}
    assert {str(mail["Subject"]) for mail in mails} == subjects
    for text in texts:
        assert "It arrives within a few days, depending on your bank." in text
        assert "> Come again.\n" in text


async def test_a_mail_after_a_draw_says_the_drawn_place(post: Post) -> None:
    event = await event_of(post)
    await post.sign_up(event["id"], ANN)
    await post.service.run_sql(
        "update events set draw_at = '2026-01-01Z', draw_round = 1, draw_round_at = now(), draw_entries = 900,"
        " drawn_at = now()"
    )
    await post.service.run_sql("update registrations set received_at = timestamptz '2026-01-01Z' + interval '17 us'")

    [seat] = await post.deliver()

    assert "Your entry was number 1 of 900. In the draw it came to rank 17." in body(seat.mail)


async def test_mails_have_the_lines_of_an_address_with_commas(post: Post) -> None:
    event = await event_of(post, address="Studio 5\nHauptstr. 1\n10115 Berlin")
    await post.sign_up(event["id"], ANN, "Ann")

    [arrived] = await post.deliver()

    place = "The hall, Studio 5, Hauptstr. 1, 10115 Berlin"
    assert f"Place: {place}\n" in body(arrived.mail)
    assert place in body(arrived.mail, "html")
    assert entry(arrived.mail)["LOCATION"] == place
