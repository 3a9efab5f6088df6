"""Frauds of a draw, each planted in a log that was right: the audit names every one."""

import datetime as dt
from collections.abc import Callable

import pytest

from holdfast_verify.audit.draw import check_cosigned_freeze
from holdfast_verify.formats.drawn_order import PAUSE, draw_order, hash_of_order
from holdfast_verify.formats.signed_note import Checkpoint
from tests.events.draws.rounds import ROUNDS
from tests.verify.audit.draw_log import (
    CLOSES,
    ORIGIN,
    DrawLog,
    arrival_entry,
    draw,
    drawn_log,
    faults_of,
    freeze,
    list_of_five,
    named_round,
    root_of,
    time_at,
    void_entry,
)


def test_a_right_draw_has_no_fault_also_while_its_list_waits_for_the_round() -> None:
    log = drawn_log()
    assert faults_of(log) == faults_of(log[:-2]) == faults_of(log[:7]) == ""


def list_swapped_before_the_draw() -> DrawLog:
    log = list_of_five()
    freeze(log)
    log[2]["person"] = "somebody else"
    draw(log)
    return log


def round_swapped() -> DrawLog:
    log = list_of_five()
    freeze(log)
    draw(log, 42)
    return log


def round_swapped_at_the_freeze() -> DrawLog:
    log = list_of_five()
    freeze(log, round=42)
    draw(log, 42)
    return log


def another_round_was_named_for_the_time() -> DrawLog:
    log = drawn_log()
    log[0]["draw"] = named_round(42)
    return log


def entry_removed_after_the_freeze() -> DrawLog:
    log = drawn_log()
    del log[3]
    return log  # all later entries moved up by one


def entry_removed_before_the_freeze() -> DrawLog:
    log = list_of_five()
    del log[3]
    freeze(log)
    draw(log)
    return log


def late_entry_put_into_the_list() -> DrawLog:
    log = list_of_five()
    log.insert(6, arrival_entry(6, 1.5))
    freeze(log, entries=6)
    log[-2]["number"] = 7
    draw(log, entries=6)
    return log


def early_entry_left_out_of_the_list() -> DrawLog:
    log = list_of_five()
    freeze(log, entries=4)
    draw(log, entries=4)
    return log


def order_altered() -> DrawLog:
    log = drawn_log()
    log[-2]["order"] = hash_of_order([2, 1, 3, 4, 5]).hex()
    return log


def seed_altered() -> DrawLog:
    log = drawn_log()
    seed = bytes(32)
    log[-2] |= {"seed": seed.hex(), "order": hash_of_order(draw_order(seed, 5)).hex()}
    return log


def signature_altered() -> DrawLog:
    log = drawn_log()
    log[-2]["signature"] = ROUNDS[42]
    return log


def frozen_late() -> DrawLog:
    log = list_of_five()
    freeze(log, 91)
    draw(log)
    return log


def sealed_late() -> DrawLog:
    log = drawn_log()
    log[9]["at"] = time_at(121)
    return log


def drawn_twice() -> DrawLog:
    log = drawn_log()
    log.append(log[-2])
    return log


def let_in_before_the_draw() -> DrawLog:
    log = drawn_log()
    log.insert(7, {"kind": "release", "at": time_at(1), "from": 1, "to": 1})
    return log


def given_up_after_the_freeze() -> DrawLog:
    return [*drawn_log()[:10], void_entry(125)]


def given_up_too_early() -> DrawLog:
    return [*list_of_five(), void_entry(80)]


def changed_after_people_entered() -> DrawLog:
    log = list_of_five()
    log.insert(4, {"kind": "change", "at": time_at(-57), "draw": named_round(42), "by": "organizer"})
    return log


def opened_after_the_round() -> DrawLog:
    log = list_of_five()
    log[0]["at"] = time_at(121)
    freeze(log)
    draw(log)
    return log


def named_after_the_round() -> DrawLog:
    log = list_of_five()
    del log[0]["draw"]
    log.insert(1, {"kind": "change", "at": time_at(130), "draw": named_round(), "by": "organizer"})
    freeze(log)
    draw(log)
    return log


def opened_after_the_round_and_not_frozen_yet() -> DrawLog:
    log = list_of_five()
    log[0]["at"] = time_at(121)
    return log


def list_sealed_after_the_round() -> DrawLog:
    log = list_of_five()
    log[-1]["at"] = time_at(120)
    freeze(log)
    draw(log)
    return log


def confirmed_after_the_round() -> DrawLog:
    log = list_of_five()
    log[-1:] = [{"kind": "confirmations", "at": time_at(125), "numbers": [3]}, {"kind": "seal", "at": time_at(1)}]
    freeze(log)
    draw(log)
    return log


def frozen_a_second_time() -> DrawLog:
    log = list_of_five()
    freeze(log)
    log[-2]["number"] = 7
    log.insert(-3, arrival_entry(6, -1))
    freeze(log, entries=6)
    return log


def not_in_the_format() -> DrawLog:
    log = drawn_log()
    del log[-2]["signature"]
    return log


@pytest.mark.parametrize(
    ("plant", "fault"),
    [
        (list_swapped_before_the_draw, "The frozen list is not the one in the log"),
        (round_swapped, "drawn with round 42, but round 657413 was named"),
        (round_swapped_at_the_freeze, "frozen for round 42, but round 657413 was named"),
        (another_round_was_named_for_the_time, "round 42 is not the one that belongs to a draw at"),
        (entry_removed_after_the_freeze, "not just the tickets 1 to 5"),
        (entry_removed_before_the_freeze, "not just the tickets 1 to 5"),
        (late_entry_put_into_the_list, "Ticket 6 came after the list was closed"),
        (early_entry_left_out_of_the_list, "Ticket 5 came before the list was closed, and is not in it"),
        (order_altered, "The order of the draw does not follow"),
        (seed_altered, "The seed of the draw does not follow"),
        (signature_altered, "The signature is not that of round 657413"),
        (frozen_late, "less than 30 seconds before the round"),
        (sealed_late, "when the round could be known already"),
        (drawn_twice, "drawn more than once"),
        (let_in_before_the_draw, "before the draw"),
        (given_up_after_the_freeze, "although the list was frozen in time"),
        (given_up_too_early, "when the list could still be frozen"),
        (changed_after_people_entered, "after people had entered"),
        (opened_after_the_round, "is before the freeze, and is dated"),
        (named_after_the_round, "is before the freeze, and is dated"),
        (opened_after_the_round_and_not_frozen_yet, "was named at"),
        (list_sealed_after_the_round, "is before the freeze, and is dated"),
        (confirmed_after_the_round, "is before the freeze, and is dated"),
        (frozen_a_second_time, "The list was frozen more than once"),
        (not_in_the_format, "is not written as the format"),
    ],
)
def test_a_fraud_of_a_queue_draw_is_found(plant: Callable[[], DrawLog], fault: str) -> None:
    assert fault in faults_of(plant())


def test_a_head_cosigned_before_the_round_reveals_a_list_frozen_after_it() -> None:
    log = drawn_log()
    size = next(place for place, entry in enumerate(log) if entry["kind"] == "freeze") + 3
    head, in_time = Checkpoint(ORIGIN, size, root_of(log, size)), {"w1": CLOSES + dt.timedelta(seconds=5)}

    def cosigned_faults(log: DrawLog, head: Checkpoint, cosigned_at: dict[str, dt.datetime]) -> str:
        return " ".join(check_cosigned_freeze(log, head, cosigned_at, lambda size: root_of(log, size)))

    assert cosigned_faults(log, head, in_time) == ""

    forged = list_of_five()
    forged[-1:] = [{"kind": "confirmations", "at": time_at(1), "numbers": [3]}, {"kind": "seal", "at": time_at(1)}]
    freeze(forged)
    draw(forged)
    assert faults_of(forged) == "", "the log alone shows nothing"
    assert "perhaps with another list" in cosigned_faults(forged, head, in_time)
    assert "perhaps with another list" in cosigned_faults(log[: size - 1], head, in_time)

    late = {"w1": CLOSES + PAUSE}
    assert "w1 cosigned the freeze at" in cosigned_faults(log, head, late)
    before = Checkpoint(ORIGIN, 6, root_of(log, 6))
    assert "do not have the freeze" in cosigned_faults(log, before, in_time)
    assert cosigned_faults(list_of_five(), before, in_time) == ""


def test_a_void_draw_lets_people_in_only_once_the_organizer_gave_it_up() -> None:
    log = [*list_of_five(), void_entry(91)]
    given_up = {"kind": "change", "at": time_at(200), "draw": {**named_round(), "given_up": True}, "by": "organizer"}
    release = {"kind": "release", "at": time_at(201), "from": 1, "to": 1}
    assert faults_of([*log, given_up, release]) == ""
    assert "before the draw" in faults_of([*log, release])
