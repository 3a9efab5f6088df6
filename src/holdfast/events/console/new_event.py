"""The page that creates an event: a new one, or a copy of one that is there."""

import re
import secrets
from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct
from starlette.routing import BaseRoute

from holdfast.accounts.sessions import Session
from holdfast.events.console.copy_event import COPY, CopyEvent
from holdfast.events.console.event_form import CHOICES, EMPTY, LABELS, asked, in_words, shown, typed
from holdfast.events.console.event_operations import LOOK, USUAL, LookUsual, Seen, Usual
from holdfast.events.console.frame import HOME, Console, organizer
from holdfast.events.console.photo_operations import LOOK_AT, LookAtPhotos, Looked
from holdfast.events.console.uploads import Refusal, Uploads
from holdfast.events.events.model import CreateEvent, GetEvent
from holdfast.events.paths import id_of
from holdfast.events.processor.currencies import CURRENCIES
from holdfast.kit.command import check
from holdfast.kit.handler import Reply, Request, read_query
from holdfast.kit.problems import IDEMPOTENCY_KEY_REUSED, Problem
from holdfast.kit.runner import Runner

NEW = "/console/events/new"

_PHOTO = re.compile("photo[0-9]{1,3}")
"""The names of the fields with the keys of photos that are uploaded already."""


class Named(Struct):
    """The event that was created, whatever else is known of it."""

    id: int


class NewEventPage:
    """Answers requests for the form of a new event, and creates it."""

    def __init__(self, console: Console, runner: Runner, uploads: Uploads) -> None:
        self._console = console
        self._uploads = uploads
        self._look, self._look_at, self._usual, self._copy = runner[LOOK], runner[LOOK_AT], runner[USUAL], runner[COPY]

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
            return await self._form(session, request, {**shown(seen.event), "datetime": "", "copy": copied}, {})
        usual: Usual = await self._usual(organizer(session), LookUsual())
        known = {"timezone": usual.timezone or "", "currency": usual.currency}
        return await self._form(session, request, {**EMPTY, **known}, {})

    async def _create(self, session: Session, request: Request) -> Reply:
        fields, kept, refused = await self._uploads.read(session, request)
        copied, values = fields.get("copy", ""), typed(fields)
        keys = [*(value for name, value in fields.items() if _PHOTO.fullmatch(name)), *(photo.key for photo in kept)]
        again = {**EMPTY, **values, "copy": copied}
        if refused or fields.get("do") == "upload":
            status = 422 if refused else 200
            return await self._form(session, request, again, {}, status, keys=keys, refused=refused)
        raw, unread = asked(values)
        raw["image_keys"] = [*await self._photos(session, copied), *keys]
        try:
            command = check(CreateEvent, raw, unread=unread)
            # A form that is sent twice creates one event.
            once = fields.get("once") or None
            if copied:
                made = await self._copy(organizer(session), CopyEvent(id_of(copied), command), once)
            else:
                made = await self._console.run["create_event"](organizer(session), command, once)
        except Problem as problem:
            if problem.type is IDEMPOTENCY_KEY_REUSED:
                return await self._form(session, request, again, {}, 422, keys=keys, was_sent=True)
            if problem.status != 422:
                raise
            errors = in_words(problem.errors, raw, values.get("pricing_mode", ""))
            return await self._form(session, request, again, {**errors, **unread}, 422, keys=keys)
        id = msgspec.json.decode(made, type=Named).id if isinstance(made, msgspec.Raw) else made.id
        return self._console.to(request, f"{HOME}/events/{id}")

    async def _photos(self, session: Session, copied: str) -> list[str]:
        """The photos of the event that is copied."""
        if not copied:
            return []
        seen: Seen = await self._look(organizer(session), GetEvent(event_id=id_of(copied)))
        return seen.event.image_keys

    async def _form(
        self,
        session: Session,
        request: Request,
        values: Mapping[str, str],
        errors: Mapping[str, Sequence[str]],
        status: int = 200,
        *,
        keys: Sequence[str] = (),
        refused: Sequence[Refusal] = (),
        was_sent: bool = False,
    ) -> Reply:
        looked: Looked = await self._look_at(organizer(session), LookAtPhotos(keys=[*keys]))
        return self._console.page(
            session,
            request,
            "new_event.html",
            status,
            values=values,
            errors=errors,
            photos=looked.photos,
            refused=refused,
            images=looked.images_from,
            once=secrets.token_urlsafe(16),
            was_sent=was_sent,
            is_new=True,
            labels=LABELS,
            choices=CHOICES,
            currencies=sorted(CURRENCIES),
        )
