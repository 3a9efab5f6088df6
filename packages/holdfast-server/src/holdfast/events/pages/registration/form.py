"""The registration form: its values for the template, and the check of its typed values.

The form is part of the page of an event, and a page by itself for a frame in any site. It needs no cookie and no key.
"""

import datetime as dt
import re
import secrets
import time
from collections.abc import Mapping
from typing import Literal, Protocol

from msgspec import Struct

from holdfast.accounts.addresses import usable_address
from holdfast.events.processor.currencies import digits, is_payable
from holdfast.events.queues.event_queue import EventQueue
from holdfast.events.queues.event_releases import ReleaseTokenReader
from holdfast.events.queues.model import estimated_wait
from holdfast.events.registrations.model import MAX_NAME_CHARACTERS, cancellation_deadline, refund_deadline
from holdfast.events.registrations.sign_up import SignUp, clean_name
from holdfast.events.settings import Settings
from holdfast.events.texts.web_addresses import has_link
from holdfast.kit.http.cookies import cookie_header
from holdfast.kit.http.handler import Header, Request
from holdfast.kit.pages.forms import FormTokens
from holdfast.kit.pages.language import Language
from holdfast.kit.pages.site import MAX_REPEAT_SECONDS
from holdfast.kit.security.service_secret import Secret

FormStatus = Literal["open", "waiting_list", "queue", "full", "cancelled", "expired", "unpayable", "unpayable_price"]
FieldError = Literal["missing", "malformed", "long", "link"]
Notice = Literal["old", "unseen", "moved", "crowded", "busy", "used", "unreleased"]

FIELDS = ("email", "name")
TOKEN = "token"  # noqa: S105 - the name of a field
SECRET = "form_secret"  # noqa: S105 - the name of a field
"""The name of the field with the secret of the form.

A form that caches keep is the same for all visitors, so a script of the page adds the secret (`form_secret.js`). A form
that is shown again is for one visitor, and has the secret already.
"""

_SECRET = re.compile("[0-9a-f]{32}")

DECOY = "website"
"""The name of a field that people do not see. Only programs fill it in."""

MAX_REDISPLAYED_CHARACTERS = 300
"""The most characters of a typed value that the form shows again."""


class FormEvent(Protocol):
    """The data of an event that its form needs."""

    @property
    def id(self) -> int: ...
    @property
    def status(self) -> Literal["active", "expired", "full", "cancelled"]: ...
    @property
    def pricing_mode(self) -> Literal["free", "fixed", "dynamic"]: ...
    @property
    def payouts_ready(self) -> bool: ...
    @property
    def current_price(self) -> int | None: ...
    @property
    def currency(self) -> str: ...
    @property
    def takes_registrations(self) -> bool: ...
    @property
    def datetime(self) -> dt.datetime: ...
    @property
    def cancellation_hours(self) -> int: ...


class Form(Struct):
    """The values for the template `events/pages/registration/form.html`.

    action         the path that receives the form
    token          the form token, valid for two hours: a page with a form may be cached for one hour at most
    form_secret    the secret of a form that is shown again; None: a script adds one
    values         the typed values by field
    errors         the errors of the typed values by field
    notice         the reason why the form is shown again
    price          what a seat costs now, as a text; None: nothing
    hold_minutes   the minutes for which an unpaid seat is held
    refund_days    the days before the event until which the organizer refunds cancellations
    refund_until   until when a cancellation is refunded in full; None: a cancellation now would not be refunded
    retry_after    seconds to wait before the form is sent again
    queue          the waiting room before the event; None: it has none
    room           the path of that waiting room
    wait           the most seconds that a visitor would wait there who joined now; None: that is not known
    released_until until when a released visitor can send the form; None: the page does not say it
    now            the time of the process
    """

    event_id: int
    status: FormStatus
    action: str
    token: str
    form_secret: str | None
    framed: bool
    values: Mapping[str, str]
    errors: Mapping[str, FieldError | None]
    notice: Notice | None
    price: str | None
    hold_minutes: int
    refund_days: int
    refund_until: dt.datetime | None
    retry_after: int | None
    queue: EventQueue | None
    room: str
    wait: int | None
    released_until: dt.datetime | None
    now: dt.datetime

    @property
    def is_sent_again(self) -> bool:
        """Whether the browser sends the form again by itself, since it was refused for a short time."""
        return self.notice in ("crowded", "busy") and 0 < (self.retry_after or 0) <= MAX_REPEAT_SECONDS


def price_text(event: FormEvent, language: Language) -> str | None:
    """What a seat of an event costs now; None: nothing."""
    if event.pricing_mode == "free":
        return None
    return language.money(event.current_price or 0, event.currency, digits(event.currency))


def form_of(
    event: FormEvent,
    settings: Settings,
    secret: Secret,
    language: Language,
    *,
    refund_days: int,
    queue: EventQueue | None,
    is_released: bool = False,
    released_until: dt.datetime | None = None,
    framed: bool = False,
    values: Mapping[str, str] | None = None,
    errors: Mapping[str, FieldError] | None = None,
    notice: Notice | None = None,
    retry_after: int | None = None,
    form_secret: str | None = None,
) -> Form:
    """The form of an event, for the variable `form` of a page.

    refund_days    the days before the event until which the organizer refunds cancellations
    is_released    whether the waiting room before the event has released the visitor
    """
    status = status_of(event, takes_payments=settings.takes_payments)
    if queue and not is_released and status in ("open", "waiting_list"):
        status = "queue"
    seat_until = cancellation_deadline("registered", event.datetime, event.cancellation_hours, None)
    now = dt.datetime.now(dt.UTC)
    refund_until = refund_deadline(event.datetime, refund_days, seat_until)
    return Form(
        event.id,
        status,
        language.at(f"/events/{event.id}/{'embed' if framed else 'registrations'}"),
        tokens(secret).issue(purpose(event.id)),
        form_secret,
        framed,
        {name: (values or {}).get(name, "")[:MAX_REDISPLAYED_CHARACTERS] for name in FIELDS},
        {name: (errors or {}).get(name) for name in FIELDS},
        notice,
        price_text(event, language),
        settings.hold_minutes,
        refund_days,
        refund_until if refund_until > now else None,
        retry_after,
        queue,
        language.at(f"/queues/{queue.id}{'/embed' if framed else ''}") if queue else "",
        estimated_wait(queue.waiting + 1, queue.rate, settings.queue_interval, 0)
        if queue and queue.status == "open"
        else None,
        released_until,
        now,
    )


def status_of(event: FormEvent, *, takes_payments: bool) -> FormStatus:
    """Whether people can register, or the reason why not."""
    if event.status in ("cancelled", "expired"):
        return event.status
    if event.pricing_mode != "free" and not (event.payouts_ready and takes_payments):
        return "unpayable"
    if event.pricing_mode != "free" and not is_payable(event.current_price or 0, event.currency):
        return "unpayable_price"
    if event.status == "active":
        return "open"
    return "waiting_list" if event.takes_registrations else "full"


def half_hour_number() -> int:
    """The number of the half hour. A page with a form is cached for half an hour, since the form is valid for two
    hours.
    """
    return int(time.time()) // 1800


def tokens(secret: Secret) -> FormTokens:
    return FormTokens(secret.signer("registration forms"))


def purpose(event_id: int) -> str:
    """The purpose that the token of the form of an event is signed for."""
    return f"register for {event_id}"


def form_secret(fields: Mapping[str, str]) -> str:
    """The secret of a form that was sent. A form without one gets a new secret, which no other form has."""
    sent_secret = fields.get(SECRET, "")
    return sent_secret if _SECRET.fullmatch(sent_secret) else secrets.token_hex(16)


def read_fields(
    event_id: int, fields: Mapping[str, str], language: Language, queue_token: str | None
) -> SignUp | dict[str, FieldError]:
    """The command for the typed values, or their errors by field."""
    errors: dict[str, FieldError] = {}
    email, name = fields.get("email", ""), clean_name(fields.get("name", ""))
    if not email:
        errors["email"] = "missing"
    elif usable_address(email) is None:
        errors["email"] = "malformed"
    if name and len(name) > MAX_NAME_CHARACTERS:
        errors["name"] = "long"
    elif name and has_link(name):
        errors["name"] = "link"
    return errors or SignUp(
        event_id=event_id,
        email=email,
        name=name,
        language=language.code,
        secret=form_secret(fields),
        queue_token=queue_token,
    )


class ReleasedVisitor(Struct, frozen=True):
    """A visitor with a release token that is valid by itself. The database knows whether it was used."""

    token: str
    expires_at: dt.datetime


class ReleaseCookie:
    """The cookie of a visitor whom the waiting room before an event has released: it holds the release token.

    It goes with requests for the form of that event and for what belongs to it, all below `/events/<event_id>`. In a
    frame it is partitioned by the top-level site, since browsers allow no other cookie there.

    framed    whether the form is in a frame of another site
    """

    def __init__(self, reader: ReleaseTokenReader, *, is_secure: bool, framed: bool) -> None:
        self._reader = reader
        self._is_secure = is_secure
        self._framed = framed
        # A browser accepts a cookie with this prefix only over HTTPS.
        self._name = f"{'__Secure-' if is_secure else ''}{'framed_' if framed else ''}event_release"

    async def read(self, request: Request, queue_id: int) -> ReleasedVisitor | None:
        """The visitor who sends the request, if the waiting room has released it."""
        token = request.cookies.get(self._name)
        return await self.check(token, queue_id) if token else None

    async def check(self, token: str, queue_id: int) -> ReleasedVisitor | None:
        claims = await self._reader.read(token, queue_id)
        return ReleasedVisitor(token, dt.datetime.fromtimestamp(claims.exp, dt.UTC)) if claims else None

    def header(self, event_id: int, visitor: ReleasedVisitor | None) -> Header:
        """A header that sets the cookie; with None one that removes it."""
        seconds = int((visitor.expires_at - dt.datetime.now(dt.UTC)).total_seconds()) if visitor else 0
        return cookie_header(
            self._name,
            visitor.token if visitor else "",
            path=f"/events/{event_id}",
            seconds=max(0, seconds),
            is_secure=self._is_secure,
            is_framed=self._framed,
        )
