"""Long texts have turns, by organizer: texts of others wait for one turn of a crowd, and each is rendered once."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import httpx2
import pytest

from holdfast.events.texts import rendering
from holdfast.kit.background.subprocess_call import SubprocessCall
from tests.events.crowds import Crowd, crowd_of
from tests.helpers.events_service import Client, Service, eventually

# Texts that take too long leave a service with new processes, for which others wait.
pytestmark = pytest.mark.usefixtures("own_service")

SLOW = "<http://" * 3_200
"""25 kB that take as long as a text may, and are refused then."""

HONEST = "Bring a *pencil* and some paper. " * 400


@pytest.fixture
async def crowd(service: Service) -> AsyncIterator[Crowd]:
    async with crowd_of(service) as crowd:
        yield crowd


@pytest.fixture
def rendered_texts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that were given to subprocesses."""
    texts: list[str] = []
    call: Any = vars(SubprocessCall)["__call__"]

    async def noted(self: SubprocessCall[str, Any], argument: str) -> Any:
        texts.append(argument)
        return await call(self, argument)

    monkeypatch.setattr(SubprocessCall, "__call__", noted)
    return texts


async def write(client: Client, event: dict[str, Any], body: str) -> httpx2.Response:
    return await client.patch(f"/api/events/{event['id']}", {"event": {"body": body}})


async def begin(rendered: Sequence[str]) -> None:
    """Wait until a text is being rendered."""
    await eventually(lambda: rendered)


@pytest.mark.parametrize("is_proved", [True, False], ids=["confirmed", "unconfirmed"])
async def test_a_text_waits_for_at_most_one_text_of_a_crowd_of_unconfirmed_organizers(
    service: Service, rendered_texts: list[str], is_proved: bool
) -> None:
    eves = [await service.organizer(is_proved=False) for _ in range(12)]
    events = [await eve.create_event() for eve in eves]
    ada = Client(service.client_at("192.0.2.7"), (await service.organizer(is_proved=is_proved)).key)
    event = await ada.create_event()
    crowd = [asyncio.create_task(write(eve, of_eve, SLOW)) for eve, of_eve in zip(eves, events, strict=True)]
    await begin(rendered_texts)

    await write(ada, event, HONEST)

    assert rendered_texts.index(HONEST) <= 2
    for task in crowd:
        task.cancel()
    await asyncio.gather(*crowd, return_exceptions=True)


async def test_a_text_whose_client_is_gone_is_not_rendered(
    service: Service, crowd: Crowd, rendered_texts: list[str]
) -> None:
    eve = await service.organizer()
    event = await eve.create_event()
    for number in range(10):
        await crowd.patch(eve, event, body=f"{SLOW}{number}")
    await begin(rendered_texts)

    crowd.leave()
    answer = await write(eve, event, HONEST)

    assert answer.status_code == 200
    assert len(rendered_texts) == 2


async def test_a_text_that_was_refused_is_not_rendered_again_for_the_same_organizer(
    service: Service, rendered_texts: list[str]
) -> None:
    eve, ada = await service.organizer(), await service.organizer()
    event, hers = await eve.create_event(), await ada.create_event()

    together = await asyncio.gather(*(write(eve, event, SLOW) for _ in range(3)))
    later = await write(eve, event, SLOW)
    assert len(rendered_texts) == 1
    other = await write(ada, hers, SLOW)

    assert {answer.status_code for answer in (*together, later, other)} == {422}
    assert len(rendered_texts) == 2


async def test_a_text_that_took_long_is_not_rendered_again(
    service: Service, rendered_texts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rendering, "SLOW_SECONDS", 0)
    ada = await service.organizer()
    event = await ada.create_event()

    answers = [await write(ada, event, body) for body in (HONEST, "Short.", HONEST)]

    assert {answer.status_code for answer in answers} == {200}
    assert rendered_texts == [HONEST]
    assert "<em>pencil</em>" in (await service.http.get(event["public_url"])).text


async def test_a_text_for_an_event_of_another_organizer_is_not_rendered(
    service: Service, rendered_texts: list[str]
) -> None:
    ada, eve = await service.organizer(), await service.organizer()
    event = await ada.create_event()

    answers = [
        await write(eve, event, SLOW),
        await eve.patch(f"/api/events/{event['id']}", {"event": {"body": SLOW, "capacity": 5}}),
        await write(eve, {"id": 10**9}, SLOW),
    ]

    assert [answer.status_code for answer in answers] == [403, 403, 404]
    assert rendered_texts == []
