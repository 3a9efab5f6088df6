"""Objects of the API have the members and types that the classes of stripe-python declare."""

from collections.abc import Iterator
from typing import Any, ForwardRef, Literal, Union, get_args, get_origin

import stripe

from holdfast_demo.stripe.processor_state import without_private
from tests.demo.stripe.processor import ACCOUNT_V1, ProcessorScene

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


def declared_fields(kind: type) -> dict[str, Any]:
    hints: dict[str, Any] = {}
    for class_ in reversed(kind.__mro__):
        hints |= getattr(class_, "__annotations__", {})
    return {name: hint for name, hint in hints.items() if not name.startswith("_") and name != "OBJECT_NAME"}


def contradictions(thing: Any, kind: type, path: str) -> Iterator[str]:
    """What is wrong with an object, as a class of stripe-python has it."""
    declared = declared_fields(kind)
    for name in thing.keys() - declared.keys():
        yield f"{path}.{name} is not declared"
    for name, hint in declared.items():
        if name not in thing:
            if not is_optional(hint):
                yield f"{path}.{name} is missing"
        elif not any(is_of_type(thing[name], alternative) for alternative in alternatives_of(hint)):
            yield f"{path}.{name} is {thing[name]!r}, and not {hint}"
        else:
            for alternative in alternatives_of(hint):
                if isinstance(thing[name], dict) and is_object(alternative):
                    yield from contradictions(thing[name], alternative, f"{path}.{name}")


def alternatives_of(hint: Any) -> list[Any]:
    return (
        [kind for argument in get_args(hint) for kind in alternatives_of(argument)]
        if get_origin(hint) is Union
        else [hint]
    )


def is_optional(hint: Any) -> bool:
    return type(None) in alternatives_of(hint)


def is_object(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, stripe.StripeObject) and bool(declared_fields(hint))


def is_of_type(value: Any, hint: Any) -> bool:
    if get_origin(hint) is Literal:
        return value in get_args(hint)
    if get_origin(hint) is list:
        return isinstance(value, list)
    if isinstance(hint, ForwardRef) or get_origin(hint) is not None or hint is Any:
        return isinstance(value, dict)
    if hint in {str, int, bool, float, type(None)}:
        return type(value) is hint
    return isinstance(value, dict)


async def test_every_object_has_the_shape_that_the_library_declares(scene: ProcessorScene) -> None:
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
            wrong += contradictions(without_private(thing), declared, kind)

    assert wrong == []


async def test_accounts_and_balances_have_the_shape_that_the_library_declares(scene: ProcessorScene) -> None:
    newer = await scene.account()
    older = scene.processor.execute("POST", "/v1/accounts", ACCOUNT_V1)
    include = {"include": ["configuration.recipient", "defaults", "identity", "requirements"]}

    wrong = [
        *contradictions(older, stripe.Account, "v1"),
        *contradictions(
            scene.processor.execute("GET", f"/v2/core/accounts/{newer}", include), stripe.v2.core.Account, "v2"
        ),
        *contradictions(scene.processor.execute("GET", "/v1/balance", {}), stripe.Balance, "balance"),
    ]

    assert wrong == []
