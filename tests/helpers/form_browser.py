"""A person at a browser who signs in with forms, cookies and the link in the mail."""

import re
from html import unescape
from typing import Any
from urllib.parse import urlsplit

import httpx2

from holdfast.accounts.signin import links
from holdfast.kit.postgres.database import Database
from tests.helpers.events_service import Service


def session_cookie_name(address: str) -> str:
    """The name of the cookie of a session of the service at an address without TLS."""
    port = urlsplit(address).port
    return f"session-{port}" if port else "session"


class FormBrowser:
    """A browser with cookies, which follows no redirects by itself."""

    def __init__(self, http: httpx2.AsyncClient, database: Database[Any]) -> None:
        self.http = http
        self._database = database

    async def get(self, path: str) -> httpx2.Response:
        return await self.http.get(path)

    async def send(self, page: str, action: str = "", **fields: str) -> httpx2.Response:
        """Open a page, and send its form with these fields."""
        form_page = await self.get(page)
        return await self.http.post(action or page, data={"token": token(form_page), **fields})

    async def ask(self, email: str, return_to: str = "") -> str:
        """Ask for a link to sign in. Returns its path, which only the mail has."""
        page = f"/sign-in?return_to={return_to}" if return_to else "/sign-in"
        sent = await self.send(page, "/sign-in", email=email, return_to=return_to)
        assert (sent.status_code, sent.headers["location"]) == (303, "/sign-in/sent"), sent.text
        async with self._database.pool.connection() as connection:
            [(id,)] = await (await connection.execute("select max(id) from sign_in_links")).fetchall()
        return self.path(id)

    def path(self, id: int) -> str:
        """The path of a link to sign in."""
        return f"/sign-in/{links.encode_token(self._database.resources.secret, id)}"


class Browser(FormBrowser):
    """A browser at the events service."""

    def __init__(self, service: Service, *, address: str = "127.0.0.1", language: str = "en") -> None:
        http = service.client_at(address, Accept="text/html", Accept_Language=language, User_Agent="Firefox of a test")
        super().__init__(http, service.database)
        self.service = service

    async def sign_in(self, email: str, return_to: str = "") -> httpx2.Response:
        """Sign in by a link. Returns the last answer, which leads to where the person wanted to go."""
        done = await self.send(await self.ask(email, return_to))
        assert done.status_code == 303, done.text
        return done

    async def is_signed_in(self) -> bool:
        return (await self.get("/account")).status_code == 200


def token(page: httpx2.Response) -> str:
    """The token of the first form in a page."""
    match = re.search(r'name="token" value="([^"]*)"', page.text)
    assert match, page.text
    return unescape(match[1])


def main_text(page: httpx2.Response) -> str:
    """The text of a page's main part, with plain hyphens, without tags and needless spaces."""
    main = page.text.replace("\N{NON-BREAKING HYPHEN}", "-").partition("<main")[2].partition("</main>")[0]
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", f"<main{main}")).split())
