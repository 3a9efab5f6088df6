"""Frauds of the draw of an event, each planted in a log that was right: the audit names every one."""

import json
from collections.abc import Callable

import pytest

from holdfast_verify.audit.audit import Audit
from tests.verify.audit.draw_log import (
    DrawLog,
    arrival_entry,
    confirmations_entry,
    event_log,
    faults_of,
    frozen_log,
    frozen_with_confirmed,
    named_round,
    order_of,
    place_entries,
    place_entry,
    placed_log,
    time_at,
    void_entry,
)


def findings(log: DrawLog) -> str:
    audit = Audit()
    for entry in log:
        audit.read(json.dumps(entry).encode())
    return " ".join(
        [finding.message for finding in audit.findings if finding.rule != "late"] + [faults_of(log)]
    ).strip()


def test_a_right_draw_has_no_fault_at_any_moment_and_after_it_was_given_up() -> None:
    log = placed_log()
    for end in range(6, len(log) + 1):
        assert findings(log[:end]) == ""
    given_up = {"kind": "change", "at": time_at(200), "draw": {**named_round(), "given_up": True}, "by": "organizer"}
    assert findings([*event_log(), void_entry(91), given_up, *place_entries([1, 2, 3, 4, 5])]) == ""
    cancelled = {"kind": "change", "at": time_at(200), "event": "cancelled", "by": "organizer"}
    rejections = [place_entry(number, "rejected") for number in range(1, 6)]
    assert findings([*event_log(), cancelled, *rejections]) == ""
    last = {**arrival_entry(6, 131), "person": 43 * "A", "outcome": "rejected"}
    assert findings([*event_log(), cancelled, *rejections, last]) == "", "it came before, and was settled after it"


def test_confirmed_entries_come_first_in_the_drawn_order() -> None:
    for numbers in ((), (1,), (2, 4), (1, 2, 3, 4, 5)):
        assert findings(placed_log(frozen_with_confirmed(*numbers), *numbers)) == ""


def confirmed_after_the_freeze() -> DrawLog:
    return placed_log([*frozen_log(), confirmations_entry(3)], 3)


def confirmed_without_an_entry() -> DrawLog:
    return placed_log(frozen_with_confirmed(2, 6), 2)


def confirmed_twice() -> DrawLog:
    return placed_log(frozen_with_confirmed(2, 2), 2)


def unconfirmed_one_drawn_with_the_confirmed() -> DrawLog:
    log = frozen_with_confirmed(2, 4)
    *_, last = (number for number in order_of(placed_log(log)) if number not in {2, 4})
    return placed_log(frozen_with_confirmed(2, 4), 2, 4, last)


def confirmed_one_left_out() -> DrawLog:
    return placed_log(frozen_with_confirmed(1, 2, 3, 4), 1, 2, 4)


def freeze_of_an_unrelated_log() -> DrawLog:
    log = placed_log()
    next(entry for entry in log if entry["kind"] == "freeze")["origin"] = "holdfast.example/log/events/9"
    return log


def confirmed_without_a_draw() -> DrawLog:
    return [*opened_without_a_draw(), confirmations_entry(2)]


def test_an_entry_that_left_is_skipped_in_the_drawn_order() -> None:
    log = placed_log()
    second = log[-6]["number"]
    left = {"kind": "change", "at": time_at(3), "number": second, "from": "in_draw", "to": "removed", "by": "person"}
    rest = [number for number in [*order_of(log), 6] if number != second]
    assert findings([*log[:7], left, *log[7:-7], *place_entries(rest), log[-1]]) == ""


def swapped_log() -> DrawLog:
    log = placed_log()
    log[-7]["number"], log[-6]["number"] = log[-6]["number"], log[-7]["number"]
    return log


def passed_over() -> DrawLog:
    log = placed_log()
    return [*log[:-7], *place_entries([entry["number"] for entry in log[-6:-1]])]


def late_one_put_first() -> DrawLog:
    log = placed_log()
    return [*log[:-7], *place_entries([6, *order_of(log)])]


def placed_twice() -> DrawLog:
    log = placed_log()
    return [*log, place_entry(6, "rejected")]


def placed_before_the_draw() -> DrawLog:
    return [*frozen_log(), place_entry(1, "registered", 100)]


def seat_on_arrival_before_the_draw() -> DrawLog:
    log = event_log()
    log[3]["outcome"] = "registered"
    return log


def seat_on_arrival_while_entries_wait() -> DrawLog:
    log = placed_log()
    return [*log[:-5], {**arrival_entry(7, 140), "person": 43 * "A", "outcome": "registered"}]


def seat_that_was_not_free() -> DrawLog:
    log = placed_log()
    log[-5]["outcome"] = "registered"
    return log


def second_of_the_drawn_order_moves_up() -> DrawLog:
    log = placed_log()
    first, *_, third, fourth = [entry["number"] for entry in log[-7:-3]]
    gone = {
        "kind": "change",
        "at": time_at(150),
        "number": first,
        "from": "registered",
        "to": "removed",
        "by": "person",
    }
    up = {
        "kind": "change",
        "at": time_at(150),
        "number": fourth,
        "from": "waitlisted",
        "to": "registered",
        "by": "service",
    }
    assert third != fourth
    return [*log, gone, up, {"kind": "seal", "at": time_at(151)}]


def opened_without_a_draw() -> DrawLog:
    log = event_log()
    del log[0]["draw"]
    return log


@pytest.mark.parametrize(
    ("plant", "fault"),
    [
        (swapped_log, "when it was the turn of number"),
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
        (freeze_of_an_unrelated_log, "which this log does not follow"),
        (confirmed_without_a_draw, "the log names no round for it"),
    ],
)
def test_a_fraud_of_an_event_draw_is_found(plant: Callable[[], DrawLog], fault: str) -> None:
    assert fault in findings(plant())
