"""Concurrent reads of events share a statement, and each gets its own answer."""

import asyncio

from prometheus_client import REGISTRY

from tests.helpers.events_service import Service


def batches() -> float:
    return REGISTRY.get_sample_value("holdfast_batch_calls_count", {"batch": "get_event"}) or 0


async def test_a_refused_read_in_a_batch_does_not_affect_the_other_reads(service: Service) -> None:
    ada, ben = await service.organizer(), await service.organizer()
    event, other = await ada.create_event(title="Hers"), await ben.create_event(title="His")
    paths = [f"/api/events/{id}" for id in (event["id"], other["id"], 10**15, event["id"])]
    before = batches()

    answers = await asyncio.gather(*(client.get(path) for path in paths for client in (ada, ben)))

    assert [answer.status_code for answer in answers] == [200, 403, 403, 200, 404, 404, 200, 403]
    assert [answer.json()["data"]["title"] for answer in answers if answer.status_code == 200] == [
        "Hers",
        "His",
        "Hers",
    ]
    assert batches() - before < len(answers)


async def test_an_organizer_reads_its_own_change_while_other_reads_share_the_statement(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    path = f"/api/events/{event['id']}"

    async def change_and_read(number: int) -> list[int]:
        mine = await ada.create_event(title="Mine", capacity=1)
        reads: list[int] = []
        for capacity in range(number + 2, number + 5):
            await ada.patch(f"/api/events/{mine['id']}", {"event": {"capacity": capacity}})
            reads.append((await ada.get(f"/api/events/{mine['id']}")).json()["data"]["capacity"])
        return reads

    async def read() -> None:
        for _ in range(20):
            assert (await ada.get(path)).status_code == 200

    *capacities, _, _ = await asyncio.gather(*(change_and_read(number) for number in range(3)), read(), read())

    assert capacities == [[number + 2, number + 3, number + 4] for number in range(3)]
