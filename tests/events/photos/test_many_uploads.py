"""One organizer sends many files that are slow to decode: others wait for one turn at most, over HTTP on a port."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest
from PIL import Image

from holdfast.events.events.edits import EDIT_EVENT, EditEvent
from holdfast.events.events.model import CreateEvent, UpdateEvent
from holdfast.events.mails.event_copies import COPY_EVENT, CopyEvent
from holdfast.events.photos import image, sandbox
from holdfast.events.photos.model import upload_name
from holdfast.events.photos.operations import STORE_PHOTO, StorePhoto
from holdfast.events.settings import Settings
from holdfast.kit.contract.caller import person
from holdfast.kit.contract.problems import Problem
from holdfast.kit.operations.time_budget import TimeBudget
from tests.events.crowds import Crowd, crowd_of
from tests.events.photos.gate import Gate, program
from tests.events.photos.site import PhotoSite
from tests.helpers.events_service import Client, Service, event_fields, eventually, running_events
from tests.helpers.photos import add_photos, failing_fields, presign, put_upload, stored_files, upload
from tests.helpers.pictures import encode_image, picture

GIF = "image/gif"


def damaged_animation(frames: int, width: int = 2000, height: int = 2000) -> bytes:
    """A small GIF file of many large frames, of which only the last is damaged: all others are decoded before."""
    single = encode_image(Image.new("P", (width, height)), "image/gif")
    frame = single[single.index(b",") : -1]
    head = single[: single.index(b",")]
    damaged = frame[:12] + b"\xff" * 10 + frame[22:]
    return head + frame * (frames - 1) + damaged + b";"


SLOW = damaged_animation(24)
"""A file that takes a second to decode and is refused then."""


class Decoders(Gate):
    """Real decoders. Those of GIF files note that they have begun, and wait at a gate."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory / "gate", image.__name__)
        self._begun = directory / "begun"
        self._begun.touch()
        self.program = program(
            f"""
import runpy, sys
signature = sys.stdin.buffer.read(3)
sys.stdin.buffer.seek(0)
if signature == b"GIF":
    with open({str(self._begun)!r}, "a") as begun:
        begun.write("x")
    open({str(self.path)!r}).read()
runpy.run_module({image.__name__!r}, run_name="__main__")
"""
        )

    @property
    def begun(self) -> int:
        """How many GIF files decoders have begun with."""
        return self._begun.stat().st_size

    async def begin(self) -> None:
        """Wait until a GIF file is being decoded."""
        await eventually(lambda: self.begun > 0)


@pytest.fixture
def decoders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Decoders:
    decoders = Decoders(tmp_path)
    monkeypatch.setattr(sandbox, "CHECKER", decoders.program)
    return decoders


@pytest.fixture
async def crowd(service: Service) -> AsyncIterator[Crowd]:
    async with crowd_of(service) as crowd:
        yield crowd


async def attach(client: Client, event: dict[str, Any], *keys: str) -> httpx2.Response:
    return await client.patch(f"/api/events/{event['id']}", {"event": {"image_keys": list(keys)}})


@pytest.mark.parametrize("is_proved", [True, False], ids=["confirmed", "unconfirmed"])
async def test_photos_of_others_are_accepted_while_an_organizer_sends_slow_files(
    service: Service, crowd: Crowd, decoders: Decoders, is_proved: bool
) -> None:
    ada = await service.organizer()
    eves = [await service.organizer(is_proved=is_proved) for _ in range(1 if is_proved else 3)]
    event, hers = await ada.create_event(), [await eve.create_event() for eve in eves]
    keys = [await upload(service, ada) for _ in range(3)]
    for eve, of_eve in zip(eves, hers, strict=True):
        slow = await upload(service, eve, SLOW, GIF)
        for _ in range(40):
            await crowd.patch(eve, of_eve, image_keys=[slow])
    await decoders.begin()

    async with asyncio.timeout(20):
        answers = [await attach(ada, event, *keys[: number + 1]) for number in range(3)]

    assert [answer.status_code for answer in answers] == [200] * 3
    assert decoders.begun == 1
    decoders.open()


async def test_no_file_is_decoded_after_its_clients_have_gone(
    service: Service, crowd: Crowd, decoders: Decoders
) -> None:
    eve = await service.organizer(is_proved=False)
    event = await eve.create_event()
    # An organizer that has not confirmed its address may have 20 uploads.
    slow = [await upload(service, eve, SLOW, GIF) for _ in range(15)]
    for key in slow:
        await crowd.patch(eve, event, image_keys=[key])
    await decoders.begin()

    crowd.leave()
    # The decoder of a client that has gone ends before its file is decoded, so that the next one has its turn.
    async with asyncio.timeout(20):
        assert (await attach(eve, event, await upload(service, eve))).status_code == 200

    assert decoders.begun == 1
    decoders.open()


async def test_a_refused_upload_is_decoded_once(service: Service, decoders: Decoders) -> None:
    eve = await service.organizer()
    event = await eve.create_event()
    slow = await upload(service, eve, SLOW, GIF)
    decoders.open()

    together = await asyncio.gather(*(attach(eve, event, slow) for _ in range(5)))
    later = await attach(eve, event, slow)

    reasons = sorted(failing_fields(answer)["image_keys"][0].partition(" ")[2] for answer in (*together, later))
    assert reasons == ["has not been uploaded yet"] * 5 + ["is damaged"]
    assert decoders.begun == 1
    assert stored_files(service, "uploads") == set()


async def test_an_upload_that_many_requests_attach_is_decoded_once(service: Service, decoders: Decoders) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    key = await upload(service, ada, content_type=GIF)
    decoders.open()

    answers = await asyncio.gather(*(attach(ada, event, key) for _ in range(5)))

    assert {answer.status_code for answer in answers} == {200}
    assert decoders.begun == 1


async def test_a_file_for_a_change_that_is_refused_is_not_decoded(service: Service, decoders: Decoders) -> None:
    ada, eve = await service.organizer(), await service.organizer()
    his, hers = await ada.create_event(), await eve.create_event()
    key, other = await upload(service, eve, SLOW, GIF), await upload(service, ada)
    path = f"/api/events/{hers['id']}"

    answers = [
        await attach(eve, his, key),
        await attach(eve, {"id": 10**9}, key),
        await attach(eve, hers, key, "no such photo"),
        await attach(eve, hers, key, other),
        await eve.patch(path, {"event": {"image_keys": [key], "capacity": 5, "pricing_mode": "fixed"}}),
        await eve.post("/api/events", {"event": event_fields(image_keys=[key, other])}),
        await eve.post("/api/events", {"event": event_fields(image_keys=[key], organizer_id=ada.id)}),
        await eve.post(f"/api/events/{his['id']}/photos", {"key": key}),
    ]

    assert [answer.status_code for answer in answers] == [403, 404, 422, 422, 422, 422, 403, 403]
    assert decoders.begun == 0
    assert upload_name(key) in stored_files(service, "uploads")
    decoders.open()


async def test_requests_that_attach_uploads_count_against_the_limit_of_photos(
    settings: Settings, decoders: Decoders
) -> None:
    decoders.open()
    async with running_events(settings.model_copy(update={"photos_per_minute": 2})) as service:
        ada = await service.organizer()
        event = await ada.create_event()
        keys = [await upload(service, ada) for _ in range(4)]

        answers = [
            await attach(ada, event, keys[0]),
            await ada.post("/api/events", {"event": event_fields(image_keys=[keys[1]])}),
            await attach(ada, event, keys[0]),
            await attach(ada, event, keys[0], keys[2]),
            await ada.post("/api/events", {"event": event_fields(image_keys=[keys[2]])}),
            await add_photos(ada, event, key=keys[2]),
            await attach(ada, event, keys[1], keys[0]),
        ]

        # Photos that were accepted before are attached without limit.
        assert [answer.status_code for answer in answers] == [200, 201, 200, 429, 429, 429, 200]


async def test_an_organizer_has_a_limited_processor_time_for_decoding(
    service: Service, site: PhotoSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    eve, ada = await service.organizer(is_proved=False), await service.organizer()
    hers, event = await eve.create_event(), await ada.create_event()
    monkeypatch.setattr(sandbox, "budget", TimeBudget(sandbox.DECODER_TIME, sandbox.BUDGET_SECONDS, "{seconds}"))
    monkeypatch.setattr(sandbox, "UNPROVED_DECODER_SECONDS", 0.001)
    key, other_key = await upload(service, eve), await upload(service, eve)

    first = await attach(eve, hers, key)
    second = await attach(eve, hers, key, other_key)
    fetched = await add_photos(eve, hers, url=site.publish("/a.jpg", picture()))
    other = await attach(ada, event, await upload(service, ada))

    assert first.status_code == other.status_code == 200
    assert (second.status_code, second.json()["code"]) == (429, "rate_limited")
    assert 1 <= int(second.headers["Retry-After"]) <= sandbox.BUDGET_SECONDS
    assert fetched.status_code == 429
    assert upload_name(other_key) in stored_files(service, "uploads")


async def test_a_file_that_replaces_a_refused_one_is_decoded(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    good = picture(GIF)
    presigned = await presign(ada, good, GIF)
    await put_upload(service, presigned["upload_url"], good[:-1] + b"x", GIF)
    failing_fields(await attach(ada, event, presigned["key"]))

    await put_upload(service, presigned["upload_url"], good, GIF)

    assert (await attach(ada, event, presigned["key"])).status_code == 200


async def test_forms_of_the_console_have_the_same_limits(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running_events(settings.model_copy(update={"photos_per_minute": 1})) as service:
        ada = await service.organizer()
        event = await ada.create_event()
        keys = [await upload(service, ada) for _ in range(2)]
        caller = person(1, ada.id)
        copy = CopyEvent(event_id=event["id"], event=msgspec.convert(event_fields(image_keys=[keys[1]]), CreateEvent))
        edit = EditEvent(
            event_id=event["id"], seen=None, changes=UpdateEvent(event_id=event["id"], image_keys=[keys[1]])
        )
        await service.runner.run_of(COPY_EVENT)(caller, with_fields(copy, image_keys=[keys[0]]))
        monkeypatch.setattr(sandbox, "budget", TimeBudget(sandbox.DECODER_TIME, sandbox.BUDGET_SECONDS, "{seconds}"))
        sandbox.budget.spend(ada.id, sandbox.DECODER_SECONDS)

        for operation, command in (
            (COPY_EVENT, copy),
            (EDIT_EVENT, edit),
            (STORE_PHOTO, StorePhoto(content=picture())),
        ):
            with pytest.raises(Problem) as refusal:
                await service.runner.run_of(operation)(caller, command)
            assert refusal.value.code == "rate_limited"


def with_fields(copy: CopyEvent, **fields: Any) -> CopyEvent:
    """The same copy with other fields of its event."""
    return msgspec.structs.replace(copy, event=msgspec.structs.replace(copy.event, **fields))
