"""The form of an event: what its fields show, and what they ask for when they come back.

Money is written as people write it, 12.50, and dates by the clock of the event's time zone.
"""

import datetime as dt
import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

import msgspec

from holdfast.events.events.model import EventRow
from holdfast.events.events.zones import ZONES, zone
from holdfast.events.pricing.model import misfits
from holdfast.events.processor.currencies import CURRENCIES, digits, is_payable
from holdfast.kit.command import Errors
from holdfast.kit.pages.language import clocked
from holdfast.kit.said import marked, said

PRICES = ("price", "min_price", "max_price")
NUMBERS = ("capacity", "waitinglist_capacity", "recurrence_interval", "cancellation_hours")
TEXTS = ("title", "body", "location_name", "address", "recurrence_frequency", "pricing_mode", "currency")
DEGREES = ("latitude", "longitude")
NAMES = (*TEXTS, "datetime", "timezone", *NUMBERS, *PRICES, *DEGREES)
"""The names of the fields. They are those of the commands."""

EMPTY = {
    **dict.fromkeys(NAMES, ""),
    "pricing_mode": "free",
    "currency": "USD",
    "waitinglist_capacity": "0",
    "recurrence_frequency": "none",
    "recurrence_interval": "1",
    "cancellation_hours": "0",
}
"""What the form of a new event shows, where nothing better is known."""

LABELS = {
    "title": marked("Title"),
    "body": marked("Description"),
    "datetime": marked("Date and time"),
    "timezone": marked("Time zone"),
    "recurrence_frequency": marked("Repeats"),
    "recurrence_interval": marked("Every how many"),
    "location_name": marked("Name of the place (optional)"),
    "address": marked("Address (optional)"),
    "latitude": marked("Map pin: degrees north (optional)"),
    "longitude": marked("Map pin: degrees east (optional)"),
    "capacity": marked("Places"),
    "waitinglist_capacity": marked("Places on the waiting list"),
    "cancellation_hours": marked("People can cancel until so many hours before"),
    "pricing_mode": marked("Kind of price"),
    "currency": marked("Currency"),
    "price": marked("Price"),
    "min_price": marked("Lowest price (if it moves)"),
    "max_price": marked("Highest price (if it moves)"),
}
"""What stands above the fields."""

_AREAS = ("Africa/", "America/", "Antarctica/", "Asia/", "Atlantic/", "Australia/", "Europe/", "Indian/", "Pacific/")

CHOICES = {
    "timezone": {"": "UTC", **{name: name.replace("_", " ") for name in sorted(ZONES) if name.startswith(_AREAS)}},
    "recurrence_frequency": {
        "none": marked("never"),
        "days": marked("every so many days"),
        "weeks": marked("every so many weeks"),
        "months": marked("every so many months"),
        "years": marked("every so many years"),
    },
    "pricing_mode": {
        "free": marked("free"),
        "fixed": marked("one price for all"),
        "dynamic": marked("a price that moves with demand"),
    },
}
"""What the values of fields are called that have a few values only."""

_INTEGER = re.compile("-?[0-9]{1,19}")
_AMOUNT = re.compile("([0-9]{1,15})(?:[.,]([0-9]+))?")
_DEGREES = re.compile("-?[0-9]{1,3}(?:[.,][0-9]{1,15})?")
_LOCAL = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?")


def shown(event: EventRow) -> dict[str, str]:
    """What the fields show of an event."""
    values = {name: str(getattr(event, name) or "") for name in (*TEXTS, "timezone")}
    values |= {name: str(getattr(event, name)) for name in NUMBERS}
    values |= {name: "" if (at := getattr(event, name)) is None else format(at, ".15g") for name in DEGREES}
    values |= {name: amount(getattr(event, name), event.currency) for name in PRICES}
    return {name: _as_sent(text) for name, text in {**values, "datetime": _local(event)}.items()}


def version(event: EventRow) -> str:
    """Changes whenever something changes that the fields show."""
    return sha256(msgspec.json.encode(shown(event), order="sorted")).hexdigest()[:32]


def typed(fields: Mapping[str, str]) -> dict[str, str]:
    """What somebody typed into the fields."""
    return {name: _as_sent(fields[name]) for name in NAMES if name in fields}


def asked(values: Mapping[str, str], event: EventRow | None = None) -> tuple[dict[str, Any], Errors]:
    """What typed values ask for, as a command takes it; and by field what is wrong with those it cannot take.

    A price that nobody could pay by card is refused here, though the API takes it: its callers may be paid otherwise.

    event    the event that is edited: its form names no currency and no kind of price
    """
    raw: dict[str, Any] = {name: text or None for name, text in values.items()}
    errors: Errors = {}
    for name in values.keys() & set(NUMBERS):
        raw[name] = int(values[name]) if _INTEGER.fullmatch(values[name]) else raw[name]
    for name in values.keys() & set(DEGREES):
        raw[name] = float(values[name].replace(",", ".")) if _DEGREES.fullmatch(values[name]) else raw[name]
    if values.get("pricing_mode") == "free":
        raw["price"] = raw.get("price") or 0
    currency = event.currency if event else values.get("currency", "")
    is_free = (event.pricing_mode if event else values.get("pricing_mode")) == "free"
    places = digits(currency)
    for name in values.keys() & set(PRICES):
        if values[name]:
            raw[name] = minor(values[name], places)
            if raw[name] is None:
                example = "1250" if not places else f"12.{'50'.ljust(places, '0')}"
                errors[name] = [said("must be an amount such as %(example)s", example=example)]
            elif raw[name] and not is_free and (wrong := _why_not_payable(raw[name], currency)):
                errors[name] = [wrong]
    if values.get("datetime"):
        raw["datetime"] = _moment(values["datetime"], values.get("timezone", ""))
        if raw["datetime"] is None:
            errors["datetime"] = [
                said("must be a date and a time that the clocks of the time zone show, such as 2030-01-31T18:00")
            ]
    return raw, errors


def in_words(errors: Mapping[str, Sequence[str]], raw: Mapping[str, Any], mode: Any) -> dict[str, Sequence[str]]:
    """The same errors, with those of prices in words instead of minor units."""
    words = {
        ("free", "price"): said("must be empty or 0 for a free event"),
        ("fixed", "price"): said("must be more than 0; choose “free” for an event that costs nothing"),
        ("dynamic", "price"): said("must lie between the lowest and the highest price"),
        ("dynamic", "min_price"): said("is needed for a price that moves"),
        ("dynamic", "max_price"): said("is needed for a price that moves, and must be above the lowest price"),
    }
    price, lowest, highest = (each if isinstance(each := raw.get(name), int) else None for name in PRICES)
    broken = misfits(mode, price or 0, lowest, highest) if mode in {"free", "fixed", "dynamic"} else {}
    return {
        name: [words[mode, name]] if name in broken and (mode, name) in words else messages
        for name, messages in errors.items()
    }


def amount(minor: int | None, currency: str) -> str:
    """An amount as it stands in a field: 12.50. Empty for none."""
    if minor is None:
        return ""
    places = digits(currency)
    whole, part = divmod(minor, 10**places)
    return f"{whole}.{part:0{places}}" if places else str(whole)


def minor(text: str, places: int) -> int | None:
    """An amount in minor units. None if it is none, or if one could take its point for one between thousands."""
    found = _AMOUNT.fullmatch(text)
    if not found or len(found[2] or "") > places:
        return None
    return int(found[1] + (found[2] or "").ljust(places, "0"))


def _why_not_payable(minor: int, currency: str) -> str | None:
    """Why an amount cannot be paid by card; None if it can, or if it is of no currency that we know."""
    rules = CURRENCIES.get(currency)
    if rules is None or is_payable(minor, currency):
        return None
    if minor < rules.least:
        least = f"{amount(rules.least, currency)} {currency}"
        return said("must be at least %(least)s, so that it can be paid by card", least=least)
    if minor > rules.most:
        return said("must be less, so that it can be paid by card")
    near = f"{amount(minor // rules.unit * rules.unit, currency)} {currency}"
    return said("must end in 0, such as %(near)s, so that it can be paid by card", near=near)


def _moment(text: str, name: str) -> str | None:
    """The moment of a date in a time zone. None if it is no date, or if the clocks leave it out."""
    if not _LOCAL.fullmatch(text):
        return None
    # What is wrong with the name of a time zone is said beside that field.
    there = zone(name if name in ZONES else None)
    try:
        clock = dt.datetime.fromisoformat(text)
        moment = clock.replace(tzinfo=there).astimezone(dt.UTC)
        back = moment.astimezone(there).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return None
    return moment.isoformat() if back == clock else None


def _local(event: EventRow) -> str:
    """The date of an event by the clock of its time zone, to the minute where that is all."""
    local = clocked(event.datetime, event.timezone or "UTC").replace(tzinfo=None, fold=0)
    return local.isoformat(timespec="auto" if local.second or local.microsecond else "minutes")


def _as_sent(text: str) -> str:
    """A text as a form sends it, apart from how its lines end."""
    return text.replace("\r\n", "\n").replace("\r", "\n").strip()
