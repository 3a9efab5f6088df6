"""Organizers, what processes stored for them, and in which order."""

from typing import Any

import psycopg

from tests.helpers.processes import AnsweredRegistration, Process, organizer_at


async def register_organizer_with_event(process: Process, **fields: Any) -> tuple[str, int]:
    """An organizer's key, and the id of its event."""
    async with organizer_at(process.url) as ada:
        return ada.key or "", (await ada.create_event(**fields))["id"]


def registrations_in_order(database_url: str, event_id: int) -> list[tuple[str, int]]:
    """Status and person of every registration of an event, in order of arrival."""
    with psycopg.connect(database_url) as connection:
        return connection.execute(
            "select status::text, user_id from registrations where event_id = %s order by received_at, arrival",
            [event_id],
        ).fetchall()


def assert_places_went_in_order(outcomes: list[tuple[str, int]], capacity: int, waiting: int) -> None:
    """Seats to the first, waiting places to the next, nothing to the rest; no person twice."""
    expected = ["registered"] * capacity + ["waitlisted"] * waiting
    statuses = [status for status, _ in outcomes]
    assert statuses == expected[: len(outcomes)] + ["rejected"] * (len(outcomes) - len(expected))
    assert len({person for _, person in outcomes}) == len(outcomes)


def assert_answered_before_sent_means_earlier(
    accepted: list[AnsweredRegistration], answers: dict[str, dict[str, Any]]
) -> None:
    """A registration answered before another one was sent is earlier in the order, and has no worse a place."""
    first: dict[str, AnsweredRegistration] = {}
    for request in sorted(accepted, key=lambda request: request.answered):
        first.setdefault(request.poll, request)
    rank = {"registered": 0, "waitlisted": 1, "registration_rejected": 2}
    places = {
        poll: rank[answer["data"]["status"] if "data" in answer else answer["code"]] for poll, answer in answers.items()
    }
    worst_answered = -1
    by_answer = iter(sorted(first.values(), key=lambda request: request.answered))
    following = next(by_answer, None)
    for later in sorted(first.values(), key=lambda request: request.sent):
        while following and following.answered < later.sent:
            worst_answered = max(worst_answered, places[following.poll])
            following = next(by_answer, None)
        assert places[later.poll] >= worst_answered


def stored_tickets(database_url: str) -> tuple[dict[str, int], list[tuple[int, float]]]:
    """The ticket of each visitor, and every ticket with the moment of its release."""
    with psycopg.connect(database_url) as connection:
        tickets = dict(connection.execute("select visitor_id, ticket from queue_visitors").fetchall())
        releases = connection.execute(
            "select first_ticket, last_ticket, extract(epoch from released_at)::float8 from queue_releases order by 1"
        ).fetchall()
    return tickets, [(ticket, at) for first, last, at in releases for ticket in range(first, last + 1)]
