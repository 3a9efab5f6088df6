"""`holdfast verify` checks a receipt or a proof file without the service."""

import json
from pathlib import Path
from typing import Any

from tests.events.log.verification import rules, verify
from tests.verify.audit.honest_event import VKEY, HonestEvent, proof_file


def settled_event() -> HonestEvent:
    event = HonestEvent(capacity=2)
    for _ in range(4):
        event.arrive()
    event.seal()
    return event


def with_members(answer: dict[str, Any], **members: Any) -> dict[str, Any]:
    return {**answer, "receipt": {**answer["receipt"], **members}}


def test_a_receipt_is_checked_without_the_service(tmp_path: Path) -> None:
    event = settled_event()
    file, answer = tmp_path / "receipt.json", event.receipts[2]
    other = event.receipts[3]
    forgeries = {
        "signature": with_members(answer, signed=answer["receipt"]["signed"].replace("promises\n3", "promises\n4")),
        "path": with_members(answer, promise=other["receipt"]["promise"]),
        "commitment": with_members(answer, nonce="0" * 32),
    }

    file.write_text(json.dumps(answer))
    assert verify(file, "--offline", "--key", VKEY)[0] == 0
    assert verify(file, "--offline")[0] == 2
    file.write_text(json.dumps(answer["receipt"]))
    assert verify(file, "--offline", "--key", VKEY, "--person", "person2")[0] == 0
    assert rules(verify(file, "--offline", "--key", VKEY, "--person", "person3")[1]) == {"commitment"}
    for rule, forgery in forgeries.items():
        file.write_text(json.dumps(forgery))
        code, report = verify(file, "--offline", "--key", VKEY)
        assert (code, rule in rules(report)) == (1, True)


def test_a_proof_file_is_checked_without_the_service(tmp_path: Path) -> None:
    file, proof = tmp_path / "2.tlog-proof", proof_file(settled_event().entries, 2)
    file.write_text(proof.text)
    code, report = verify(file, "--key", VKEY)
    assert (code, report["checked"]["entry"]) == (0, "number 2, a seat, at 2026-11-26T13:00:00.030000Z")

    file.write_text(proof._replace(index=3).text)
    assert rules(verify(file, "--key", VKEY)[1]) == {"path"}
    file.write_text(proof.text[:200])
    assert verify(file, "--key", VKEY)[0] == 2
