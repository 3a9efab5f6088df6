"""For any actions of people and organizers, a log that keeps the rules passes the audit."""

from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from holdfast_verify.audit.audit import Audit
from tests.verify.audit.honest_event import ORIGIN, Entry, HonestEvent, compact_json

STEPS = (
    *("arrive", "arrive", "arrive", "arrive and pay", "arrive and pay", "pay", "expire"),
    *("leave", "leave", "remove", "put aside", "move up", "resize", "seal", "seal", "cancel"),
)


def audit(entries: list[Entry]) -> Audit:
    result = Audit(ORIGIN)
    for entry in entries:
        result.read(compact_json(entry))
    result.end()
    return result


def take_step(event: HonestEvent, step: str, choice: int) -> None:
    def pick(*statuses: str) -> int | None:
        numbers = event.having(*statuses)
        return numbers[choice % len(numbers)] if numbers else None

    match step:
        case "arrive" | "arrive and pay":
            event.arrive(must_pay=step == "arrive and pay")
        case "pay" if number := pick("held"):
            event.pay(number)
        case "expire" if number := pick("held"):
            event.expire(number)
        case "leave" | "remove" if number := pick("registered", "waitlisted", "held"):
            event.remove(number, by="person" if step == "leave" else "organizer")
        case "put aside" if number := pick("registered"):
            event.put_aside(number)
        case "move up" if number := pick("waitlisted"):
            event.move_up(number)
        case "resize":
            event.resize(1 + choice % 6, choice % 4)
        case "seal":
            event.seal()
        case "cancel" if choice % 5 == 0:
            event.cancel()
        case _:
            pass


@given(
    capacity=st.integers(1, 5),
    waiting_places=st.integers(0, 4),
    seated=st.integers(0, 2),
    steps=st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 30)), max_size=60),
)
@settings(max_examples=60)
def test_any_honest_run_passes(capacity: int, waiting_places: int, seated: int, steps: list[tuple[str, int]]) -> None:
    event = HonestEvent(capacity + seated, waiting_places, seated=seated)
    for step, choice in steps:
        take_step(event, step, choice)
    event.seal()

    result = audit(event.entries)

    assert result.findings == []
    assert result.places
    assert (result.places.seated, result.places.waiting) == (
        seated + len(event.having("registered", "held")),
        len(event.having("waitlisted")),
    )


def test_a_later_log_goes_on_with_the_numbers_and_people_of_the_earlier_one() -> None:
    event = HonestEvent(capacity=1)
    event.arrive()
    event.seal()
    opening, arrival, seal = event.entries
    opening |= {"first_number": 5, "capacity": 3, "seated": 3, "waiting": 1}
    leaving = {
        "kind": "change",
        "at": arrival["at"],
        "number": 4,
        "from": "registered",
        "to": "removed",
        "by": "person",
    }
    moving_up = {**leaving, "number": 3, "from": "waitlisted", "to": "registered", "by": "service"}
    arrival |= {"number": 5, "outcome": "waitlisted"}

    result = audit([opening, leaving, moving_up, arrival, seal])

    assert result.findings == []
    assert result.places
    assert (result.places.seated, result.places.waiting) == (3, 1)


def queue(*entries: Entry) -> list[dict[str, Any]]:
    at = "2026-11-26T13:00:00.000000Z"
    opening = {
        "kind": "open",
        "format": "holdfast-order/1",
        "origin": ORIGIN,
        "of": "queue",
        "first_number": 1,
        "released": 0,
    }
    arrivals = [{"kind": "arrival", "number": number, "person": "p" * 43} for number in (1, 2, 3)]
    return [{"at": at, **entry} for entry in (opening, *arrivals, *entries, {"kind": "seal"})]


def test_a_queue_lets_in_by_ticket_and_only_visitors_who_have_come() -> None:
    first, second = {"kind": "release", "from": 1, "to": 2}, {"kind": "release", "from": 3, "to": 3}
    rate = {"kind": "change", "release_rate": 60, "active": True, "by": "organizer"}

    assert audit(queue(first, rate, second)).findings == []
    assert audit(queue(first, rate, second)).released == 3
    for releases in ([second], [first, first], [first, {**second, "to": 9}]):
        assert {finding.rule for finding in audit(queue(*releases)).findings} == {"release"}


def settled_event() -> HonestEvent:
    """Two seats, two waiting places, seven people; then two leave, and two move up."""
    event = HonestEvent(capacity=2, waiting_places=2)
    for _ in range(5):
        event.arrive()
    event.seal()
    event.remove(1)
    event.seal()
    event.arrive()
    event.remove(2)
    event.arrive()
    event.seal()
    return event


@pytest.mark.parametrize("number", [1, 2, 3, 4, 5, 6, 7])
@pytest.mark.parametrize("outcome", ["registered", "waitlisted", "rejected"])
def test_one_wrong_outcome_is_one_finding_if_all_later_ones_follow_the_rules(number: int, outcome: str) -> None:
    entries = settled_event().entries
    entry = next(entry for entry in entries if entry["kind"] == "arrival" and entry["number"] == number)
    if entry["outcome"] == outcome:
        return
    was, entry["outcome"] = entry["outcome"], outcome

    [finding] = audit(entries).findings

    assert (finding.rule, finding.number) == ("outcome", number)
    assert f"Number {number} was {outcome}, although" in finding.message, was


def test_a_second_wrong_outcome_is_a_second_finding() -> None:
    entries = settled_event().entries
    arrivals = [entry for entry in entries if entry["kind"] == "arrival"]
    arrivals[2]["outcome"], arrivals[5]["outcome"] = "registered", "rejected"

    assert [finding.number for finding in audit(entries).findings] == [3, 6]


@given(
    steps=st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 30)), min_size=5, max_size=60),
    choice=st.integers(0, 60),
    outcome=st.sampled_from(("registered", "waitlisted", "rejected")),
)
@settings(max_examples=60)
def test_a_wrong_outcome_in_any_honest_run_is_the_only_finding(
    steps: list[tuple[str, int]], choice: int, outcome: str
) -> None:
    event = HonestEvent(capacity=2, waiting_places=2)
    for step, place in steps:
        take_step(event, step, place)
    event.seal()
    arrivals = [entry for entry in event.entries if entry["kind"] == "arrival"]
    assume(arrivals)
    entry = arrivals[choice % len(arrivals)]
    assume(entry["outcome"] not in (outcome, "held"))
    entry["outcome"] = outcome

    findings = audit(event.entries).findings

    assert [(finding.rule, finding.number) for finding in findings] == [("outcome", entry["number"])]
