"""The form of an event: its values, the command that typed values stand for, and the preview of its page.

Money is written in major units, such as 12.50, and dates in the local time of the event's time zone. A preview stores
nothing. In it a value that is missing or wrong is None, and the page says what will be there.
"""

import datetime as dt
import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

import msgspec
from markupsafe import Markup
from msgspec import Struct

from holdfast.events.console.local_moments import local_text, moment_of
from holdfast.events.events.model import EventRow
from holdfast.events.events.time_zones import ZONES
from holdfast.events.pages.cover import cover_svg
from holdfast.events.photos.model import ImageAttributes
from holdfast.events.pricing.model import errors_of_price
from holdfast.events.processor.currencies import CURRENCIES, digits, is_payable
from holdfast.events.texts.rendered_text import one_line
from holdfast.kit.contract.command import Errors
from holdfast.kit.contract.messages import Message, message, translatable
from holdfast.kit.pages.forms import form_errors

PRICES = ("price", "min_price", "max_price")
NUMBERS = ("capacity", "waitinglist_capacity", "recurrence_interval", "cancellation_hours")
TEXTS = ("title", "body", "location_name", "address", "recurrence_frequency", "pricing_mode", "currency")
DEGREES = ("latitude", "longitude")
MOMENTS = ("datetime", "ends_at", "opens_at")
NAMES = (*TEXTS, *MOMENTS, "timezone", "public_log", *NUMBERS, *PRICES, *DEGREES)
"""The names of the fields, which are also the fields of the commands."""

MORE_NAMES = ("cancellation_hours", "recurrence_frequency", "recurrence_interval", "opens_at", "public_log", *DEGREES)
"""The names of the fields behind "More options", without the time zone: the preview says which that is."""

NEW_FORM_VALUES = {
    **dict.fromkeys(NAMES, ""),
    "currency": "USD",
    "recurrence_frequency": "none",
    "recurrence_interval": "1",
    "cancellation_hours": "0",
    "public_log": "yes",
}
"""The values in the form of a new event, unless other defaults are known."""

WAITING_LIST_SHARE = 10
"""A new event has one place on its waiting list for this many seats, unless the organizer enters another number."""

MIN_WAITING_LIST_PLACES = 5
"""The fewest places on a waiting list that the form of a new event proposes."""

EVENT_LABELS = {
    "title": translatable("Title"),
    "datetime": translatable("Date and time"),
    "ends_at": translatable("Ends"),
    "timezone": translatable("Time zone"),
    "recurrence_frequency": translatable("Repeats"),
    "recurrence_interval": translatable("Interval"),
    "location_name": translatable("Place"),
    "address": translatable("Address"),
    "latitude": translatable("Map pin: degrees north"),
    "longitude": translatable("Map pin: degrees east"),
    "capacity": translatable("Seats"),
    "waitinglist_capacity": translatable("Waiting list"),
    "body": translatable("Description"),
    "cancellation_hours": translatable("Cancelling is possible until (hours before it begins)"),
    "opens_at": translatable("Draw lots among all who register by"),
    "public_log": translatable("Publish the order of registrations"),
    "pricing_mode": translatable("The price moves with demand"),
    "currency": translatable("Currency"),
    "price": translatable("Price"),
    "min_price": translatable("Lowest price"),
    "max_price": translatable("Highest price"),
}
"""The labels of the fields."""

INSTRUCTIONS = {
    "title": message("Enter a title, such as Summer concert."),
    "body": message("Enter a text, such as: We draw for two hours. Bring a pencil."),
    "datetime": message("Enter a date and a time."),
    "opens_at": message("Enter a date and a time."),
    "recurrence_interval": message("Enter a whole number, such as 2."),
    "capacity": message("Enter a number of seats, such as 30."),
    "waitinglist_capacity": message("Enter a number of places, such as 10."),
    "cancellation_hours": message("Enter a number of hours, such as 24."),
    "latitude": message("Enter degrees north, such as 52.52."),
    "longitude": message("Enter degrees east, such as 13.405."),
    "currency": message("Enter the three letters of a currency, such as EUR."),
    "price": message("Enter an amount, such as 12.50."),
    "min_price": message("Enter an amount, such as 8.00."),
    "max_price": message("Enter an amount, such as 20.00."),
}
"""What people enter in the fields, by name."""

_AREAS = ("Africa/", "America/", "Antarctica/", "Asia/", "Atlantic/", "Australia/", "Europe/", "Indian/", "Pacific/")

CHOICES = {
    "timezone": {"": "UTC", **{name: name.replace("_", " ") for name in sorted(ZONES) if name.startswith(_AREAS)}},
    "recurrence_frequency": {
        "none": translatable("never"),
        "days": translatable("daily"),
        "weeks": translatable("weekly"),
        "months": translatable("monthly"),
        "years": translatable("yearly"),
    },
    "public_log": {"yes": translatable("yes"), "no": translatable("no")},
}
"""The labels of the values, for fields with few values."""

_INTEGER = re.compile("-?[0-9]{1,19}")
_AMOUNT = re.compile("([0-9]{1,15})(?:[.,]([0-9]+))?")
_DEGREES = re.compile("-?[0-9]{1,3}(?:[.,][0-9]{1,15})?")


def field_values(event: EventRow) -> dict[str, str]:
    """The values that the fields show for an event."""
    values = {name: str(getattr(event, name) or "") for name in (*TEXTS, "timezone")}
    values |= {name: str(getattr(event, name)) for name in NUMBERS}
    values["public_log"] = "yes" if event.public_log else "no"
    values |= {name: "" if (at := getattr(event, name)) is None else format(at, ".15g") for name in DEGREES}
    values |= {name: amount_text(getattr(event, name), event.currency) for name in PRICES}
    if event.pricing_mode == "free":
        values["price"] = ""
    values |= {name: local_text(getattr(event, name), event.timezone, "minutes") for name in MOMENTS}
    return {name: _as_sent(text) for name, text in values.items()}


def with_seconds(values: Mapping[str, str], event: EventRow) -> dict[str, str]:
    """The values, with the exact moments of the event where they are as `field_values` shows them."""
    displayed = field_values(event)
    unchanged = {name for name in MOMENTS if values.get(name) == displayed[name]}
    return {**values, **{name: local_text(getattr(event, name), event.timezone, "auto") for name in unchanged}}


def version_of(event: EventRow) -> str:
    """A digest of the values that the fields show. It changes whenever one of them changes."""
    return sha256(msgspec.json.encode(field_values(event), order="sorted")).hexdigest()[:32]


def is_more_open(values: Mapping[str, str], errors: Mapping[str, Sequence[str]]) -> bool:
    """Whether "More options" shows something to see: an error, or a value that a new event does not have."""
    is_wrong = any(errors.get(name) for name in (*MORE_NAMES, "timezone"))
    # How often an event repeats says nothing while it does not repeat.
    is_once = values.get("recurrence_frequency", "none") == "none"
    names = [name for name in MORE_NAMES if not (is_once and name == "recurrence_interval")]
    return is_wrong or any(values.get(name, NEW_FORM_VALUES[name]) != NEW_FORM_VALUES[name] for name in names)


def typed_values(fields: Mapping[str, str]) -> dict[str, str]:
    """The typed values of a sent form."""
    return {name: _as_sent(fields[name]) for name in NAMES if name in fields}


def with_pricing_mode(values: Mapping[str, str]) -> dict[str, str]:
    """The values of a new event with its pricing mode: the form has a box for a price that moves, and no other field.

    Without the box an event is free if there is no price, or if it is 0; else it has one price for all.
    """
    price = values.get("price", "")
    mode = "fixed" if price.strip("0.,") or price in (".", ",") else "free"
    return {**values, "pricing_mode": values.get("pricing_mode") or mode}


def waiting_list_places(capacity: int) -> int:
    """How many places the form of a new event proposes for the waiting list."""
    return max(MIN_WAITING_LIST_PLACES, -(-capacity // WAITING_LIST_SHARE))


def command_values(values: Mapping[str, str], event: EventRow | None = None) -> tuple[dict[str, Any], Errors]:
    """The fields of a command for typed values, and by field the errors of values that cannot be read.

    A price that cannot be paid by card is an error here. The API accepts it, since its callers may be paid otherwise.

    event    the event to edit: its form has no fields for the currency and the pricing mode
    """
    raw: dict[str, Any] = {name: text or None for name, text in values.items()}
    errors: Errors = {}
    for name in values.keys() & set(NUMBERS):
        raw[name] = int(values[name]) if _INTEGER.fullmatch(values[name]) else raw[name]
    if event is None and not values.get("waitinglist_capacity") and isinstance(capacity := raw.get("capacity"), int):
        raw["waitinglist_capacity"] = waiting_list_places(capacity)
    for name in values.keys() & set(DEGREES):
        raw[name] = float(values[name].replace(",", ".")) if _DEGREES.fullmatch(values[name]) else raw[name]
    if "public_log" in values:
        raw["public_log"] = {"yes": True, "no": False}.get(values["public_log"], raw["public_log"])
    if values.get("pricing_mode") == "free":
        raw["price"] = raw.get("price") or 0
    currency = event.currency if event else values.get("currency", "")
    is_free = (event.pricing_mode if event else values.get("pricing_mode")) == "free"
    decimals = digits(currency)
    for name in values.keys() & set(PRICES):
        if values[name]:
            raw[name] = minor_units(values[name], decimals)
            if raw[name] is None:
                example = "1250" if not decimals else f"12.{'50'.ljust(decimals, '0')}"
                errors[name] = [message("Enter an amount, such as %(example)s.", example=example)]
            elif raw[name] and not is_free and (wrong := _why_not_payable(raw[name], currency)):
                errors[name] = [_sentence(wrong)]
    for name in values.keys() & set(MOMENTS):
        if values[name]:
            raw[name] = moment_of(values[name], values.get("timezone", ""))
            if raw[name] is None:
                errors[name] = [message("Enter a date and a time that exist in the chosen time zone.")]
    return raw, errors


def errors_in_words(errors: Mapping[str, Sequence[str]], raw: Mapping[str, Any], mode: Any) -> dict[str, Sequence[str]]:
    """The errors as sentences. Messages about prices do not mention minor units."""
    words = {
        ("free", "price"): message("must be empty or 0 for a free event"),
        ("fixed", "price"): message("must be more than 0, such as 12.50: an event with a price cannot become free"),
        ("dynamic", "price"): message("must lie between the lowest and the highest price"),
        ("dynamic", "min_price"): message("is needed for a price that moves, such as 8.00"),
        ("dynamic", "max_price"): message(
            "is needed for a price that moves, such as 20.00, and must be above the lowest price"
        ),
    }
    price, lowest, highest = (value if isinstance(value := raw.get(name), int) else None for name in PRICES)
    broken = errors_of_price(mode, price or 0, lowest, highest) if mode in {"free", "fixed", "dynamic"} else {}
    return {
        name: [
            _sentence(error)
            for error in ([words[mode, name]] if (mode, name) in words and name in broken else messages)
        ]
        for name, messages in form_errors(errors, INSTRUCTIONS).items()
    }


def _sentence(error: str) -> str:
    """An error as a sentence: the API says what is wrong with a field without a subject, such as "must be later"."""
    if not isinstance(error, Message) or not error.text.startswith(("must ", "is ", "needs ", "cannot ")):
        return error
    return message("This %(refusal)s.", refusal=error)


def amount_text(minor: int | None, currency: str) -> str:
    """An amount as a field shows it, such as 12.50. Empty for None."""
    if minor is None:
        return ""
    decimals = digits(currency)
    major, part = divmod(minor, 10**decimals)
    return f"{major}.{part:0{decimals}}" if decimals else str(major)


def minor_units(text: str, decimals: int) -> int | None:
    """A typed amount in minor units. None if it is not an amount, or if its separator could be one of thousands."""
    match = _AMOUNT.fullmatch(text)
    if not match or len(match[2] or "") > decimals:
        return None
    return int(match[1] + (match[2] or "").ljust(decimals, "0"))


def _why_not_payable(minor: int, currency: str) -> str | None:
    """The reason why an amount cannot be paid by card; None if it can, or if the currency is unknown."""
    rules = CURRENCIES.get(currency)
    if rules is None or is_payable(minor, currency):
        return None
    if minor < rules.min_amount:
        least = f"{amount_text(rules.min_amount, currency)} {currency}"
        return message("must be at least %(least)s, so that it can be paid by card", least=least)
    if minor > rules.max_amount:
        return message("must be less, so that it can be paid by card")
    near = f"{amount_text(minor // rules.unit * rules.unit, currency)} {currency}"
    return message("must end in 0, such as %(near)s, so that it can be paid by card", near=near)


def _as_sent(text: str) -> str:
    """A text as a form sends it, but with `\\n` as line end and without outer spaces."""
    return text.replace("\r\n", "\n").replace("\r", "\n").strip()


PREVIEW_PART = "preview_part"
"""The value of `do` with which the script of a form asks for the preview alone."""

PREVIEW_SCRIPTS = ("form_preview.js", "console/events/preview.js")

MAX_TITLE_CHARACTERS = 300
MAX_PREVIEW_SEATS = 10_000_000


class EventPreview(Struct, frozen=True):
    """What the page of an event will show.

    zone       the time zone of the moments
    waiting    the number of places on the waiting list; None: not known yet
    price      the price in minor units; 0: free; None: not known yet
    bounds     the lowest and the highest price of a price that moves
    seats      the number of seats; `left`: how many of them are free
    photo      the photo above the title; None: the cover is drawn from the title
    """

    title: str
    starts_at: dt.datetime | None
    ends_at: dt.datetime | None
    zone: str
    location_name: str
    address: str
    price: int | None
    bounds: tuple[int, int] | None
    currency: str
    seats: int | None
    left: int
    waiting: int | None
    photo: ImageAttributes | None
    cover: Markup


def preview_of(values: Mapping[str, str], photo: ImageAttributes | None, event: EventRow | None = None) -> EventPreview:
    """The preview for typed values. `event`: the event to edit; None: a new one."""
    raw, errors = command_values(values, event)
    valid_values = {name: value for name, value in raw.items() if name not in errors}
    starts_at, ends_at = (_moment(valid_values.get(name)) for name in ("datetime", "ends_at"))
    mode = event.pricing_mode if event else values.get("pricing_mode", "")
    currency = event.currency if event else values.get("currency", "")
    price, lowest, highest = (_count(valid_values.get(name)) for name in ("price", "min_price", "max_price"))
    is_bounded = mode == "dynamic" and lowest is not None and highest is not None and lowest < highest
    seats = _count(valid_values.get("capacity"))
    title = one_line(values.get("title", ""), MAX_TITLE_CHARACTERS)
    return EventPreview(
        title=title,
        starts_at=starts_at,
        ends_at=ends_at if starts_at and ends_at and starts_at < ends_at else None,
        zone=zone if (zone := values.get("timezone", "")) in ZONES else "UTC",
        location_name=values.get("location_name", ""),
        address=values.get("address", ""),
        price=0 if mode == "free" else price if currency in CURRENCIES else None,
        bounds=(lowest, highest) if is_bounded and lowest is not None and highest is not None else None,
        currency=currency,
        seats=seats if seats and seats <= MAX_PREVIEW_SEATS else None,
        left=max(0, (seats or 0) - (event.registered_count if event else 0)),
        waiting=_count(valid_values.get("waitinglist_capacity")),
        photo=photo,
        cover=cover_svg(title),
    )


def _moment(value: object) -> dt.datetime | None:
    """A moment of the command. None outside the years that an event may have, which every zone can show."""
    moment = dt.datetime.fromisoformat(value) if isinstance(value, str) else None
    return moment if moment and 1970 <= moment.year < 9000 else None


def _count(value: object) -> int | None:
    """A number of the command that is not negative."""
    return value if isinstance(value, int) and value >= 0 else None
