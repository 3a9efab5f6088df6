"""The calendar file of an event, `/events/<event_id>/calendar.ics`."""

from holdfast.events.events.calendar import calendar_file
from holdfast.events.outbound_texts import outbound
from holdfast.events.pages.model import EventContent, ReadEvent
from holdfast.events.paths import event_path, id_of
from holdfast.events.settings import Settings
from holdfast.events.site import SITE
from holdfast.kit.contract.caller import Caller
from holdfast.kit.http.edge import LIVE
from holdfast.kit.http.handler import Access, Reply, Request
from holdfast.kit.pages.language import language_of
from holdfast.kit.running.runner import Run


class CalendarFile:
    """Answers requests for the calendar files of events. `read` reads what the page of an event shows."""

    access = Access("event_calendar")

    def __init__(self, settings: Settings, read: Run) -> None:
        self._settings = settings
        self._read = read

    async def answer(self, caller: Caller, request: Request) -> Reply:
        """The calendar file of the event in the address. Raises `not_found`."""
        id = id_of(request.scope["path_params"]["event_id"])
        content: EventContent = await self._read(caller, ReadEvent(event_id=id))
        texts, is_confirmed = SITE.texts(language_of(request)), content.organizer_name is not None
        event = outbound(content.event, texts.gettext("(see the event's page)"), is_confirmed=is_confirmed)
        url = self._settings.base_url + event_path(event.organizer_slug, event.id)
        method = "CANCEL" if event.cancelled_at else "PUBLISH"
        organizer = content.organizer_name or texts.gettext("Unconfirmed organizer")
        file = calendar_file(event, self._settings, url=url, stamp=content.now, method=method, organizer=organizer)
        headers = [
            LIVE,
            (b"content-disposition", f'attachment; filename="event-{event.id}.ics"'.encode()),
        ]
        return Reply(200, file, headers, b"text/calendar; charset=utf-8")
