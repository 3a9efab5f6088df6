"""Reconciling our payments with the processor's books: differences are named, and mended where possible."""

import asyncio
import os
import subprocess
from pathlib import Path

import pytest
from prometheus_client import REGISTRY

from holdfast.events.payments.reconciliation import MEANINGS, ReconciliationReport, log_differences, reconcile
from holdfast.kit.operations.steps import Steps
from holdfast_demo.stripe.errors import Fault
from tests.helpers.events_service import Service
from tests.helpers.forking import forks
from tests.helpers.payments import Buyer, PaymentScene
from tests.helpers.processes import HOLDFAST

ANN = "ann@example.com"


async def pay_for_seat(payment_scene: PaymentScene, *, delivered: bool = True) -> Buyer:
    ann = await payment_scene.register(await payment_scene.event(await payment_scene.organizer()), ANN)
    await ann.pay()
    if delivered:
        await payment_scene.deliver()
    return ann


async def compare_books(payment_scene: PaymentScene) -> ReconciliationReport:
    return await reconcile(Steps(payment_scene.service.database))


async def differences(payment_scene: PaymentScene) -> list[tuple[str, int | None, int | None]]:
    """What differs, and the amounts here and there."""
    return [
        (difference.kind, difference.ours, difference.theirs)
        for difference in (await compare_books(payment_scene)).differences
    ]


async def test_books_that_agree_have_no_differences_even_after_refunds(payment_scene: PaymentScene) -> None:
    ann = await pay_for_seat(payment_scene)
    assert await differences(payment_scene) == []

    await payment_scene.service.run_sql(
        "insert into refunds (payment_id, amount, reason) select id, 500, 'by_organizer' from payments"
    )
    assert await differences(payment_scene) == [], "a refund that is still to be made is no difference"
    await payment_scene.work()

    assert payment_scene.moved_amount("refund") == 500
    assert await differences(payment_scene) == []
    assert (await compare_books(payment_scene)).compared == 1
    assert await ann.status() == "registered"


async def test_an_unpaid_checkout_is_not_compared(payment_scene: PaymentScene) -> None:
    await payment_scene.register(await payment_scene.event(await payment_scene.organizer()), ANN)

    assert (await compare_books(payment_scene)).compared == 0


async def test_a_payment_whose_message_was_lost_is_named_and_gets_its_seat(payment_scene: PaymentScene) -> None:
    ann = await pay_for_seat(payment_scene, delivered=False)

    [difference] = (await compare_books(payment_scene)).differences
    assert (difference.kind, difference.ours, difference.theirs, difference.currency) == (
        "not_noted",
        None,
        1200,
        "EUR",
    )
    assert "It is asked about now" in difference.meaning
    await payment_scene.work()

    assert await ann.status() == "registered"
    assert await differences(payment_scene) == []


async def test_a_payment_unknown_to_us_is_named(payment_scene: PaymentScene) -> None:
    """As after a restored backup."""
    await pay_for_seat(payment_scene)
    await payment_scene.service.run_sql("update payments set session_id = 'cs_another'")

    [difference] = (await compare_books(payment_scene)).differences

    assert (difference.kind, difference.payment_id, difference.theirs) == ("unknown", None, 1200)
    assert difference.intent_id == payment_scene.processor.things("payment_intent")[0]["id"]


async def test_a_payment_with_a_different_amount_is_named(payment_scene: PaymentScene) -> None:
    await pay_for_seat(payment_scene)
    await payment_scene.service.run_sql("update payments set amount = 1300")

    assert await differences(payment_scene) == [("other_amount", 1300, 1200)]


async def test_a_payment_in_a_different_currency_is_named(payment_scene: PaymentScene) -> None:
    await pay_for_seat(payment_scene)
    await payment_scene.service.run_sql("update payments set currency = 'USD'")

    assert await differences(payment_scene) == [("other_amount", 1200, 1200)]


async def test_money_that_was_given_back_elsewhere_is_named(payment_scene: PaymentScene) -> None:
    await pay_for_seat(payment_scene)
    [intent] = payment_scene.processor.things("payment_intent")
    payment_scene.processor.execute("POST", "/v1/refunds", {"payment_intent": intent["id"], "amount": 300})

    assert await differences(payment_scene) == [("other_refunds", 0, 300)]


async def test_a_refund_that_the_bank_returned_is_no_difference(payment_scene: PaymentScene) -> None:
    await pay_for_seat(payment_scene)
    payment_scene.processor.leave_refunds_pending()
    await payment_scene.service.run_sql(
        "insert into refunds (payment_id, amount, reason) select id, 500, 'by_organizer' from payments"
    )
    await payment_scene.work()
    payment_scene.processor.settle_refund(payment_scene.processor.things("refund")[0]["id"], "expired_or_canceled_card")
    await payment_scene.deliver()

    assert await differences(payment_scene) == []


async def test_a_payment_that_the_processor_does_not_have_is_named_after_some_minutes(
    payment_scene: PaymentScene,
) -> None:
    await pay_for_seat(payment_scene)
    await payment_scene.service.run_sql("update payments set session_id = 'cs_nowhere', intent_id = 'pi_nowhere'")
    assert [kind for kind, *_ in await differences(payment_scene)] == ["unknown"]

    await payment_scene.service.run_sql("update payments set paid_at = now() - interval '6 minutes'")

    assert await differences(payment_scene) == [("unknown", None, 1200), ("not_taken", 1200, None)]


def count_differences() -> float:
    """How many payments with another amount were found so far."""
    return REGISTRY.get_sample_value("holdfast_payment_differences_total", {"kind": "other_amount"}) or 0


async def test_the_daily_comparison_counts_what_differs(payment_scene: PaymentScene) -> None:
    await pay_for_seat(payment_scene)
    await payment_scene.service.run_sql("update payments set amount = 1300")
    before = count_differences()

    assert await log_differences(Steps(payment_scene.service.database)) == 1

    assert count_differences() == before + 1


async def test_without_a_processor_the_daily_comparison_does_nothing(service: Service) -> None:
    assert await log_differences(Steps(service.database)) == 0


async def command(
    payment_scene: PaymentScene, *words: str, database_url: str, tmp_path: Path, key: str | None = None
) -> subprocess.CompletedProcess[str]:
    """The command of operators, in a process of its own."""
    environment = {
        **os.environ,
        "EVENTS_DATABASE_URL": database_url,
        "EVENTS_SECRET_KEY": "a secret that only these tests use",
        "HOLDFAST_DATA_DIR": str(tmp_path),
        "STRIPE_SECRET_KEY": payment_scene.processor.key if key is None else key,
        "STRIPE_API_BASE": payment_scene.processor.address,
    }
    words_run = [HOLDFAST, "events", "payments", "reconcile", *words]
    return await asyncio.to_thread(forks().run, words_run, tmp_path, environment)


async def test_the_command_to_reconcile_reports_no_differences_and_exits_with_0(
    payment_scene: PaymentScene, database_url: str, tmp_path: Path
) -> None:
    await pay_for_seat(payment_scene)

    done = await command(payment_scene, database_url=database_url, tmp_path=tmp_path)

    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith("Compared 1 payments of the processor since ")
    assert done.stderr.endswith(": 0 differ.\n")


async def test_the_command_to_reconcile_has_a_line_for_each_difference_and_exits_with_1(
    payment_scene: PaymentScene, database_url: str, tmp_path: Path
) -> None:
    await pay_for_seat(payment_scene, delivered=False)
    [intent] = payment_scene.processor.things("payment_intent")

    done = await command(payment_scene, "--days", "3", database_url=database_url, tmp_path=tmp_path)

    assert done.returncode == 1
    [(payment_id,)] = await payment_scene.service.run_sql("select id from payments")
    fields = ["not_noted", intent["id"], str(payment_id), "-", "1200", "EUR", MEANINGS["not_noted"]]
    assert done.stdout == "\t".join(fields) + "\n"
    assert done.stderr.endswith(": 1 differ.\n")


@pytest.mark.parametrize("days", ["0", "366", "two"])
async def test_the_command_to_reconcile_refuses_invalid_days(
    payment_scene: PaymentScene, database_url: str, tmp_path: Path, days: str
) -> None:
    done = await command(payment_scene, "--days", days, database_url=database_url, tmp_path=tmp_path)

    assert done.returncode == 2
    assert "--days" in done.stderr


async def test_the_command_to_reconcile_has_help(
    payment_scene: PaymentScene, database_url: str, tmp_path: Path
) -> None:
    explained = await command(payment_scene, "--help", database_url=database_url, tmp_path=tmp_path)

    assert explained.returncode == 0
    assert "Ends with 1 if something differs" in " ".join(explained.stdout.split())


async def test_the_command_to_reconcile_says_that_the_processor_does_not_answer(
    payment_scene: PaymentScene, database_url: str, tmp_path: Path
) -> None:
    payment_scene.processor.plan(Fault("down", "/checkout/sessions", method="GET"))

    done = await command(payment_scene, database_url=database_url, tmp_path=tmp_path)

    assert (done.returncode, done.stdout) == (1, "")
    assert "The payment processor did not answer" in done.stderr
    assert "Traceback" not in done.stderr


async def test_the_command_to_reconcile_says_that_no_processor_is_set_up(
    payment_scene: PaymentScene, database_url: str, tmp_path: Path
) -> None:
    done = await command(payment_scene, database_url=database_url, tmp_path=tmp_path, key="")

    assert (done.returncode, done.stdout) == (1, "")
    assert "STRIPE_SECRET_KEY" in done.stderr
