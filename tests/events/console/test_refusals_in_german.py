"""Every message of a refused form, and the names in it, are in the language of the page.

Each form is sent with many wrong values, in English and in German. The answers must have the same messages in both.
"""

from holdfast.events.console.events.event_form import NAMES
from holdfast.events.console.queues.queues_pages import QUEUE_LABELS
from holdfast.events.settings import Settings
from tests.events.console import event_scene
from tests.events.console.organizing import sign_in_organizer
from tests.events.console.paid_scene import pay_for_seat
from tests.helpers.event_visitor import Visitor
from tests.helpers.events_service import Service, running_events
from tests.helpers.form_browser import Browser
from tests.helpers.german import WRONG, Both, wrong
from tests.helpers.payments import PaymentScene

QUEUE = {"title": "Sale", "target_url": "https://shop.example/", "release_rate": "60", "token_ttl_minutes": "10"}


async def test_refusals_in_the_forms_of_an_event_are_in_german(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event(capacity=3)
    for number in range(2):
        await ada.register(event["id"], email=f"p{number}@example.com")
    await service.settle()
    both = Both(browser.http)
    pages = "/console/events/new", f"/console/events/{event['id']}/edit"

    for page in pages:
        for fields in wrong(NAMES):
            await both.send(page, **event_scene.event_form(**fields))
        for bad in (
            {"timezone": "Mars/Olympus"},
            {"datetime": "2036-03-30T02:30"},
            {"body": "x" * 100_001},
            {"latitude": "91"},
            {"capacity": ""},
        ):
            await both.send(page, **event_scene.event_form(**bad))
    for bad in (
        {"currency": "XXX"},
        {"pricing_mode": "free", "price": "1"},
        {"pricing_mode": "fixed", "price": "0"},
        {"pricing_mode": "dynamic", "price": "5", "min_price": "", "max_price": ""},
        {"pricing_mode": "dynamic", "price": "5", "min_price": "6", "max_price": "4"},
    ):
        await both.send(pages[0], **event_scene.event_form(**bad))
    await both.send(pages[1], **event_scene.event_form(capacity="1"))

    both.check(
        "Geben Sie einen Titel ein, zum Beispiel Sommerkonzert.",
        "Geben Sie die Zahl der Plätze ein, zum Beispiel 30.",
        "Geben Sie höchstens 300 Zeichen ein. Das sind 2.001.",
        "Das darf keine NUL-Zeichen enthalten.",
        "Das muss zwischen dem niedrigsten und dem höchsten Preis liegen.",
        "Das muss mindestens die Zahl der vergebenen Plätze sein, 2.",
        "Das muss der IANA-Name einer Zeitzone sein, zum Beispiel Europe/Berlin.",
        "Das ist keine Währung, die der Zahlungsdienst unterstützt.",
        "Wählen Sie eine Angabe aus der Liste.",
    )


async def test_refusals_in_the_forms_of_a_queue_are_in_german(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    queue = await ada.create_queue()
    both = Both(browser.http)

    for page in ("/console/queues/new?site=", f"/console/queues/{queue['id']}/edit"):
        for fields in wrong(QUEUE_LABELS):
            await both.send(page, **fields)
        ends = {"starts_at": "2090-01-02T00:00", "ends_at": "2090-01-01T00:00"}
        await both.send(page, **{**QUEUE, **ends})
        await both.send(page, **{**QUEUE, "description": "x" * 10_001})

    both.check(
        "Geben Sie die Zahl der Personen ein, zum Beispiel 60.",
        "„Ende“ muss später sein als „Einlass ab“.",
        "„Adresse der Website“ muss eine Adresse mit http oder https und einem Rechnernamen sein, ohne Benutzer und "
        "Passwort.",
        "Geben Sie Datum und Uhrzeit ein.",
        "Geben Sie die Zahl der Minuten ein, zum Beispiel 10. Sie darf höchstens 43.200 sein.",
    )


async def test_refusals_in_the_forms_of_keys_photos_and_registrations_are_in_german(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event(capacity=1)
    both = Both(browser.http)

    for name in ("", "x" * 101, "a\x00b"):
        await both.send("/console/agents", "/console/agents/keys/new", name=name)
    page = f"/console/events/{event['id']}/photos"
    for url in ("", "x" * 2_001, "§", "ftp://a.test/", "http://a@a.test/", "http://a.test:99/", "http://127.0.0.1/"):
        await both.send(page, do="add", url=url)
    await both.send(page, do="first", key="photos/1/none.jpg")
    await both.send(f"/console/events/{event['id']}/add-registration", email="§")

    both.check(
        "Geben Sie höchstens 100 Zeichen ein. Das sind 101.",
        "„Adresse eines Fotos im Web“ nennt einen Rechner, der keine öffentliche Adresse hat.",
        "„Adresse eines Fotos im Web“ muss mit http:// oder https:// und einem Rechnernamen beginnen.",
    )


async def test_refusals_in_the_form_of_the_refund_rule_are_in_german(payment_scene: PaymentScene) -> None:
    ada, browser = await sign_in_organizer(payment_scene.service)
    await ada.post("/api/stripe/onboarding_link")
    both = Both(browser.http)

    for days in {*WRONG, "3651"} - {"0", "7"}:
        await both.send("/console/payouts", "/console/payouts/rule", refund_days=days)

    both.check(
        "Geben Sie die Zahl der Tage ein, zum Beispiel 7.",
        "Geben Sie die Zahl der Tage ein, zum Beispiel 7. Sie darf höchstens 3.650 sein.",
    )


async def test_refusals_in_the_form_of_a_refund_are_in_german(payment_scene: PaymentScene) -> None:
    browser, _, page = await pay_for_seat(payment_scene)
    both = Both(browser.http)

    for amount in {*WRONG, "12.01"} - {"7", "1.5"}:
        await both.send(page, **{"amount-1": amount})

    both.check(
        "Geben Sie einen Betrag ein, zum Beispiel 12.50.",
        "Geben Sie einen Betrag ein, der mehr als 0 ist und höchstens das, was von der Zahlung übrig ist: 12,00 €.",
    )
    assert payment_scene.moved_amount("refund") == 0


async def test_refusals_in_the_form_of_a_new_organizer_are_in_german(service: Service) -> None:
    await service.organizer(slug="taken")
    ann = Browser(service)
    await ann.sign_in("ann@example.com")
    both = Both(ann.http)

    for fields in wrong(("name", "slug")):
        await both.send("/console/start", **{**fields, "slug": f"{fields['slug']}_"})
    for slug in ("taken", "admin", "Ann"):
        await both.send("/console/start", name="Ann Events", slug=slug)

    both.check(
        "„Adresse Ihrer Seite“ ist schon vergeben.",
        "„Adresse Ihrer Seite“ ist reserviert.",
        "Geben Sie 3 bis 100 Kleinbuchstaben, Ziffern und Bindestriche ein, zum Beispiel ada-events.",
    )


async def test_refusals_in_the_forms_without_sign_in_are_in_german(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    form = Both(Visitor(service).http)
    sign_in = Both(Browser(service).http)

    for fields in ({"email": ""}, {"email": "§"}, {"name": "x" * 101}, {"name": "see https://a.test/"}):
        await form.send(f"/events/{event['id']}/embed", **{"email": "ann@example.com", **fields})
    for fields in ({"email": "§"}, {"email": "ann@example.com", "password": "wrong"}, {"token": "old"}):
        await sign_in.send("/sign-in", **fields)

    form.check()
    sign_in.check()


async def test_refusals_for_reached_limits_are_in_german(settings: Settings) -> None:
    most = {"events_per_organizer": 1, "keys_per_organizer": 1, "queues_per_organizer": 1}
    async with running_events(settings.model_copy(update=most)) as service:
        ada, browser = await sign_in_organizer(service)
        await ada.create_event()
        await ada.create_queue()
        both = Both(browser.http)

        await both.send("/console/events/new", **event_scene.event_form())
        await both.send("/console/agents", "/console/agents/keys/new", name="Till")
        await both.send("/console/queues/new?site=", **QUEUE)

        both.check(
            "Die Grenze für einen Veranstalter ist erreicht: 1 Veranstaltungen, die weder abgesagt noch vorbei sind."
        )
