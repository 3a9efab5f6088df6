"""What a service logs while people register and leave, and organizers move them, passes `holdfast verify`."""

import asyncio
import random
from pathlib import Path

from holdfast.events.settings import Settings
from tests.events.log.log_scene import seal_logs
from tests.events.log.verification import verify
from tests.helpers.events_service import Client, Service
from tests.helpers.serving import serve_events

STEPS = [*["register"] * 10, *["settle"] * 6, *("leave", "leave", "put aside", "move up", "resize", "seal", "seal")]


async def take_step(service: Service, organizer: Client, event_id: int, polls: list[str], dice: random.Random) -> None:
    """Do one of the things that happen to an event. The service refuses some of them."""
    step = dice.choice(STEPS)
    if step == "register":
        person = {"event_id": event_id, "email": f"person{dice.randrange(30)}@example.com"}
        answer = await organizer.post("/api/registrations", {"registration": person})
        polls += [answer.json()["next"]["url"]] if answer.status_code == 202 else []
    elif step == "settle":
        await service.settle()
    elif step == "resize":
        sizes = {"capacity": dice.randrange(3, 8), "waitinglist_capacity": dice.randrange(8)}
        await organizer.patch(f"/api/events/{event_id}", {"event": sizes})
    elif step == "seal":
        await seal_logs(service)
    elif polls and step == "leave":
        await organizer.delete(dice.choice(polls))
    elif polls:
        status = "waitlisted" if step == "put aside" else "registered"
        await organizer.patch(dice.choice(polls), {"registration": {"status": status}})


async def test_the_log_of_a_busy_event_and_of_a_queue_is_right(settings: Settings, tmp_path: Path) -> None:
    dice = random.Random(2)
    async with serve_events(settings) as service:
        ada = await service.organizer()
        event, queue = await ada.create_event(capacity=4, waitinglist_capacity=4), await ada.create_queue()
        polls: list[str] = []
        for _ in range(90):
            await take_step(service, ada, event["id"], polls, dice)
        await service.settle()
        await seal_logs(service)
        _, busy = await asyncio.to_thread(verify, f"{service.base_url}/log/events/{event['id']}")
        last = {"event_id": event["id"], "email": "last@example.com"}
        await ada.patch(f"/api/events/{event['id']}", {"event": {"capacity": 20}})
        registered = await ada.post("/api/registrations", {"registration": last})
        await ada.delete(f"/api/events/{event['id']}")
        await service.settle()
        joins = [
            await ada.post(f"/api/queues/{queue['id']}/join", {"visitor_id": f"visitor{number}"}) for number in range(3)
        ]
        await seal_logs(service)
        _, of_event = await asyncio.to_thread(verify, f"{service.base_url}/log/events/{event['id']}")
        _, of_queue = await asyncio.to_thread(verify, f"{service.base_url}/log/queues/{queue['id']}")
        receipts: list[str] = []
        for answer in (registered, joins[-1]):
            (tmp_path / "receipt.json").write_bytes(answer.content)
            code, report = await asyncio.to_thread(verify, tmp_path / "receipt.json")
            assert (code, report["findings"]) == (0, [])
            receipts.append(report["checked"]["log"])

    assert "got no place" in receipts[0]
    assert receipts[1].startswith("number 3, entered at ")
    assert (busy["findings"], of_event["findings"], of_queue["findings"]) == ([], [], [])
    assert busy["checked"]["page"].endswith("and so says the log")
    assert of_queue["checked"]["page"] == "3 tickets given, and let in up to ticket 0, and so says the log"
    assert {*of_event["figures"]["arrivals"]} == {"registered", "waitlisted", "rejected"}
    assert {*of_event["figures"]["changes of people"]} == {"by organizer", "by service"}
    assert of_queue["figures"]["arrivals"] == {"joined": 3}
