"""The pages of queues: made, changed, paused, deleted after a question, and never those of others."""

from typing import Any

import pytest

from holdfast.events.queues.history import read_history
from holdfast.events.queues.model import GetQueue
from holdfast.events.queues.release import release_due
from holdfast.events.settings import Settings
from holdfast.kit.contract.caller import person
from holdfast.kit.contract.problems import NOT_FOUND, Problem
from tests.events.console.organizer_scene import OrganizerScene, hidden_field, open_organizer_scene
from tests.helpers.events_service import Client, Service, running_events
from tests.helpers.form_browser import token

FORM = {
    "title": "Spring sale",
    "description": "Have your card ready.\nIt will be quick.",
    "target_url": "https://shop.example/sale",
    "release_rate": "90",
    "token_ttl_minutes": "15",
    "max_queue_size": "",
    "starts_at": "2090-05-01T10:00",
    "ends_at": "",
    "public_log": "yes",
}


async def send_form(scene: OrganizerScene, page: str, **fields: str) -> Any:
    """Fill in the form of a page, and send it."""
    form_page = await scene.browser.get(page)
    form = {"token": token(form_page), "once": hidden_field(form_page, "once"), **fields}
    return await scene.browser.http.post(page, data=form)


async def queues(client: Client) -> list[dict[str, Any]]:
    return (await client.get("/api/queues")).json()["data"]


async def test_a_queue_is_made_as_the_form_says(service: Service) -> None:
    scene = await open_organizer_scene(service)

    answer = await send_form(scene, "/console/queues/new?site=", **FORM)

    [made] = await queues(scene.ada)
    assert answer.headers["location"] == f"/console/queues/{made['id']}"
    assert made["title"] == "Spring sale"
    assert made["description"].splitlines() == ["Have your card ready.", "It will be quick."]
    assert (made["release_rate"], made["token_ttl_minutes"], made["max_queue_size"]) == (90, 15, None)
    assert (made["starts_at"], made["ends_at"], made["active"]) == ("2090-05-01T10:00:00Z", None, True)
    assert "Spring sale" in await scene.page("/console/queues")
    assert made["waiting_room_url"] in await scene.page(answer.headers["location"])


async def test_a_form_of_a_new_queue_sent_twice_makes_one_queue(service: Service) -> None:
    scene = await open_organizer_scene(service)
    form_page = await scene.browser.get("/console/queues/new?site=")
    form = {**FORM, "token": token(form_page), "once": hidden_field(form_page, "once")}

    first, second = [await scene.browser.http.post("/console/queues/new?site=", data=form) for _ in range(2)]

    assert first.headers["location"] == second.headers["location"]
    assert len(await queues(scene.ada)) == 1


async def test_a_form_changes_only_the_edited_fields_of_a_queue(service: Service) -> None:
    scene = await open_organizer_scene(service)
    before = await scene.ada.create_queue(
        starts_at="2090-05-01T10:00:30.5Z", max_queue_size=7, description="One.\nTwo.", title="Old"
    )
    page = f"/console/queues/{before['id']}/edit"
    values = {**FORM, "title": "Old", "description": "One.\r\nTwo.", "starts_at": "2090-05-01T10:00:30"}
    values |= {"release_rate": "60", "token_ttl_minutes": "10", "max_queue_size": "7"}

    await send_form(scene, page, **values)
    [same] = await queues(scene.ada)
    await send_form(scene, page, **{**values, "title": "New", "max_queue_size": "", "ends_at": "2091-01-01T00:00"})
    [after] = await queues(scene.ada)

    assert same == before
    assert after == {**before, "title": "New", "max_queue_size": None, "ends_at": "2091-01-01T00:00:00Z"}


async def test_the_moments_of_a_queue_are_in_the_time_zone_of_the_last_event(service: Service) -> None:
    scene = await open_organizer_scene(service)
    await scene.ada.create_event(timezone="Europe/Berlin")
    queue = await scene.ada.create_queue(starts_at="2090-05-01T10:00:00Z")
    page = f"/console/queues/{queue['id']}/edit"

    form = await scene.page(page)
    await send_form(scene, page, **{**FORM, "starts_at": "2090-05-01T13:30", "timezone": "Europe/Berlin"})
    [after] = await queues(scene.ada)

    assert 'name="timezone" value="Europe/Berlin"' in form
    assert 'value="2090-05-01T12:00"' in form
    assert after["starts_at"] == "2090-05-01T11:30:00Z"


async def test_the_order_of_a_queue_is_public_unless_its_box_is_left_empty(service: Service) -> None:
    scene = await open_organizer_scene(service)

    await send_form(scene, "/console/queues/new?site=", **{**FORM, "title": "Public"})
    await send_form(scene, "/console/queues/new?site=", **{**FORM, "title": "Not public", "public_log": ""})

    assert {made["title"]: made["public_log"] for made in await queues(scene.ada)} == {
        "Public": True,
        "Not public": False,
    }


async def test_a_queue_is_paused_and_resumed(service: Service) -> None:
    scene = await open_organizer_scene(service)
    queue = await scene.ada.create_queue()
    page = f"/console/queues/{queue['id']}"

    await scene.post(page, do="pause")
    [paused] = await queues(scene.ada)
    text = await scene.page(page)
    await scene.post(page, do="resume")
    [resumed] = await queues(scene.ada)

    assert (paused["active"], resumed["active"]) == (False, True)
    assert "Nobody can join, and nobody is let in." in text
    assert "People join and are let in." in await scene.page(page)
    assert (await scene.post(page, do="delete")).status_code == 400


async def test_a_queue_is_deleted_after_a_question(service: Service) -> None:
    scene = await open_organizer_scene(service)
    queue = await scene.ada.create_queue(title="Winter sale")
    await scene.ada.post(f"/api/queues/{queue['id']}/join", {"visitor_id": "ann"})

    question = await scene.page(f"/console/queues/{queue['id']}/delete")
    [still] = await queues(scene.ada)
    done = await scene.browser.send(f"/console/queues/{queue['id']}/delete")

    assert "Delete the waiting room “<bdi>Winter sale</bdi>”?" in question
    assert "1 person who is waiting loses the place." in question
    assert still["id"] == queue["id"]
    assert (done.status_code, done.headers["location"]) == (303, "/console/queues")
    assert await queues(scene.ada) == []


async def test_the_picture_shows_length_pace_and_wait(service: Service) -> None:
    scene = await open_organizer_scene(service)
    queue = await scene.ada.create_queue(release_rate=1, max_queue_size=500)
    empty = " ".join((await scene.page(f"/console/queues/{queue['id']}")).split())
    for visitor in ("ann", "bob", "cleo", "dan"):
        await scene.ada.post(f"/api/queues/{queue['id']}/join", {"visitor_id": visitor})
    await service.run_sql("update queue_visitors set joined_at = now() - interval '6 minutes' where ticket = 1")
    await service.run_sql("update queues set paced_at = now() - interval '2 minutes', rated_at = now()")
    assert await release_due(service.database) == 1

    page = await scene.page(f"/console/queues/{queue['id']}")

    text = " ".join(page.split())
    assert "<dt>Waiting</dt><dd><strong>3</strong>" in text
    assert "of 500 at most" in text
    assert "<dt>Let in during the last minute</dt><dd><strong>1</strong>" in text
    assert "at most 1 a minute" in text
    assert "<dt>Longest wait now</dt><dd><strong>4 minutes</strong>" in text
    assert "<dt>Longest wait now</dt><dd><strong>–</strong>" in empty  # noqa: RUF001
    assert "M295 60V2.0" in text
    assert "At most 6 minutes." in text


async def test_queues_of_another_organizer_are_neither_shown_nor_changed(service: Service) -> None:
    scene = await open_organizer_scene(service)
    theirs = await scene.bob.create_queue(title="Secret sale")
    page = f"/console/queues/{theirs['id']}"

    pages = [await scene.browser.get(f"{page}{rest}") for rest in ("", "/edit", "/delete")]
    changed = [
        await scene.post(page, do="pause"),
        await scene.post(f"{page}/edit", **FORM),
        await scene.post(f"{page}/delete"),
    ]
    none = await scene.browser.get("/console/queues/999999")

    assert [response.status_code for response in (*pages, *changed, none)] == [404] * 7
    assert all(response.text == none.text for response in (*pages, *changed))
    assert "Secret sale" not in await scene.page("/console/queues")
    assert await queues(scene.bob) == [theirs]


async def test_the_history_of_a_foreign_queue_is_refused_by_its_operation_too(service: Service) -> None:
    scene = await open_organizer_scene(service)
    theirs = await scene.bob.create_queue()

    with pytest.raises(Problem) as refusal:
        await service.database.read(
            lambda reader: read_history(reader, person(1, scene.ada.id), GetQueue(queue_id=theirs["id"]))
        )

    assert refusal.value.type is NOT_FOUND


async def test_no_queue_is_made_for_another_organizer(service: Service) -> None:
    scene = await open_organizer_scene(service)

    await send_form(scene, "/console/queues/new?site=", **FORM, organizer_id=str(scene.bob.id))

    assert (len(await queues(scene.ada)), await queues(scene.bob)) == (1, [])


async def test_a_form_of_another_site_changes_no_queue(service: Service) -> None:
    scene = await open_organizer_scene(service)
    queue = await scene.ada.create_queue()
    page = f"/console/queues/{queue['id']}"

    answers = [
        await scene.foreign("/console/queues/new?site=", **FORM, once="x" * 22),
        await scene.foreign(page, do="pause"),
        await scene.foreign(f"{page}/edit", **FORM),
        await scene.foreign(f"{page}/delete"),
    ]

    assert [answer.status_code for answer in answers] == [403] * 4
    assert await queues(scene.ada) == [queue]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"title": "x" * 301}, "300"),
        ({"release_rate": "0"}, "1"),
        ({"release_rate": "many"}, "Enter a number of people, such as 60."),
        ({"token_ttl_minutes": "999999999999999999999"}, "at most 43,200"),
        ({"target_url": "javascript:alert(1)"}, "must be an http or https address"),
        ({"max_queue_size": "-1"}, "1"),
        ({"starts_at": "tomorrow"}, "Enter a date and a time."),
        (
            {"starts_at": "2090-01-02T00:00", "ends_at": "2090-01-01T00:00"},
            "must be later than “Opens”",
        ),
        ({"description": "a\x00b"}, "NUL"),
    ],
)
async def test_an_invalid_field_of_a_queue_has_its_message_beside_it(
    service: Service, fields: dict[str, str], message: str
) -> None:
    scene = await open_organizer_scene(service)
    queue = await scene.ada.create_queue()

    for page in ("/console/queues/new?site=", f"/console/queues/{queue['id']}/edit"):
        answer = await send_form(scene, page, **{**FORM, **fields})

        errors = answer.text.split('class="error"')[1:]
        assert (answer.status_code, len(errors)) == (422, 1)
        assert message in errors[0].partition("</p>")[0]
    assert await queues(scene.ada) == [queue]


async def test_the_title_of_a_queue_is_escaped(service: Service) -> None:
    scene = await open_organizer_scene(service)
    queue = await scene.ada.create_queue(title="<script>alert(1)</script>", description="</textarea><script>x</script>")

    for path in ("", f"/{queue['id']}", f"/{queue['id']}/edit", f"/{queue['id']}/delete"):
        page = await scene.page(f"/console/queues{path}")
        assert "<script>" not in page
        assert "&lt;script&gt;alert(1)" in page


@pytest.mark.parametrize(("seconds", "label"), [(60, "per minute"), (10, "every 10 seconds")])
async def test_the_label_of_the_pace_names_the_seconds_that_it_is_for(
    settings: Settings, seconds: int, label: str
) -> None:
    async with running_events(settings.model_copy(update={"queue_interval": seconds})) as service:
        scene = await open_organizer_scene(service)

        assert f"People let in {label}</label>" in await scene.page("/console/queues/new?site=")


async def test_an_organizer_at_the_limit_of_queues_reads_that_one_must_be_deleted(settings: Settings) -> None:
    async with running_events(settings.model_copy(update={"queues_per_organizer": 1})) as service:
        scene = await open_organizer_scene(service)
        await scene.ada.create_queue()

        answer = await send_form(scene, "/console/queues/new?site=", **FORM)

        assert (answer.status_code, 'value="Spring sale"' in answer.text) == (422, True)
        assert "You have the maximum number of waiting rooms." in answer.text


async def test_a_long_list_of_queues_is_paged(service: Service) -> None:
    scene = await open_organizer_scene(service)
    for number in range(21):
        await scene.ada.create_queue(title=f"Sale {number:02}")

    first, second = await scene.page("/console/queues"), await scene.page("/console/queues?offset=20")

    assert "Sale 19" in first
    assert "Sale 20" not in first
    assert "/console/queues?offset=20" in first
    assert "Sale 20" in second
    assert "More waiting rooms" in first
    assert "More waiting rooms" not in second
