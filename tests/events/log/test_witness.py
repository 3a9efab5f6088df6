"""A witness answers as C2SP, tlog-witness says, and never cosigns two versions of a log."""

import re
from pathlib import Path

import httpx2
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from holdfast_verify.formats.cosignature import (
    MAX_BODY_BYTES,
    CosignatureVerifier,
    InvalidRequest,
    find_cosignature,
    parse_add_checkpoint,
)
from holdfast_verify.formats.signed_note import Checkpoint, Signer, open_note
from holdfast_verify.formats.tree import EMPTY_ROOT
from holdfast_verify.witness import Witness, WitnessAnswer, WitnessDirectory, WitnessError, application, origin_hash
from tests.events.log.forked_log import KEY, ORIGIN, SIGNER, note, request

OTHER_KEY = Ed25519PrivateKey.from_private_bytes(b"2" * 32)
NAME = "witness.example.org/w1"


@pytest.fixture
def directory(tmp_path: Path) -> WitnessDirectory:
    return WitnessDirectory(tmp_path / "witness", NAME)


@pytest.fixture
def witness(directory: WitnessDirectory) -> Witness:
    """A witness that has cosigned 300 entries."""
    witness = Witness(directory, [KEY])
    assert witness.add_checkpoint(request(0, 300).body).status == 200
    return witness


def with_signature_of(key: Signer) -> bytes:
    return request(300, 400)._replace(checkpoint=key.sign(note(400).partition("\n\n")[0] + "\n")).body


def signed_request(checkpoint: Checkpoint) -> bytes:
    return request(300, 300)._replace(checkpoint=SIGNER.sign(checkpoint.text)).body


GOOD = request(300, 400).body


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (GOOD.replace(b"old 300", b"old 0300"), 400),
        (GOOD.replace(b"old 300\n", b"old 300"), 400),
        (GOOD.replace(b"old 300\n", b"old 300\nAAAA\n"), 400),
        (GOOD.replace(b"old 300\n", b"old 300\nno base64\n"), 400),
        (GOOD.replace(b"old 300\n", b"old 300\n" + GOOD.split(b"\n")[1] * 60), 400),
        (GOOD + b"\xff", 400),
        (GOOD.partition(b"\n\n")[0], 400),
        (GOOD.replace(b"\n400\n", b"\n0400\n"), 400),
        (request(400, 400).body.replace(b"\n400\n", b"\n300\n"), 403),
        (request(400, 400)._replace(checkpoint=note(300)).body, 400),
        (GOOD.replace(ORIGIN.encode(), b"another.example.com/log"), 404),
        (with_signature_of(Signer(ORIGIN, OTHER_KEY)), 403),
        (with_signature_of(Signer("another.example.com/log", OTHER_KEY)), 403),
        (GOOD.replace(b"\n400\n", b"\n401\n"), 403),
        (request(0, 400).body, 409),
        (request(299, 400).body, 409),
        (request(400, 400).body, 409),
        (request(300, 400)._replace(proof=[]).body, 422),
        (request(300, 400)._replace(proof=request(299, 400).proof).body, 422),
        (request(300, 300)._replace(proof=[bytes(32)]).body, 422),
        (request(300, 400, "other").body, 422),
        (request(300, 300, "other").body, 422),
        (GOOD, 200),
        (request(300, 300).body, 200),
        (GOOD + Signer("unknown", OTHER_KEY).signature_line("Anything.\n").encode(), 200),
    ],
)
def test_requests_to_a_witness_get_the_status_of_the_specification(witness: Witness, body: bytes, status: int) -> None:
    answer = witness.add_checkpoint(body)

    assert answer.status == status, answer
    if status == 409:
        assert answer[1:] == ("300\n", "text/x.tlog.size")
    elif status == 200:
        assert re.fullmatch(rf"— {NAME} \S+\n", answer.text)
    else:
        assert re.fullmatch(r"[A-Z].*\.\n", answer.text)
    # Only what was cosigned counts.
    size = 400 if b"\n400\n" in body and status == 200 else 300
    assert witness.add_checkpoint(request(0, 500).body).text == f"{size}\n"


@pytest.mark.parametrize(
    ("checkpoint", "proof", "status"),
    [
        (Checkpoint(ORIGIN, 0, EMPTY_ROOT), [], 200),
        (Checkpoint(ORIGIN, 0, bytes(32)), [], 422),
        (Checkpoint(ORIGIN, 9, bytes(32)), [bytes(32)], 422),
    ],
)
def test_a_log_may_begin_with_any_tree(
    directory: WitnessDirectory, checkpoint: Checkpoint, proof: list[bytes], status: int
) -> None:
    body = request(0, 9)._replace(proof=proof, checkpoint=SIGNER.sign(checkpoint.text)).body

    assert Witness(directory, [KEY]).add_checkpoint(body).status == status
    assert Witness(directory, [KEY]).add_checkpoint(request(0, 300).body).status == 200


def test_a_witness_remembers_what_it_cosigned_and_keeps_a_fork_as_evidence(tmp_path: Path) -> None:
    directory = WitnessDirectory(tmp_path, NAME)
    verifier = CosignatureVerifier(directory.cosigner.vkey)
    line = Witness(directory, [KEY]).add_checkpoint(request(0, 300).body).text
    directory.close()

    # As another process, which has only what is on the disk.
    directory = WitnessDirectory(tmp_path, NAME)
    witness = Witness(directory, [KEY])
    assert directory.cosigner.vkey.startswith(f"{NAME}+{verifier.key_id.hex()}+")
    assert witness.add_checkpoint(request(300, 400, "other").body).status == 422
    assert witness.add_checkpoint(request(0, 300, "other").body).status == 409

    stored = witness.read_checkpoint(origin_hash(ORIGIN))
    assert stored == WitnessAnswer(200, note(300) + line)
    assert find_cosignature(stored.text, verifier)
    directory.close()
    [evidence] = tmp_path.glob("*.refused")
    assert evidence.read_text() == note(400, "other")
    assert open_note(evidence.read_text(), [KEY])
    assert open_note(stored.text, [KEY])
    assert witness.read_checkpoint(origin_hash("another")).status == 404


def test_evidence_of_a_fork_stays_whatever_is_refused_after_it(tmp_path: Path) -> None:
    witness = Witness(WitnessDirectory(tmp_path, NAME), [KEY])
    witness.add_checkpoint(request(0, 300).body)
    fork, later = request(300, 400, "other"), request(300, 400)._replace(proof=[bytes(32)])
    for submission in (fork, fork, later, request(300, 300)._replace(proof=[bytes(32)])):
        assert witness.add_checkpoint(submission.body).status == 422

    assert {file.read_text() for file in tmp_path.glob("*.refused")} == {note(400, "other"), note(400)}


def test_refused_heads_are_stored_up_to_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast_verify.witness.MAX_REFUSED_HEADS", 2)
    witness = Witness(WitnessDirectory(tmp_path, NAME), [KEY])
    for size in (300, 310, 320, 330):
        assert witness.add_checkpoint(request(0, size)._replace(proof=[bytes(32)]).body).status == 422

    assert len([*tmp_path.glob("*.refused")]) == 2


@pytest.mark.parametrize("fault", [OSError, KeyboardInterrupt])
def test_a_checkpoint_that_cannot_be_stored_is_not_cosigned(
    directory: WitnessDirectory, monkeypatch: pytest.MonkeyPatch, fault: type[BaseException]
) -> None:
    def fail(*_: object) -> None:
        raise fault

    witness = Witness(directory, [KEY])
    with monkeypatch.context() as disk:
        disk.setattr("os.fsync", fail)
        with pytest.raises(fault):
            witness.add_checkpoint(request(0, 300).body)

    assert witness.add_checkpoint(request(0, 400, "other").body).status == 200


def test_a_directory_is_used_by_one_witness_alone(tmp_path: Path) -> None:
    directory = WitnessDirectory(tmp_path, NAME)
    with pytest.raises(WitnessError, match="Another witness uses the directory"):
        WitnessDirectory(tmp_path, NAME)
    Witness(directory, [KEY]).add_checkpoint(request(0, 300).body)
    directory.close()

    with pytest.raises(WitnessError, match=r"is of the witness .*/w1, not of .*/w2"):
        WitnessDirectory(tmp_path, NAME.replace("w1", "w2"))
    (tmp_path / "key").unlink()
    with pytest.raises(WitnessError, match="The key of the witness is missing"):
        WitnessDirectory(tmp_path, NAME)
    with pytest.raises(WitnessError, match="cannot be used"):
        WitnessDirectory(tmp_path / "other", "two words")


async def test_a_witness_answers_over_http(witness: Witness) -> None:
    app = httpx2.ASGITransport(application(witness))
    async with httpx2.AsyncClient(transport=app, base_url="http://witness.test") as http:
        conflict = await http.post("/add-checkpoint", content=request(0, 400).body)
        cosigned = await http.post("/add-checkpoint", content=GOOD)
        too_much = await http.post("/add-checkpoint", content=bytes(MAX_BODY_BYTES + 1))
        last = await http.get(f"/{origin_hash(ORIGIN)}/checkpoint")

    assert (conflict.status_code, conflict.headers["content-type"]) == (409, "text/x.tlog.size")
    assert (cosigned.status_code, too_much.status_code) == (200, 413)
    assert last.content.decode() == note(400) + cosigned.content.decode()


def test_a_request_to_a_witness_has_the_format_of_the_specification() -> None:
    assert GOOD.startswith(b"old 300\n")
    assert parse_add_checkpoint(GOOD) == request(300, 400)
    assert request(0, 300).body == b"old 0\n\n" + note(300).encode()
    with pytest.raises(InvalidRequest):
        parse_add_checkpoint(GOOD.replace(b"\n\n", b"\n", 1))
