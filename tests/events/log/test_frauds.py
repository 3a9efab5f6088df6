"""Frauds that are planted in a log: each is found by `holdfast verify`, by the rule that it breaks."""

import copy
import json
from base64 import b64decode
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from holdfast_verify.formats.entries import timestamp
from tests.events.log.verification import rules, verify
from tests.verify.audit.honest_event import ORIGIN, VKEY, Entry, HonestEvent, write_log

Fraud = Callable[[list[Entry]], None]


@pytest.fixture
def event() -> HonestEvent:
    """Two seats, two waiting places: 1 and 2 have seats, 3 and 4 wait, 5 is rejected; then 1 leaves, and 3 moves up."""
    event = HonestEvent(capacity=2, waiting_places=2)
    for _ in range(3):
        event.arrive()
    event.seal()
    event.arrive()
    event.arrive()
    event.remove(1)
    event.seal()
    return event


def arrival(entries: list[Entry], number: int) -> Entry:
    return next(entry for entry in entries if entry["kind"] == "arrival" and entry["number"] == number)


def swap_two_people_with_their_times(entries: list[Entry]) -> None:
    second, third = arrival(entries, 2), arrival(entries, 3)
    for name in ("at", "person"):
        second[name], third[name] = third[name], second[name]


def swap_two_people(entries: list[Entry]) -> None:
    second, third = arrival(entries, 2), arrival(entries, 3)
    second["person"], third["person"] = third["person"], second["person"]


def drop_the_second(entries: list[Entry]) -> None:
    """Before the seal, all who came later get the number before, and the outcome that they would have."""
    entries.remove(arrival(entries, 2))
    for number, outcome in ((3, "registered"), (4, "waitlisted"), (5, "waitlisted")):
        arrival(entries, number).update(number=number - 1, outcome=outcome)


def settle_against_the_log(entries: list[Entry]) -> None:
    arrival(entries, 3)["outcome"] = "registered"


def reject_while_a_place_is_free(entries: list[Entry]) -> None:
    arrival(entries, 4)["outcome"] = "rejected"


def promote_another(entries: list[Entry]) -> None:
    next(entry for entry in entries if entry.get("from") == "waitlisted")["number"] = 4


def move_up_alone(entries: list[Entry]) -> None:
    next(entry for entry in entries if entry.get("from") == "waitlisted").update(number=4, by="person")


def seat_the_rejected(entries: list[Entry]) -> None:
    next(entry for entry in entries if entry.get("from") == "waitlisted").update({"number": 5, "from": "rejected"})


def seat_without_a_number(entries: list[Entry]) -> None:
    index = entries.index(next(entry for entry in entries if entry.get("from") == "waitlisted"))
    entries[index] = {**entries[index], "from": "pending"}
    del entries[index]["number"]


def hold_more_seats_than_there_are(entries: list[Entry]) -> None:
    for number in (2, 3, 4):
        arrival(entries, number)["outcome"] = "held"


def promote_without_a_seat(entries: list[Entry]) -> None:
    index = entries.index(next(entry for entry in entries if entry.get("from") == "waitlisted"))
    entries.insert(index + 1, {**entries[index], "number": 4})


def leave_a_gap(entries: list[Entry]) -> None:
    arrival(entries, 5)["number"] = 6


def date_back_before_the_last_cut(entries: list[Entry]) -> None:
    arrival(entries, 4)["at"] = arrival(entries, 3)["at"]


def change_who_has_no_seat(entries: list[Entry]) -> None:
    next(entry for entry in entries if entry.get("from") == "registered")["number"] = 5


def log_a_minute_late(entries: list[Entry]) -> None:
    at = datetime.fromisoformat(entries[-1]["at"])
    entries[-1]["at"] = timestamp(at.replace(minute=at.minute + 2))


@pytest.mark.parametrize(
    ("fraud", "rule"),
    [
        (swap_two_people_with_their_times, "time"),
        (settle_against_the_log, "outcome"),
        (reject_while_a_place_is_free, "outcome"),
        (promote_another, "promotion"),
        (move_up_alone, "promotion"),
        (seat_the_rejected, "promotion"),
        (seat_without_a_number, "unnumbered"),
        (hold_more_seats_than_there_are, "outcome"),
        (promote_without_a_seat, "capacity"),
        (leave_a_gap, "numbers"),
        (date_back_before_the_last_cut, "cut"),
        (change_who_has_no_seat, "status"),
        (log_a_minute_late, "late"),
    ],
)
def test_a_log_that_breaks_a_rule_is_found_by_replaying_it(
    event: HonestEvent, tmp_path: Path, fraud: Fraud, rule: str
) -> None:
    fraud(event.entries)

    code, report = verify(write_log(tmp_path, event.entries), "--key", VKEY)

    assert code == 1
    assert rule in rules(report)


def test_an_honest_log_passes_and_is_counted(event: HonestEvent, tmp_path: Path) -> None:
    event.put_aside(2)
    event.seal()

    code, report = verify(write_log(tmp_path, event.entries))

    assert (code, report["findings"]) == (0, [])
    assert report["figures"]["arrivals"] == {"registered": 2, "waitlisted": 2, "rejected": 1}
    assert report["figures"]["changes of people"] == {"by organizer": 1, "by person": 1, "by service": 2}
    assert report["figures"]["places now"]["seats taken"] == 2
    assert report["figures"]["largest delay"] == {"seconds": 0.44, "number": 4}
    assert "which the log itself serves" in report["checked"]["key"]


@pytest.mark.parametrize(
    ("fraud", "number", "message"),
    [
        (
            swap_two_people,
            3,
            "The receipt says 2026-11-26T13:00:00.040000Z, but the log says 2026-11-26T13:00:00.030000Z.",
        ),
        (drop_the_second, 2, "The arrival at 2026-11-26T13:00:00.030000Z is not in the log"),
    ],
)
def test_a_receipt_contradicts_a_log_that_passes_the_replay(
    event: HonestEvent, tmp_path: Path, fraud: Fraud, number: int, message: str
) -> None:
    file, honest, forged = tmp_path / "receipt.json", tmp_path / "honest", tmp_path / "forged"
    file.write_text(json.dumps(event.receipts[number]))
    write_log(honest, event.entries)
    fraud(event.entries)
    write_log(forged, event.entries)

    assert verify(file, "--log", honest)[0] == 0
    if fraud is swap_two_people:
        assert verify(forged)[0] == 0
    code, report = verify(file, "--log", forged)

    assert (code, "promise" in rules(report)) == (1, True)
    assert message in next(finding["message"] for finding in report["findings"] if finding["rule"] == "promise")


def drop_a_leaf(entries: list[Entry]) -> None:
    del entries[3]


def insert_a_leaf(entries: list[Entry]) -> None:
    entries.insert(3, {**entries[2]})


def fork(entries: list[Entry]) -> None:
    arrival(entries, 2)["person"] = arrival(entries, 3)["person"]


def forget_the_end(entries: list[Entry]) -> None:
    del entries[5:]


@pytest.mark.parametrize("fraud", [drop_a_leaf, insert_a_leaf, fork, forget_the_end])
def test_a_log_that_was_changed_after_its_head_was_saved_is_found(
    event: HonestEvent, tmp_path: Path, fraud: Fraud
) -> None:
    head, later = tmp_path / "head", copy.deepcopy(event)
    assert verify(write_log(tmp_path / "first", event.entries), "--head", head)[0] == 0
    saved = head.read_text()
    # It may grow.
    later.arrive()
    later.seal()
    assert verify(write_log(tmp_path / "later", later.entries), "--head", head)[0] == 0
    assert head.read_text() != saved
    head.write_text(saved)

    entries = copy.deepcopy((event if fraud is forget_the_end else later).entries)
    fraud(entries)
    code, report = verify(write_log(tmp_path / "changed", entries), "--head", head)

    assert (code, "consistency" in rules(report)) == (1, True)
    assert head.read_text() == saved
    # The mail of a guest has the short form of that head.
    root = b64decode(saved.splitlines()[2]).hex()
    line = f"Keep this line: {saved.splitlines()[1]} entries, {root[:4]} {root[4:8]}"
    assert verify(tmp_path / "later", "--mail-line", line)[0] == 0
    code, report = verify(tmp_path / "changed", "--mail-line", line)
    assert (code, "consistency" in rules(report)) == (1, True)


def test_a_head_of_entries_that_the_next_log_does_not_have_is_found_and_stays_saved(
    event: HonestEvent, tmp_path: Path
) -> None:
    head = tmp_path / "head"
    assert verify(write_log(tmp_path / "first", event.entries), "--head", head)[0] == 0
    saved = head.read_text()
    after = {"origin": ORIGIN, "size": len(event.entries) - 1, "root": saved.splitlines()[2]}
    restored = [{**HonestEvent().entries[0], "origin": f"{ORIGIN}/2", "after": after}]
    write_log(tmp_path / "next", restored, origin=f"{ORIGIN}/2")

    for _ in range(2):
        code, report = verify(tmp_path / "next", "--head", head)

        assert (code, "consistency" in rules(report)) == (1, True)
        assert head.read_text() == saved


def test_a_file_that_was_altered_and_a_head_of_another_key_are_found(tmp_path: Path) -> None:
    event = HonestEvent(capacity=300)
    for _ in range(600):
        event.arrive()
    event.seal()
    log = write_log(tmp_path, event.entries)
    assert verify(log, "--key", VKEY)[0] == 0

    for name in ("tile/entries/001", "tile/0/001", "tile/1/000.p/2", "tile/0/002.p/90"):
        content = (log / name).read_bytes()
        (log / name).write_bytes(content[:-9] + bytes([content[-9] ^ 1]) + content[-8:])
        code, report = verify(log, "--key", VKEY)
        assert (code, "hash" in rules(report)) == (1, True)
        (log / name).write_bytes(content)

    write_log(log, event.entries, key=Ed25519PrivateKey.generate())
    assert verify(log)[0] == 0
    code, report = verify(log, "--key", VKEY)
    assert (code, rules(report)) == (1, {"signature"})

    (log / "tile/entries/001").unlink()
    code, report = verify(log)
    assert (code, report["error"]) == (2, f"{log}/tile/entries/001 is missing.")


@pytest.mark.parametrize(
    ("seconds", "finders"),
    [
        (0.3, set[str]()),
        # What was invented for an earlier time shows: the batch is sealed too late for it.
        (61.0, {"late"}),
    ],
)
def test_an_invention_dated_back_to_before_the_seal_passes_within_a_minute(
    tmp_path: Path, seconds: float, finders: set[str]
) -> None:
    """The fraud that no check can find: a person who never came is put before those who wait to be sealed.

    The bound is 60 seconds. Under load seals come each half second, and no person is put before the cut of the last
    one.
    """
    event = HonestEvent(capacity=1)
    event.arrive()  # A person who never came: the service invents the arrival when the next person has come.
    event.pass_by(seconds)
    event.arrive()
    event.seal()

    _, report = verify(write_log(tmp_path, event.entries))

    assert rules(report) == finders
