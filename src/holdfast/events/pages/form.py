"""The registration form: what it shows, and whether what was typed into it can be taken.

It is part of the page of an event, and a page of its own for a frame in any site. It needs no cookie and no key.
"""

import time
from collections.abc import Mapping
from typing import Literal, Protocol

from msgspec import Struct

from holdfast.events.processor.currencies import is_payable
from holdfast.events.registrations.sign_up import LONGEST_NAME, SignUp, has_link, is_address, written
from holdfast.events.settings import Settings
from holdfast.kit.pages.forms import FormTokens
from holdfast.kit.pages.language import Language
from holdfast.kit.secrets import Secret

State = Literal["open", "waiting_list", "full", "cancelled", "expired", "unpayable", "unpayable_price"]
Wrong = Literal["missing", "malformed", "long", "link"]
Notice = Literal["old", "unseen", "moved", "crowded", "busy"]

FIELDS = ("email", "name")
TOKEN = "token"  # noqa: S105 - the name of a field
DECOY = "website"
"""A field that people do not see; only programs fill it in."""

LONGEST_KEPT = 300
"""The most characters of a value that the form shows again."""


class Open(Protocol):
    """What a form needs to know of its event."""

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


class Form(Struct):
    """The values for the template `pages/form.html`.

    action         the path that the form is sent to
    token          is good for two hours: a page with a form may be kept for one at most
    values         what was typed before, by the names of the fields
    errors         what is wrong with it, by the names of the fields
    notice         why the form is shown again
    is_paid        whether the seat has to be paid
    hold_minutes   for how long it is held then
    retry_after    seconds to wait before it is sent again
    """

    event_id: int
    state: State
    action: str
    token: str
    framed: bool
    values: Mapping[str, str]
    errors: Mapping[str, Wrong | None]
    notice: Notice | None
    is_paid: bool
    hold_minutes: int
    retry_after: int | None


def form_of(
    event: Open,
    settings: Settings,
    secret: Secret,
    language: Language,
    *,
    framed: bool = False,
    values: Mapping[str, str] | None = None,
    errors: Mapping[str, Wrong] | None = None,
    notice: Notice | None = None,
    retry_after: int | None = None,
) -> Form:
    """The form of an event, to be included in a page as `form`."""
    return Form(
        event.id,
        state_of(event, takes_payments=settings.takes_payments),
        language.at(f"/events/{event.id}/{'embed' if framed else 'registrations'}"),
        tokens(secret).issue(purpose(event.id)),
        framed,
        {name: (values or {}).get(name, "")[:LONGEST_KEPT] for name in FIELDS},
        {name: (errors or {}).get(name) for name in FIELDS},
        notice,
        event.pricing_mode != "free",
        settings.hold_minutes,
        retry_after,
    )


def state_of(event: Open, *, takes_payments: bool) -> State:
    """Whether people can register, and else why not."""
    if event.status in ("cancelled", "expired"):
        return event.status
    if event.pricing_mode != "free" and not (event.payouts_ready and takes_payments):
        return "unpayable"
    if event.pricing_mode != "free" and not is_payable(event.current_price or 0, event.currency):
        return "unpayable_price"
    if event.status == "active":
        return "open"
    return "waiting_list" if event.takes_registrations else "full"


def period() -> int:
    """Changes every half an hour: for so long a page with a form is kept, since the form is good for two hours."""
    return int(time.time()) // 1800


def tokens(secret: Secret) -> FormTokens:
    return FormTokens(secret.signer("registration forms"))


def purpose(event_id: int) -> str:
    """What the token of the form of an event is for."""
    return f"register for {event_id}"


def checked(event_id: int, fields: Mapping[str, str], language: Language) -> SignUp | dict[str, Wrong]:
    """What the fields ask for, or what is wrong with them."""
    errors: dict[str, Wrong] = {}
    email, name = fields.get("email", ""), written(fields.get("name", ""))
    if not email:
        errors["email"] = "missing"
    elif not is_address(email):
        errors["email"] = "malformed"
    if name and len(name) > LONGEST_NAME:
        errors["name"] = "long"
    elif name and has_link(name):
        errors["name"] = "link"
    return errors or SignUp(event_id=event_id, email=email, name=name, language=language.code)
