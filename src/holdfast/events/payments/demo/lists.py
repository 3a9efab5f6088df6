"""Lists of the API, a page at a time, and the members of objects that are shown in full on demand."""

from collections.abc import Sequence
from typing import cast

from holdfast.events.payments.demo.errors import Refusal, missing
from holdfast.events.payments.demo.store import Thing
from holdfast.events.payments.demo.world import World, listed

DEEPEST = 4

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
"""The members that can be shown in full: what they are the id of."""

PAGING = frozenset("limit starting_after ending_before expand".split())


def page(world: World, kind: str, path: str, params: Thing) -> Thing:
    """A page of the list of a kind, newest first. Raises `Refusal`.

    params    how much of it, and what else members of the objects have to be
    """
    most = params.get("limit", 10)
    if not 1 <= most <= 100:
        raise Refusal("Limit can range between 1 and 100.", code="parameter_invalid_integer", param="limit")
    after, before = params.get("starting_after", ""), params.get("ending_before", "")
    if after and before:
        raise Refusal("Only one of starting_after and ending_before can be given.", param="ending_before")
    created = params.get("created", {})
    bounds = {"gte": created, "lte": created} if isinstance(created, int) else created
    equal = {name: value for name, value in params.items() if name not in PAGING | {"created"}}
    found = world.store.page(kind, equal, bounds, after=after, before=before, most=most)
    answer = listed(found.things, path, found.has_more)
    return expanded(world, answer, params.get("expand", ()))


def expanded(world: World, thing: Thing, paths: Sequence[str]) -> Thing:
    """A thing with some members in full, such as `payment_intent.latest_charge`. Raises `Refusal`."""
    for path in paths:
        parts = path.split(".")
        if len(parts) > DEEPEST:
            raise Refusal("You cannot expand more than 4 levels of a property.", param="expand", checked=True)
        _expand(world, thing, parts, path)
    return thing


def _expand(world: World, thing: Thing, parts: Sequence[str], path: str) -> None:
    name, *deeper = parts
    if thing["object"] == "list" and name == "data":
        for each in cast(Sequence[Thing], thing["data"]):
            _expand(world, each, deeper, path)
        return
    if thing["object"] == "checkout.session" and name == "line_items":
        thing[name] = listed(thing["_items"], f"/v1/checkout/sessions/{thing['id']}/line_items")
        return
    if name not in KINDS or name not in thing:
        message = f"This property cannot be expanded ({path})."
        raise Refusal(message, param="expand", checked=True)
    value = thing[name]
    if isinstance(value, str):
        value = world.store.find(KINDS[name], value)
        if value is None:
            raise missing(KINDS[name], thing[name])
        thing[name] = value
    if deeper and value is not None:
        _expand(world, value, deeper, path)
