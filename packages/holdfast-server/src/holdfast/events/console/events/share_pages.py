"""The page on which an organizer shares an event: its link, a QR code of it, its form in another site, and a poster."""

from io import BytesIO
from urllib.parse import quote, urlencode

from markupsafe import Markup
from msgspec import Struct

from holdfast.accounts.sessions import Session
from holdfast.events.console.frame import HOME, Console, organizer
from holdfast.events.events.model import EventRow, GetEvent, to_api
from holdfast.events.events.overview import READ_EVENT, EventDetails
from holdfast.events.pages.cover import title_cover
from holdfast.events.pages.registration.own_registration_pages import qr
from holdfast.events.paths import HOST_SCRIPT, id_of
from holdfast.events.processor.currencies import digits
from holdfast.events.registrations.entrance_code import qr_code
from holdfast.events.settings import Settings
from holdfast.events.site import SITE
from holdfast.kit.http.handler import NO_STORE, Header, Reply, Request
from holdfast.kit.http.index import Route
from holdfast.kit.operations.runner import Runner

COPY_SCRIPT = "copy.js"

QR_MODULE_PIXELS = 10
"""The width of a square of the QR code in the file. A printer may enlarge it, since it is an SVG."""

PRINT_SCRIPT = "console/events/poster.js"


class EventShareLinks(Struct, frozen=True):
    """What an organizer gives to people.

    url     the address of the page of the event
    qr      the QR code of this address, as SVG
    code    the HTML of the form for another site
    """

    url: str
    qr: Markup
    code: str


def share_links_of(event: EventRow, settings: Settings) -> EventShareLinks:
    """What an organizer gives to people who shall find an event."""
    public = to_api(event, settings)
    return EventShareLinks(public.public_url, qr(public.public_url), public.embed_code)


class Messenger(Struct, frozen=True):
    """A service by which people send links, and its address that begins a message."""

    name: str
    address: str


def messengers(title: str, url: str) -> list[Messenger]:
    """The addresses that begin a message about an event: plain links, which load nothing before they are followed."""
    text = f"{title} {url}"
    return [
        Messenger("WhatsApp", f"https://wa.me/?{urlencode({'text': text}, quote_via=quote)}"),
        Messenger("Telegram", f"https://t.me/share/url?{urlencode({'url': url, 'text': title}, quote_via=quote)}"),
        Messenger("Facebook", f"https://www.facebook.com/sharer/sharer.php?{urlencode({'u': url})}"),
        Messenger("LinkedIn", f"https://www.linkedin.com/sharing/share-offsite/?{urlencode({'url': url})}"),
        Messenger("X", f"https://x.com/intent/post?{urlencode({'url': url, 'text': title}, quote_via=quote)}"),
    ]


def mail_address(title: str, url: str) -> str:
    """The address that begins a mail about an event."""
    return f"mailto:?{urlencode({'subject': title, 'body': url}, quote_via=quote)}"


class SharePages:
    """Answers requests for the page that shares an event, and for its QR code as a file."""

    def __init__(self, console: Console, runner: Runner, settings: Settings) -> None:
        self._console = console
        self._settings = settings
        self._get_event = runner.run_of(READ_EVENT)

    def routes(self) -> list[Route]:
        return [
            self._console.route(f"{HOME}/events/{{event_id}}/qr.svg", "event_qr", self.qr_file),
            self._console.route(f"{HOME}/events/{{event_id}}/share", "share_event", self.show),
            *SITE.assets(COPY_SCRIPT),
        ]

    async def qr_file(self, session: Session, request: Request) -> Reply:
        """The QR code of the page of an event, as an SVG file."""
        event = await self._event(session, request)
        drawn = qr_code(to_api(event, self._settings).public_url)
        file = BytesIO()
        drawn.save(file, kind="svg", scale=QR_MODULE_PIXELS, border=4, dark="#000", light="#fff")
        disposition: Header = (b"content-disposition", f'attachment; filename="event-{event.id}.svg"'.encode())
        return Reply(200, file.getvalue(), [NO_STORE, disposition], b"image/svg+xml")

    async def show(self, session: Session, request: Request) -> Reply:
        """Show the link, the QR code and the code of the form, with the form in a frame, as it is in another site."""
        event = await self._event(session, request)
        return self._console.page(
            session,
            request,
            "events/share.html",
            event=event,
            share=(share := share_links_of(event, self._settings)),
            messengers=messengers(event.title, share.url),
            mail_address=mail_address(event.title, share.url),
            frame=f"/events/{event.id}/embed",
            host_script=HOST_SCRIPT,
            frames="'self'",
            scripts=[COPY_SCRIPT],
        )

    async def _event(self, session: Session, request: Request) -> EventRow:
        command = GetEvent(event_id=id_of(request.fields["event_id"]))
        details: EventDetails = await self._get_event(organizer(session), command)
        return details.event


class PosterPage:
    """Answers requests for the poster of an event."""

    def __init__(self, console: Console, runner: Runner, settings: Settings) -> None:
        self._console = console
        self._settings = settings
        self._get_event = runner.run_of(READ_EVENT)

    def routes(self) -> list[Route]:
        return [
            self._console.route(f"{HOME}/events/{{event_id}}/poster", "event_poster", self.show),
            *SITE.assets(PRINT_SCRIPT),
        ]

    async def show(self, session: Session, request: Request) -> Reply:
        """Show the poster, as it is printed below the bar with the button."""
        command = GetEvent(event_id=id_of(request.fields["event_id"]))
        details: EventDetails = await self._get_event(organizer(session), command)
        event = details.event
        return self._console.page(
            session,
            request,
            "events/poster.html",
            event=event,
            zone=event.timezone or "UTC",
            photo=next(iter(details.photos), None),
            cover=title_cover,
            images=details.images_from,
            share=share_links_of(event, self._settings),
            digits=digits(event.currency),
            scripts=[PRINT_SCRIPT],
        )
