"""The data of the check-in scripts: the list of one event, the news, the worker, and the scans that they send."""

import json
import uuid
from typing import Any

import pytest

from holdfast.events.check_in import operations
from tests.events.check_in.check_in_scene import code_of, link_of
from tests.events.console.organizer_scene import OrganizerScene, open_organizer_scene
from tests.helpers.events_service import Service
from tests.helpers.people import end_event, sign_up


async def open_check_in(service: Service, *people: str, **fields: object) -> tuple[OrganizerScene, str, int]:
    scene = await open_organizer_scene(service)
    event = await scene.ada.create_event(**fields)
    await sign_up(service, event, *people)
    return scene, f"/console/events/{event['id']}/check-in", event["id"]


def scan(text: str, **fields: Any) -> dict[str, Any]:
    return {"id": str(uuid.uuid4()), "text": text, "told_at": 1_800_000_000_000, "let_in": True, **fields}


async def test_the_list_for_a_device_has_only_names_codes_and_states(service: Service) -> None:
    table, path, event_id = await open_check_in(service, "ann", "bob", capacity=1, waitinglist_capacity=5)
    other = await table.ada.create_event(title="Pottery")
    await sign_up(service, other, "zoe")
    [ann, bob] = [(await code_of(service, event_id, name)).partition("-")[2] for name in ("ann", "bob")]

    got = await table.browser.get(f"{path}/list")

    assert got.headers["cache-control"] == "no-store"
    listed = got.json()
    assert [person[1:] for person in listed["people"]] == [[[ann], "r", "Ann Example"], [[bob], "w", "Bob Example"]]
    assert listed["more"] is None
    for name in ("ann", "bob"):
        assert (await link_of(service, event_id, name))[-32:] not in got.text
        assert f"{name}@example.com" not in got.text
    assert "Zoe" not in got.text


async def test_a_long_list_comes_in_batches_without_gaps(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    table, path, _ = await open_check_in(service, "ann", "bob", "cleo", "dan", "eve")
    monkeypatch.setattr(operations, "ANSWER_BATCH_SIZE", 2)
    names: list[str] = []
    more: int | None = 0

    while more is not None:
        part = (await table.browser.get(f"{path}/list?after={more}")).json()
        names += [name for *_, name in part["people"]]
        more = part["more"]

    assert names == [f"{name} Example" for name in ("Ann", "Bob", "Cleo", "Dan", "Eve")]


async def test_the_version_changes_with_the_list_and_not_with_scans(service: Service) -> None:
    table, path, event_id = await open_check_in(service, "ann")

    async def version() -> str:
        return (await table.browser.get(f"{path}/news")).json()["version"]

    before = await version()
    await table.post(
        f"{path}/scans", device="Door 1", scans=json.dumps([scan(await code_of(service, event_id, "ann"))])
    )
    assert await version() == before
    assert (await table.browser.get(f"{path}/list")).json()["version"] == before
    await service.run_sql("update registrations set name = 'Anna'")
    assert await version() != before
    renamed = await version()
    await sign_up(service, {"id": event_id}, "bob")
    assert await version() not in {before, renamed}


async def test_an_event_that_is_over_has_no_check_in_list_and_accepts_late_scans(service: Service) -> None:
    table, path, event_id = await open_check_in(service, "ann")
    await end_event(service, {"id": event_id})

    assert (await table.browser.get(f"{path}/news")).json()["version"] is None
    assert (await table.browser.get(f"{path}/list")).json()["people"] == []
    sent = await table.post(
        f"{path}/scans", device="Door 1", scans=json.dumps([scan(await code_of(service, event_id, "ann"))])
    )
    assert [verdict["say"] for verdict in sent.json()] == ["in"]


async def test_scans_are_answered_and_reported_to_other_devices(service: Service) -> None:
    table, path, event_id = await open_check_in(service, "ann")
    code = await code_of(service, event_id, "ann")
    first, second = scan(code), scan(code)

    answer = await table.post(f"{path}/scans", device="Door 1", scans=json.dumps([first, second]))

    assert [(verdict["id"], verdict["say"]) for verdict in answer.json()] == [
        (first["id"], "in"),
        (second["id"], "double"),
    ]
    news = (await table.browser.get(f"{path}/news")).json()
    assert [(scan["id"], scan["is_entry"], scan["device"]) for scan in news["scans"]] == [
        (first["id"], True, "Door 1"),
        (second["id"], False, "Door 1"),
    ]
    assert (news["counts"]["entered"], news["more"]) == (1, False)
    assert (await table.browser.get(f"{path}/news?after={news['last']}")).json()["scans"] == []


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"scans": "["}, 400),
        ({"scans": "[" * 2_000}, 400),
        ({"scans": "[]"}, 422),
        ({"scans": "{}"}, 422),
        ({"scans": '[{"id": "1", "text": "", "told_at": 0}]'}, 422),
        ({"scans": json.dumps([scan("x")] * 101)}, 422),
        ({"scans": json.dumps([scan("\0")])}, 422),
        ({"scans": json.dumps([scan("x")]), "device": ""}, 422),
        ({"scans": json.dumps([{**scan("x"), "told_at": 1e300}])}, 422),
    ],
)
async def test_scans_that_make_no_sense_are_refused(service: Service, fields: dict[str, str], status: int) -> None:
    table, path, _ = await open_check_in(service)

    assert (await table.post(f"{path}/scans", **{"device": "Door 1", **fields})).status_code == status


async def test_a_scan_from_another_site_or_session_is_refused(service: Service) -> None:
    table, path, event_id = await open_check_in(service, "ann")
    scans = json.dumps([scan(await code_of(service, event_id, "ann"))])

    assert (await table.foreign(f"{path}/scans", device="Door 1", scans=scans)).status_code == 403
    forged = await table.browser.http.post(f"{path}/scans", data={"token": "1-2", "device": "Door 1", "scans": scans})
    assert forged.status_code == 403
    assert (await table.browser.get(f"{path}/scans")).status_code == 403
    assert await service.run_sql("select id from check_in_scans") == []


async def test_a_device_gets_and_changes_no_check_in_data_of_another_organizer(service: Service) -> None:
    scene = await open_organizer_scene(service)
    event = await scene.bob.create_event(title="Secret meeting")
    await sign_up(service, event, "zoe")
    path, code = f"/console/events/{event['id']}/check-in", await code_of(service, event["id"], "zoe")

    for answer in (
        await scene.browser.get(f"{path}/list"),
        await scene.browser.get(f"{path}/news"),
        await scene.browser.get(f"{path}/shell"),
        await scene.post(f"{path}/scans", device="Door 1", scans=json.dumps([scan(code)])),
    ):
        assert answer.status_code == 403
        assert "Secret" not in answer.text
        assert "Zoe" not in answer.text
    for address in ("list?after=x", "list?after=-1", "news?before=1"):
        assert (await scene.browser.get(f"{path}/{address}")).status_code == 422
    assert await service.run_sql("select id from check_in_scans") == []


async def test_a_device_that_is_not_signed_in_is_led_to_sign_in(service: Service) -> None:
    _, path, _ = await open_check_in(service)

    for address in ("list", "news", "shell", "scans"):
        assert (await service.http.get(f"{path}/{address}")).headers["location"].startswith("/sign-in")


async def test_the_page_that_browsers_store_has_no_people_in_it(service: Service) -> None:
    table, path, event_id = await open_check_in(service, "ann")
    await table.post(
        f"{path}/scans", device="Door 7", scans=json.dumps([scan(await code_of(service, event_id, "ann"))])
    )

    shell = await table.page(f"{path}/shell")

    assert "Ann" not in shell
    assert "Door 7" not in shell
    assert 'id="scanner"' in shell
    assert "Ann" in await table.page(path)


async def test_the_worker_is_limited_to_the_page_of_its_event(service: Service) -> None:
    worker = await service.http.get("/console/events/7/check-in/worker.js")

    assert worker.status_code == 200
    assert worker.headers["content-type"].startswith("text/javascript")
    assert worker.headers["service-worker-allowed"] == "/console/events/7/check-in"
    assert worker.headers["content-security-policy"] == "default-src 'none'; connect-src 'self'"
    assert worker.headers["cache-control"] == "no-cache"
