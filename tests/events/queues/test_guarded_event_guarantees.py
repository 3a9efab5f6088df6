"""However visitors and processes race, no more people register than the waiting room has released."""

import asyncio
import random

from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from holdfast.events.settings import Settings
from tests.events.queues.guarded import GuardedEvent, GuestBrowser, guard
from tests.events.queues.queue_scene import log
from tests.helpers.events_service import Service, running_events


async def count_released(guarded: GuardedEvent) -> int:
    return len(await log(guarded.queue))


async def test_a_crowd_at_two_processes_registers_as_many_as_were_released(settings: Settings) -> None:
    chance = random.Random(7)
    async with running_events(settings) as first, running_events(settings) as second:
        guarded = await guard(first, capacity=1000)
        guests = [GuestBrowser(guarded) for _ in range(24)]
        for guest in guests:
            await guest.line_up()
        await guarded.queue.tick(times=16)
        pages = [await guest.enter() for guest in guests[:16]]
        tokens = [guest.http.cookies["event_release"] for guest in guests[:16]]
        clients = [service.app for service in (first, second)]

        async def send(number: int) -> int:
            """A visitor sends a form with the release of any of the released, to any of the processes."""
            theft = GuestBrowser(GuardedEvent(guarded.queue, guarded.id, guarded.path), app=chance.choice(clients))
            theft.http.cookies.set("event_release", chance.choice(tokens), path=f"/events/{guarded.id}")
            answer = await theft.send(chance.choice(pages), f"guest{number % 100}@example.com")
            return answer.status_code

        answers = await asyncio.gather(*(send(number) for number in range(128)))

        assert set(answers) <= {303, 200, 403}, "stored, known already, or refused"
        used = await first.run_sql("select count(*) from queue_visitors where consumed_at is not null")
        registered = await guarded.registered_addresses()
        assert len(registered) == used[0][0] <= await count_released(guarded) == 16


@hypothesis(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.tuples(st.sampled_from(["join", "release", "register"]), st.integers(0, 3)), max_size=25))
async def test_a_release_registers_at_most_one_person_in_any_order_of_requests(
    service: Service, steps: list[tuple[str, int]]
) -> None:
    guarded = await guard(service, capacity=1000)
    people = 0
    for step, visitor in steps:
        match step:
            case "join":
                await guarded.queue.ask_to_join(f"visitor{visitor}")
            case "release":
                await guarded.queue.tick()
            case _:
                status = await guarded.queue.status(f"visitor{visitor}")
                people += 1
                answer = await guarded.ada.post(
                    "/api/registrations",
                    {
                        "registration": {
                            "event_id": guarded.id,
                            "email": f"guest{people}@example.com",
                            "queue_token": status.get("token", ""),
                        }
                    },
                )
                assert answer.status_code == (202 if "token" in status else 403)
        assert len(await guarded.registered_addresses()) <= await count_released(guarded)
