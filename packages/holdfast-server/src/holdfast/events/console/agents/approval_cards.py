"""What a request of an agent sets, field by field, in the words of the forms of the console."""

import datetime as dt
from collections.abc import Mapping
from typing import Any

from msgspec import UNSET, structs

from holdfast.accounts.agents.agents_page import FieldChange, RequestCard
from holdfast.accounts.agents.approvals import WaitingRequest
from holdfast.accounts.sessions import Session
from holdfast.events.console.events.event_form import EVENT_LABELS
from holdfast.events.console.queues.queues_pages import QUEUE_LABELS
from holdfast.events.processor.currencies import digits
from holdfast.events.site import SITE
from holdfast.kit.contract.messages import translatable
from holdfast.kit.http.handler import Request
from holdfast.kit.pages.language import Language, language_of

OTHER_LABELS: Mapping[str, str] = {
    "status": translatable("Status"),
    "amount_paid": translatable("Amount paid"),
    "active": translatable("Lets people in"),
    "published": translatable("Published"),
    "image_keys": translatable("Photos"),
    "notify": translatable("Tell the person by e-mail what happens"),
}
"""The labels of fields that no form has."""

OWN_LABELS: Mapping[str, str] = {"pricing_mode": translatable("Kind of price")}
"""The labels of fields that forms show by other words."""

STATUSES: Mapping[str, str] = {
    "registered": translatable("registered"),
    "waitlisted": translatable("on the waiting list"),
    "none": translatable("never"),
    "days": translatable("daily"),
    "weeks": translatable("weekly"),
    "months": translatable("monthly"),
    "years": translatable("yearly"),
    "free": translatable("free"),
    "fixed": translatable("fixed price"),
    "dynamic": translatable("the price moves with demand"),
}
"""The words for values that programs name."""

MONEY = frozenset({"price", "min_price", "max_price", "amount_paid"})
IDS = frozenset({"event_id", "user_id", "queue_id", "id", "email", "key", "url", "queue_token", "organizer_id"})
MADE = frozenset({"create_event", "create_queue"})
"""The operations that make something: fields with their default are left out."""

MAX_TEXT = 300


async def describe(session: Session, request: Request, waiting_request: WaitingRequest) -> RequestCard:
    """The card of a request, in the language of the page."""
    return card_of(waiting_request, language_of(request))


def card_of(waiting_request: WaitingRequest, language: Language) -> RequestCard:
    """The card of a request, in a language."""
    texts, command = SITE.texts(language), waiting_request.command
    labels = {
        **(
            QUEUE_LABELS
            if hasattr(command, "queue_id") or waiting_request.operation == "create_queue"
            else EVENT_LABELS
        )
    }
    labels = {**OTHER_LABELS, **labels, **OWN_LABELS}
    event: Mapping[str, Any] = waiting_request.facts.get("event") or {}
    before: Mapping[str, Any] = {
        **(waiting_request.facts.get("person") or {}),
        **(waiting_request.facts.get("before") or {}),
        **(event.get("before") or {}),
    }
    currency = getattr(command, "currency", None) or event.get("currency") or ""
    zone = getattr(command, "timezone", None) or event.get("timezone") or ""
    is_free = waiting_request.operation in MADE and getattr(command, "pricing_mode", None) == "free"
    if is_free:
        labels["pricing_mode"] = EVENT_LABELS["price"]
    changes: list[FieldChange] = []
    for field in structs.fields(command):
        name, value = field.name, getattr(command, field.name)
        is_left_out = value is UNSET or name in IDS or (waiting_request.operation in MADE and value == field.default)
        if is_left_out or (value in (None, []) and name not in before) or (is_free and name == "price"):
            continue
        words = [
            _text(name, side, currency, zone or "UTC", language)
            for side in (before.get(name), value)
            if side is not UNSET
        ]
        old, new = [texts.gettext(STATUSES[word]) if word in STATUSES else word for word in words]
        if name in before and old == new:
            continue
        label = texts.gettext(labels.get(name) or name)
        moment = value if isinstance(value, dt.datetime) and not zone else None
        changes.append(FieldChange(label, old if name in before else "", new or texts.gettext("empty"), moment))
    return RequestCard(request=waiting_request, changes=changes)


def _text(name: str, value: Any, currency: str, zone: str, language: Language) -> str:
    """A value as people write it. Stored moments are texts of ISO 8601."""
    match value:
        case None:
            return ""
        case bool():
            return SITE.texts(language).gettext(translatable("yes") if value else translatable("no"))
        case int() if name in MONEY and currency:
            return language.money(value, currency, digits(currency))
        case int():
            return language.number(value)
        case float():
            return format(value, ".15g")
        case dt.datetime():
            return language.moment(value, zone)
        case str() if name in {"datetime", "ends_at", "opens_at", "starts_at", "draw_at"}:
            return language.moment(dt.datetime.fromisoformat(value), zone)
        case list():
            return language.number(len(value))  # pyright: ignore[reportUnknownArgumentType]
        case _:
            text = str(value)
            return text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 1]}…"
