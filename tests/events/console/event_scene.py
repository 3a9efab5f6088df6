"""An organizer at a browser, with events of its own and one of another organizer."""

import html
import re
from typing import Any

import httpx2

from tests.helpers.events_service import Service
from tests.helpers.form_browser import Browser, token


async def foreign_event(service: Service, **fields: Any) -> dict[str, Any]:
    """An event of another organizer."""
    return await (await service.organizer("Other Events")).create_event(title="Secret meeting", **fields)


async def stored_events(service: Service) -> list[tuple[Any, ...]]:
    """Everything that is stored of all events."""
    return await service.run_sql("select to_jsonb(events) from events order by id")


FREE = {"pricing_mode": "free", "price": ""}
"""The fields of a form for an event that people need not pay for: it is published without a question."""


def event_form(**fields: str) -> dict[str, str]:
    """What an organizer types into the form of a new event."""
    return {
        "title": "Life drawing",
        "body": "Bring a **pencil**.",
        "datetime": "2036-07-12T19:30",
        "ends_at": "2036-07-12T21:30",
        "timezone": "Europe/Berlin",
        "capacity": "12",
        "waitinglist_capacity": "3",
        "pricing_mode": "fixed",
        "currency": "EUR",
        "price": "12.50",
        "min_price": "",
        "max_price": "",
        "recurrence_frequency": "none",
        "recurrence_interval": "1",
        "cancellation_hours": "24",
        "location_name": "Studio",
        "address": "",
        "latitude": "52,52",
        "longitude": "13.405",
        "do": "publish",
        **fields,
    }


async def confirm_bulk_change(browser: Browser, page: httpx2.Response) -> httpx2.Response:
    """Send the form of a confirmation."""
    [people] = re.findall(r'name="people" value="([^"]*)"', page.text)
    [action] = re.findall(r'name="do" value="([^"]*)"', page.text)
    path = str(page.url).partition("?")[0]
    return await browser.http.post(path, data={"token": token(page), "people": people, "do": action})


def form_fields(page: httpx2.Response) -> dict[str, str]:
    """What a browser would send of the form of an event, as the page shows it."""
    text = page.text[page.text.index('<form class="form"') :]
    fields = dict(re.findall(r'<input [^>]*?name="(\w+)"[^>]*? value="([^"]*)"', text))
    fields |= dict(re.findall(r'<textarea [^>]*name="(\w+)"[^>]*>\n([^<]*)</textarea>', text))
    for name, options in re.findall(r'<select [^>]*name="(\w+)"[^>]*>(.*?)</select>', text, re.DOTALL):
        fields[name] = re.findall('value="([^"]*)" selected', options)[0]
    return {name: html.unescape(value) for name, value in fields.items()}


async def open_edit_form(browser: Browser, event: dict[str, Any]) -> tuple[str, dict[str, str]]:
    """The path of the form of an event, and what it would send."""
    path = f"/console/events/{event['id']}/edit"
    page = await browser.get(path)
    assert page.status_code == 200, page.text
    return path, form_fields(page)
