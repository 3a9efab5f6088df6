"""A browser gets errors as a page, and a program as JSON."""

import re
from html import unescape
from pathlib import Path

import httpx2
import pytest
from limits import RateLimitItemPerMinute
from structlog.testing import capture_logs

from holdfast.kit.contract.caller import Caller, person, stranger
from holdfast.kit.contract.client import address
from holdfast.kit.contract.problems import COMMON_PROBLEMS, FORBIDDEN, RATE_LIMITED, SERVICE_UNAVAILABLE, Problem
from holdfast.kit.http.handler import Access, Handler, Reply, Request
from holdfast.kit.http.index import Route
from holdfast.kit.operations.rate_limits import Limits
from holdfast.kit.pages.forms import ANOTHERS_FORM, FOREIGN_FORM
from holdfast.kit.pages.language import LANGUAGES
from holdfast.kit.pages.site import Site
from tests.helpers.events_service import Service
from tests.helpers.serving import application
from tests.kit.pages.form_requests import request

BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
GERMAN = {**BROWSER, "Accept-Language": "de-DE,de;q=0.9,en;q=0.5"}


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site("Tests", tmp_path)


def heading_of(page: httpx2.Response) -> str:
    match = re.search(r"<h1>\s*(.*?)\s*</h1>", page.text)
    assert match, page.text
    assert match[1] in page.text.partition("<title>")[2].partition("</title>")[0]
    return unescape(match[1])


def text_of(page: str) -> str:
    """The words of a page, without its markup and its style."""
    return re.sub(r"\s+", " ", unescape(re.sub(r"<style>.*?</style>|<[^>]+>", " ", page, flags=re.DOTALL)))


async def test_an_unknown_path_is_a_page_in_the_language_of_the_browser(service: Service) -> None:
    for path in ("/nothing", "/ap", "/apiary", "/%00%E2%80%AE", "/x" * 2_000):
        english = await service.http.get(path, headers=BROWSER)
        german = await service.http.get(path, headers=GERMAN)

        assert (english.status_code, german.status_code) == (404, 404)
        assert heading_of(english) == "There is no such page."
        assert heading_of(german) == "Diese Seite gibt es nicht."
        assert '<html lang="de">' in german.text
        assert german.headers["content-type"] == "text/html; charset=utf-8"
        assert german.headers["content-language"] == "de"
        assert german.headers["cache-control"] == "no-store"
        assert german.headers["x-content-type-options"] == "nosniff"
        assert "frame-ancestors 'none'" in german.headers["content-security-policy"]


async def test_the_address_chooses_the_language_and_the_way_back_keeps_it(service: Service) -> None:
    chosen = await service.http.get("/nothing?lang=de", headers=BROWSER)
    unchosen = await service.http.get("/nothing", headers=GERMAN)

    assert 'href="/?lang=de">Zur Startseite</a>' in chosen.text
    assert 'href="/">Zur Startseite</a>' in unchosen.text


@pytest.mark.parametrize("path", ["/api/nothing", "/oauth", "/mcp/nothing", "/.well-known/nothing", "/oauth/nothing"])
async def test_a_browser_gets_json_errors_at_addresses_of_programs(service: Service, path: str) -> None:
    answer = await service.http.get(path, headers=GERMAN)

    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


@pytest.mark.parametrize("accept", ["*/*", "application/json", "image/*", ""])
async def test_a_program_gets_json_errors_at_every_address(service: Service, accept: str) -> None:
    answer = await service.http.get("/nothing", headers={"Accept": accept})

    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert answer.headers["content-type"] == "application/json"


async def test_a_wrong_method_is_a_page_that_names_the_right_ones(service: Service) -> None:
    page = await service.http.post("/docs", headers=GERMAN)
    answer = await service.http.post("/docs", headers={"Accept": "application/json"})

    assert (page.status_code, heading_of(page)) == (405, "So lässt sich diese Seite nicht benutzen.")
    assert {"GET", "HEAD"} <= set(page.headers["allow"].split(", ")) <= {"GET", "HEAD", "OPTIONS"}
    assert page.headers["allow"] == answer.headers["allow"]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("type", COMMON_PROBLEMS, ids=lambda problem: problem.code)
def test_every_problem_has_a_page_that_tells_none_of_its_details(site: Site, type: object, language: str) -> None:
    assert isinstance(type, COMMON_PROBLEMS[0].__class__)
    problem = type("Row 7 of secrets is <locked>.", hint="Ask the hidden table.")

    page = site.refuse(problem, request(query=f"lang={language}".encode()))

    text = page.content.decode()
    assert page.status == type.status
    assert re.search(r"<h1>\s*\w[^<]{10,}</h1>", text)
    assert not re.search(r"Row 7|locked|hidden table", text)


@pytest.mark.parametrize(
    ("problem", "seconds", "english", "german"),
    [
        (RATE_LIMITED(retry_after=1), "1", "in 1 second.", "in 1 Sekunde noch einmal."),
        (RATE_LIMITED(retry_after=42), "42", "in 42 seconds.", "in 42 Sekunden noch einmal."),
        (SERVICE_UNAVAILABLE(retry_after=5), "5", "in 5 seconds.", "in 5 Sekunden noch einmal."),
    ],
)
def test_an_error_page_says_for_how_many_seconds_to_wait(
    site: Site, problem: Problem, seconds: str, english: str, german: str
) -> None:
    for language, words in (("en", english), ("de", german)):
        page = site.refuse(problem, request((b"accept-language", language.encode())))

        assert dict(page.headers)[b"retry-after"] == seconds.encode()
        assert f"{words} " in text_of(page.content.decode())


async def test_an_error_page_with_a_short_retry_after_refreshes_itself(site: Site) -> None:
    soon, late = SERVICE_UNAVAILABLE(retry_after=5), RATE_LIMITED(retry_after=3600)

    page, sent, later = (
        site.refuse(soon, request()),
        site.refuse(soon, request(method="POST")),
        site.refuse(late, request()),
    )

    assert dict(page.headers)[b"refresh"] == b"5"
    assert "This page tries again in 5 seconds." in text_of(page.content.decode())
    for refusal in (sent, later):
        assert b"refresh" not in dict(refusal.headers)
        assert "Please try again in" in text_of(refusal.content.decode())


@pytest.mark.parametrize(
    ("problem", "english", "german"),
    [
        (FOREIGN_FORM(), "That was not sent from this site.", "Das wurde nicht von dieser Seite aus gesendet."),
        (
            ANOTHERS_FORM(),
            "This form was shown to somebody else.",
            "Dieses Formular wurde jemand anderem gezeigt.",
        ),
        (FORBIDDEN("Event 7 belongs to another organizer."), "You may not do that.", "Das dürfen Sie nicht."),
    ],
)
def test_an_error_page_says_the_cause_of_a_refusal(site: Site, problem: Problem, english: str, german: str) -> None:
    for language, words in (("en", english), ("de", german)):
        page = site.refuse(problem, request((b"accept-language", language.encode())))

        assert page.status == 403
        assert f" {words} " in text_of(page.content.decode())


@pytest.mark.parametrize(
    ("who", "english", "german"),
    [
        (stranger(address({"client": ("192.0.2.1", 1)})).name, "from your network.", "Aus Ihrem Netz"),
        (stranger(address({"client": ("2001:db8::1", 1)})).name, "from your network.", "Aus Ihrem Netz"),
        (stranger(address({})).name, "from your network.", "Aus Ihrem Netz"),
        (person(3, 7).name, "from your account.", "Aus Ihrem Konto"),
        ("account 3", "from your account.", "Aus Ihrem Konto"),
        ("event 7", "come here just now.", "Hier kommen gerade"),
    ],
)
async def test_an_error_page_for_too_many_requests_says_whose_were_counted(
    site: Site, who: str, english: str, german: str
) -> None:
    limits = Limits("memory://", {"pages": RateLimitItemPerMinute(1)})
    await limits.hit("pages", who)
    with pytest.raises(Problem) as refusal:
        await limits.hit("pages", who)

    for language, words in (("en", english), ("de", german)):
        page = site.refuse(refusal.value, request((b"accept-language", language.encode())))
        assert words in text_of(page.content.decode())


def test_an_error_page_without_a_time_to_wait_says_to_try_again(site: Site) -> None:
    page = site.refuse(SERVICE_UNAVAILABLE(), request())

    assert b"retry-after" not in dict(page.headers)
    assert "Please try again." in text_of(page.content.decode())


async def test_a_fault_of_ours_is_a_page_with_the_number_under_which_it_is_logged(site: Site) -> None:
    async def fail(caller: Caller, request: Request) -> Reply:
        raise RuntimeError("the password of the database is 'mellon'")

    page = Handler(Access("page"), Limits("memory://", {}), fail, site.refuse)
    transport = httpx2.ASGITransport(application(Route("/page", page)))
    async with httpx2.AsyncClient(transport=transport, base_url="http://tests.example") as http:
        with capture_logs() as logs:
            answer = await http.get("/page", headers=GERMAN)
        wrong = await http.post("/page", headers=GERMAN)

    [logged] = [log for log in logs if log["log_level"] == "error"]
    assert (answer.status_code, heading_of(answer)) == (500, "Bei uns ist etwas schiefgegangen.")
    assert f"<code>{logged['request_id']}</code>" in answer.text
    assert not re.search(r"mellon|password|RuntimeError|Traceback", answer.text)
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert (wrong.status_code, wrong.headers["allow"]) == (405, "GET, HEAD")
