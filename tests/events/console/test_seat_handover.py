"""The page that gives seats of people who have not come to people who wait."""

import re

import pytest
from prometheus_client import REGISTRY

from holdfast.kit.environment.metrics import write_requests
from tests.events.check_in.check_in_scene import code_of
from tests.events.console.organizer_scene import OrganizerScene, hidden_field, open_organizer_scene
from tests.helpers.events_service import Service
from tests.helpers.form_browser import main_text
from tests.helpers.people import sign_up


async def begin_event(service: Service, *, language: str = "en") -> tuple[OrganizerScene, str]:
    """An event with one seat that has begun: Ann has the seat, Bob waits. The scene of its organizer, and the path."""
    scene = await open_organizer_scene(service, language=language)
    event = await scene.ada.create_event(capacity=1, waitinglist_capacity=5)
    await sign_up(service, event, "ann", "bob")
    await service.run_sql("update events set datetime = now() where id = %(id)s", id=event["id"])
    return scene, f"/console/events/{event['id']}/check-in/no-shows"


async def test_the_page_of_no_shows_names_who_gets_a_seat_and_gives_it_with_one_click(service: Service) -> None:
    table, path = await begin_event(service)

    question = await table.browser.get(path)

    text = main_text(question)
    assert "Not checked in yet 1" in text
    assert "1 person gets a seat, and is told by e-mail unless no e-mails are wanted: Bob Example" in text
    assert "1 person who has not come loses the seat" in text
    done = await table.post(path, at_most=hidden_field(question, "at_most"))
    assert "1 person who waited has a seat now." in main_text(done)
    assert "Nobody is on the waiting list" in main_text(done)
    listed = main_text(await table.browser.get(path.replace("check-in/no-shows", "registrations")))
    assert "Ann Example ann@example.com No-show: the seat was given away " in listed
    assert "Bob Example bob@example.com Seat " in listed


async def test_the_page_of_no_shows_has_the_name_in_metrics_that_it_had_in_version_0_2_0(service: Service) -> None:
    table, path = await begin_event(service)
    labels = {"operation": "console_no_shows", "status": "200"}
    before = answers_counted(labels)

    await table.browser.get(path)

    assert answers_counted(labels) == before + 1


def answers_counted(labels: dict[str, str]) -> float:
    write_requests()
    return REGISTRY.get_sample_value("holdfast_requests_total", labels) or 0


async def test_seats_of_no_shows_are_not_given_before_the_event_begins(service: Service) -> None:
    table, path = await begin_event(service)
    await service.run_sql("update events set datetime = now() + interval '1 hour'")

    assert "All seats are kept until the event begins" in main_text(await table.browser.get(path))
    refusal = await table.post(path, at_most="1")

    assert refusal.status_code == 422
    assert "All seats are kept until the event begins" in main_text(refusal)


@pytest.mark.parametrize("at_most", ["", "0", "-1", "x", "1e3", "99999999999"])
async def test_a_form_without_a_valid_number_gives_no_seats(service: Service, at_most: str) -> None:
    table, path = await begin_event(service)

    assert (await table.post(path, at_most=at_most)).status_code == 400
    assert (await table.foreign(path, at_most="1")).status_code == 403
    assert "On the waiting list 1" in main_text(await table.browser.get(path))


async def test_seats_of_another_organizer_are_neither_shown_nor_given(service: Service) -> None:
    scene = await open_organizer_scene(service)
    event = await scene.bob.create_event(capacity=1, waitinglist_capacity=5)
    await sign_up(service, event, "zoe", "yan")
    await service.run_sql("update events set datetime = now()")
    path = f"/console/events/{event['id']}/check-in/no-shows"

    for answer in (await scene.browser.get(path), await scene.post(path, at_most="1")):
        assert answer.status_code == 403
        assert "Yan" not in answer.text
    assert await service.run_sql("select count(*) from registrations where status = 'waitlisted'") == [(1,)]
    assert (await scene.browser.get("/console/events/999999/check-in/no-shows")).status_code == 404


async def test_lists_and_files_show_who_is_checked_in(service: Service) -> None:
    table, path = await begin_event(service)
    event_id = int(path.split("/")[3])
    registrations = f"/console/events/{event_id}/registrations"
    assert "not in yet" not in main_text(await table.browser.get(registrations))
    await service.run_sql("update events set capacity = 2")
    await table.post(path, at_most="1")
    await table.post(
        path.removesuffix("/no-shows"),
        do="scan",
        id="00000000-0000-0000-0000-000000000001",
        device="Door 1",
        text=await code_of(service, event_id, "ann"),
    )

    text = main_text(await table.browser.get(registrations))

    assert re.search(r"Ann Example ann@example.com Seat In: \d+:\d\d [AP]M ", text)
    assert "Bob Example bob@example.com Seat not in yet " in text
    file = await table.page(f"{registrations}.csv")
    header, first, second = (line.split(",") for line in file.removeprefix("\ufeff").splitlines())
    assert header[-1] == "In since (UTC)"
    assert first[-1].startswith("20")
    assert first[-1].endswith("Z")
    assert second[-1] == ""


async def test_the_page_of_no_shows_is_in_german_too(service: Service) -> None:
    table, path = await begin_event(service, language="de")

    assert "1 Person bekommt einen Platz" in main_text(await table.browser.get(path))
