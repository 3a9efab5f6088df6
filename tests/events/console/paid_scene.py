"""An organizer in the console who is paid by card, and a person who has paid."""

from tests.events.console.organizer_scene import hidden_field
from tests.events.console.organizing import sign_in_organizer
from tests.helpers import payments
from tests.helpers.form_browser import Browser
from tests.helpers.payments import Buyer, PaymentScene


async def pay_for_seat(payment_scene: PaymentScene) -> tuple[Browser, Buyer, str]:
    """An organizer at a browser, a guest who has paid, and the page of the payments."""
    ada, browser = await sign_in_organizer(payment_scene.service)
    ann = await payments.pay_for_seat(payment_scene, await payment_scene.connect_payouts(ada))
    return browser, ann, f"/console/events/{ann.event_id}/registrations/{payments.handle_of(ann)}/payments"


async def give_back(browser: Browser, page: str, amount: str, **fields: str) -> int:
    payments_page = await browser.get(page)
    form = {name: hidden_field(payments_page, name) for name in ("token", "once", "payment")}
    return (await browser.http.post(page, data={**form, f"amount-{form['payment']}": amount, **fields})).status_code
