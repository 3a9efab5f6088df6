"""The main work of an organizer and of visitors in browsers without scripts, from sign-in to check-in."""

from datetime import UTC, datetime, timedelta

from holdfast.accounts.signin import links
from holdfast.events.queues.release import release_due
from holdfast.events.service import EVENTS
from tests.events.check_in.check_in_scene import link_of
from tests.helpers.events_service import Service
from tests.helpers.payments import PaymentScene
from tests.helpers.pictures import picture
from tests.helpers.plain_browser import PlainBrowser

SOON = (datetime.now(UTC) + timedelta(days=7)).strftime("%Y-%m-%dT20:00")
EVENT = {"title": "Pottery", "datetime": SOON, "capacity": "1", "body": "Clay.", "waitinglist_capacity": "5"}
PUBLIC = "/organizers/.*/events/"
PAGES_OF_AN_EVENT = "/console/events/{event_id}"
NO_PAGES = (".csv", ".js", ".svg", "/check-in/list", "/check-in/news", "/check-in/scans")
"""The ends of addresses below it that answer with a file, or to a script."""


def pages_of_an_event(service: Service) -> list[str]:
    """The paths of the pages of an event in the console, without those of one person or one thing of it."""
    paths = {route.path for route in EVENTS.build(service.database).all_routes()}
    return sorted(
        path
        for path in paths
        if path.startswith(PAGES_OF_AN_EVENT) and path.count("{") == 1 and not path.endswith(NO_PAGES)
    )


def browser(service: Service, *, others: str = "") -> PlainBrowser:
    return PlainBrowser(service.app, "http://events.test", others=others)


async def signed_in(service: Service, *, others: str = "") -> PlainBrowser:
    """An organizer who has asked for a link, and used it."""
    await service.organizer("Ada Events", email="ada@example.com")
    ada = browser(service, others=others)
    await ada.open("/console")
    await ada.send(email="ada@example.com")
    [(id,)] = await service.run_sql("select max(id) from sign_in_links")
    await ada.open(f"/sign-in/{links.encode_token(service.database.resources.secret, id)}")
    await ada.send()
    assert ada.path == "/console"
    return ada


async def register(service: Service, visitor: PlainBrowser, page: str, email: str) -> str:
    """A visitor registers on the page of an event. Returns what the page says when it has loaded itself again."""
    await visitor.open(page)
    await visitor.send(email=email)
    assert visitor.state == "pending"
    await service.settle()
    await visitor.reload()
    return visitor.state


async def test_an_event_is_published_and_people_are_moved_and_let_in(service: Service) -> None:
    ada, ann, bob = await signed_in(service), browser(service), browser(service)
    await ada.click(href="/console/events/new$")
    await ada.send({"value": "preview"}, EVENT)
    assert "Pottery" in ada.page.one("section", id="^preview$").text
    await ada.send({"value": "draft"}, EVENT, files={"files": ("clay.jpg", picture(), "image/jpeg")})
    event = ada.path
    assert ada.page.find("img", src="/media/")
    await ada.send({"value": "publish"})
    public = ada.page.one("a", href=PUBLIC).get("href")

    # The first to come is moved behind the second, and gets a seat that is added.
    assert await register(service, ann, public, "ann@example.com") == "registered"
    assert await register(service, bob, public, "bob@example.com") == "waitlisted"
    await ada.click(href=f"{event}/registrations$")
    await ada.click(href="state=registered$")
    await ada.click(id="^of-")
    await ada.click(href="do=wait$")
    await ada.send()
    await service.settle()
    await ada.click(href=f"{event}$")
    await ada.click(href=f"{event}/edit$")
    await ada.send(capacity="2")
    await ada.click(href=f"{event}/registrations$")
    await ada.click(href="state=waitlisted$")
    await ada.click(id="^of-")
    await ada.send({"value": "seat"})
    await bob.open(bob.page.url)
    assert bob.state == "registered"

    # One is let in by the code that is typed, the other by a tick in the table.
    await ada.open(f"{event}/check-in")
    await ada.send({"value": "scan"}, text=bob.page.one("strong", class_="code").text, device="Door 1")
    assert "Valid" in ada.page.one("div", id="^verdict$").text
    await ada.click(href=f"{event}/registrations$")
    boxes = {box.get("name"): "1" for box in ada.page.find("input", type="checkbox")}
    await ada.send({"value": "in"}, boxes)
    await ada.send()
    assert await service.run_sql("select count(*) from check_in_scans where is_entry") == [(2,)]

    for path in pages_of_an_event(service):
        await ada.open(path.replace(PAGES_OF_AN_EVENT, event))
    await ada.open(f"{event}/cancel")
    await ada.send({"action": f"{event}/cancel"})
    await bob.open(bob.page.url)
    assert "The event is cancelled." in bob.page.text


async def test_an_event_is_made_from_another_and_a_visitor_pays_and_cancels(payment_scene: PaymentScene) -> None:
    service, others = payment_scene.service, payment_scene.processor.address
    ada, ann = await signed_in(service, others=others), browser(service, others=others)
    await ada.click(href="/console/payouts$")
    await ada.send({"action": "/connect"})
    await ada.reload()
    await ada.send()
    await payment_scene.deliver()
    await ada.open("/console/events/new")
    await ada.send({"value": "publish"}, EVENT)
    first = ada.path
    await ada.click(href="/console/events/new.copy=")
    await ada.send({"value": "publish"}, datetime=SOON, pricing_mode="fixed", price="12.00", currency="EUR")
    assert ada.path != first

    assert await register(service, ann, ada.page.one("a", href=PUBLIC).get("href"), "ann@example.com") == "held"
    await payment_scene.work()
    await ann.reload()
    await ann.click(href=others)
    await ann.send(card="4242 4242 4242 4242")
    await payment_scene.deliver()
    await ann.reload()

    assert ann.state == "registered"
    await ada.open(f"{ada.path}/payments")
    assert "12.00" in ada.page.text
    await ann.open(f"/registrations/{await link_of(service, int(ada.path.split('/')[3]), 'ann')}")
    await ann.click(href="/data$")
    await ann.open(ann.page.url.removesuffix("/data"))
    await ann.click(href="/cancel$")
    await ann.send({"action": "/cancel$"})
    await ann.send({"action": "/undo$"})
    await ann.click(href="/cancel$")
    await ann.send({"action": "/cancel$"})
    await service.complete_cancellations()
    await payment_scene.deliver()
    assert payment_scene.moved_amount("refund") == 1200


async def test_a_key_is_made_and_visitors_wait_in_a_waiting_room(service: Service) -> None:
    ada, guest = await signed_in(service), browser(service)
    for place in {link.get("href") for link in ada.page.find("a", href="^/(console|account)")}:
        await ada.open(place)
    await ada.open("/console/agents")
    await ada.send(name="Our site")
    assert ada.page.one("code", id="^key$").text.startswith("hf_")
    await ada.open("/console/queues/new?site=")
    await ada.send(title="Spring sale", target_url="https://shop.example.com/")

    for page in ("/", "/docs", "/organizers/ada-events", "/sign-in"):
        await guest.open(page)
    await guest.open(ada.page.one("a", href="^http.*/queues/[0-9]+$").get("href"))
    await guest.reload()
    assert guest.state == "waiting"
    await service.run_sql("update queues set paced_at = now() - interval '1 minute'")
    await release_due(service.database)
    await guest.reload()

    assert guest.page.url.startswith("https://shop.example.com/?queue_token=")
    await ada.open("/account")
    await ada.send({"action": "/sign-out"})
    await ada.open("/console")
    assert ada.path == "/sign-in"
