"""The list of registrations in other orders, and filtered by unpaid and not checked in."""

import re

import pytest

from holdfast.events.console.people import registrations_pages
from holdfast.events.registrations import search
from tests.events.console.organizing import next_page_link, sign_in_organizer
from tests.helpers.events_service import Service
from tests.helpers.form_browser import main_text
from tests.helpers.people import handle_of, sign_up


async def test_the_list_of_registrations_is_sorted_by_its_heads_and_keeps_the_order_on_its_pages(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registrations_pages, "REGISTRATIONS_PER_PAGE", 2)
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event(capacity=2, waitinglist_capacity=5)
    await sign_up(service, event, "cleo", "ann", "bob")
    path = f"/console/events/{event['id']}/registrations"

    async def names(query: str) -> list[str]:
        listed, address = list[str](), f"{path}?{query}"
        while address:
            page = await browser.get(address)
            listed += re.findall(r"<bdi>(\w+)@", page.text)
            address = next_page_link(page.text) or ""
        return listed

    by_name = await browser.get(f"{path}?sort=name")

    assert await names("sort=name") == ["ann", "bob", "cleo"]
    assert await names("sort=-address&q=example") == ["cleo", "bob", "ann"]
    assert await names("sort=received") == ["cleo", "ann", "bob"]
    assert await names("sort=state") == ["ann", "cleo", "bob"]
    assert await names("sort=else") == ["bob", "ann", "cleo"]
    assert re.search(rf'aria-sort="ascending">\s*<a href="{path}\?sort=-name"', by_name.text)
    monkeypatch.setattr(registrations_pages, "MAX_SORTED", 2)
    too_many = await browser.get(f"{path}?sort=name")
    assert "These are too many to sort by this column." in main_text(too_many)
    # They stand in order of arrival then, and the pages go on to the last.
    assert await names("sort=name") == ["bob", "ann", "cleo"]


async def test_registrations_can_be_filtered_by_unpaid_and_by_not_checked_in(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event(capacity=4, waitinglist_capacity=5, pricing_mode="fixed", price=1250, currency="EUR")
    for name, amount in (("ann", 1250), ("bob", 0), ("cleo", 1250), ("dan", 0), ("eve", 0)):
        await ada.register(event["id"], email=f"{name}@example.com", amount_paid=amount)
    await service.settle()
    path = f"/console/events/{event['id']}/registrations"
    entry = f"do=in&p-{await handle_of(service, 'ann@example.com')}=1"
    question = await browser.get(f"/console/events/{event['id']}/several-registrations?{entry}")
    people = re.findall(r'name="people" value="([^"]*)"', question.text)[0]
    await browser.send(f"/console/events/{event['id']}/several-registrations", people=people, do="in")

    async def names(query: str) -> list[str]:
        return re.findall(r"<bdi>(\w+)@", (await browser.get(f"{path}?{query}")).text)

    assert main_text(await browser.get(path)).count("€12.50 not by card") == 2
    assert await names("state=unpaid") == ["dan", "bob"]
    assert await names("state=unpaid&q=bob") == ["bob"]
    assert await names("state=unpaid&q=bob%40example.com") == ["bob"]
    assert await names("state=unpaid&q=ann%40example.com") == []
    assert await names("state=absent") == ["dan", "cleo", "bob"]
    assert await names("state=absent&sort=address&q=example") == ["bob", "cleo", "dan"]
    assert "bob@example.com" in (await browser.get(f"{path}.csv?state=unpaid")).text
    # Only so many are read for a page: a page may have nobody, and the next one goes on there.
    monkeypatch.setattr(search, "MAX_FILTERED_ROWS", 2)
    monkeypatch.setattr(registrations_pages, "REGISTRATIONS_PER_PAGE", 1)
    first = await browser.get(f"{path}?state=unpaid")
    second = await browser.get(str(next_page_link(first.text)))
    assert re.findall(r"<bdi>(\w+)@", first.text + second.text) == ["dan", "bob"]
    await service.run_sql("update registrations set amount_paid = 1 where amount_paid = 0")
    nobody = await browser.get(f"{path}?state=unpaid")
    assert "Nobody matches among those searched so far." in main_text(nobody)
    assert next_page_link(nobody.text)
    monkeypatch.setattr(registrations_pages, "MAX_SORTED", 2)
    unsorted = await browser.get(f"{path}?state=unpaid&sort=name")
    assert "Nobody matches among those searched so far." in main_text(unsorted)
    assert next_page_link(unsorted.text)
