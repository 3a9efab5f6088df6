"""A person connects an app in Chromium: from the app through sign-in and consent, and back to the app."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from holdfast.accounts.signin import links
from holdfast.events.settings import Settings
from tests.browser.looking import open_context, parametrize_looks, session_cookie, too_wide, violations
from tests.browser.registering import Watch
from tests.events.oauth_server.oauth_server_scene import App, issued_tokens, register_client, sign_in_person
from tests.helpers.agents import Agent
from tests.helpers.certificates import Authority
from tests.helpers.events_service import Service
from tests.helpers.form_browser import session_cookie_name
from tests.helpers.outside_servers import OutsideServer, outside_server, raw_answer, redirecting_script
from tests.helpers.serving import serve_events


@dataclass
class AppScene:
    """The service behind a port, and an app that has a page on the web and a program on this computer.

    program    listens on this computer, and leads on to the page on the web
    """

    service: Service
    base_url: str
    program: OutsideServer
    web: OutsideServer

    async def app(self, address: str, **metadata: Any) -> App:
        """The app, with this redirect address."""
        return await register_client(self.service, redirect_uris=[address], **metadata)

    def page(self, app: App) -> str:
        """The address that the app opens."""
        return f"{self.base_url}/oauth/authorize?{urlencode(app.query())}"


@pytest_asyncio.fixture(loop_scope="session")
async def scene(settings: Settings, tmp_path: Path) -> AsyncIterator[AppScene]:
    done = raw_answer(
        "200 OK\r\nContent-Type: text/html\r\nContent-Length: 44", b"<!doctype html><title>Done</title><h1>Done\n  "
    )
    async with (
        serve_events(settings, oauth_builtin=True) as service,
        outside_server(done, Authority(tmp_path).issue("localhost")) as web,
        outside_server(redirecting_script(f"https://localhost:{web.port}/finished")) as program,
    ):
        yield AppScene(service, service.base_url, program, web)


async def test_a_person_who_is_not_signed_in_comes_through_sign_in_to_the_app(
    chromium: Browser, scene: AppScene
) -> None:
    ada = await scene.service.organizer(is_proved=False, email="ada@example.com")
    app = await scene.app(f"http://localhost:{scene.program.port}/callback")
    context = await chromium.new_context(ignore_https_errors=True)
    page = await context.new_page()

    await page.goto(scene.page(app))
    await page.get_by_label("E-mail address").fill("ada@example.com")
    await page.get_by_label("E-mail address").press("Enter")
    await expect(page).to_have_url(f"{scene.base_url}/sign-in/sent")
    [(id,)] = await scene.service.run_sql("select max(id) from sign_in_links")
    await page.goto(f"{scene.base_url}/sign-in/{links.encode_token(scene.service.database.resources.secret, id)}")
    await page.get_by_role("button").click()
    await page.get_by_role("button", name="It is mine: keep it").click()

    await expect(page.get_by_role("heading", level=1)).to_have_text("Let Example App act for you?")
    assert page.url == scene.page(app)
    await page.get_by_role("button", name="Allow").click()
    await page.wait_for_url(f"https://localhost:{scene.web.port}/finished")

    [request] = scene.program.requests
    answer = dict(parse_qsl(urlsplit(request.split()[1]).query))
    assert (answer["state"], answer["iss"]) == ("xyz", scene.base_url)
    tokens = issued_tokens(await app.redeem(answer["code"]))
    result = await Agent(scene.service.app, tokens["access_token"], "2025-11-25").call("list_organizers")
    assert [organizer["slug"] for organizer in result["structuredContent"]["data"]] == [ada.slug]


@pytest.mark.parametrize("button", ["Allow", "Refuse"])
async def test_an_app_on_the_web_gets_the_decision_of_the_person(
    chromium: Browser, scene: AppScene, button: str
) -> None:
    app = await scene.app(f"https://localhost:{scene.web.port}/callback")
    context = await chromium.new_context(ignore_https_errors=True)
    await context.add_cookies([await _signed_in(scene)])
    watch = Watch(context)
    page = await context.new_page()

    await page.goto(scene.page(app))
    await page.get_by_role("button", name=button).click()
    await page.wait_for_url(f"https://localhost:{scene.web.port}/callback?**")

    answer = dict(parse_qsl(urlsplit(page.url).query))
    assert ("code" in answer) == (button == "Allow")
    assert answer.get("error") == (None if button == "Allow" else "access_denied")
    assert [failure for failure in watch.failures if "favicon" not in failure] == []


@parametrize_looks
async def test_the_pages_that_connect_an_app_are_accessible_and_fit_small_screens(
    chromium: Browser, scene: AppScene, scheme: Any, width: int, language: str
) -> None:
    name = "W" * 60 + " \u0627\u0644\u062a\u0637\u0628\u064a\u0642"
    app = await scene.app(f"https://{'w' * 60}.example/done", client_name=name)
    context = await open_context(chromium, scheme, width, language)
    await context.add_cookies([await _signed_in(scene)])
    watch = Watch(context)
    page = await context.new_page()

    for address in (scene.page(app), scene.page(app).replace(app.id, "client_unknown")):
        await page.goto(address)
        assert await violations(page) == []
        assert await too_wide(page) == []
    assert watch.hosts == {urlsplit(scene.base_url).netloc}
    assert [failure for failure in watch.failures if "400" not in failure] == []


async def _signed_in(scene: AppScene) -> Any:
    """The cookie of an organizer who is signed in."""
    person = await sign_in_person(scene.service, (await scene.service.organizer()).id)
    return session_cookie(scene.base_url, person.http.cookies[session_cookie_name(scene.base_url)])
