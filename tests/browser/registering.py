"""A service behind a port of its own, and the page of a merchant in another origin that has its form in a frame."""

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.async_api import BrowserContext, FrameLocator, Page
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Route

from holdfast.events.settings import Settings
from tests.helpers.events_service import Client, Service, eventually
from tests.helpers.serving import bind_port, serve_app, serve_events
from tests.helpers.smtp import MailServer

MOVING_PRICE = {"pricing_mode": "dynamic", "price": 1000, "min_price": 1000, "max_price": 2000, "currency": "EUR"}

HEAD = '<!doctype html><link rel="icon" href="data:,"><h1>My site</h1>'
DOCUMENT = Path(__file__).parents[2] / "docs/events/embed.md"


@dataclass
class FormStage:
    """A free event, its form, and the address of a page of another origin around it.

    pasted    has the `embed_code` as it is
    alone     has its iframe without the script, as codes of earlier versions have
    fitted    has the example of the document, which follows the height of the frame
    """

    service: Service
    ada: Client
    event: dict[str, Any]
    base_url: str
    pasted: str
    alone: str
    fitted: str

    @property
    def form(self) -> str:
        return self.event["embed_url"]


@asynccontextmanager
async def serve_stage(settings: Settings, **fields: Any) -> AsyncGenerator[FormStage]:
    """The service with an event of these fields."""
    port = bind_port()
    async with serve_events(settings) as service:
        ada = await service.organizer()
        event = await ada.create_event(**fields)
        [example] = re.findall(r"```html\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)

        async def pasted(_: Request) -> HTMLResponse:
            return HTMLResponse(f"{HEAD}{event['embed_code']}")

        async def alone(_: Request) -> HTMLResponse:
            return HTMLResponse(f"{HEAD}{event['embed_code'].partition('</iframe>')[0]}</iframe>")

        async def fitted(_: Request) -> HTMLResponse:
            address = "https://events.example.com/events/7/embed"
            assert address in example
            return HTMLResponse(HEAD + example.replace(address, event["embed_url"]))

        site = Starlette(routes=[Route("/pasted", pasted), Route("/alone", alone), Route("/fitted", fitted)])
        async with serve_app(site, port):
            addresses = (f"{port.url}/{name}" for name in ("pasted", "alone", "fitted"))
            yield FormStage(service, ada, event, service.base_url, *addresses)


class Watch:
    """What went wrong in the pages of a browser, and which hosts they asked."""

    def __init__(self, context: BrowserContext) -> None:
        self.failures: list[str] = []
        self.hosts: set[str] = set()
        context.on("weberror", lambda error: self.failures.append(str(error.error)))
        context.on("console", lambda message: self.failures.append(message.text) if message.type == "error" else None)
        context.on("request", lambda request: self.hosts.add(request.url.split("/")[2]))


def with_payments(settings: Settings) -> Settings:
    """A service at which one can pay by card."""
    return settings.model_copy(update={"stripe_key": "sk_test_1", "stripe_webhook_secret": "whsec_1"})


async def prove_organizers(stage: FormStage) -> None:
    """The organizer has confirmed its address, and is paid out."""
    await stage.service.run_sql("update users set proved_at = now(), payouts_ready = true")
    await stage.service.wait_for_notices()


async def register_in_frame(page: Page, stage: FormStage, email: str) -> FrameLocator:
    """Register on the form in the other site. Returns the frame."""
    await page.goto(stage.fitted)
    frame = page.frame_locator("iframe")
    await frame.get_by_label("E-mail address").fill(email)
    await frame.get_by_label("E-mail address").press("Enter")
    return frame


async def wait_for_mail(server: MailServer, email: str, subject: str) -> str:
    """The text of a mail, once it has arrived."""

    def texts() -> list[str]:
        return [
            str(body.get_content())
            for received in server.received
            if received.recipient == email and str(received.mail["Subject"]).startswith(subject)
            if (body := received.mail.get_body(("plain",)))
        ]

    await eventually(texts, 30)
    [text] = texts()
    return text


def registration_link(text: str) -> str:
    [url] = re.findall(r"http\S+/registrations/[^/\s]+(?=\s)", text)
    return url
