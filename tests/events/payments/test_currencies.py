"""Currencies: what the service charges is what the processor takes, in whatever units the two count."""

import psycopg
import pytest

from holdfast.events.payments.demo.currencies import SUPPORTED, require_chargeable
from holdfast.events.payments.demo.errors import Refusal
from holdfast.events.payments.demo.store import Thing
from holdfast.events.payments.operations import RefundPayment, refund
from holdfast.events.processor.currencies import CURRENCIES, MOST, from_processor, is_payable, to_processor
from holdfast.events.product import EVENTS
from holdfast.kit.caller import api_key
from holdfast.kit.command import check
from holdfast.kit.migrate import migrate
from holdfast.kit.problems import Problem
from tests.databases import scratch_database
from tests.events.pages.visitor import said
from tests.events.payments.scene import Buyer, Scene
from tests.support import Client

AMOUNTS = (0, 1, 5, 9, 10, 11, 29, 30, 49, 50, 51, 99, 100, 199, 200, 999, 1000, 1005, 1499, 1500, 17_499, 17_500)
"""Amounts on both sides of every least amount."""


def is_taken(amount: int, currency: str) -> bool:
    """Whether the processor's double charges an amount, as it counts."""
    try:
        require_chargeable(amount, currency, "amount")
    except Refusal:
        return False
    return True


def test_the_processor_charges_in_the_currencies_of_our_list_and_in_no_others() -> None:
    assert {each.upper() for each in SUPPORTED} == CURRENCIES.keys()


@pytest.mark.parametrize("currency", sorted(CURRENCIES))
def test_an_amount_is_payable_exactly_if_the_processor_takes_it(currency: str) -> None:
    most = from_processor(MOST, currency)

    for amount in (*AMOUNTS, most - 9, most, most + 1, 10 * most):
        assert is_payable(amount, currency) == is_taken(to_processor(amount, currency), currency.lower()), amount


def test_what_the_processor_does_not_charge_in_is_not_payable() -> None:
    assert not is_payable(1000, "XXX")


def charge_in(shop: Scene, currency: str) -> Thing:
    """The only charge in a currency."""
    [charge] = [each for each in shop.processor.things("charge") if each["currency"] == currency.lower()]
    return charge


async def give_back(shop: Scene, ada: Client, ann: Buyer, amount: int) -> None:
    """Give back a part of the last payment by hand."""
    [(id,)] = await shop.service.run_sql("select max(id) from payments")
    handle = ann.path.split("-")[1]
    wanted = check(RefundPayment, {"event_id": ann.event_id, "user_id": handle, "payment_id": id, "amount": amount})
    await shop.service.database.transact(lambda tx: refund(tx, api_key(1, ada.id), wanted))


async def test_people_pay_the_price_that_they_see_in_every_kind_of_currency(shop: Scene) -> None:
    ada = await shop.organizer()
    expected = [
        ("EUR", 1250, "€12.50", 1250, 62),
        ("JPY", 1250, "¥1,250", 1250, 62),
        ("KWD", 12340, "KWD 12.340", 12340, 610),
        ("ISK", 1250, "ISK 1,250", 125_000, 6200),
        ("UGX", 1250, "UGX 1,250", 125_000, 6200),
    ]
    for currency, price, shown, charged, fee in expected:
        event_id = await shop.event(ada, currency=currency, price=price)
        ann = await shop.register(event_id, "ann@example.com")
        assert f"Pay {shown}" in said(await ann.page()).replace("\xa0", " ")
        await ann.pay()
        await shop.deliver()

        assert f"You have paid {shown}" in said(await ann.page()).replace("\xa0", " ")
        charge = charge_in(shop, currency)
        assert (charge["amount"], charge["application_fee_amount"]) == (charged, fee)

        if currency == "KWD":
            with pytest.raises(Problem) as refused:
                await give_back(shop, ada, ann, 1234)
            assert refused.value.errors == {"amount": ["must be a multiple of 10, as every amount in KWD"]}

        await ada.delete(f"/api/events/{event_id}")
        await shop.work()
        assert charge_in(shop, currency)["amount_refunded"] == charged
    assert shop.processor.balance("cardholders").keys() == {each[0].lower() for each in expected}
    assert set(shop.processor.balance("cardholders").values()) == {0}


BEFORE = """
insert into users (public_id, email, name, role, slug)
values ('organize', 'ada@example.com', 'Ada', 'organizer', 'ada'), ('aaaaaaaa', 'ann@example.com', null, 'user', null);
insert into events (organizer_id, title, body, datetime, capacity, waitinglist_capacity, currency, pricing_mode, price,
                    min_price, max_price, current_price, recurrence_frequency, recurrence_interval, recurs_from)
select 1, currency, 'Bring a pencil.', day, 2, 5, currency, 'dynamic', 125050, 125000, 125060, 125050, 'none', 0, day
  from (values ('ISK'), ('EUR')) as known (currency) cross join (values (now() + interval '1 day')) as days (day);
insert into price_changes (event_id, reason, new_price) values (1, 'init', 125050), (2, 'init', 125050);
insert into registrations (event_id, user_id, arrival, status, amount_paid, amount_due, received_at, settled_at)
values (1, 2, 1, 'registered', 125000, 125000, now(), now()), (2, 2, 2, 'registered', 125000, 125000, now(), now());
insert into payments (event_id, user_id, arrival, amount, fee, currency, state, session_id, intent_id, ends_at, paid_at)
select id, 2, id, 125000, 6250, currency, 'paid', 'session ' || id, 'intent ' || id, now(), now() from events;
insert into refunds (payment_id, amount, reason) select id, 125000, 'seat_lost' from payments;
"""


def test_amounts_in_isk_are_whole_after_an_upgrade_and_others_stay(template_url: str) -> None:
    with scratch_database(template_url, "isk", "template template1") as url:
        migrate(url, [each for each in EVENTS.schema() if each.name < "0027" or not each.name.startswith("00")])
        with psycopg.connect(url) as connection:
            connection.execute(BEFORE)
        EVENTS.migrate(url)
        with psycopg.connect(url) as connection:
            rows = connection.execute(
                """
                select events.currency, price, min_price, max_price, current_price, new_price, amount_paid, amount_due,
                       payments.amount, fee, refunded, refunds.amount,
                       (select (arguments ->> 'amount')::bigint from mails
                         where kind = 'refund' and arguments ->> 'event_id' = events.id::text)
                  from events join price_changes on price_changes.event_id = events.id
                  join registrations on registrations.event_id = events.id
                  join payments on payments.event_id = events.id join refunds on payment_id = payments.id
                 order by events.id
                """
            ).fetchall()

    assert rows == [
        ("ISK", 1251, 1250, 1251, 1251, 1251, 1250, 1250, 1250, 62, 1250, 1250, 1250),
        ("EUR", 125050, 125000, 125060, 125050, 125050, *[125000] * 3, 6250, *[125000] * 3),
    ]
