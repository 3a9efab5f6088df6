"""For any bytes of a log, a receipt or a page, `holdfast verify` ends in a verdict or a sentence."""

import contextlib
import json
import threading
from collections.abc import Callable, Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from holdfast_verify.audit.audit import Audit, HeadAudit
from holdfast_verify.audit.entries import parse_entry
from holdfast_verify.check import log_source
from holdfast_verify.check.log_reader import open_head
from holdfast_verify.check.log_source import VerificationError, address_of_origin
from holdfast_verify.check.public_counts import parse_numbers, parse_progress
from holdfast_verify.check.receipts import check_proof, check_receipt, parse_file
from holdfast_verify.check.trusted_key import parse_keys
from holdfast_verify.formats.proof_file import ProofFile, parse_proof_file
from holdfast_verify.formats.signed_note import Checkpoint, Signer
from holdfast_verify.formats.tree import append, leaf_hash
from tests.events.log.verification import run
from tests.verify.audit.draw_log import drawn_log, frozen_with_confirmed, list_of_five, placed_log
from tests.verify.audit.honest_event import (
    KEY,
    ORIGIN,
    VKEY,
    WITNESS,
    HonestEvent,
    compact_json,
    write_head_proof,
    write_texts,
)

DEEP = b"[" * 60_000
HOSTILE = (
    *(b"", b"\xff", b"\x00", b"null", b"[]", b"{}", b'"\\ud800"', b"9" * 5_000, DEEP, b'{"kind":' + DEEP),
    b'{"kind":"seal","at":"0001-01-01T00:00:00+23:00"}',
    b'{"kind":"seal","at":"9999-12-31T23:59:59-23:00","x":' + DEEP + b"}",
    b'{"kind":"freeze\xff","at":1}',
)
"""Bytes that a decoder has failed at, or could."""

VALUES: tuple[Any, ...] = (
    *(None, True, -1, 0, 1.5, 2**53, 2**64, 10**30, "", "x" * 43, "\ud800", "\x1b[2J", [], {}, [[[]]], [2**40]),
    *("0001-01-01T00:00:00+23:00", "9999-12-31T23:59:59-23:00", "2026-11-26T13:00:00", "organizer", "event", "queue"),
    *({"round": 10**15, "chain": "x", "at": "2026-11-26T13:00:00Z"}, {"void": True}, {"given_up": 1, "round": -1}),
)
"""Values that an entry should not have in this place."""

hostile_bytes = st.one_of(st.sampled_from(HOSTILE), st.binary(max_size=200))


def honest_logs() -> list[list[dict[str, Any]]]:
    """Logs with every kind of entry."""
    event = HonestEvent()
    for _ in range(7):
        event.arrive()
    event.remove(1)
    event.seal()
    return [event.entries, drawn_log(), list_of_five(), placed_log(), placed_log(frozen_with_confirmed(2, 4), 2, 4)]


HONEST = honest_logs()


@pytest.fixture(autouse=True, scope="module")
def one_ssl_context() -> Generator[None]:
    """Read the authorities of TLS once, and not for each log. These logs are files."""
    context = httpx2.create_ssl_context()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(httpx2, "create_ssl_context", lambda: context)
        yield


@st.composite
def hostile_logs(draw: st.DrawFn) -> list[bytes]:
    """An honest log in which some entries have other values, or are other bytes."""
    log = [dict(entry) for entry in draw(st.sampled_from(HONEST))]
    texts: dict[int, bytes] = {}
    for _ in range(draw(st.integers(1, 4))):
        index = draw(st.integers(0, len(log) - 1))
        if draw(st.booleans()):
            name = draw(st.sampled_from(sorted({*log[index], "draw", "number", "at", "from", "to", "after"})))
            log[index][name] = draw(st.sampled_from(VALUES))
        else:
            texts[index] = draw(hostile_bytes)
    return [texts.get(index, json.dumps(entry).encode()) for index, entry in enumerate(log)]


def verdict(*arguments: str | Path) -> tuple[int, str]:
    """How the command ends, and what it prints."""
    ran = run(*arguments)
    if ran.exception is not None and not isinstance(ran.exception, SystemExit):
        raise ran.exception
    return ran.exit_code, ran.output


def _ignore(error: type[Exception]) -> Callable[[Callable[[bytes], Any]], Callable[[bytes], None]]:
    def decorate(decode: Callable[[bytes], Any]) -> Callable[[bytes], None]:
        def decoded(content: bytes) -> None:
            with contextlib.suppress(error):
                decode(content)

        return decoded

    return decorate


def read_audited(content: bytes) -> None:
    audit, heads = Audit(ORIGIN), HeadAudit()
    for part in (compact_json(HONEST[0][0]), content, content):
        audit.read(part)
        heads.read(part)
    audit.end()
    heads.end()


def read_receipt(content: bytes) -> None:
    file = parse_file(content)
    if isinstance(file, ProofFile):
        check_proof(file, parse_keys(VKEY))
    else:
        check_receipt(file, None, parse_keys(VKEY))


DECODERS: dict[str, Callable[[bytes], None]] = {
    "entries": _ignore(ValueError)(parse_entry),
    "audit": read_audited,
    "keys": _ignore(VerificationError)(lambda content: parse_keys(content.decode(errors="replace"))),
    "head": _ignore(VerificationError)(lambda content: open_head(content, parse_keys(VKEY), "The head")),
    "proof file": _ignore(ValueError)(lambda content: parse_proof_file(content.decode(errors="replace"))),
    "file": _ignore(VerificationError)(read_receipt),
    "numbers": _ignore(VerificationError)(lambda content: parse_numbers(b"event: numbers\ndata: " + content + b"\n")),
    "progress": _ignore(VerificationError)(parse_progress),
    "origin": _ignore(VerificationError)(lambda content: address_of_origin(content.decode(errors="replace"))),
}


@pytest.mark.parametrize("name", DECODERS)
@given(content=hostile_bytes)
@settings(max_examples=25)
def test_a_decoder_answers_any_bytes_or_raises_its_documented_error(name: str, content: bytes) -> None:
    DECODERS[name](content)


@pytest.mark.parametrize("name", DECODERS)
@pytest.mark.parametrize("content", HOSTILE, ids=range(len(HOSTILE)))
def test_a_decoder_answers_known_hostile_bytes_or_raises_its_documented_error(name: str, content: bytes) -> None:
    DECODERS[name](content)


@given(log=hostile_logs())
@example(log=[compact_json(HONEST[0][0]), b"\xff"])
@example(log=[compact_json(HONEST[1][0]), b'{"kind":"freeze"\xff', DEEP])
@example(log=[b'{"draw":' + DEEP])
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_hostile_log_ends_in_a_verdict(log: list[bytes], tmp_path: Path) -> None:
    code, output = verdict(write_texts(tmp_path, log), "--key", VKEY)

    assert code in (0, 1, 2)
    assert code != 2 or output.startswith("It could not be checked. ")
    assert "\x1b" not in output


@given(
    name=st.sampled_from(("checkpoint", "key", "tile/entries/000.p/11", "tile/0/000.p/11", "head-proof")),
    content=hostile_bytes,
)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_hostile_file_of_a_log_ends_in_a_verdict(name: str, content: bytes, tmp_path: Path) -> None:
    log = write_texts(tmp_path, [compact_json(entry) for entry in HONEST[0]])
    (log / name).parent.mkdir(parents=True, exist_ok=True)
    (log / name).write_bytes(content)

    code, output = verdict(log)

    assert code in (1, 2)
    assert code != 2 or output.startswith("It could not be checked. ")
    (log / name).unlink()


@given(log=hostile_logs(), is_listed=st.booleans(), content=hostile_bytes)
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_hostile_proof_of_a_freeze_ends_in_a_verdict(
    log: list[bytes], is_listed: bool, content: bytes, tmp_path: Path
) -> None:
    write_texts(tmp_path, log)
    tree = append(0, {}, [leaf_hash(text) for text in log])
    write_head_proof(tmp_path, [Checkpoint(ORIGIN, tree.size, tree.root).text.encode()])
    proof = (tmp_path / "head-proof").read_bytes() if is_listed else content
    (tmp_path / "freeze-proof").write_bytes(proof)

    assert verdict(tmp_path, "--key", VKEY, "--witness", WITNESS.vkey)[0] in (0, 1, 2)


@given(
    names=st.lists(st.sampled_from(("promise", "nonce", "signed", "index", "path", "url")), min_size=1, max_size=3),
    value=st.sampled_from((*VALUES, "http://[", '{"log":"http://[/log/events/7"}', DEEP.decode())),
)
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_hostile_receipt_ends_in_a_verdict(names: list[str], value: Any, tmp_path: Path) -> None:
    event = HonestEvent()
    event.arrive()
    answer = json.loads(json.dumps(event.receipts[1]))
    for name in names:
        (answer["next"] if name == "url" else answer["receipt"])[name] = value
    file = tmp_path / "receipt.json"
    file.write_text(json.dumps(answer))

    assert verdict(file, "--offline", "--key", VKEY)[0] in (0, 1, 2)


class EndlessHandler(BaseHTTPRequestHandler):
    """Answers each request with an answer that never ends: as much as anybody reads, or nothing."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        with contextlib.suppress(OSError):
            if "full" in self.path:
                while True:
                    self.wfile.write(b"[" * 65_536)
            self.rfile.read()

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextlib.contextmanager
def endless_server() -> Generator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), EndlessHandler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize(
    ("path", "sentence"), [("/full/log/events/7", "has more than 4,000,000 bytes."), ("/log/events/7", "did not end")]
)
def test_an_answer_that_never_ends_ends_in_a_sentence(
    path: str, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_source, "ANSWER_TIMEOUT_SECONDS", 0.5 if sentence == "did not end" else 60.0)
    with endless_server() as url:
        code, output = verdict(url + path, "--key", VKEY)

    assert (code, sentence in output) == (2, True), output


def test_a_log_that_claims_more_entries_than_can_be_read_is_refused_in_a_sentence(tmp_path: Path) -> None:
    note = Signer(ORIGIN, KEY).sign(Checkpoint(ORIGIN, 10**17, bytes(32)).text)
    (tmp_path / "checkpoint").write_text(note)

    code, output = verdict(tmp_path, "--key", VKEY)

    assert (code, "This program reads at most 100,000,000." in output) == (2, True)
