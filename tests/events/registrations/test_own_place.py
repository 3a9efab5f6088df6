"""The place on a waiting list that people see of their own registration."""

from random import Random

from holdfast.events.registrations.own_registration import GetOwnRegistration, find_own_registrations
from tests.helpers.events_service import Service


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
        sample = Random(number).sample(everybody, number)
        commands = [
            GetOwnRegistration(event_id=event_id, public_id=user_id, arrival=arrival)
            for event_id, user_id, arrival, _ in sample
        ]
        seen = await service.database.read(lambda reader, commands=commands: find_own_registrations(reader, commands))
        assert [registration.position for registration in seen if registration] == [place for *_, place in sample]


async def test_a_person_put_on_the_waiting_list_by_hand_has_no_place_and_delays_no_other(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=2, waitinglist_capacity=8)
    polls = [await ada.register(event["id"], email=f"person{number}@example.com") for number in range(5)]
    await service.settle()

    await ada.patch(polls[0], {"registration": {"status": "waitlisted"}})

    people = await service.run_sql(
        "select public_id, arrival from registrations join users on users.id = user_id order by arrival"
    )
    commands = [
        GetOwnRegistration(event_id=event["id"], public_id=user_id, arrival=arrival) for user_id, arrival in people
    ]
    seen = [
        registration
        for registration in await service.database.read(lambda reader: find_own_registrations(reader, commands))
        if registration
    ]
    assert [(registration.status, registration.position) for registration in seen] == [
        ("waitlisted", 0),
        ("registered", 0),
        ("registered", 0),
        ("waitlisted", 1),
        ("waitlisted", 2),
    ]
    assert [registration.reason for registration in seen] == ["by_organizer", None, None, None, None]
    assert seen[-1].waiting_count == 2
