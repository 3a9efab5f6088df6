"""The page that creates an event: a new one, or a copy of one that is there."""

import secrets
from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct
from starlette.routing import BaseRoute

from holdfast.accounts.sessions import Session
from holdfast.events.console.event_form import EMPTY, TIMEZONES, asked, in_words, shown, typed
from holdfast.events.console.event_operations import LOOK, USUAL, LookUsual, Seen, Usual
from holdfast.events.console.frame import HOME, Console, organizer
from holdfast.events.events.model import CreateEvent, GetEvent
from holdfast.events.paths import id_of
from holdfast.events.pricing.currencies import CURRENCIES
from holdfast.kit.command import Errors, check
from holdfast.kit.handler import Reply, Request, read_query
from holdfast.kit.pages.language import language_of
from holdfast.kit.problems import IDEMPOTENCY_KEY_REUSED, Problem, invalid
from holdfast.kit.runner import Runner

NEW = "/console/events/new"


class Named(Struct):
    """The event that was created, whatever else is known of it."""

    id: int


class NewEventPage:
    """Answers requests for the form of a new event, and creates it."""

    def __init__(self, console: Console, runner: Runner) -> None:
        self._console = console
        self._look, self._usual = runner[LOOK], runner[USUAL]

    def routes(self) -> list[BaseRoute]:
        return [self._console.route(NEW, "new_event", self.answer, "POST")]

    async def answer(self, session: Session, request: Request) -> Reply:
        """Show the form, filled with the event that is to be copied; or create the event."""
        if request.method == "POST":
            return await self._create(session, request)
        copied = read_query(request.query).get("copy", "")
        if copied:
            seen: Seen = await self._look(organizer(session), GetEvent(event_id=id_of(copied)))
            # A copy takes place another time.
            return self._form(session, request, {**shown(seen.event), "datetime": "", "copy": copied}, {})
        usual: Usual = await self._usual(organizer(session), LookUsual())
        known = {"timezone": usual.timezone or "", "currency": usual.currency}
        return self._form(session, request, {**EMPTY, **known}, {})

    async def _create(self, session: Session, request: Request) -> Reply:
        fields = await self._console.door.read(session, request)
        copied, values = fields.get("copy", ""), typed(fields)
        language = language_of(request)
        raw, unread = asked(values, language)
        raw["image_keys"] = await self._photos(session, copied)
        try:
            command = _checked(raw, unread)
            # A form that is sent twice creates one event.
            made = await self._console.run["create_event"](organizer(session), command, fields.get("once") or None)
        except Problem as problem:
            again = {**EMPTY, **values, "copy": copied}
            if problem.type is IDEMPOTENCY_KEY_REUSED:
                return self._form(session, request, again, {}, 422, was_sent=True)
            if problem.status != 422:
                raise
            errors = in_words(problem.extra["errors"], raw, values.get("pricing_mode", ""), language)
            return self._form(session, request, again, {**errors, **unread}, 422)
        id = msgspec.json.decode(made, type=Named).id if isinstance(made, msgspec.Raw) else made.id
        return self._console.to(request, f"{HOME}/events/{id}")

    async def _photos(self, session: Session, copied: str) -> list[str]:
        """The photos of the event that is copied."""
        if not copied:
            return []
        seen: Seen = await self._look(organizer(session), GetEvent(event_id=id_of(copied)))
        return seen.event.image_keys

    def _form(
        self,
        session: Session,
        request: Request,
        values: Mapping[str, str],
        errors: Mapping[str, Sequence[str]],
        status: int = 200,
        *,
        was_sent: bool = False,
    ) -> Reply:
        return self._console.page(
            session,
            request,
            "new_event.html",
            status,
            values=values,
            errors=errors,
            once=secrets.token_urlsafe(16),
            was_sent=was_sent,
            is_new=True,
            timezones=TIMEZONES,
            currencies=sorted(CURRENCIES),
        )


def _checked(raw: dict[str, object], unread: Errors) -> CreateEvent:
    """The command. Raises `validation_failed` with every error at once."""
    try:
        command = check(CreateEvent, {name: value for name, value in raw.items() if name not in unread})
    except Problem as problem:
        raise invalid({**problem.extra["errors"], **unread}) from problem
    if unread:
        raise invalid(unread)
    return command
