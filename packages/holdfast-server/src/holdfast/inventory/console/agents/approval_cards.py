"""What a request of an agent sets, field by field, in the words of the forms of the console."""

from collections.abc import Mapping
from typing import Any

from msgspec import UNSET

from holdfast.accounts.agents.agents_page import FieldChange, RequestCard
from holdfast.accounts.agents.approvals import WaitingRequest
from holdfast.accounts.sessions import Session
from holdfast.inventory.console.pools.pool_form_pages import POLICIES, POOL_LABELS
from holdfast.inventory.site import SITE
from holdfast.kit.contract.messages import translatable
from holdfast.kit.http.handler import Request
from holdfast.kit.pages.language import Language, language_of

OTHER_LABELS: Mapping[str, str] = {
    "allow_negative": translatable("May go below zero"),
    "release_variants": translatable("Unlink its variants as well"),
    "text": translatable("Spreadsheet"),
    "order_reference": translatable("Order"),
    "reference": translatable("What it is for"),
    "reason": translatable("Reason"),
}
"""The labels of fields that no form has, or that are no hint about what to type here."""

SETTINGS = ("name", "unit", "buffer", "low_stock_at", "policy", "allow_negative")
NOTES = ("release_variants", "text", "order_reference", "reference", "reason")
MAX_TEXT = 300


async def describe(session: Session, request: Request, waiting_request: WaitingRequest) -> RequestCard:
    """The card of a request, in the language of the page."""
    return card_of(waiting_request, language_of(request))


def card_of(waiting_request: WaitingRequest, language: Language) -> RequestCard:
    """The card of a request, in a language."""
    texts, command, facts = SITE.texts(language), waiting_request.command, waiting_request.facts
    labels = {**POOL_LABELS, **OTHER_LABELS}
    changes: list[FieldChange] = []
    unit = "".join(pool["unit"] for pool in facts["pools"].values())
    if waiting_request.operation == "update_pool":
        pool = facts["pools"].get(str(command.pool_id), {})
        changes += [
            FieldChange(
                texts.gettext(labels[name]),
                _text(pool.get(name), language),
                _text(getattr(command, name), language) or texts.gettext(translatable("empty")),
            )
            for name in SETTINGS
            if getattr(command, name) not in (UNSET, pool.get(name))
        ]
    for item in getattr(command, "items", ()):
        pool = facts["pools"].get(str(item.pool_id))
        if pool:
            after = pool["on_hand"] + item.delta
            changes.append(FieldChange(pool["name"], language.number(pool["on_hand"]), language.number(after)))
    for member in getattr(command, "members", ()):
        units = getattr(command, "unit", None) or unit
        changes.append(
            FieldChange(
                facts["variants"].get(member.variant_gid, member.variant_gid),
                "",
                f"{language.number(member.units_per_sale)} {units}",
            )
        )
    for gid in getattr(command, "variant_gids", ()):
        changes.append(FieldChange(texts.gettext("Variant"), "", facts["variants"].get(gid, gid)))
    for name in NOTES:
        if value := getattr(command, name, None):
            changes.append(FieldChange(texts.gettext(labels[name]), "", _text(value, language)))
    return RequestCard(request=waiting_request, changes=changes)


def _text(value: Any, language: Language) -> str:
    match value:
        case None:
            return ""
        case bool():
            return SITE.texts(language).gettext(translatable("yes") if value else translatable("no"))
        case int():
            return language.number(value)
        case _:
            text = SITE.texts(language).gettext(POLICIES[value]) if value in POLICIES else str(value)
            return text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 1]}…"
