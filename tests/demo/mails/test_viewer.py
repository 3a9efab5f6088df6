"""The viewer of demo mails lists what was written, shows one mail safely, and is for this machine only."""

import re
from html import unescape
from pathlib import Path

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from holdfast_demo.mails.viewer import MAX_MAILS, with_viewer
from tests.demo.mails.writing import write

ADDRESS = "http://127.0.0.1:8002"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "mail"


@pytest.fixture
def browser(directory: Path) -> httpx2.AsyncClient:
    async def service(_: Request) -> PlainTextResponse:
        return PlainTextResponse("the service")

    app = with_viewer(Starlette(routes=[Route("/{path:path}", service)]), directory, ADDRESS)
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url=ADDRESS)


async def test_mails_are_listed_newest_first(browser: httpx2.AsyncClient, directory: Path) -> None:
    empty = await browser.get("/mails")
    write(directory, "old", "An older one", age=60)
    write(directory, "new", "“Müller” <b>")

    listed = await browser.get("/mails")

    assert (empty.status_code, "No e\N{NON-BREAKING HYPHEN}mails yet." in empty.text) == (200, True)
    assert re.findall(r'href="/mails\?mail=(\w+)"', listed.text) == ["new", "old"]
    assert "“Müller” &lt;b&gt;" in listed.text
    assert listed.text.count("ann@example.com") == 2
    assert listed.text.count('<time datetime="2023-11-14T22:') == 2
    assert listed.text.count("holdfast@localhost") == 2
    assert listed.text.count("Hello as text www") == 2


async def test_a_mail_that_is_written_again_is_listed_as_it_is_now(
    browser: httpx2.AsyncClient, directory: Path
) -> None:
    write(directory, "one", "Before", age=60)
    before = await browser.get("/mails")
    write(directory, "one", "After")
    after = await browser.get("/mails")

    assert ("Before" in before.text, "Before" in after.text, "After" in after.text) == (True, False, True)


async def test_a_mail_is_shown_as_people_see_it_and_as_text(browser: httpx2.AsyncClient, directory: Path) -> None:
    write(directory, "one")

    page = await browser.get("/mails?mail=one")

    [(sandbox, document)] = re.findall(r'<iframe height="\d+" sandbox="([^"]*)" srcdoc="([^"]*)"', page.text)
    assert "allow-scripts" not in sandbox
    assert "allow-same-origin" not in sandbox
    assert '<base target="_blank">' in unescape(document)
    assert 'src="data:image/png;base64,iVBORw0KGgo' in unescape(document)
    assert "Hello as text" in page.text
    assert "script-src 'self';" in page.headers["content-security-policy"]
    assert page.headers["cache-control"] == "no-store"


async def test_the_pages_are_in_the_language_of_the_browser(browser: httpx2.AsyncClient, directory: Path) -> None:
    write(directory, "one")
    words_by_path = {"/mails": "Neueste zuerst", "/mails?mail=one": "Alle E", "/mails?mail=two": "gibt es nicht"}

    for path, words in words_by_path.items():
        page = await browser.get(path, headers={"Accept-Language": "de-DE,de;q=0.9"})
        assert words in page.text, path
        assert '<html lang="de">' in page.text


async def test_the_frame_of_a_long_mail_is_higher(browser: httpx2.AsyncClient, directory: Path) -> None:
    heights: list[int] = []
    for id, words in (("short", 1), ("long", 500)):
        write(directory, id, text="Hello " * words)
        page = await browser.get(f"/mails?mail={id}")
        heights += map(int, re.findall(r'<iframe height="(\d+)"', page.text))

    # 3,000 characters are 50 lines more.
    assert heights[1] - heights[0] == 50 * 24


@pytest.mark.parametrize("id", ["none", "../secret", "..%2Fsecret", "", "a/b", "x" * 300, "%00"])
async def test_a_page_of_a_mail_that_does_not_exist_is_answered_with_404(
    browser: httpx2.AsyncClient, directory: Path, id: str
) -> None:
    write(directory, "one")
    (directory.parent / "secret.eml").write_text("Subject: secret\n\nsecret", encoding="utf-8")

    page = await browser.get(f"/mails?mail={id}")

    assert (page.status_code, "secret" in page.text) == (404, False)


async def test_the_list_of_mails_is_bounded(browser: httpx2.AsyncClient, directory: Path) -> None:
    for number in range(MAX_MAILS + 5):
        write(directory, f"m{number}", age=number)

    listed = re.findall(r'href="/mails\?mail=m(\d+)"', (await browser.get("/mails")).text)

    assert listed == [str(number) for number in range(MAX_MAILS)]


async def test_only_addresses_of_this_machine_are_answered(browser: httpx2.AsyncClient) -> None:
    assert (await browser.get("/mails", headers={"Host": "evil.example"})).status_code == 421
    assert (await browser.post("/mails")).status_code == 405


@pytest.mark.parametrize("path", ["/", "/mails/stop", "/mails/", "/mailsx"])
async def test_requests_outside_the_viewer_are_answered_by_the_service(browser: httpx2.AsyncClient, path: str) -> None:
    assert (await browser.get(path, headers={"Host": "events.example"})).text == "the service"
