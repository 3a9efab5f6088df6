"""An organizer of what `holdfast up` starts, and people who register with forms and read their mails."""

import re
from base64 import b64encode
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import httpx2

from tests.browser.demonstration import SentMails, text_of

LANGUAGES = ("en", "de")

REGISTRATION_LINK = re.compile(r"http://\S+/registrations/[^\s?]+")
"""The address of a registration in a mail."""

CODE = re.compile(r"\b[0-9A-Z]{2}-[0-9A-Z]{6}\b")
"""The code for the entrance in a mail."""


class SheetOrganizer:
    """An organizer whose key the tests have."""

    def __init__(self, http: httpx2.AsyncClient, mails: SentMails) -> None:
        self._http = http
        self.mails = mails

    async def register(self, name: str, email: str, slug: str) -> None:
        """Make the organizer."""
        body = {"organizer": {"name": name, "email": email, "slug": slug}}
        data = (await self._http.post("/api/organizers/register", json=body)).json()["data"]
        self._http.headers["X-API-Key"] = data["api_key"]["key"]

    async def ask(self, method: str, path: str, body: Any = None) -> Any:
        """What the API answers."""
        answer = await self._http.request(method, path, json=body)
        assert answer.is_success or answer.status_code == 409, answer.text
        return answer.json().get("data") if answer.content else None

    async def request_by(self, key: str, title: str) -> int:
        """Have an agent that must ask first publish an event. Returns the id of its request."""
        event = {"title": title, "body": "With a band.", "datetime": in_days(60), "price": 0, "capacity": 80}
        answer = await self._http.post(
            "/api/events", json={"event": {**event, "pricing_mode": "free"}}, headers={"X-API-Key": key}
        )
        return answer.json()["request_id"]

    async def register_app(self, name: str, callback: str) -> str:
        """Register an app that people can let act for them. Returns its id."""
        body = {"client_name": name, "redirect_uris": [callback]}
        return (await self._http.post("/oauth/register", json=body)).json()["client_id"]

    async def event(self, title: str, days: float, **fields: Any) -> dict[str, Any]:
        """Publish an event that begins this many days from now."""
        begins = datetime.now(UTC) + timedelta(days=days)
        if days >= 1:
            begins = begins.replace(hour=18, minute=0, second=0, microsecond=0)
        event = {
            "title": title,
            "body": "Bring a friend. **Doors open an hour before.**",
            "datetime": begins.isoformat(),
            "timezone": "Europe/Berlin",
            "capacity": 30,
            "price": 0,
            "currency": "EUR",
            "pricing_mode": "free",
            "location_name": "Harbour hall",
            "address": "Am Kai 12\n20457 Hamburg",
            **fields,
        }
        return await self.ask("POST", "/api/events", {"event": event})

    async def remove(self, event: dict[str, Any], email: str) -> None:
        """Remove a person from an event."""
        listed = await self.ask("GET", f"/api/registrations?event_id={event['id']}")
        [user_id] = [row["user_id"] for row in listed if row["email"] == email]
        await self.ask("DELETE", f"/api/registrations/{event['id']}/{user_id}")

    async def send_form(self, event: dict[str, Any], email: str, name: str = "", language: str = "en") -> str:
        """Fill in the form of an event. Returns the address of the page after it."""
        headers = {"Accept-Language": language}
        page = await self._http.get(f"/events/{event['id']}/embed", headers=headers)
        [token] = re.findall(r'name="token" value="([^"]*)"', page.text)
        fields = {"token": unescape(token), "email": email, "name": name}
        answer = await self._http.post(f"/events/{event['id']}/registrations", data=fields, headers=headers)
        assert answer.status_code == 303, answer.text.partition("<main")[2]
        return urljoin(str(answer.url), answer.headers["location"])

    async def own_page(self, email: str) -> str:
        """The address of the page of a registration, which its mails have."""
        mail = await self.mails.find(email, lambda mail: bool(REGISTRATION_LINK.search(text_of(mail))))
        return REGISTRATION_LINK.findall(text_of(mail))[0]

    async def entrance_code(self, email: str) -> str:
        mail = await self.mails.find(email, lambda mail: bool(CODE.search(text_of(mail))))
        return CODE.findall(text_of(mail))[0]


def in_days(days: float) -> str:
    """The moment this many days from now."""
    return (datetime.now(UTC) + timedelta(days=days)).isoformat()


def per_look(addresses: Sequence[str]) -> tuple[str, ...]:
    """An address for each look of the sheet, of two in English and German."""
    english, german = addresses[:2]
    return english, german, german, english


def subject_has(start: str) -> Callable[[EmailMessage], bool]:
    """Whether the subject of a mail begins so."""
    return lambda mail: str(mail["Subject"]).startswith(start)


def store_mail(mail: EmailMessage, directory: Path, name: str) -> str:
    """Store the HTML of a mail as a page of its own, with its pictures in it, and its text. Returns its address."""
    html = written = text_of(mail, "html")
    for part in mail.walk():
        cid = str(part["Content-ID"] or "").strip("<>")
        content = part.get_payload(decode=True)
        if cid and isinstance(content, bytes):
            inside = f"data:{part.get_content_type()};base64,{b64encode(content).decode()}"
            html = html.replace(f'src="cid:{cid}"', f'src="{inside}"')
    directory.mkdir(parents=True, exist_ok=True)
    page = directory / f"{name}.html"
    page.write_text(html)
    text = f"Subject: {mail['Subject']}\n{len(written.encode())} bytes of HTML\n\n{text_of(mail)}"
    page.with_suffix(".txt").write_text(text)
    return page.resolve().as_uri()
