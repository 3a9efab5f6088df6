"""Frauds of the draw of an event, each planted in a log that was right: the audit names every one."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from holdfast_verify.audit.audit import Audit
from holdfast_verify.formats.drawn_order import draw_order
from tests.verify.audit.test_draw import Log, arrival, at, draw, faults, freeze, list_of_five, named, void

SEATS, WAITING_PLACES = 2, 2


def place(number: int, outcome: str, seconds: float = 130) -> dict[str, Any]:
    return {"kind": "place", "at": at(seconds), "number": number, "outcome": outcome}


def opened() -> Log:
    """A log up to the close of its list: five entries."""
    log = list_of_five()
    log[0] |= {"of": "event", "format": "holdfast-order/1", "capacity": SEATS, "waiting_places": WAITING_PLACES}
    for entry in log:
        if entry["kind"] == "arrival":
            entry["person"] = 43 * "A"
    return log


def frozen() -> Log:
    log = opened()
    freeze(log)
    log[-2]["person"] = 43 * "A"
    return log


def outcomes(order: list[int]) -> Log:
    by_place = SEATS * ["registered"] + WAITING_PLACES * ["waitlisted"]
    return [place(number, outcome) for number, outcome in zip(order, [*by_place, "rejected", "rejected"], strict=False)]


def order_of(log: Log) -> list[int]:
    return draw_order(bytes.fromhex(next(entry for entry in log if entry["kind"] == "draw")["seed"]), 5)


def placed(log: Log | None = None, *confirmed: int) -> Log:
    """A right log: the confirmed entries in the drawn order, the others of the five in it, then the late one."""
    log = log or frozen()
    draw(log)
    log.pop()
    order = sorted(order_of(log), key=lambda number: number not in confirmed)
    return [*log, *outcomes([*order, 6]), {"kind": "seal", "at": at(131)}]


def confirmed(*numbers: int) -> dict[str, Any]:
    return {"kind": "confirmations", "at": at(1.5), "numbers": [*numbers]}


def frozen_with(*numbers: int) -> Log:
    """A log in which some entries were confirmed, and the list was frozen then."""
    log = [*opened(), confirmed(*numbers), {"kind": "seal", "at": at(1.6)}]
    freeze(log)
    log[-2]["person"] = 43 * "A"
    return log


def findings(log: Log) -> str:
    audit = Audit()
    for entry in log:
        audit.read(json.dumps(entry).encode())
    return " ".join([finding.message for finding in audit.findings if finding.rule != "late"] + [faults(log)]).strip()


def test_a_right_draw_has_no_fault_at_any_moment_and_after_it_was_given_up() -> None:
    log = placed()
    for end in range(6, len(log) + 1):
        assert findings(log[:end]) == ""
    given_up = {"kind": "change", "at": at(200), "draw": {**named(), "given_up": True}, "by": "organizer"}
    assert findings([*opened(), void(91), given_up, *outcomes([1, 2, 3, 4, 5])]) == ""
    cancelled = {"kind": "change", "at": at(200), "event": "cancelled", "by": "organizer"}
    rejections = [place(number, "rejected") for number in range(1, 6)]
    assert findings([*opened(), cancelled, *rejections]) == ""
    last = {**arrival(6, 131), "person": 43 * "A", "outcome": "rejected"}
    assert findings([*opened(), cancelled, *rejections, last]) == "", "it came before, and was settled after it"


def test_confirmed_entries_come_first_in_the_drawn_order() -> None:
    for numbers in ((), (1,), (2, 4), (1, 2, 3, 4, 5)):
        assert findings(placed(frozen_with(*numbers), *numbers)) == ""


def confirmed_after_the_freeze() -> Log:
    return placed([*frozen(), confirmed(3)], 3)


def confirmed_without_an_entry() -> Log:
    return placed(frozen_with(2, 6), 2)


def confirmed_twice() -> Log:
    return placed(frozen_with(2, 2), 2)


def unconfirmed_one_drawn_with_the_confirmed() -> Log:
    log = frozen_with(2, 4)
    *_, last = (number for number in order_of(placed(log)) if number not in {2, 4})
    return placed(frozen_with(2, 4), 2, 4, last)


def confirmed_one_left_out() -> Log:
    return placed(frozen_with(1, 2, 3, 4), 1, 2, 4)


def freeze_of_a_log_that_it_does_not_follow() -> Log:
    log = placed()
    next(entry for entry in log if entry["kind"] == "freeze")["origin"] = "holdfast.example/log/events/9"
    return log


def confirmed_without_a_draw() -> Log:
    return [*opened_without_a_draw(), confirmed(2)]


def test_an_entry_that_left_is_skipped_in_the_drawn_order() -> None:
    log = placed()
    second = log[-6]["number"]
    left = {"kind": "change", "at": at(3), "number": second, "from": "in_draw", "to": "removed", "by": "person"}
    rest = [number for number in [*order_of(log), 6] if number != second]
    assert findings([*log[:7], left, *log[7:-7], *outcomes(rest), log[-1]]) == ""


def swapped() -> Log:
    log = placed()
    log[-7]["number"], log[-6]["number"] = log[-6]["number"], log[-7]["number"]
    return log


def passed_over() -> Log:
    log = placed()
    return [*log[:-7], *outcomes([entry["number"] for entry in log[-6:-1]])]


def late_one_put_first() -> Log:
    log = placed()
    return [*log[:-7], *outcomes([6, *order_of(log)])]


def placed_twice() -> Log:
    log = placed()
    return [*log, place(6, "rejected")]


def placed_before_the_draw() -> Log:
    return [*frozen(), place(1, "registered", 100)]


def seat_on_arrival_before_the_draw() -> Log:
    log = opened()
    log[3]["outcome"] = "registered"
    return log


def seat_on_arrival_while_entries_wait() -> Log:
    log = placed()
    return [*log[:-5], {**arrival(7, 140), "person": 43 * "A", "outcome": "registered"}]


def seat_that_was_not_free() -> Log:
    log = placed()
    log[-5]["outcome"] = "registered"
    return log


def second_of_the_drawn_order_moves_up() -> Log:
    log = placed()
    first, *_, third, fourth = [entry["number"] for entry in log[-7:-3]]
    gone = {"kind": "change", "at": at(150), "number": first, "from": "registered", "to": "removed", "by": "person"}
    up = {"kind": "change", "at": at(150), "number": fourth, "from": "waitlisted", "to": "registered", "by": "service"}
    assert third != fourth
    return [*log, gone, up, {"kind": "seal", "at": at(151)}]


def opened_without_a_draw() -> Log:
    log = opened()
    del log[0]["draw"]
    return log


@pytest.mark.parametrize(
    ("plant", "fault"),
    [
        (swapped, "when it was the turn of number"),
        (passed_over, "when it was the turn of number"),
        (late_one_put_first, "when it was the turn of number"),
        (placed_twice, "although it waited no more"),
        (placed_before_the_draw, "got an outcome at"),
        (placed_before_the_draw, "was registered before the draw"),
        (seat_on_arrival_before_the_draw, "Number 3 was registered before the draw"),
        (seat_on_arrival_while_entries_wait, "although 4 who came before had no outcome"),
        (seat_that_was_not_free, "was registered, although no seat was free"),
        (second_of_the_drawn_order_moves_up, "moved up, although number"),
        (opened_without_a_draw, "has no outcome"),
        (confirmed_after_the_freeze, "Number 3 was confirmed at"),
        (confirmed_after_the_freeze, "after the list was frozen"),
        (confirmed_without_an_entry, "Number 6 was confirmed, and is not in the list"),
        (confirmed_twice, "Number 2 was confirmed twice"),
        (unconfirmed_one_drawn_with_the_confirmed, "when it was the turn of number"),
        (confirmed_one_left_out, "when it was the turn of number"),
        (freeze_of_a_log_that_it_does_not_follow, "which this log does not follow"),
        (confirmed_without_a_draw, "the log names no round for it"),
    ],
)
def test_a_fraud_of_an_event_draw_is_found(plant: Callable[[], Log], fault: str) -> None:
    assert fault in findings(plant())
