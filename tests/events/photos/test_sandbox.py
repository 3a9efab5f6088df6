"""Files of strangers are looked at in another process, which has little of anything; the service goes on meanwhile."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import Hashable
from pathlib import Path

import pytest
from PIL import Image

from holdfast.events.photos import image, sandbox
from holdfast.events.photos.container import UnfitFile
from holdfast.events.photos.sandbox import MAX_WAITING_FILES_OF_OWNER, CheckedPhoto, check, scale
from holdfast.kit.contract.problems import Problem
from tests.events.photos.gate import Gate, program
from tests.helpers.events_service import Service
from tests.helpers.photos import upload
from tests.helpers.pictures import TYPES, encode_image, frames, picture

OWNER, OTHER = ("organizers", 1), ("organizers", 2)


@pytest.mark.parametrize("content_type", TYPES)
async def test_a_photo_comes_back_with_its_type(content_type: str) -> None:
    original = picture(content_type)

    photo = await check(original, OWNER)

    assert photo.content_type == content_type
    assert frames(photo.content) == frames(original)
    assert await check(original, OWNER, content_type) == photo


async def test_a_file_of_another_type_than_declared_is_refused() -> None:
    with pytest.raises(UnfitFile, match=r"^is image/jpeg, not text/html$"):
        await check(picture("image/jpeg"), OWNER, "text/html")


async def test_an_invalid_file_is_refused_with_the_reason() -> None:
    with pytest.raises(UnfitFile, match=r"^is no JPEG, PNG, WebP or GIF image$"):
        await check(b"<html>", OWNER)


@pytest.mark.parametrize("content_type", ["image/png", "image/webp"])
async def test_the_memory_of_a_decoder_is_enough_for_the_largest_photo(content_type: str) -> None:
    large = Image.new("RGBA", (8000, 5000))
    fast = {"method": 0} if content_type == "image/webp" else {"compress_level": 1}

    photo = await check(encode_image(large, content_type, **fast), OWNER)

    assert photo.content_type == content_type
    assert [*(await scale(photo.content)).files] == [480, 960, 1920]


def test_the_service_itself_never_loads_a_decoder() -> None:
    loads = "import sys, holdfast.events.service; sys.exit(any(name.startswith('PIL') for name in sys.modules))"

    assert subprocess.run([sys.executable, "-c", loads], check=False).returncode == 0


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGSEGV, signal.SIGXCPU])
async def test_a_file_that_takes_its_decoder_down_is_refused(end: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "CHECKER", program(f"import os; os.kill(os.getpid(), {end})"))

    with pytest.raises(UnfitFile, match="takes too much to decode"):
        await check(picture(), OWNER)


async def test_a_decoder_without_processor_time_is_answered_with_503(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sandbox, "CHECKER", program("import signal; signal.pause()"))
    monkeypatch.setattr(sandbox, "TIMEOUT_SECONDS", 0.2)

    with pytest.raises(Problem) as refusal:
        await check(picture(), OWNER)

    assert (refusal.value.code, refusal.value.retry_after) == ("service_unavailable", 30)


async def test_a_decoder_that_does_not_start_is_an_error_of_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "CHECKER", program("import no_such_module"))

    with pytest.raises(RuntimeError, match="no_such_module"):
        await check(picture(), OWNER)


async def test_a_decoder_cannot_read_secrets_of_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENTS_SECRET_KEY", "correct horse battery staple and more")
    monkeypatch.setattr(sandbox, "CHECKER", program("import os; print('image/png'); print(dict(os.environ))"))

    environment = (await check(picture(), OWNER)).content

    assert environment.startswith(b"{'")
    assert b"correct horse" not in environment


@pytest.mark.parametrize(
    "greedy",
    [
        "bytearray(2 << 30)",
        "import pathlib; pathlib.Path('written').write_bytes(bytes(7_000_000))",
        "while True: 1",
    ],
    ids=["memory", "files", "time"],
)
async def test_a_checker_of_files_cannot_use_more_than_its_memory_time_or_disk(
    greedy: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    confined = "from holdfast.events.photos import image; image.MAX_CPU_SECONDS = 1; image.limit_process()"
    monkeypatch.setattr(sandbox, "CHECKER", program(f"{confined}\n{greedy}\nprint('image/png')"))

    with pytest.raises((UnfitFile, RuntimeError), match=r"too much to decode|MemoryError|File too large"):
        await check(picture(), OWNER)


async def test_files_of_one_organizer_beyond_the_waiting_limit_are_answered_with_503() -> None:
    small = picture("image/png", 2, 2)
    most = 1 + MAX_WAITING_FILES_OF_OWNER

    *outcomes, other = await asyncio.gather(
        *(check(small, OWNER) for _ in range(most + 3)), check(small, OTHER), return_exceptions=True
    )

    assert [outcome.status for outcome in outcomes if isinstance(outcome, Problem)] == [503] * 3
    assert sum(isinstance(outcome, CheckedPhoto) for outcome in outcomes) == most
    assert isinstance(other, CheckedPhoto)
    assert (await check(small, OWNER)).content_type == "image/png"


async def test_decoders_say_how_much_processor_time_they_took(monkeypatch: pytest.MonkeyPatch) -> None:
    spent: list[float] = []

    def spend(owner: Hashable, seconds: float) -> None:
        spent.append(seconds)

    monkeypatch.setattr(sandbox.budget, "spend", spend)

    await check(picture(), OWNER)
    with pytest.raises(UnfitFile):
        await check(b"<html>", OWNER)
    monkeypatch.setattr(sandbox, "CHECKER", program("import os; os.kill(os.getpid(), 9)"))
    with pytest.raises(UnfitFile):
        await check(picture(), OWNER)

    assert len(spent) == 3
    assert all(0 < seconds <= image.MAX_CPU_SECONDS for seconds in spent)


@pytest.fixture
def gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Gate:
    gate = Gate(tmp_path / "gate", image.__name__)
    monkeypatch.setattr(sandbox, "CHECKER", gate.program)
    return gate


async def test_registrations_are_polled_while_photos_are_looked_at(service: Service, gate: Gate) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    poll = await ada.register(event["id"], email="ann@example.com")
    await service.settle()
    keys = [await upload(service, ada) for _ in range(10)]

    path = f"/api/events/{event['id']}/photos"
    photos = [asyncio.create_task(ada.post(path, {"key": key})) for key in keys]
    statuses = [(await ada.get(poll)).status_code for _ in range(100)]

    assert statuses == [200] * 100
    assert not any(photo.done() for photo in photos)
    gate.open()
    assert [(await photo).status_code for photo in photos] == [201] * 10
    assert set((await ada.get(f"/api/events/{event['id']}")).json()["data"]["image_urls"]) == {
        f"http://events.test/media/{key}" for key in keys
    }
