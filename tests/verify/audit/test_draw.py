"""Frauds of a draw, each planted in a log that was right: the audit names every one."""

import datetime as dt
import json
from collections.abc import Callable
from typing import Any

import pytest

from holdfast_verify.audit.draw import check_cosigned_freeze, check_draw
from holdfast_verify.formats import beacon
from holdfast_verify.formats.drawn_order import PAUSE, Freeze, draw_order, freeze_details, hash_of_order, seed_of
from holdfast_verify.formats.signed_note import Checkpoint
from holdfast_verify.formats.tree import append, leaf_hash
from tests.events.draws.rounds import ROUNDS

ORIGIN = "holdfast.example/log/queues/3"
ROUND = 657413
CLOSES = beacon.time_of(ROUND) - PAUSE
Log = list[dict[str, Any]]


def at(seconds: float) -> str:
    """A time, so many seconds after the list closes, as a log has it."""
    return (CLOSES + dt.timedelta(seconds=seconds)).isoformat(timespec="microseconds").replace("+00:00", "Z")


def root_of(log: Log, size: int) -> bytes:
    return append(0, {}, [leaf_hash(json.dumps(entry).encode()) for entry in log[:size]]).root


def arrival(number: int, seconds: float) -> dict[str, Any]:
    return {"kind": "arrival", "number": number, "at": at(seconds), "person": f"person {number}"}


def named(round: int = ROUND) -> dict[str, Any]:
    return {"chain": beacon.CHAIN, "round": round, "at": at(0)}


def list_of_five() -> Log:
    """A log up to the close of its list: five entries."""
    opened = {"kind": "open", "at": at(-90), "origin": ORIGIN, "of": "queue", "first_number": 1, "draw": named()}
    return [opened, *(arrival(number, number - 60) for number in range(1, 6)), {"kind": "seal", "at": at(1)}]


def freeze(log: Log, seconds: float = 2, entries: int = 5, round: int = ROUND) -> None:
    details = freeze_details(entries, len(log), root_of(log, len(log)), round)
    log += [
        {"kind": "freeze", "at": at(seconds), **details},
        arrival(6, seconds + 1),
        {"kind": "seal", "at": at(seconds + 2)},
    ]


def draw(log: Log, round: int = ROUND, entries: int = 5) -> None:
    frozen = next(entry for entry in log if entry["kind"] == "freeze")
    root = root_of(log, frozen["size"])
    seed = seed_of(Freeze(ORIGIN, entries, root, beacon.CHAIN, round), bytes.fromhex(ROUNDS[round]))
    order = hash_of_order(draw_order(seed, entries)).hex()
    log += [
        {"kind": "draw", "at": at(125), "round": round, "signature": ROUNDS[round], "seed": seed.hex(), "order": order},
        {"kind": "release", "at": at(126), "from": 1, "to": 1},
    ]


def drawn() -> Log:
    log = list_of_five()
    freeze(log)
    draw(log)
    return log


def faults(log: Log) -> str:
    return " ".join(check_draw(log, ORIGIN, lambda size: root_of(log, size)))


def void(seconds: float) -> dict[str, Any]:
    return {"kind": "change", "at": at(seconds), "draw": {**named(), "void": True}, "by": "service"}


def test_a_right_draw_has_no_fault_also_while_its_list_waits_for_the_round() -> None:
    log = drawn()
    assert faults(log) == faults(log[:-2]) == faults(log[:7]) == ""


def list_swapped_before_the_draw() -> Log:
    log = list_of_five()
    freeze(log)
    log[2]["person"] = "somebody else"
    draw(log)
    return log


def round_swapped() -> Log:
    log = list_of_five()
    freeze(log)
    draw(log, 42)
    return log


def round_swapped_at_the_freeze() -> Log:
    log = list_of_five()
    freeze(log, round=42)
    draw(log, 42)
    return log


def another_round_was_named_for_the_time() -> Log:
    log = drawn()
    log[0]["draw"] = named(42)
    return log


def entry_removed_after_the_freeze() -> Log:
    log = drawn()
    del log[3]
    return log  # all later entries moved up by one


def entry_removed_before_the_freeze() -> Log:
    log = list_of_five()
    del log[3]
    freeze(log)
    draw(log)
    return log


def late_entry_put_into_the_list() -> Log:
    log = list_of_five()
    log.insert(6, arrival(6, 1.5))
    freeze(log, entries=6)
    log[-2]["number"] = 7
    draw(log, entries=6)
    return log


def early_entry_left_out_of_the_list() -> Log:
    log = list_of_five()
    freeze(log, entries=4)
    draw(log, entries=4)
    return log


def order_altered() -> Log:
    log = drawn()
    log[-2]["order"] = hash_of_order([2, 1, 3, 4, 5]).hex()
    return log


def seed_altered() -> Log:
    log = drawn()
    seed = bytes(32)
    log[-2] |= {"seed": seed.hex(), "order": hash_of_order(draw_order(seed, 5)).hex()}
    return log


def signature_altered() -> Log:
    log = drawn()
    log[-2]["signature"] = ROUNDS[42]
    return log


def frozen_late() -> Log:
    log = list_of_five()
    freeze(log, 91)
    draw(log)
    return log


def sealed_late() -> Log:
    log = drawn()
    log[9]["at"] = at(121)
    return log


def drawn_twice() -> Log:
    log = drawn()
    log.append(log[-2])
    return log


def let_in_before_the_draw() -> Log:
    log = drawn()
    log.insert(7, {"kind": "release", "at": at(1), "from": 1, "to": 1})
    return log


def given_up_after_the_freeze() -> Log:
    return [*drawn()[:10], void(125)]


def given_up_too_early() -> Log:
    return [*list_of_five(), void(80)]


def changed_after_people_entered() -> Log:
    log = list_of_five()
    log.insert(4, {"kind": "change", "at": at(-57), "draw": named(42), "by": "organizer"})
    return log


def opened_after_the_round() -> Log:
    log = list_of_five()
    log[0]["at"] = at(121)
    freeze(log)
    draw(log)
    return log


def named_after_the_round() -> Log:
    log = list_of_five()
    del log[0]["draw"]
    log.insert(1, {"kind": "change", "at": at(130), "draw": named(), "by": "organizer"})
    freeze(log)
    draw(log)
    return log


def opened_after_the_round_and_not_frozen_yet() -> Log:
    log = list_of_five()
    log[0]["at"] = at(121)
    return log


def list_sealed_after_the_round() -> Log:
    log = list_of_five()
    log[-1]["at"] = at(120)
    freeze(log)
    draw(log)
    return log


def confirmed_after_the_round() -> Log:
    log = list_of_five()
    log[-1:] = [{"kind": "confirmations", "at": at(125), "numbers": [3]}, {"kind": "seal", "at": at(1)}]
    freeze(log)
    draw(log)
    return log


def frozen_a_second_time() -> Log:
    log = list_of_five()
    freeze(log)
    log[-2]["number"] = 7
    log.insert(-3, arrival(6, -1))
    freeze(log, entries=6)
    return log


def not_in_the_format() -> Log:
    log = drawn()
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
def test_a_fraud_of_a_queue_draw_is_found(plant: Callable[[], Log], fault: str) -> None:
    assert fault in faults(plant())


def test_a_head_cosigned_before_the_round_reveals_a_list_frozen_after_it() -> None:
    log = drawn()
    size = next(place for place, entry in enumerate(log) if entry["kind"] == "freeze") + 3
    head, in_time = Checkpoint(ORIGIN, size, root_of(log, size)), {"w1": CLOSES + dt.timedelta(seconds=5)}

    def cosigned_faults(log: Log, head: Checkpoint, cosigned_at: dict[str, dt.datetime]) -> str:
        return " ".join(check_cosigned_freeze(log, head, cosigned_at, lambda size: root_of(log, size)))

    assert cosigned_faults(log, head, in_time) == ""

    forged = list_of_five()
    forged[-1:] = [{"kind": "confirmations", "at": at(1), "numbers": [3]}, {"kind": "seal", "at": at(1)}]
    freeze(forged)
    draw(forged)
    assert faults(forged) == "", "the log alone shows nothing"
    assert "perhaps with another list" in cosigned_faults(forged, head, in_time)
    assert "perhaps with another list" in cosigned_faults(log[: size - 1], head, in_time)

    late = {"w1": CLOSES + PAUSE}
    assert "w1 cosigned the freeze at" in cosigned_faults(log, head, late)
    before = Checkpoint(ORIGIN, 6, root_of(log, 6))
    assert "do not have the freeze" in cosigned_faults(log, before, in_time)
    assert cosigned_faults(list_of_five(), before, in_time) == ""


def test_a_void_draw_lets_people_in_only_once_the_organizer_gave_it_up() -> None:
    log = [*list_of_five(), void(91)]
    given_up = {"kind": "change", "at": at(200), "draw": {**named(), "given_up": True}, "by": "organizer"}
    release = {"kind": "release", "at": at(201), "from": 1, "to": 1}
    assert faults([*log, given_up, release]) == ""
    assert "before the draw" in faults([*log, release])
