"""Lists of the API in pages, and the expansion of members of objects."""

from collections.abc import Sequence
from typing import cast

from holdfast_demo.stripe.errors import StripeRefusal, missing
from holdfast_demo.stripe.platform_state import ProcessorState, list_object
from holdfast_demo.stripe.store import Thing

MAX_EXPAND_DEPTH = 4

KINDS = {
    "payment_intent": "payment_intent",
    "latest_charge": "charge",
    "charge": "charge",
    "transfer": "transfer",
    "application_fee": "application_fee",
    "source_transaction": "charge",
    "originating_transaction": "charge",
    "transfer_reversal": "transfer_reversal",
    "source_refund": "refund",
}
"""The members that can be expanded, and the kinds of objects that they name."""

PAGING = frozenset("limit starting_after ending_before expand".split())


def page(world: ProcessorState, kind: str, path: str, params: Thing) -> Thing:
    """A page of the list of a kind, newest first. Raises `StripeRefusal`.

    params    the position and size of the page, and the values that members must have
    """
    max_count = params.get("limit", 10)
    if not 1 <= max_count <= 100:
        raise StripeRefusal("Limit can range between 1 and 100.", code="parameter_invalid_integer", param="limit")
    after, before = params.get("starting_after", ""), params.get("ending_before", "")
    if after and before:
        raise StripeRefusal("Only one of starting_after and ending_before can be given.", param="ending_before")
    created = params.get("created", {})
    bounds = {"gte": created, "lte": created} if isinstance(created, int) else created
    equal = {name: value for name, value in params.items() if name not in PAGING | {"created"}}
    result = world.store.page(kind, equal, bounds, after=after, before=before, max_count=max_count)
    answer = list_object(result.things, path, result.has_more)
    return with_expansions(world, answer, params.get("expand", ()))


def with_expansions(world: ProcessorState, thing: Thing, paths: Sequence[str]) -> Thing:
    """An object with some members expanded, such as `payment_intent.latest_charge`. Raises `StripeRefusal`."""
    for path in paths:
        parts = path.split(".")
        if len(parts) > MAX_EXPAND_DEPTH:
            raise StripeRefusal("You cannot expand more than 4 levels of a property.", param="expand", checked=True)
        _expand(world, thing, parts, path)
    return thing


def _expand(world: ProcessorState, thing: Thing, parts: Sequence[str], path: str) -> None:
    name, *deeper = parts
    if thing["object"] == "list" and name == "data":
        for item in cast(Sequence[Thing], thing["data"]):
            _expand(world, item, deeper, path)
        return
    if thing["object"] == "checkout.session" and name == "line_items":
        thing[name] = list_object(thing["_items"], f"/v1/checkout/sessions/{thing['id']}/line_items")
        return
    if name not in KINDS or name not in thing:
        message = f"This property cannot be expanded ({path})."
        raise StripeRefusal(message, param="expand", checked=True)
    value = thing[name]
    if isinstance(value, str):
        value = world.store.find(KINDS[name], value)
        if value is None:
            raise missing(KINDS[name], thing[name])
        thing[name] = value
    if deeper and value is not None:
        _expand(world, value, deeper, path)
