"""Covers are drawn in turns: a crowd at one organizer, or from one address, takes one turn from others."""

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from holdfast.events.pages import cover_drawing
from tests.events.pages.reading import preview_image
from tests.helpers.events_service import Client, Service, eventually

# Drawn covers are kept.
pytestmark = pytest.mark.usefixtures("own_service")


class Drawings:
    """Real drawings, which wait until the test lets them go on. `titles` are those that have begun, in their order."""

    def __init__(self) -> None:
        self.titles: list[str] = []
        self.resume = threading.Event()
        self._draw = cover_drawing.cover_png

    def draw(self, title: str) -> bytes:
        self.titles.append(title)
        self.resume.wait()
        return self._draw(title)

    async def begin(self) -> None:
        """Wait until a cover is being drawn."""
        await eventually(lambda: self.titles)


@pytest.fixture
def drawings(monkeypatch: pytest.MonkeyPatch) -> Iterator[Drawings]:
    drawings = Drawings()
    monkeypatch.setattr(cover_drawing, "cover_png", drawings.draw)
    yield drawings
    drawings.resume.set()


async def cover_of(service: Service, organizer: Client, title: str) -> str:
    event: dict[str, Any] = await organizer.create_event(title=title)
    address = preview_image((await service.http.get(event["public_url"])).text)
    assert address
    return address


@pytest.mark.parametrize(
    ("organizers", "addresses"), [(1, 1), (1, 6), (6, 1)], ids=["both are one", "one organizer", "one address"]
)
async def test_a_cover_waits_for_one_turn_of_a_crowd(
    service: Service, drawings: Drawings, organizers: int, addresses: int
) -> None:
    eves = [await service.organizer() for _ in range(organizers)]
    slow = [await cover_of(service, eves[number % organizers], f"Number {number}") for number in range(6)]
    honest = await cover_of(service, await service.organizer(), "Life drawing")
    crowd = [service.client_at(f"192.0.2.{1 + number % addresses}") for number in range(6)]
    hostile = [asyncio.create_task(client.get(url)) for client, url in zip(crowd, slow, strict=True)]
    await drawings.begin()

    answer = asyncio.create_task(service.client_at("198.51.100.1").get(honest))
    for _ in range(20):
        await asyncio.sleep(0)
    drawings.resume.set()

    assert (await answer).status_code == 200
    assert drawings.titles.index("Life drawing") <= 2
    assert {response.status_code for response in await asyncio.gather(*hostile)} == {200}


async def test_a_cover_that_many_ask_for_is_drawn_once(service: Service, drawings: Drawings) -> None:
    url = await cover_of(service, await service.organizer(), "Life drawing")
    asking = [asyncio.create_task(service.client_at(f"192.0.2.{number}").get(url)) for number in range(1, 7)]
    await drawings.begin()
    drawings.resume.set()

    answers = await asyncio.gather(*asking)

    assert {answer.status_code for answer in answers} == {200}
    assert drawings.titles == ["Life drawing"]
