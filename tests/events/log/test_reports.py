"""The report of `holdfast verify`: sentences, and at the end a list of what was not checked."""

import asyncio
import json
from pathlib import Path

import pytest

from holdfast.events.settings import Settings
from holdfast_verify.check import catching_up
from tests.events.log.forger import run_forger
from tests.events.log.verification import run, verify
from tests.verify.audit.honest_event import VKEY, HonestEvent, proof_file, write_log


def printed_lines(*arguments: Path | str) -> list[str]:
    """The lines that the command prints."""
    return run(*arguments).stdout.splitlines()


def not_checked(lines: list[str]) -> list[str]:
    assert "Not checked:" in lines, lines
    sentences = lines[lines.index("Not checked:") + 1 :]
    assert all(sentence.startswith("  * ") for sentence in sentences)
    return [sentence.removeprefix("  * ") for sentence in sentences]


@pytest.fixture
def event() -> HonestEvent:
    event = HonestEvent(capacity=2, waiting_places=2)
    for _ in range(5):
        event.arrive()
    event.seal()
    event.remove(1)
    event.seal()
    return event


def test_a_report_of_a_log_ends_with_what_was_not_checked(event: HonestEvent, tmp_path: Path) -> None:
    log, head = write_log(tmp_path / "log", event.entries), tmp_path / "head"

    first = printed_lines(log)
    assert "Everything that was checked is right." in first
    assert [sentence.partition(",")[0] for sentence in not_checked(first)] == [
        "The counts on the page were not compared with the log.",
        "The head log was not asked: this log shows no proof that its head is there.",
        "No earlier head was compared",
        "The heads that the service has published were not compared: --head-log does.",
        "No witness was asked whether others are shown the same: --witness names one.",
        "The key is the one that the log itself serves: compare it with another person",
    ]
    assert "This head is saved now, for the next time." in " ".join(printed_lines(log, "--head", head, "--key", VKEY))
    assert "No earlier head" not in " ".join(printed_lines(log, "--head", head, "--key", VKEY))
    assert "The key is" not in " ".join(printed_lines(log, "--head", head, "--key", VKEY))


def test_a_copy_of_a_later_log_says_how_many_earlier_ones_were_not_read(event: HonestEvent, tmp_path: Path) -> None:
    origin = "events.example.com/log/events/7/3"
    event.entries[0]["origin"] = origin

    lines = printed_lines(write_log(tmp_path, event.entries, origin=origin))

    assert not_checked(lines)[0].startswith("2 earlier logs were not read")


def test_seats_that_were_taken_before_the_log_began_are_named(tmp_path: Path) -> None:
    event = HonestEvent(capacity=5, seated=3)
    event.seal()

    lines = printed_lines(write_log(tmp_path, event.entries))

    assert any("3 seats were taken and 0 people waited before the log began" in line for line in not_checked(lines))


def test_the_report_writes_figures_as_sentences(event: HonestEvent, tmp_path: Path) -> None:
    text = " ".join(" ".join(printed_lines(write_log(tmp_path, event.entries))).split())

    assert "2 got a seat, 2 got a place on the waiting list, 1 got no place" in text
    assert "2 of 2 seats taken, 1 of 2 waiting places" in text
    assert "number 1 was logged 0.45 seconds after it came; 60 are promised" in text


def test_a_receipt_tells_what_came_later_and_who_did_it(event: HonestEvent, tmp_path: Path) -> None:
    log, file = write_log(tmp_path / "log", event.entries), tmp_path / "receipt.json"
    file.write_text(json.dumps(event.receipts[3]))

    lines = printed_lines(file, "--log", log, "--key", VKEY)

    assert "number 3, got a place on the waiting list at 2026-11-26 13:00:00 UTC, entry 3" in lines[3]
    assert "You moved up from the waiting list at 2026-11-26 13:00:00 UTC, and got a seat." in lines[4]
    assert lines[5].split() == ["now", "a", "seat"]
    event.put_aside(3)
    event.seal()
    lines = printed_lines(file, "--log", write_log(tmp_path / "later", event.entries), "--key", VKEY)
    assert "The organizer changed a seat into a place on the waiting list" in lines[5]
    offline = printed_lines(file, "--offline", "--key", VKEY)
    assert not_checked(offline) == [
        "The log was not read: whether it has the arrival, and what came later, is unknown."
    ]


def test_a_report_on_a_proof_says_that_the_person_was_not_checked(event: HonestEvent, tmp_path: Path) -> None:
    file = tmp_path / "2.tlog-proof"
    file.write_text(proof_file(event.entries, 2).text)

    assert "Whose number it is, was not checked: a receipt shows that." in not_checked(
        printed_lines(file, "--key", VKEY)
    )


def test_a_notice_is_called_neither_right_nor_a_fraud(event: HonestEvent, tmp_path: Path) -> None:
    log, file = write_log(tmp_path / "log", event.entries), tmp_path / "receipt.json"
    file.write_text(json.dumps(event.receipts[1]))

    lines = printed_lines(file, "--log", log, "--key", VKEY)

    assert "No fraud was found, but 1 thing is not proved either: read above." in lines
    assert "Everything that was checked is right." not in lines


def test_texts_of_strangers_cannot_control_a_terminal(event: HonestEvent, tmp_path: Path) -> None:
    event.entries.append({"kind": "close", "at": event.entries[-1]["at"], "reason": "\x1b[2Jgone\nNOTHING"})
    event.seal()

    output = "\n".join(printed_lines(write_log(tmp_path, event.entries)))

    assert "?[2Jgone?NOTHING" in output
    assert "\x1b" not in output


def test_a_saved_file_that_is_no_head_is_not_called_a_fraud(event: HonestEvent, tmp_path: Path) -> None:
    log, head = write_log(tmp_path / "log", event.entries), tmp_path / "head"
    assert verify(log, "--head", head)[0] == 0
    saved = head.read_text()

    for content in (
        "no head",
        saved.replace(f"\n{len(event.entries)}\n", "\n9\n"),
        saved.rstrip()[:-20] + "A" * 18 + "==\n",
    ):
        head.write_text(content)
        code, report = verify(log, "--head", head)
        assert (code, "The head in" in report.get("error", "")) == (2, True), content


async def test_the_report_says_what_it_waits_for_while_counts_differ(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catching_up, "PAUSE_SECONDS", 0)
    async with run_forger(settings, tmp_path) as forger:
        await forger.register("ann")
        await forger.seal()
        numbers = b'event: numbers\ndata: {"left":0,"waiting":0}\n\n'
        forger.first_answers[f"/events/{forger.event['id']}/stream"] = [numbers, numbers]

        ran = await asyncio.to_thread(run, forger.log)

    [waiting] = [line for line in ran.stderr.splitlines() if "waiting," in line]
    assert waiting.startswith("The page shows 0 free seats and 0 on the waiting list. The log leads to 1 free seat")
    assert "The log may be up to 60 seconds behind: waiting, 6" in waiting
    assert (ran.exit_code, "1 free seat and 0 on the waiting list, and so says the log" in ran.stdout) == (0, True)
