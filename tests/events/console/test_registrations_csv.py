"""The registrations of an event as a file for spreadsheet programs."""

import pytest

from holdfast.events.console.people import registrations_pages
from tests.events.console.organizing import csv_cells, sign_in_organizer
from tests.helpers.events_service import Service
from tests.helpers.people import end_event, erase, handle_of, sign_up


async def test_all_registrations_are_in_the_file_in_order_of_arrival(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event(capacity=1, waitinglist_capacity=5, pricing_mode="fixed", price=1250, currency="EUR")
    await ada.register(event["id"], email="ann@example.com", amount_paid=1000)
    await ada.register(event["id"], email="bob@example.com")
    await service.settle()
    await ada.register(event["id"], email="cleo@example.com")
    [(at,)] = await service.run_sql("select received_at from registrations order by arrival limit 1")

    file = await browser.get(f"/console/events/{event['id']}/registrations.csv")

    assert file.headers["content-type"] == "text/csv; charset=utf-8"
    assert file.headers["content-disposition"] == f'attachment; filename="registrations-{event["id"]}.csv"'
    assert (file.headers["x-content-type-options"], file.headers["cache-control"]) == ("nosniff", "no-store")
    assert file.content.count(b"\r\n") == file.content.count(b"\n") == 4
    header, ann, bob, cleo = csv_cells(file)
    assert header[:4] == ["E-mail address", "Name", "Status", "Place on the waiting list"]
    assert ann == [
        *("ann@example.com", "", "Seat", "", "", "10.00", "EUR", at.strftime("%Y-%m-%dT%H:%M:%SZ")),
        await handle_of(service, "ann@example.com"),
        "",
    ]
    assert bob[2:4] == ["Waiting list", "1"]
    assert cleo[2:4] == ["Pending", ""]


@pytest.mark.parametrize("begin", ["=", "+", "-", "@", "\t", "\r", "\n", "'=", "\uff1d"])
async def test_no_cell_of_the_file_of_registrations_is_a_formula(service: Service, begin: str) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event()
    await ada.register(event["id"], email="=cmd|calc!a1@example.com")
    await service.settle()
    name = f'{begin}HYPERLINK("https://evil.example";"x"),\r\nb'
    await service.run_sql("update registrations set name = %(name)s", name=name)

    _, row = csv_cells(await browser.get(f"/console/events/{event['id']}/registrations.csv"))

    assert row[:2] == ["'=cmd|calc!a1@example.com", f"'{name}"]


async def test_the_german_file_opens_in_a_german_spreadsheet_program(service: Service) -> None:
    """Before, it had commas and `10.00`: one column of texts there."""
    ada, browser = await sign_in_organizer(service, language="de")
    event = await ada.create_event(pricing_mode="fixed", price=1205, currency="EUR")
    await ada.register(event["id"], email="ann@example.com")
    await service.settle()

    file = await browser.get(f"/console/events/{event['id']}/registrations.csv")

    header, row = csv_cells(file, ";")
    assert (header[0], header[5]) == ("E-Mail-Adresse", "Bezahlter Betrag")
    assert row[:3] == ["ann@example.com", "", "Platz"]
    assert row[5:7] == ["12,05", "EUR"]


async def test_the_file_has_what_the_list_shows(service: Service) -> None:
    ada, browser = await sign_in_organizer(service, language="de")
    event = await ada.create_event(capacity=1, waitinglist_capacity=5)
    await sign_up(service, event, "ann", "bob", "cleo")

    file = await browser.get(f"/console/events/{event['id']}/registrations.csv?state=waitlisted&q=cleo")

    header, *rows = csv_cells(file, ";")
    assert header[0] == "E-Mail-Adresse"
    assert [row[:4] for row in rows] == [["cleo@example.com", "Cleo Example", "Warteliste", "2"]]


async def test_erased_people_have_a_row_without_a_name_in_the_file(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event()
    await sign_up(service, event, "ann")
    await end_event(service, event)
    await erase(service)

    _, row = csv_cells(await browser.get(f"/console/events/{event['id']}/registrations.csv"))

    assert row[:3] == ["", "", "Seat"]


async def test_a_long_file_is_written_in_parts(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registrations_pages, "MAX_PAGE_SIZE", 3)
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event(capacity=4, waitinglist_capacity=100)
    for number in range(10):
        await ada.register(event["id"], email=f"p{number}@example.com")
    await service.settle()

    _, *rows = csv_cells(await browser.get(f"/console/events/{event['id']}/registrations.csv"))

    assert [row[0] for row in rows] == [f"p{number}@example.com" for number in range(10)]
    assert [row[3] for row in rows] == ["", "", "", "", "1", "2", "3", "4", "5", "6"]


@pytest.mark.parametrize("query", ["", "?q=ann", "?state=registered"])
async def test_the_file_of_another_organizer_is_not_given(service: Service, query: str) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    await sign_up(service, event, "ann")
    _, eve = await sign_in_organizer(service, "eve")

    file = await eve.get(f"/console/events/{event['id']}/registrations.csv{query}")

    assert file.status_code == 403
    assert "ann@" not in file.text


async def test_the_file_of_registrations_needs_a_session(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()

    answer = await service.http.get(f"/console/events/{event['id']}/registrations.csv")

    assert (answer.status_code, answer.headers["location"].partition("?")[0]) == (303, "/sign-in")
