"""Amounts and currencies that the processor charges, also where it counts in other units."""

import pytest

from holdfast.events.payments.operations import RefundPayment, refund
from holdfast.events.processor.currencies import CURRENCIES, MAX_AMOUNT, from_processor, is_payable, to_processor
from holdfast.kit.contract.caller import api_key
from holdfast.kit.contract.command import check
from holdfast.kit.contract.problems import Problem
from holdfast_demo.stripe.currencies import SUPPORTED, require_chargeable
from holdfast_demo.stripe.errors import StripeRefusal
from holdfast_demo.stripe.store import StripeObject
from tests.helpers.event_visitor import page_text
from tests.helpers.events_service import Client
from tests.helpers.payments import Buyer, PaymentScene

AMOUNTS = (0, 1, 5, 9, 10, 11, 29, 30, 49, 50, 51, 99, 100, 199, 200, 999, 1000, 1005, 1499, 1500, 17_499, 17_500)
"""Amounts on both sides of every least amount."""


def is_accepted(amount: int, currency: str) -> bool:
    """Whether the processor's double charges an amount, as it counts."""
    try:
        require_chargeable(amount, currency, "amount")
    except StripeRefusal:
        return False
    return True


def test_the_processor_charges_in_the_currencies_of_our_list_and_in_no_others() -> None:
    assert {currency.upper() for currency in SUPPORTED} == CURRENCIES.keys()


@pytest.mark.parametrize("currency", sorted(CURRENCIES))
def test_an_amount_is_payable_exactly_if_the_processor_accepts_it(currency: str) -> None:
    most = from_processor(MAX_AMOUNT, currency)

    for amount in (*AMOUNTS, most - 9, most, most + 1, 10 * most):
        assert is_payable(amount, currency) == is_accepted(to_processor(amount, currency), currency.lower()), amount


def test_an_unknown_currency_is_not_payable() -> None:
    assert not is_payable(1000, "XXX")


def charge_in(payment_scene: PaymentScene, currency: str) -> StripeObject:
    """The only charge in a currency."""
    [charge] = [charge for charge in payment_scene.processor.things("charge") if charge["currency"] == currency.lower()]
    return charge


async def give_back(payment_scene: PaymentScene, ada: Client, ann: Buyer, amount: int) -> None:
    """Give back a part of the last payment by hand."""
    [(id,)] = await payment_scene.service.run_sql("select max(id) from payments")
    handle = ann.path.split("-")[1]
    command = check(RefundPayment, {"event_id": ann.event_id, "user_id": handle, "payment_id": id, "amount": amount})
    await payment_scene.service.database.transact(lambda tx: refund(tx, api_key(1, ada.id), command))


async def test_people_pay_the_price_that_they_see_in_every_kind_of_currency(payment_scene: PaymentScene) -> None:
    ada = await payment_scene.organizer()
    expected = [
        ("EUR", 1250, "€12.50", 1250, 62),
        ("JPY", 1250, "¥1,250", 1250, 62),
        ("KWD", 12340, "KWD 12.340", 12340, 610),
        ("ISK", 1250, "ISK 1,250", 125_000, 6200),
        ("UGX", 1250, "UGX 1,250", 125_000, 6200),
    ]
    for currency, price, price_text, charged, fee in expected:
        event_id = await payment_scene.event(ada, currency=currency, price=price)
        ann = await payment_scene.register(event_id, "ann@example.com")
        assert f"Pay {price_text}" in page_text(await ann.page()).replace("\xa0", " ")
        await ann.pay()
        await payment_scene.deliver()

        assert f"You have paid {price_text}" in page_text(await ann.page()).replace("\xa0", " ")
        charge = charge_in(payment_scene, currency)
        assert (charge["amount"], charge["application_fee_amount"]) == (charged, fee)

        if currency == "KWD":
            with pytest.raises(Problem) as refusal:
                await give_back(payment_scene, ada, ann, 1234)
            assert refusal.value.errors == {"amount": ["must be a multiple of 10, as every amount in KWD"]}

        await ada.delete(f"/api/events/{event_id}")
        await payment_scene.work()
        assert charge_in(payment_scene, currency)["amount_refunded"] == charged
    assert payment_scene.processor.balance("cardholders").keys() == {case[0].lower() for case in expected}
    assert set(payment_scene.processor.balance("cardholders").values()) == {0}
