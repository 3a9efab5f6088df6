"""Objects of the API have the members and types that the classes of stripe-python declare."""

from collections.abc import Iterator
from typing import Any, ForwardRef, Literal, Union, get_args, get_origin

import stripe

from holdfast_demo.stripe.platform_state import without_private
from tests.demo.stripe.processor import ACCOUNT_V1, Scene

BACK: Any = {"reverse_transfer": True, "refund_application_fee": True}

KINDS: dict[str, type] = {
    "checkout.session": stripe.checkout.Session,
    "payment_intent": stripe.PaymentIntent,
    "charge": stripe.Charge,
    "refund": stripe.Refund,
    "transfer": stripe.Transfer,
    "transfer_reversal": stripe.TransferReversal,
    "application_fee": stripe.ApplicationFee,
    "fee_refund": stripe.ApplicationFeeRefund,
    "dispute": stripe.Dispute,
    "event": stripe.Event,
}


def _declared(kind: type) -> dict[str, Any]:
    hints: dict[str, Any] = {}
    for class_ in reversed(kind.__mro__):
        hints |= getattr(class_, "__annotations__", {})
    return {name: hint for name, hint in hints.items() if not name.startswith("_") and name != "OBJECT_NAME"}


def _wrong(thing: Any, kind: type, path: str) -> Iterator[str]:
    """What is wrong with an object, as a class of stripe-python has it."""
    declared = _declared(kind)
    for name in thing.keys() - declared.keys():
        yield f"{path}.{name} is not declared"
    for name, hint in declared.items():
        if name not in thing:
            if not _is_optional(hint):
                yield f"{path}.{name} is missing"
        elif not any(_fits(thing[name], alternative) for alternative in _alternatives(hint)):
            yield f"{path}.{name} is {thing[name]!r}, and not {hint}"
        else:
            for alternative in _alternatives(hint):
                if isinstance(thing[name], dict) and _is_object(alternative):
                    yield from _wrong(thing[name], alternative, f"{path}.{name}")


def _alternatives(hint: Any) -> list[Any]:
    return (
        [kind for argument in get_args(hint) for kind in _alternatives(argument)]
        if get_origin(hint) is Union
        else [hint]
    )


def _is_optional(hint: Any) -> bool:
    return type(None) in _alternatives(hint)


def _is_object(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, stripe.StripeObject) and bool(_declared(hint))


def _fits(value: Any, hint: Any) -> bool:
    if get_origin(hint) is Literal:
        return value in get_args(hint)
    if get_origin(hint) is list:
        return isinstance(value, list)
    if isinstance(hint, ForwardRef) or get_origin(hint) is not None or hint is Any:
        return isinstance(value, dict)
    if hint in {str, int, bool, float, type(None)}:
        return type(value) is hint
    return isinstance(value, dict)


async def test_every_object_has_the_shape_that_the_library_declares(scene: Scene) -> None:
    account = await scene.account()
    paid = await scene.session(account, customer_email="ada@example.com", metadata={"payment": "7"}, locale="de")
    payment = scene.processor.pay(paid.id)["payment_intent"]
    await scene.do(scene.client.v1.refunds.create, {"payment_intent": payment, "amount": 1000, **BACK})
    scene.processor.dispute(scene.processor.things("charge")[0]["id"])
    await scene.session(account)
    wrong: list[str] = []

    for kind, declared in KINDS.items():
        things = scene.processor.things(kind)
        assert things, kind
        for thing in things:
            wrong += _wrong(without_private(thing), declared, kind)

    assert wrong == []


async def test_accounts_and_balances_have_the_shape_that_the_library_declares(scene: Scene) -> None:
    newer = await scene.account()
    older = scene.processor.ask("POST", "/v1/accounts", ACCOUNT_V1)
    include = {"include": ["configuration.recipient", "defaults", "identity", "requirements"]}

    wrong = [
        *_wrong(older, stripe.Account, "v1"),
        *_wrong(scene.processor.ask("GET", f"/v2/core/accounts/{newer}", include), stripe.v2.core.Account, "v2"),
        *_wrong(scene.processor.ask("GET", "/v1/balance", {}), stripe.Balance, "balance"),
    ]

    assert wrong == []
