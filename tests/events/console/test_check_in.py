"""The check-in page without scripts: by a typed code, by name, with its report."""

import re
import uuid

import pytest

from tests.events.check_in.check_in_scene import code_of
from tests.events.console.organizer_scene import OrganizerScene, open_organizer_scene
from tests.helpers.events_service import Service
from tests.helpers.form_browser import main_text
from tests.helpers.people import end_event, erase, sign_up


async def open_check_in(
    service: Service, *people: str, language: str = "en", **fields: object
) -> tuple[OrganizerScene, str, int]:
    """An organizer at the check-in of a new event: the scene, the path, and the event."""
    scene = await open_organizer_scene(service, language=language)
    event = await scene.ada.create_event(**fields)
    await sign_up(service, event, *people)
    return scene, f"/console/events/{event['id']}/check-in", event["id"]


async def scan(scene: OrganizerScene, path: str, text: str, device: str = "Door 1", **fields: str) -> str:
    fields = {"id": str(uuid.uuid4()), "device": device, **fields}
    answer = await scene.post(path, do="scan", text=text, **fields)
    assert answer.status_code == 200, answer.text
    return main_text(answer)


async def test_a_typed_code_checks_in_and_says_who_it_is(service: Service) -> None:
    table, path, event_id = await open_check_in(service, "ann", "bob")

    text = await scan(table, path, await code_of(service, event_id, "ann"))

    assert "✓ Valid Ann Example" in text
    assert "1 of 2 are in" in text
    again = await scan(table, path, await code_of(service, event_id, "ann"), "Door 2")
    assert re.search(r"! Already in Ann Example In since .* scanned by Door 1", again)
    assert "✗ Not on the list This code is unknown." in await scan(table, path, "4F-7K3M9Q")


async def test_a_check_in_without_people_says_so_instead_of_a_count(service: Service) -> None:
    table, path, event_id = await open_check_in(service)

    empty = await table.browser.get(path)
    await sign_up(service, {"id": event_id}, "ann")
    one = await table.browser.get(path)
    past = await table.ada.create_event()
    await end_event(service, past)
    over = await table.browser.get(f"/console/events/{past['id']}/check-in")

    assert "Nobody has a seat yet. As soon as people have one, you can check them in here. Share" in main_text(empty)
    assert "Nobody has a seat yet." not in main_text(one)
    assert "Nobody has a seat at this event." in main_text(over)
    hidden_count = re.compile('<p class="in"[^>]* hidden>')
    assert [bool(hidden_count.search(answer.text)) for answer in (empty, one, over)] == [True, False, True]


async def test_the_check_in_page_has_scanning_and_search_above_the_report_and_the_list(service: Service) -> None:
    table, path, event_id = await open_check_in(service, "ann")

    text = await table.page(path)

    order = (
        "Scan with the camera",
        "This device:",
        "Code",
        "Without a code",
        "Report",
        "The list of people is being saved",
    )
    assert sorted(order, key=text.index) == [*order]
    await end_event(service, {"id": event_id})
    assert "The check-in is over, so the list is not saved in this browser." in await table.page(path)


async def test_a_check_in_form_sent_twice_checks_in_once(service: Service) -> None:
    table, path, event_id = await open_check_in(service, "ann")
    code, id = await code_of(service, event_id, "ann"), str(uuid.uuid4())

    first, second = await scan(table, path, code, id=id), await scan(table, path, code, id=id)

    assert "✓ Valid" in first
    assert "✓ Valid" in second
    assert "Scanned more than once" not in second


async def test_people_without_a_code_are_found_by_name(service: Service) -> None:
    table, path, event_id = await open_check_in(service, "ann", "bob", capacity=1, waitinglist_capacity=5)

    results = await table.page(f"{path}?q=EXAMPLE&device=Door+3")

    assert results.count('value="scan" aria-label="Check in') == 1
    form = results.partition('<ol class="rows">')[2]
    fields = dict(re.findall(r'name="(text|id|device)" value="([^"]*)"', form))
    assert fields["text"] == await code_of(service, event_id, "ann")
    assert "✓ Valid Ann Example" in await scan(table, path, **fields)
    after = main_text(await table.browser.get(f"{path}?q=ann"))
    assert re.search(r"Ann Example ann@example.com In since .* scanned by Door 3", after)
    assert "Bob Example bob@example.com Waiting list" in main_text(await table.browser.get(f"{path}?q=bob@"))
    assert "Nobody matches." in main_text(await table.browser.get(f"{path}?q=zoe"))


async def test_the_report_lists_double_entries_and_takes_scans_back(service: Service) -> None:
    table, path, event_id = await open_check_in(service, "ann", "bob")
    code = await code_of(service, event_id, "ann")
    await scan(table, path, code, "Door 1")
    await scan(table, path, code, "Door 2")

    page = await table.page(path)

    assert re.search(r"Ann Example [\d: APM]+\S* by Door 1 , again [\d: APM]+\S* by Door 2 Undo", outcome_of(page))
    [double, entry] = re.findall(r'name="scan" value="([^"]*)"', page)
    done = await table.post(path, do="take back", scan=double)
    assert (done.status_code, done.headers["location"]) == (303, f"{path}?done=taken_back#report")
    assert "Scanned more than once" not in main_text(await table.browser.get(path))
    await table.post(path, do="take back", scan=entry)
    assert "0 of 2 are in" in main_text(await table.browser.get(path))
    assert "It is undone." in main_text(await table.browser.get(f"{path}?done=taken_back"))


def outcome_of(page: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", page.partition("Scanned more than once")[2]).split())


@pytest.mark.parametrize("fields", [{"device": ""}, {"device": "x" * 61}, {"id": "1"}, {"text": "x" * 601}])
async def test_an_incomplete_check_in_form_checks_in_no_person(service: Service, fields: dict[str, str]) -> None:
    table, path, event_id = await open_check_in(service, "ann")
    sent = {"do": "scan", "id": str(uuid.uuid4()), "device": "Door 1", "text": await code_of(service, event_id, "ann")}

    answer = await table.post(path, **{**sent, **fields})

    assert answer.status_code == 422
    assert "Nobody was checked in:" in main_text(answer)
    assert "0 of 1 are in" in main_text(answer)


async def test_check_in_forms_of_other_sites_or_without_a_task_change_nothing(service: Service) -> None:
    table, path, event_id = await open_check_in(service, "ann")
    sent = {"id": str(uuid.uuid4()), "device": "Door 1", "text": await code_of(service, event_id, "ann")}

    assert (await table.foreign(path, do="scan", **sent)).status_code == 403
    assert (await table.post(path, **sent)).status_code == 400
    assert (await table.post(path, do="take back", scan="1")).status_code == 404
    assert (await table.post(path, do="take back", scan=str(uuid.uuid4()))).status_code == 404
    assert "0 of 1 are in" in main_text(await table.browser.get(path))


async def test_a_check_in_of_another_organizer_is_not_shown_or_changed(service: Service) -> None:
    scene = await open_organizer_scene(service)
    event = await scene.bob.create_event(title="Secret meeting")
    others_event = await scene.ada.create_event()
    await sign_up(service, event, "zoe")
    path, code = f"/console/events/{event['id']}/check-in", await code_of(service, event["id"], "zoe")

    for answer in (
        await scene.browser.get(path),
        await scene.browser.get(f"{path}?q=zoe"),
        await scene.post(path, do="scan", id=str(uuid.uuid4()), device="Door 1", text=code),
        await scene.post(path, do="take back", scan=str(uuid.uuid4())),
    ):
        assert answer.status_code == 403
        assert "Secret" not in answer.text
        assert "Zoe" not in answer.text
    text = await scan(scene, f"/console/events/{others_event['id']}/check-in", code)
    assert "This code is unknown." in text
    assert "Zoe" not in text
    assert await service.run_sql("select id from check_in_scans") == []
    assert (await scene.browser.get("/console/events/999999/check-in")).status_code == 404


async def test_texts_of_strangers_are_escaped_on_the_check_in_page(service: Service) -> None:
    table, path, event_id = await open_check_in(service, "ann", title="<script>alert(1)</script>")
    await service.run_sql("update registrations set name = %(name)s", name="<img src=x>\u202e")
    code = await code_of(service, event_id, "ann")
    await scan(table, path, code, "<b>1</b>")
    await scan(table, path, code, "<b>2</b>")

    for page in (await table.page(path), await table.page(f"{path}?q=%3Cimg&device=%3Cb%3E")):
        assert "<img" not in page
        assert "<b>" not in page
        assert "<script>" not in page
        assert "<bdi>&lt;img src=x&gt;" in page
        assert "<bdi>&lt;b&gt;2&lt;/b&gt;</bdi>" in page


async def test_erased_people_have_no_name_on_the_check_in_page(service: Service) -> None:
    table, path, event_id = await open_check_in(service, "ann")
    code = await code_of(service, event_id, "ann")
    await scan(table, path, code)
    await end_event(service, {"id": event_id})
    await erase(service)

    page = main_text(await table.browser.get(path))

    assert "Somebody whose data was erased" in page
    assert "Ann" not in page
    assert "This code is unknown." in await scan(table, path, code)


async def test_the_check_in_page_is_in_german_too(service: Service) -> None:
    table, path, event_id = await open_check_in(service, "ann", language="de")

    text = await scan(table, path, await code_of(service, event_id, "ann"), "Tür 1")

    assert "✓ Gültig Ann Example" in text
    assert "1 von 1 sind da" in text
