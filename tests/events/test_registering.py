"""From a published event to a settled registration."""

from tests.support import Service


async def test_seats_go_in_order_then_the_waiting_list_then_nobody(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=2, waitinglist_capacity=1)
    polls = [await ada.register(event["id"], email=f"{name}@example.com") for name in ("ann", "ben", "cal", "dee")]

    assert (await ada.get(polls[0])).json()["code"] == "registration_pending"
    await service.settle()

    ann, ben, cal, dee = [(await ada.get(poll)).json() for poll in polls]
    assert [each["data"]["status"] for each in (ann, ben, cal)] == ["registered", "registered", "waitlisted"]
    assert dee["code"] == "registration_rejected"
