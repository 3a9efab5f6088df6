"""The problem for each reason why a registration is not accepted."""

from collections.abc import Callable, Mapping, Sequence

from holdfast.events.problems import EVENT_CANCELLED, EVENT_EXPIRED, EVENT_FULL, QUEUE_REQUIRED
from holdfast.events.queues import event_releases
from holdfast.events.resources import Tx
from holdfast.events.seats import intake
from holdfast.kit.contract.problems import FORBIDDEN, NOT_FOUND, SERVICE_UNAVAILABLE, Problem, invalid
from holdfast.kit.postgres.group_commit import LockedRow


def no_event(event_id: int) -> Problem:
    return NOT_FOUND(f"No event has the id {event_id}.")


def not_your_event(event_id: int) -> Problem:
    return FORBIDDEN(f"Event {event_id} belongs to another organizer.")


REFUSALS: Mapping[str, Callable[[int], Problem]] = {
    "not_found": no_event,
    "forbidden": not_your_event,
    "event_draft": lambda _: invalid({"event_id": ["is a draft; publish it, then people can register"]}),
    "event_cancelled": lambda event_id: EVENT_CANCELLED(f"Event {event_id} has been cancelled."),
    "event_expired": lambda event_id: EVENT_EXPIRED(f"Event {event_id} has already taken place."),
    "event_full": lambda event_id: EVENT_FULL(
        f"Every seat of event {event_id} is taken and its waiting list has no room."
    ),
    "no_such_user": lambda _: invalid(
        {"user_id": ["no person known to you has this public id; register by email instead"]}
    ),
    "account_being_created": lambda _: SERVICE_UNAVAILABLE("The account could not be created just now.", retry_after=1),
    "removed": lambda _: SERVICE_UNAVAILABLE("The registration was removed at the same time.", retry_after=1),
}
"""The problem for each code of the intake statement."""


def refusal(event_id: int, result: intake.IntakeResult, rooms: Mapping[int, str]) -> Problem | LockedRow | None:
    """The reason why a registration was not accepted; None if it was. `rooms`: see `find_required_rooms`."""
    if result.code is None:
        return None
    if result.code == event_releases.QUEUE_REQUIRED_CODE:
        return QUEUE_REQUIRED(waiting_room_url=rooms.get(event_id))
    if result.code == event_releases.RELEASE_LOCKED_CODE:
        return LockedRow(f"release for event {event_id}", result.organizer_id)
    if result.code == "event_locked":
        return LockedRow(event_id, result.organizer_id)
    if result.code == "person_locked":
        return LockedRow(result.public_id, result.organizer_id)
    return REFUSALS[result.code](event_id)


async def find_required_rooms(
    tx: Tx, requests: Sequence[intake.IntakeRequest], results: Sequence[intake.IntakeResult]
) -> Mapping[int, str]:
    """The addresses of the waiting rooms that visitors have to go through first, by event."""
    event_ids = {
        request.event_id
        for request, result in zip(requests, results, strict=True)
        if result.code == event_releases.QUEUE_REQUIRED_CODE
    }
    return await event_releases.find_waiting_rooms(tx, event_ids) if event_ids else {}
