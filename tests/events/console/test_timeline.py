"""The page of a person: what happened with the registration, in order."""

import re

from tests.events.console.event_scene import confirm_bulk_change
from tests.events.console.paid_scene import pay_for_seat
from tests.helpers.payments import PaymentScene


async def test_the_timeline_of_a_person_lists_stored_events_in_order(payment_scene: PaymentScene) -> None:
    browser, ann, payments = await pay_for_seat(payment_scene)
    person = payments.removesuffix("/payments")
    handle = person.rpartition("/")[2]
    several = f"/console/events/{ann.event_id}/several-registrations"
    await confirm_bulk_change(browser, await browser.get(f"{several}?do=in&p-{handle}=1"))
    await payment_scene.service.run_sql(
        "update mails set outcome = 'failed', error = '550 5.1.1 no such user', ended_at = now() where kind = 'seat'"
    )
    await payment_scene.service.run_sql(
        "insert into mails (kind, thread, recipient, arguments) values ('seat', 'other', 'ann@example.com', '{}')"
    )
    await payment_scene.service.run_sql(
        "insert into refunds (payment_id, amount, reason) select id, 100, 'by_organizer' from payments"
    )

    page = await browser.get(person)

    entries = [
        re.sub(r"(today|yesterday|tomorrow), \S+ [AP]M", "at", " ".join(re.sub(r"<[^>]*>", " ", entry).split()))
        for entry in re.findall(r"<li>(<svg.*?)</li>", page.text, re.DOTALL)
    ]
    assert entries[:2] == ["Registered at", "Seat reserved, payment due at"]
    assert "Paid €12.00 at" in entries
    [failed] = [entry for entry in entries if entry.startswith("E-mail failed: Seat confirmed at")]
    assert "The mail server does not know this address" in failed
    assert "Came in, scanned by By hand at" in entries
    assert "€1.00 is being refunded at" in entries
    assert len([entry for entry in entries if entry.startswith("E-mail")]) == 2  # none of the other event
