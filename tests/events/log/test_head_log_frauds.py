"""Heads that contradict each other, or the head log, are found by `holdfast verify`; and witnesses that are missing."""

import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from holdfast_verify.formats.cosignature import Cosigner
from holdfast_verify.formats.signed_note import Checkpoint, Signer
from tests.events.log.verification import rules, verify
from tests.verify.audit.honest_event import (
    HEAD_LOG_ORIGIN,
    HOST,
    KEY,
    VKEY,
    WITNESS,
    HonestEvent,
    checkpoint_of,
    write_head_proof,
    write_log,
    write_texts,
)

OTHER_WITNESS = Cosigner("witness.example.org/w2", Ed25519PrivateKey.from_private_bytes(b"3" * 32))


def head(size: int, root: bytes = b"r", log: int = 7) -> bytes:
    return Checkpoint(f"{HOST}/log/events/{log}", size, root * 32).text.encode()


@pytest.mark.parametrize(
    "later", [head(4), head(4, b"s"), head(3), b"no head\n", head(5).replace(b"5", b"05")], ids=repr
)
def test_a_head_log_in_which_a_log_does_not_grow_is_found(tmp_path: Path, later: bytes) -> None:
    honest = [head(2), head(9, log=8), head(4)]

    code, report = verify(write_texts(tmp_path, [*honest, head(6)], origin=HEAD_LOG_ORIGIN))
    assert (code, report["figures"]) == (0, {"logs": 2, "heads": 4})
    code, report = verify(write_texts(tmp_path, [*honest, later], origin=HEAD_LOG_ORIGIN))

    assert code == 1
    assert [finding["index"] for finding in report["findings"]] == [3]


@pytest.fixture
def event() -> HonestEvent:
    event = HonestEvent()
    for _ in range(3):
        event.arrive()
        event.seal()
    return event


def test_a_log_whose_head_is_in_the_cosigned_head_log_passes(event: HonestEvent, tmp_path: Path) -> None:
    write_log(tmp_path, event.entries)
    write_head_proof(tmp_path, [head(1, log=8), checkpoint_of(event, 7)])

    code, report = verify(tmp_path, "--witness", WITNESS.vkey)
    without, of_both = verify(tmp_path, "--witness", WITNESS.vkey, "--witness", OTHER_WITNESS.vkey)

    assert (code, report["findings"]) == (0, [])
    assert report["checked"]["head log"] == "has this head, entry 1 of 2"
    assert "has cosigned the head log at 20" in report["checked"][f"witness {WITNESS.name}"]
    assert without == 1
    assert [finding["message"] for finding in of_both["findings"]] == [
        "witness.example.org/w2 has not cosigned the head of the head log."
    ]


def test_a_head_log_may_be_ahead_of_the_head_that_is_shown(event: HonestEvent, tmp_path: Path) -> None:
    write_log(tmp_path, event.entries)
    write_log(tmp_path, event.entries[:5])
    write_head_proof(tmp_path, [checkpoint_of(event, 7)])

    assert verify(tmp_path)[0] == 0
    event.entries[1]["person"] = "x" * 43
    write_head_proof(tmp_path, [checkpoint_of(event, 7)])
    code, report = verify(tmp_path)

    assert (code, rules(report)) == (1, {"heads"})


@pytest.mark.parametrize("fault", ["fork", "another log", "another service", "proof", "cosignature", "unsigned"])
def test_a_head_that_the_head_log_does_not_have_is_found(event: HonestEvent, tmp_path: Path, fault: str) -> None:
    write_log(tmp_path, event.entries)
    listed, origin = checkpoint_of(event, 7), HEAD_LOG_ORIGIN
    if fault == "fork":
        event.entries[1]["person"] = "x" * 43
        listed = checkpoint_of(event, 7)
    elif fault == "another log":
        listed = listed.replace(b"/7\n", b"/8\n")
    elif fault == "another service":
        origin = "other.example.com/log/heads"
    write_head_proof(tmp_path, [head(1, log=8), listed], origin=origin)
    content = (tmp_path / "head-proof").read_text()
    if fault == "proof":
        content = content.replace("index 1", "index 0")
    elif fault == "cosignature":
        before, _, signature = content.rpartition(" ")
        content = f"{before} {signature[:20]}{'B' if signature[20] == 'A' else 'A'}{signature[21:]}"
    elif fault == "unsigned":
        content = content.replace("\n2\n", "\n3\n")
    (tmp_path / "head-proof").write_text(content)

    code, report = verify(tmp_path, "--witness", WITNESS.vkey)

    expected = {"cosignature": "witness", "unsigned": "signature"}.get(fault, "heads")
    assert (code, rules(report)) == (1, {expected})


def test_a_required_witness_is_missing_for_a_log_without_a_head_log(event: HonestEvent, tmp_path: Path) -> None:
    write_log(tmp_path, event.entries)

    code, report = verify(tmp_path, "--witness", WITNESS.vkey)

    assert (code, rules(report)) == (1, {"witness"})
    assert any("shows no proof" in sentence for sentence in verify(tmp_path)[1]["not_checked"])
    assert verify(tmp_path, "--witness", Signer("w", KEY).vkey)[0] == 2
    assert "is a copy of one log" in verify(tmp_path, "--head-log")[1]["error"]
    (tmp_path / "receipt.json").write_text(json.dumps(event.receipts[1]))
    offline = verify(tmp_path / "receipt.json", "--offline", "--key", VKEY, "--witness", WITNESS.vkey)
    assert (offline[0], offline[1]["ok"]) == (2, None)
