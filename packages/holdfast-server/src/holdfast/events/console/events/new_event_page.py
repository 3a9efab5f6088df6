"""The page that creates an event, from scratch or as a copy of another event."""

import re
import secrets
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Literal

import msgspec
from babel import Locale, UnknownLocaleError
from babel.core import get_global
from babel.numbers import get_currency_name, get_territory_currencies
from msgspec import Struct, structs

from holdfast.accounts.sessions import Session
from holdfast.events.console.events.event_form import (
    CHOICES,
    EVENT_LABELS,
    MIN_WAITING_LIST_PLACES,
    NEW_FORM_VALUES,
    PREVIEW_PART,
    PREVIEW_SCRIPTS,
    command_values,
    errors_in_words,
    field_values,
    is_more_open,
    preview_of,
    typed_values,
    with_pricing_mode,
)
from holdfast.events.console.events.uploads import FileRefusal, Uploads
from holdfast.events.console.frame import HOME, Console, organizer
from holdfast.events.events.model import CreateEvent, GetEvent
from holdfast.events.events.overview import READ_DEFAULTS, READ_EVENT, EventDefaults, EventDetails, ReadEventDefaults
from holdfast.events.mails.event_copies import COPY_EVENT, CopyEvent
from holdfast.events.paths import id_of
from holdfast.events.payments.publication_terms import READ_TERMS, PublicationTerms, ReadPublicationTerms
from holdfast.events.photos.operations import READ_PHOTOS, PhotoList, ReadPhotos
from holdfast.events.processor.currencies import CURRENCIES, digits
from holdfast.events.site import SITE
from holdfast.kit.contract.command import check
from holdfast.kit.contract.problems import (
    IDEMPOTENCY_KEY_REUSED,
    Problem,
)
from holdfast.kit.http.handler import Reply, Request, read_query
from holdfast.kit.http.index import Route
from holdfast.kit.operations.runner import Runner
from holdfast.kit.pages.language import accepted_tags, language_of

FALLBACK = "USD"

NEW = "/console/events/new"

_PHOTO = re.compile("photo[0-9]{1,3}")
"""The names of the fields that contain the keys of uploaded photos."""


@cache
def currency_names(locale: str) -> Mapping[str, str]:
    """The currencies that can be paid by card, such as `EUR` with `EUR · Euro`, in the order of their codes."""
    return {code: f"{code} · {get_currency_name(code, locale=locale)}" for code in sorted(CURRENCIES)}


def currency_of(header: bytes) -> str:
    """The currency of the preferred region in an Accept-Language header, such as `de-AT`.

    A language alone has a likely region.
    """
    for accepted in accepted_tags(header):
        tag = accepted.replace("-", "_")
        try:
            locale = Locale.parse(get_global("likely_subtags").get(tag, tag))
        except (ValueError, UnknownLocaleError):
            continue
        if currency := _currency_in(locale.territory):
            return currency
    return FALLBACK


def currency_of_zone(zone: str) -> str | None:
    """The currency of the country of a time zone, such as `Europe/Berlin`. None: cards cannot pay it."""
    return _currency_in(get_global("zone_territories").get(zone))


def _currency_in(territory: str | None) -> str | None:
    """The currency in use in a territory. The newest stands last."""
    in_use = get_territory_currencies(territory) if territory else []
    return next((code for code in reversed(in_use) if code in CURRENCIES), None)


ZoneOrigin = Literal["last", "browser"]
"""Where the time zone of a new event comes from: the organizer's last event, or the browser, if there is none."""


class CreatedEvent(Struct):
    """The id of the created event. Other members of the answer are ignored."""

    id: int


class NewEventPage:
    """Answers requests for the form of a new event."""

    def __init__(self, console: Console, runner: Runner, uploads: Uploads) -> None:
        self._console = console
        self._uploads = uploads
        self._get_event, self._get_photos, self._usual, self._copy = (
            runner.run_of(READ_EVENT),
            runner.run_of(READ_PHOTOS),
            runner.run_of(READ_DEFAULTS),
            runner.run_of(COPY_EVENT),
        )
        self._get_terms = runner.run_of(READ_TERMS)

    def routes(self) -> list[Route]:
        return [self._console.route(NEW, "new_event", self.answer, "POST"), *SITE.assets(*PREVIEW_SCRIPTS)]

    async def answer(self, session: Session, request: Request) -> Reply:
        """Show the form, filled with the values of the event to copy; with POST create the event."""
        if request.method == "POST":
            return await self._create(session, request)
        copied = read_query(request.query).get("copy", "")
        usual: EventDefaults = await self._usual(organizer(session), ReadEventDefaults())
        if copied:
            details: EventDetails = await self._get_event(organizer(session), GetEvent(event_id=id_of(copied)))
            # A copy takes place at another time.
            values = {**field_values(details.event), "datetime": "", "ends_at": "", "opens_at": "", "copy": copied}
            if details.event.pricing_mode == "free":
                values["currency"] = _currency(usual, request)
            return await self._form(session, request, values, {})
        usual_values = {"timezone": usual.timezone or "", "currency": _currency(usual, request)}
        origin: ZoneOrigin = "last" if usual.timezone else "browser"
        return await self._form(session, request, {**NEW_FORM_VALUES, **usual_values}, {}, zone_origin=origin)

    async def _create(self, session: Session, request: Request) -> Reply:
        fields, uploaded, refused = await self._uploads.read(session, request)
        copied, values = fields.get("copy", ""), with_pricing_mode(typed_values(fields))
        keys = [
            *(value for name, value in fields.items() if _PHOTO.fullmatch(name)),
            *(photo.key for photo in uploaded),
        ]
        again = {**NEW_FORM_VALUES, **values, "copy": copied}
        if fields.get("do") == PREVIEW_PART:
            return await self._form(session, request, again, {}, keys=keys, template="events/event_preview.html")
        if refused or fields.get("do") in {"upload", "preview"}:
            status = 422 if refused else 200
            return await self._form(session, request, again, {}, status, keys=keys, refused=refused)
        raw, unread = command_values(values)
        raw["image_keys"] = [*await self._photos(session, copied), *keys]
        raw["published"] = fields.get("do") == "publish"
        is_question = False
        try:
            command = check(CreateEvent, raw, unread=unread)
            if command.published:
                terms: PublicationTerms = await self._get_terms(organizer(session), ReadPublicationTerms())
                is_question = bool(terms.obstacles(command))
                command = structs.replace(command, published=not is_question)
            # A form that is sent twice creates one event.
            once = fields.get("once") or None
            if copied:
                event = await self._copy(organizer(session), CopyEvent(id_of(copied), command), once)
            else:
                event = await self._console.run["create_event"](organizer(session), command, once)
        except Problem as problem:
            if problem.type is IDEMPOTENCY_KEY_REUSED:
                return await self._form(session, request, again, {}, 422, keys=keys, was_sent=True)
            if problem.status != 422:
                raise
            errors = errors_in_words(problem.errors, raw, values.get("pricing_mode", ""))
            return await self._form(session, request, again, {**errors, **unread}, 422, keys=keys)
        id = msgspec.json.decode(event, type=CreatedEvent).id if isinstance(event, msgspec.Raw) else event.id
        then = "/publication" if is_question else "?done=published" if command.published else ""
        return self._console.redirect(request, f"{HOME}/events/{id}{then}")

    async def _photos(self, session: Session, copied: str) -> list[str]:
        """The keys of the photos of the event to copy."""
        if not copied:
            return []
        details: EventDetails = await self._get_event(organizer(session), GetEvent(event_id=id_of(copied)))
        return details.event.image_keys

    async def _form(
        self,
        session: Session,
        request: Request,
        values: Mapping[str, str],
        errors: Mapping[str, Sequence[str]],
        status: int = 200,
        *,
        keys: Sequence[str] = (),
        refused: Sequence[FileRefusal] = (),
        was_sent: bool = False,
        zone_origin: ZoneOrigin | None = None,
        template: str = "events/new_event.html",
    ) -> Reply:
        """The form, or a part of it. `zone_origin`: the origin of a time zone that the organizer has not chosen."""
        values = with_pricing_mode(values)
        copied_keys = await self._photos(session, values.get("copy", ""))
        photos: PhotoList = await self._get_photos(organizer(session), ReadPhotos(keys=[*copied_keys, *keys]))
        first_photo = next((photo for _, photo in photos.photos), None)
        return self._console.page(
            session,
            request,
            template,
            status,
            values=values,
            errors=errors,
            photos=[(key, photo) for key, photo in photos.photos if key in keys],
            refused=refused,
            images=photos.images_from,
            once=secrets.token_urlsafe(16),
            was_sent=was_sent,
            is_new=True,
            zone_origin=zone_origin,
            is_more_open=is_more_open(values, errors),
            preview=preview_of(values, first_photo),
            least_waiting=MIN_WAITING_LIST_PLACES,
            digits=digits,
            labels=EVENT_LABELS,
            choices=CHOICES,
            currencies=currency_names(language_of(request).locale),
        )


def _currency(usual: EventDefaults, request: Request) -> str:
    """The currency of the last event with a price; else that of where the last event was; else that of the browser."""
    by_events = usual.currency or currency_of_zone(usual.timezone or "")
    return by_events or currency_of(request.headers.get(b"accept-language", b""))
