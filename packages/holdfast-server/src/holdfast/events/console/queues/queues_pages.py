"""The pages of queues, with their form: list them, create one, show one with its history, edit and delete it."""

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from holdfast.accounts.sessions import Session
from holdfast.events.console.events.share_pages import COPY_SCRIPT
from holdfast.events.console.frame import Console, organizer
from holdfast.events.console.local_moments import local_text, moment_of
from holdfast.events.events.overview import READ_DEFAULTS, EventDefaults, ReadEventDefaults
from holdfast.events.problems import QUOTA_EXCEEDED
from holdfast.events.queues import operations
from holdfast.events.queues.history import QueueHistory, read_history
from holdfast.events.queues.model import (
    CreateQueue,
    DeleteQueue,
    GetQueue,
    GuardableEvent,
    GuardedEvent,
    ListGuardedEvents,
    ListOpenEvents,
    Queue,
    UpdateQueue,
)
from holdfast.kit.contract.command import check, with_integers
from holdfast.kit.contract.messages import message, translatable
from holdfast.kit.contract.problems import BAD_REQUEST
from holdfast.kit.http.handler import Reply, Request, read_query
from holdfast.kit.http.index import Route
from holdfast.kit.operations.operation import Operation, read
from holdfast.kit.operations.runner import Runner
from holdfast.kit.pages import forms
from holdfast.kit.pages.forms import NOT_REFUSED, FormRefusal, command_in_path, hide_forbidden, try_form
from holdfast.kit.postgres.pagination import OffsetPage, Page

QUEUE_LABELS = {
    "event_id": translatable("Event"),
    "target_url": translatable("Address of the site"),
    "title": translatable("Title"),
    "description": translatable("Message to people who wait"),
    "release_rate": translatable("People let in per minute"),
    "token_ttl_minutes": translatable("Time to enter (minutes)"),
    "max_queue_size": translatable("Most people waiting"),
    "starts_at": translatable("Opens"),
    "ends_at": translatable("Closes"),
    "draw_at": translatable("Draw the order at"),
    "public_log": translatable("Publish the order of arrival"),
}
"""The labels of the fields by name. The names are the fields of the commands."""

INSTRUCTIONS = {
    "event_id": message("Choose one of your events."),
    "title": message("Enter a title, such as Summer sale."),
    "target_url": message("Enter an address that begins with https://, such as https://example.com/shop."),
    "release_rate": message("Enter a number of people, such as 60."),
    "token_ttl_minutes": message("Enter a number of minutes, such as 10."),
    "max_queue_size": message("Enter a number of people, such as 5000."),
    "starts_at": message("Enter a date and a time."),
    "ends_at": message("Enter a date and a time."),
    "draw_at": message("Enter a date and a time."),
}
"""What people enter in the fields, by name."""

MOMENTS = ("starts_at", "ends_at", "draw_at")
"""The fields that people enter in the local time of a time zone, which the form names."""

REQUIRED = ("title", "target_url", "release_rate", "token_ttl_minutes")

MORE = ("description", "max_queue_size", "starts_at", "ends_at", "draw_at", "public_log")
"""The fields that most waiting rooms do not need."""

Kind = Literal["event", "site"]
"""What a waiting room is for: an event of the organizer, or another site."""

QUEUES = "/console/queues"
PAGE_SIZE = 20


def names_of(kind: Kind) -> list[str]:
    """The names of the fields for a kind of waiting room."""
    return [name for name in QUEUE_LABELS if name != ("target_url" if kind == "event" else "event_id")]


def create_command(fields: Mapping[str, str], kind: Kind) -> CreateQueue:
    """The command that creates the queue of a form. Raises `validation_failed`."""
    typed = {name: fields.get(name, "") for name in names_of(kind)}
    no_event = kind == "event" and not typed["event_id"]
    unread = {"event_id": [message("is required")], "target_url": [message("is required")]} if no_event else {}
    return check(CreateQueue, _values(CreateQueue, typed, fields.get("timezone", "")), unread=unread)


def update_command(fields: Mapping[str, str], before: Queue) -> UpdateQueue:
    """The command for the fields of a form whose values differ from the queue. Raises `validation_failed`."""
    timezone = fields.get("timezone", "")
    stored_values = field_values(before, timezone)
    # A browser leaves out a box that is not checked.
    sent_fields = {**fields, "public_log": fields.get("public_log", "")}
    typed = {
        name: sent_fields[name]
        for name in QUEUE_LABELS
        if name in sent_fields and name != "event_id" and not _is_same(sent_fields[name], stored_values[name])
    }
    empty = {name: [message("is required")] for name in REQUIRED if typed.get(name) == ""}
    return check(UpdateQueue, {**_values(UpdateQueue, typed, timezone), "queue_id": before.id}, unread=empty)


def field_values(queue: Queue, timezone: str) -> dict[str, str]:
    """The values that the fields show for a queue. `timezone`: that of the moments; empty: UTC."""
    values = {name: "" if (value := getattr(queue, name)) is None else str(value) for name in QUEUE_LABELS}
    values["public_log"] = "yes" if queue.public_log else ""
    for name in MOMENTS:
        moment: dt.datetime | None = getattr(queue, name)
        values[name] = local_text(moment, timezone, "seconds" if moment and moment.second else "minutes")
    return values


def _values(kind: type[CreateQueue | UpdateQueue], texts: Mapping[str, str], timezone: str) -> dict[str, Any]:
    """The fields of a command. An empty text becomes None."""
    values = with_integers(kind, texts)
    if "public_log" in texts:
        values["public_log"] = texts["public_log"] == "yes"
    for name in texts.keys() & set(MOMENTS):
        # A text that is no moment is refused by the command.
        values[name] = moment_of(texts[name], timezone) or texts[name]
    return {name: None if value == "" else value for name, value in values.items()}


def _is_same(text: str, stored_text: str) -> bool:
    """Whether two texts are equal. A browser sends other line breaks, and the form drops outer spaces."""
    return text.replace("\r\n", "\n") == stored_text.replace("\r\n", "\n").strip()


READ_HISTORY = Operation("get_queue_history", None, read(read_history))
LIST_OPEN_EVENTS = Operation("list_events_without_queue", None, read(operations.list_open_events))
LIST_GUARDED_EVENTS = Operation("list_events_with_queue", None, read(operations.list_guarded_events))
OPERATIONS = (READ_HISTORY, LIST_OPEN_EVENTS, LIST_GUARDED_EVENTS)
"""Operations of the console alone: they have no routes of the API and no tools."""


class QueuesPages:
    """Answers requests for the organizer's queues.

    interval    the seconds in which a queue releases its rate
    base_url    the address of the service
    """

    def __init__(self, console: Console, runner: Runner, interval: int, base_url: str) -> None:
        self._console = console
        self._interval = interval
        self._base_url = base_url
        self._list, self._get, self._create, self._update, self._delete = (
            hide_forbidden(console.run[name])
            for name in ("list_queues", "get_queue", "create_queue", "update_queue", "delete_queue")
        )
        self._get_history, self._list_events = runner.run_of(READ_HISTORY), runner.run_of(LIST_OPEN_EVENTS)
        self._list_guarded, self._get_defaults = runner.run_of(LIST_GUARDED_EVENTS), runner.run_of(READ_DEFAULTS)

    def routes(self) -> list[Route]:
        one = f"{QUEUES}/{{queue_id}}"
        return [
            self._console.route(QUEUES, "queues", self.list),
            self._console.route(f"{QUEUES}/new", "new_queue", self.create, "POST"),
            self._console.route(one, "queue", self.show, "POST"),
            self._console.route(f"{one}/edit", "edit_queue", self.edit, "POST"),
            self._console.route(f"{one}/delete", "delete_queue", self.delete, "POST"),
        ]

    async def list(self, session: Session, request: Request) -> Reply:
        """List the queues, oldest first."""
        text = read_query(request.query).get("offset", "0")
        offset = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
        page: Page[Queue] = await self._list(organizer(session), OffsetPage(limit=PAGE_SIZE, offset=offset))
        guarded = await self._events_behind(session, page.data)
        return self._console.page(
            session,
            request,
            "queues/queues.html",
            here=QUEUES,
            queues=page.data,
            titles={event.queue_id: event.title for event in guarded},
            base_url=self._base_url,
            after=offset + len(page.data) if page.pagination.has_more else None,
        )

    async def create(self, session: Session, request: Request) -> Reply:
        """Ask what a new queue is for, and show the form for that; with POST create it."""
        events: list[GuardableEvent] = await self._list_events(organizer(session), ListOpenEvents())
        if request.method != "POST":
            query = read_query(request.query)
            if "event" not in query and "site" not in query:
                return await self._ask_kind(session, request, events)
            kind: Kind = "event" if "event" in query else "site"
            chosen = next((event for event in events if str(event.id) == query.get("event")), None)
            values = {"release_rate": "60", "token_ttl_minutes": "10", "public_log": "yes"}
            if chosen:
                values |= {"event_id": str(chosen.id), "title": chosen.title}
            return await self._form(session, request, values, kind, events=events)
        fields = await self._console.signed_in.read(session, request)
        kind = "event" if fields.get("kind") == "event" else "site"
        queue = await try_form(
            lambda: forms.run_once(self._create, organizer(session), create_command(fields, kind), fields, Queue),
            QUOTA_EXCEEDED,
            instructions=INSTRUCTIONS,
        )
        if isinstance(queue, FormRefusal):
            return await self._form(session, request, fields, kind, queue, events=events)
        return self._console.redirect(request, f"{QUEUES}/{queue.id}")

    async def _events_behind(self, session: Session, queues: Sequence[Queue]) -> Sequence[GuardedEvent]:
        command = ListGuardedEvents(queue_ids=[queue.id for queue in queues])
        return await self._list_guarded(organizer(session), command)

    async def _ask_kind(self, session: Session, request: Request, events: Sequence[GuardableEvent]) -> Reply:
        guarded: Sequence[GuardedEvent] = []
        if not events:
            page: Page[Queue] = await self._list(organizer(session), OffsetPage(limit=PAGE_SIZE))
            guarded = await self._events_behind(session, page.data)
        return self._console.page(
            session,
            request,
            "queues/queue_kind.html",
            here=QUEUES,
            events=events,
            is_any_guarded=any(not event.is_closed for event in guarded),
        )

    async def show(self, session: Session, request: Request) -> Reply:
        """Show a queue with its history; with POST pause or resume it."""
        command = command_in_path(GetQueue, request)
        if request.method == "POST":
            button = (await self._console.signed_in.read(session, request)).get("do")
            if button not in {"pause", "resume"}:
                raise BAD_REQUEST("The form names nothing to do.", hint="Open the page again.")
            change = UpdateQueue(queue_id=command.queue_id, active=button == "resume")
            await self._update(organizer(session), change)
            return self._console.redirect(request, f"{QUEUES}/{command.queue_id}")
        queue: Queue = await self._get(organizer(session), command)
        history: QueueHistory = await self._get_history(organizer(session), command)
        return self._console.page(
            session,
            request,
            "queues/queue.html",
            here=QUEUES,
            queue=queue,
            seen=history,
            base_url=self._base_url,
            scripts=[COPY_SCRIPT],
        )

    async def edit(self, session: Session, request: Request) -> Reply:
        """Show the form of a queue; with POST change it."""
        command = command_in_path(GetQueue, request)
        queue: Queue = await self._get(organizer(session), command)
        kind: Kind = "site" if queue.event_id is None else "event"
        if request.method != "POST":
            return await self._form(session, request, {}, kind, queue=queue)
        fields = await self._console.signed_in.read(session, request)
        result = await try_form(
            lambda: self._update(organizer(session), update_command(fields, queue)),
            QUOTA_EXCEEDED,
            instructions=INSTRUCTIONS,
        )
        if isinstance(result, FormRefusal):
            return await self._form(session, request, fields, kind, result, queue=queue)
        return self._console.redirect(request, f"{QUEUES}/{queue.id}")

    async def delete(self, session: Session, request: Request) -> Reply:
        """Show the question whether to delete a queue; with POST delete it."""
        command = command_in_path(DeleteQueue, request)
        if request.method == "POST":
            await self._console.signed_in.read(session, request)
            await self._delete(organizer(session), command)
            return self._console.redirect(request, QUEUES)
        queue: Queue = await self._get(organizer(session), GetQueue(queue_id=command.queue_id))
        history: QueueHistory = await self._get_history(organizer(session), GetQueue(queue_id=command.queue_id))
        return self._console.page(
            session, request, "queues/queue_delete.html", here=QUEUES, queue=queue, event=history.event
        )

    async def _form(
        self,
        session: Session,
        request: Request,
        values: Mapping[str, str],
        kind: Kind,
        refusal: FormRefusal = NOT_REFUSED,
        *,
        queue: Queue | None = None,
        events: Sequence[GuardableEvent] = (),
    ) -> Reply:
        """The form. Its moments are in the time zone of the organizer's last event, or in the one of a sent form."""
        defaults: EventDefaults = await self._get_defaults(organizer(session), ReadEventDefaults())
        timezone = values.get("timezone", defaults.timezone or "")
        if queue and refusal is NOT_REFUSED:
            values = field_values(queue, timezone)
        return self._console.page(
            session,
            request,
            "queues/queue_form.html",
            refusal.status,
            here=QUEUES,
            queue=queue,
            kind=kind,
            events=events,
            is_more_open=any(refusal.errors.get(name) for name in MORE),
            values=values,
            errors=refusal.errors,
            labels=QUEUE_LABELS,
            timezone=timezone,
            interval=self._interval,
            is_full=refusal.code == QUOTA_EXCEEDED.code,
            once=forms.new_token(),
        )
