"""The place on a waiting list that people see of their own registration."""

from random import Random

from holdfast.events.registrations.own import LookAtOwn, find_own
from tests.support import Service


async def test_people_who_look_together_see_their_places_in_order_of_arrival(service: Service) -> None:
    organizer = await service.organizer()
    for seats in (1, 3):
        event = await organizer.create_event(capacity=seats, waitinglist_capacity=8)
        for number in range(12):
            await organizer.register(event["id"], email=f"person{number}@example.com")
    await service.settle()
    everybody = await service.run_sql(
        """
        select event_id, public_id, arrival,
               case when status = 'waitlisted' then row_number() over (partition by event_id, status order by arrival)
                    else 0 end
          from registrations join users on users.id = user_id order by arrival
        """
    )
    assert sorted(place for *_, place in everybody) == [0] * 8 + sorted([*range(1, 9)] * 2)
    for number in (24, 7, 1):
        some = Random(number).sample(everybody, number)
        asked = [
            LookAtOwn(event_id=event_id, user_id=user_id, arrival=arrival) for event_id, user_id, arrival, _ in some
        ]
        seen = await service.database.read(lambda reader, asked=asked: find_own(reader, asked))
        assert [own.position for own in seen if own] == [place for *_, place in some]
