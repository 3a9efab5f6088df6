"""The page of mail paragraphs: organizers add one to each kind of mail, and preview the mail."""

import html
import re
from typing import Any

import httpx2
import pytest

from holdfast.events.mails.paragraphs import PARAGRAPH_KINDS
from holdfast.events.settings import Settings
from tests.events.console.event_scene import event_form, foreign_event, stored_events
from tests.events.console.organizer_scene import FOREIGN, hidden_field
from tests.events.console.organizing import sign_in_organizer
from tests.helpers.events_service import Service, running_events
from tests.helpers.form_browser import Browser, main_text, token

EMPTY = dict.fromkeys(PARAGRAPH_KINDS, "")
OF_FREE = {kind: "" for kind in PARAGRAPH_KINDS if kind not in {"payment_due", "refund"}}
PAID: Any = {"pricing_mode": "fixed", "price": 2500}


async def stored_paragraphs(service: Service) -> list[tuple[Any, ...]]:
    return await service.run_sql("select event_id, kind, text from mail_paragraphs order by event_id, kind")


def texts_in_form(page: httpx2.Response) -> dict[str, str]:
    """What stands in the fields of the form."""
    fields = re.findall(r'<textarea [^>]*name="(\w+)"[^>]*>\n([^<]*)</textarea>', page.text)
    return {name: html.unescape(text) for name, text in fields}


async def open_form(browser: Browser, event: dict[str, Any]) -> tuple[str, dict[str, str]]:
    """The path of the form, and what it would send as it is."""
    path = f"/console/events/{event['id']}/mails"
    page = await browser.get(path)
    assert page.status_code == 200, page.text
    return path, {**texts_in_form(page), "version": hidden_field(page, "version"), "token": token(page)}


async def test_mail_paragraphs_are_stored_shown_changed_and_removed(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event()
    path, fields = await open_form(browser, event)
    assert {name: fields[name] for name in EMPTY if name in fields} == OF_FREE

    done = await browser.http.post(
        path, data={**fields, "seat": "  Bring a pencil.\r\n\r\nAnd paper. ", "removed": "Bye"}
    )

    assert (done.status_code, done.headers["location"]) == (303, f"{path}?done=saved")
    assert "Your paragraphs are saved." in (await browser.get(done.headers["location"])).text
    assert await stored_paragraphs(service) == [
        (event["id"], "removed", "Bye"),
        (event["id"], "seat", "Bring a pencil.\n\nAnd paper."),
    ]
    _, fields = await open_form(browser, event)
    assert {name: fields[name] for name in EMPTY if name in fields} == {
        **OF_FREE,
        "seat": "Bring a pencil.\n\nAnd paper.",
        "removed": "Bye",
    }
    await browser.http.post(path, data={**fields, "seat": "Bring clay.", "removed": " \r\n "})
    assert await stored_paragraphs(service) == [(event["id"], "seat", "Bring clay.")]
    assert f'href="{path}"' in (await browser.get(f"/console/events/{event['id']}")).text


async def test_the_form_of_paragraphs_shows_above_each_field_what_the_mail_says_itself(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event(title="<b>Life</b> %s drawing", **PAID)

    page = await browser.get(f"/console/events/{event['id']}/mails")
    german = await browser.get(f"/console/events/{event['id']}/mails?lang=de")

    assert "You have a seat at “&lt;b&gt;Life&lt;/b&gt; %s drawing”." in page.text
    assert "<b>Life" not in page.text
    assert page.text.count("<textarea") == page.text.count('<details class="editing"') == 9
    assert "Ihr Text in der E-Mail „Platz bestätigt“" in main_text(german)
    assert "Sie haben einen Platz bei „&lt;b&gt;Life&lt;/b&gt; %s drawing“." in german.text


async def test_previews_of_payments_say_what_is_to_be_paid_and_what_goes_back(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    path, fields = await open_form(browser, await ada.create_event(**PAID))

    due = await browser.http.post(path, data={**fields, "preview": "payment_due"})
    back = await browser.http.post(path, data={**fields, "preview": "refund"})

    before_details = due.text.partition("Date: ")[0]
    assert re.search(r"Pay \$25\.00 before \w+ \d+, \d{4}, [^,]+, and the seat is yours\.", before_details)
    assert "Pay $25.00:\n" in before_details
    assert "Refunds: If you cancel by " in due.text
    assert "You get $25.00 back that you paid for “Life drawing”.\n" in back.text


async def test_a_preview_is_the_mail_in_both_languages_and_stores_nothing(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event(**PAID)
    path, fields = await open_form(browser, event)

    page = await browser.http.post(path, data={**fields, "seat": "Bring <b>clay</b>.\r\nNow.", "preview": "seat"})

    assert page.status_code == 200, page.text
    assert (texts_in_form(page)["seat"], hidden_field(page, "version")) == (
        "Bring <b>clay</b>.\nNow.",
        fields["version"],
    )
    assert await stored_paragraphs(service) == []
    frames = [html.unescape(frame) for frame in re.findall(r'<iframe sandbox srcdoc="([^"]*)"', page.text)]
    assert [re.findall('<html lang="(..)">', frame) for frame in frames] == [["en"], ["de"]]
    for frame in frames:
        assert "<bdi>Bring &lt;b&gt;clay&lt;/b&gt;.</bdi>" in frame
        assert re.findall('src="(.{22})', frame) == ["data:image/png;base64,"]
        assert '<base target="_blank">' in frame
    texts = [html.unescape(text) for text in re.findall(r"<pre>(.*?)</pre>", page.text, re.DOTALL)]
    assert "Hello Kim,\n\nYou have a seat at “Life drawing”.\n\n" in texts[0]
    assert "schreibt:\n> Bring <b>clay</b>.\n> Now.\n\nVerhindert?" in texts[1]
    assert "Paid: $25.00\n" in texts[0]
    assert '<bdi class="below">Sie haben einen Platz: Life drawing</bdi>' in page.text


@pytest.mark.parametrize("kind", PARAGRAPH_KINDS)
async def test_every_kind_of_paragraph_has_a_preview(service: Service, kind: str) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event(cancellation_hours=24, **PAID)
    await ada.delete(f"/api/events/{event['id']}")
    path, fields = await open_form(browser, event)

    page = await browser.http.post(path, data={**fields, kind: "A word of ours.", "preview": kind})

    assert page.text.count("<iframe") == page.text.count("&gt; A word of ours.") == 2
    first = re.findall(r"<pre>Hello Kim,\n\n(.*)", page.text)[0]
    above = page.text.partition(f'<textarea id="{kind}"')[0].rpartition("<summary>")[2]
    assert first in re.sub("</?bdi>", "", above)


async def test_the_policy_allows_the_style_of_the_mail_only_where_a_mail_is_shown(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    path, fields = await open_form(browser, await ada.create_event())

    plain = (await browser.get(path)).headers["content-security-policy"]
    policy = (await browser.http.post(path, data={**fields, "preview": "seat"})).headers["content-security-policy"]

    assert "data:" not in plain
    assert policy.replace(" data:", "") != plain
    assert re.sub(r" 'sha256-[^']*';", ";", policy).replace(" data:", "") == plain


async def test_changes_of_others_to_a_mail_paragraph_are_shown_and_not_overwritten(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event()
    path, fields = await open_form(browser, event)
    await browser.http.post(path, data={**fields, "seat": "Of somebody else", "removed": "Both"})
    before = await stored_paragraphs(service)

    refusal = await browser.http.post(path, data={**fields, "seat": "Mine", "removed": "Both"})

    assert (refusal.status_code, "Somebody else has changed these paragraphs" in refusal.text) == (409, True)
    assert re.findall(r'<dt><a href="#(\w+)">.*?<dd[^>]*>([^<]*)<', refusal.text, re.DOTALL) == [
        ("seat", "Of somebody else")
    ]
    assert await stored_paragraphs(service) == before
    again = {**texts_in_form(refusal), "version": hidden_field(refusal, "version"), "token": token(refusal)}
    assert again["seat"] == "Mine"
    assert (await browser.http.post(path, data=again)).status_code == 303
    assert (await stored_paragraphs(service))[1] == (event["id"], "seat", "Mine")


async def test_a_form_of_paragraphs_sent_twice_is_stored_once(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    path, fields = await open_form(browser, await ada.create_event())

    sent = [await browser.http.post(path, data={**fields, "seat": "Bring a pencil."}) for _ in range(2)]

    assert [response.status_code for response in sent] == [303, 303]
    assert len(await stored_paragraphs(service)) == 1


@pytest.mark.parametrize(
    ("text", "message"), [("x" * 1_001, "1,000|1000"), ("x" * 10_000, "1,000|1000"), ("a\0b", "NUL")]
)
@pytest.mark.parametrize("more", [{}, {"preview": "seat"}], ids=["saved", "previewed"])
async def test_a_text_that_cannot_be_stored_is_refused_beside_its_field(
    service: Service, text: str, message: str, more: dict[str, str]
) -> None:
    ada, browser = await sign_in_organizer(service)
    path, fields = await open_form(browser, await ada.create_event())

    refusal = await browser.http.post(path, data={**fields, "seat": text, "removed": "Kept", **more})

    assert refusal.status_code == 422, refusal.text
    [note] = re.findall(r'class="error" id="seat-note">([^<]*)<', refusal.text)
    assert re.search(message, note)
    assert texts_in_form(refusal)["removed"] == "Kept"
    assert await stored_paragraphs(service) == []


async def test_a_thousand_characters_of_any_kind_are_a_paragraph(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    path, fields = await open_form(browser, await ada.create_event())

    done = await browser.http.post(
        path, data={**fields, **dict.fromkeys(PARAGRAPH_KINDS, "\U0001f44d\r\n" * 499 + "zz")}
    )

    assert done.status_code == 303, done.text
    assert {len(text) for _, _, text in await stored_paragraphs(service)} == {1_000}


@pytest.mark.parametrize("kind", ["seat_again", "", "x", "<script>"])
async def test_a_preview_of_an_unknown_kind_of_mail_is_refused(service: Service, kind: str) -> None:
    ada, browser = await sign_in_organizer(service)
    path, fields = await open_form(browser, await ada.create_event())

    refusal = await browser.http.post(path, data={**fields, "seat": "Mine", "preview": kind})

    assert (refusal.status_code, await stored_paragraphs(service)) == (400, [])


async def test_more_text_than_an_organizer_may_have_is_refused(settings: Settings) -> None:
    async with running_events(settings.model_copy(update={"text_per_organizer": 700})) as service:
        ada, browser = await sign_in_organizer(service)
        event = await ada.create_event()
        path, fields = await open_form(browser, event)
        assert (await browser.http.post(path, data={**fields, "seat": "x" * 700})).status_code == 303
        _, fields = await open_form(browser, event)

        refusal = await browser.http.post(path, data={**fields, "removed": "x"})
        shorter = await browser.http.post(path, data={**fields, "seat": "", "removed": "x"})

        assert (refusal.status_code, "bytes of text" in refusal.text) == (422, True)
        assert (shorter.status_code, await stored_paragraphs(service)) == (303, [(event["id"], "removed", "x")])


async def test_a_copy_of_an_event_has_its_paragraphs(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event()
    path, fields = await open_form(browser, event)
    await browser.http.post(path, data={**fields, "seat": "Bring a pencil."})
    page = await browser.get(f"/console/events/new?copy={event['id']}")
    filled = event_form(copy=str(event["id"]), do="draft", once=hidden_field(page, "once"), token=token(page))

    made = [await browser.http.post("/console/events/new", data=filled) for _ in range(2)]

    [location] = {response.headers["location"] for response in made}
    copy = int(location.rpartition("/")[2])
    assert await stored_paragraphs(service) == [
        (event["id"], "seat", "Bring a pencil."),
        (copy, "seat", "Bring a pencil."),
    ]


async def test_mail_paragraphs_of_another_organizers_event_are_not_copied(service: Service) -> None:
    _, browser = await sign_in_organizer(service)
    other = await foreign_event(service)
    await service.run_sql("insert into mail_paragraphs values (%(id)s, 'seat', 'Secret')", id=other["id"])
    page = await browser.get("/console/events/new")
    filled = event_form(copy=str(other["id"]), once=hidden_field(page, "once"), token=token(page))

    refusal = await browser.http.post("/console/events/new", data=filled)

    assert (refusal.status_code, len(await stored_paragraphs(service)), len(await stored_events(service))) == (
        403,
        1,
        1,
    )


async def test_mail_paragraphs_of_another_organizer_cannot_be_read_or_changed(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    mine, other = await ada.create_event(), await foreign_event(service)
    await service.run_sql("insert into mail_paragraphs values (%(id)s, 'seat', 'Secret')", id=other["id"])
    _, fields = await open_form(browser, mine)
    before = await stored_paragraphs(service)

    paths = [f"/console/events/{id}/mails" for id in (other["id"], 99999, "x", "0", f"0{mine['id']}")]
    read = [await browser.get(path) for path in paths]
    sent = [await browser.http.post(path, data={**fields, "seat": "Taken"}) for path in paths]
    previews = [await browser.http.post(path, data={**fields, "preview": "seat"}) for path in paths]

    for answers in (read, sent, previews):
        assert [answer.status_code for answer in answers] == [403, 404, 404, 404, 404]
        assert "Secret" not in "".join(answer.text for answer in answers)
    assert await stored_paragraphs(service) == before


async def test_a_form_of_another_site_or_session_changes_no_paragraphs(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    path, fields = await open_form(browser, await ada.create_event())
    stranger = Browser(service)
    await stranger.sign_in("stranger@example.com")
    theirs = token(await stranger.get("/console/start"))

    foreign = await browser.http.post(path, data={**fields, "seat": "Taken"}, headers=FOREIGN)
    of_another = await browser.http.post(path, data={**fields, "seat": "Taken", "token": theirs})

    assert [foreign.status_code, of_another.status_code] == [403, 403]
    assert await stored_paragraphs(service) == []
