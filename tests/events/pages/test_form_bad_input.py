"""Invalid input to the registration form: every refusal is a page that says what to do."""

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
import pytest_asyncio

from tests.events.refusal_scene import LEAKS, STYLE
from tests.helpers.databases import scratch_database
from tests.helpers.event_visitor import Visitor, field_value, page_state, page_text
from tests.helpers.events_service import Service, running_events, unlimited

SCRIPT = "<script>alert(1)</script>"
BIDI = "\u202eevil\u2066\u200f"
WORD = "W" * 10_240

pytestmark = pytest.mark.asyncio(loop_scope="module")


class Form:
    """The form of an event, for tests that share it: what is refused changes nothing."""

    def __init__(self, service: Service, event_id: int) -> None:
        self.service = service
        self.event_id = event_id
        self.visitor = Visitor(service)

    async def token(self) -> str:
        return field_value(await self.visitor.open(self.event_id), "token")

    async def refusal_text(self, answer: httpx2.Response, status: int) -> str:
        """The text of a refusal, which is a page and has stored nothing."""
        assert answer.status_code == status, answer.text
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        assert "<script>alert" not in answer.text
        assert not LEAKS.search(STYLE.sub("", answer.text))
        assert await self.service.run_sql("select count(*) from registrations") == [(0,)]
        return page_text(answer)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def form(template_url: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Form]:
    with scratch_database(template_url, "form") as url:
        async with running_events(unlimited(url, tmp_path_factory.mktemp("data"))) as service:
            event = await (await service.organizer()).create_event(title=SCRIPT + BIDI)
            yield Form(service, event["id"])


@pytest.mark.parametrize(
    "email",
    [
        SCRIPT,
        f"{SCRIPT}@example.com\x00",
        "ann",
        "ann@example",
        "ann@exa mple.com",
        "ann@@example.com",
        "ann\r\nBcc: ben@example.com",
        "ann@example.com\x07",
        f"{WORD}@example.com",
        f"{'a' * 250}@example.com",
        "\U0001f600",
        "ann@-example.com",
        "anné@example.com",
    ],
    ids=ascii,
)
async def test_an_invalid_address_shows_the_form_again_with_an_error(form: Form, email: str) -> None:
    answer = await form.visitor.post(form.event_id, token=await form.token(), email=email, name="Ann")

    assert "This is not an e-mail address." in await form.refusal_text(answer, 422)
    assert 'aria-invalid="true" aria-describedby="email-error" autofocus' in answer.text
    assert field_value(answer, "name") == "Ann"
    assert len(answer.text) < 40_000


async def test_a_form_without_an_address_asks_for_it(form: Form) -> None:
    for email in ({}, {"email": ""}, {"email": "   "}):
        answer = await form.visitor.post(form.event_id, token=await form.token(), name="Ann", **email)
        assert "Please enter your e-mail address." in await form.refusal_text(answer, 422)


async def test_a_name_that_is_too_long_is_shown_again_with_an_error(form: Form) -> None:
    for name in (WORD, "x" * 101, SCRIPT * 10):
        answer = await form.visitor.post(form.event_id, token=await form.token(), email="ann@example.com", name=name)
        assert "at most 100 characters" in await form.refusal_text(answer, 422)
        assert 'aria-describedby="name-error" autofocus' in answer.text
        assert field_value(answer, "email") == "ann@example.com"


@pytest.mark.parametrize("name", ["Win at https://evil.example", "www.evil.com", "evil.com/x", "ben@example.com"])
async def test_a_name_that_mail_programs_would_make_a_link_of_is_refused(form: Form, name: str) -> None:
    answer = await form.visitor.post(form.event_id, token=await form.token(), email="ann@example.com", name=name)

    assert "without a web or e-mail address" in await form.refusal_text(answer, 422)


async def test_every_invalid_field_of_the_form_is_marked_at_once(form: Form) -> None:
    answer = await form.visitor.post(form.event_id, token=await form.token(), email="x", name=WORD)

    text = await form.refusal_text(answer, 422)
    assert "This is not an e-mail address." in text
    assert "at most 100 characters" in text
    assert answer.text.count("autofocus") == 1


async def test_a_forged_token_and_that_of_another_event_show_the_form_again(form: Form) -> None:
    token = await form.token()
    minute, signature = token.split("-")
    for forged in ("", "x", WORD, f"{int(minute) + 1}-{signature}", f"{minute}-{'0' * 32}", "-", "\u0663-" + signature):
        answer = await form.visitor.post(form.event_id, token=forged, email="ann@example.com", name="Ann")
        assert "Please send it again." in await form.refusal_text(answer, 403)
        assert field_value(answer, "email") == "ann@example.com"
    missing = await form.visitor.post(form.event_id, email="ann@example.com")
    await form.refusal_text(missing, 403)


async def test_a_form_with_a_filled_hidden_field_is_refused(form: Form) -> None:
    token = await form.token()

    answer = await form.visitor.post(
        form.event_id, token=token, email="ann@example.com", website="https://evil.example"
    )

    assert "A field that people do not see was filled in." in await form.refusal_text(answer, 422)
    assert "evil.example" not in answer.text


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://events.test.evil.example"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "http://events.test", "Sec-Fetch-Site": "cross-site"},
    ],
    ids=str,
)
async def test_a_form_of_another_site_is_refused(form: Form, headers: dict[str, str]) -> None:
    path = f"/events/{form.event_id}/embed"
    fields = {"token": await form.token(), "email": "ann@example.com"}

    answer = await form.visitor.http.post(path, data=fields, headers=headers)

    assert "That was not sent from this site." in await form.refusal_text(answer, 403)


@pytest.mark.parametrize(
    ("content", "kind", "status"),
    [
        (b'{"email": "ann@example.com"}', "application/json", 415),
        (b"--x\r\n\r\n--x--", "multipart/form-data; boundary=x", 415),
        (b"email=ann@example.com", None, 415),
        (b"email=a@b.cc&email=b@b.cc", "application/x-www-form-urlencoded", 400),
        (b"token=1&token=2", "application/x-www-form-urlencoded", 400),
        (b"email=%ff%fe", "application/x-www-form-urlencoded", 400),
        ("email=ü".encode(), "application/x-www-form-urlencoded", 400),
        (b"&".join(b"a%d=1" % number for number in range(60)), "application/x-www-form-urlencoded", 400),
        (b"email=" + b"x" * 1_100_000, "application/x-www-form-urlencoded", 413),
        (b"", "application/x-www-form-urlencoded", 403),
        (b"%" * 100, "application/x-www-form-urlencoded", 403),
    ],
)
async def test_a_body_that_is_no_form_is_refused_with_a_page(
    form: Form, content: bytes, kind: str | None, status: int
) -> None:
    headers = {"Content-Type": kind} if kind else {}
    request = form.visitor.http.build_request(
        "POST", f"/events/{form.event_id}/embed", content=content, headers=headers
    )

    await form.refusal_text(await form.visitor.http.send(request), status)


@pytest.mark.parametrize("id", ["0", "-1", "x", "1e3", "\u0667", "9" * 19, "9" * 400, "7.0", "4711", "%00", "%ff"])
async def test_an_event_that_does_not_exist_has_no_form(form: Form, id: str) -> None:
    for path in (f"/events/{id}/embed", f"/events/{id}/registrations"):
        for method in ("GET", "POST"):
            await form.refusal_text(await form.visitor.http.request(method, path), 404)


async def test_a_method_that_forms_do_not_have_is_refused_with_a_page(form: Form) -> None:
    for method in ("PUT", "DELETE", "PATCH"):
        answer = await form.visitor.http.request(method, f"/events/{form.event_id}/embed")
        await form.refusal_text(answer, 405)
        assert {*answer.headers["allow"].split(", ")} == {"GET", "HEAD", "POST"}


async def test_a_title_with_script_and_bidi_marks_is_escaped_and_isolated(form: Form) -> None:
    page = await form.visitor.open(form.event_id)

    assert "<bdi>&lt;script&gt;" in page.text
    assert page_state(page) == "open"


@pytest.mark.parametrize("lang", ["xx", "de&lang=en", "<script>", "%00", WORD[:2000]])
async def test_an_unknown_language_is_english(form: Form, lang: str) -> None:
    page = await form.visitor.http.get(f"/events/{form.event_id}/embed?lang={lang}")

    assert '<html lang="en">' in page.text


NAMES: list[tuple[str, Any]] = [
    ("  Ann   Lee ", "Ann Lee"),
    (f"Ann{BIDI}", "Annevil"),
    ("Ann\x00\x07\r\nBcc: x", "Ann Bcc: x"),
    ("\u200b\u202e", None),
    (SCRIPT, SCRIPT),
    ("م\u200cی", "م\u200cی"),
    ("Jose\u0301", "José"),
    ("\U000e0041Ann\ufeff", "Ann"),
    ("Ann\u2028Lee", "Ann Lee"),
    ("x" * 100, "x" * 100),
]


@pytest.mark.parametrize(("typed", "stored"), NAMES, ids=ascii)
async def test_a_name_is_stored_without_invisible_characters(form: Form, typed: str, stored: str | None) -> None:
    sent = await form.visitor.post(form.event_id, token=await form.token(), email="ann@example.com", name=typed)

    assert sent.status_code == 303
    assert await form.service.run_sql("delete from registrations returning name") == [(stored,)]
