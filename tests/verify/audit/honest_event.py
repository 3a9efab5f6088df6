"""An event that keeps the rules of the order, and the log and the receipts that a service would make of it."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from holdfast_verify.formats.cosignature import Cosigner
from holdfast_verify.formats.entries import commitment, person_text, timestamp
from holdfast_verify.formats.proof_file import ProofFile
from holdfast_verify.formats.receipts import Receipt, receipt_of, sign_receipts
from holdfast_verify.formats.signed_note import Checkpoint, LogName, Signer
from holdfast_verify.formats.tree import HASH_BYTES, TILE_WIDTH, append, bundle, inclusion_proof, leaf_hash, tile_path

WITNESS = Cosigner("witness.example.org/w1", Ed25519PrivateKey.from_private_bytes(b"2" * 32))

HOST = "events.example.com"
ORIGIN = f"{HOST}/log/events/7"
KEY = Ed25519PrivateKey.from_private_bytes(b"1" * 32)
VKEY = Signer(ORIGIN, KEY).vkey
START = datetime(2026, 11, 26, 13, tzinfo=UTC)

Entry = dict[str, Any]


class HonestEvent:
    """Replays what people do by the rules, and logs it. `entries` can be changed afterwards, as a fraud would.

    places      what each number has
    receipts    the receipt of each number, as the whole answer
    """

    def __init__(self, capacity: int = 2, waiting_places: int = 3, *, seated: int = 0) -> None:
        self.capacity, self.waiting_places, self.is_cancelled = capacity, waiting_places, False
        self.places: dict[int, str] = {}
        self.receipts: dict[int, dict[str, Any]] = {}
        self._aside = set[int]()
        self._must_pay = set[int]()
        self._seated_before = seated
        self._now = START
        self.entries: list[Entry] = []
        self._log(
            "open",
            format="holdfast-order/1",
            origin=ORIGIN,
            of="event",
            capacity=capacity,
            waiting_places=waiting_places,
            seated=seated,
            waiting=0,
            first_number=1,
        )

    @property
    def numbers(self) -> list[int]:
        return list(self.places)

    def having(self, *statuses: str) -> list[int]:
        return [number for number, status in self.places.items() if status in statuses]

    def arrive(self, *, must_pay: bool = False) -> int:
        """A person registers. Returns the number."""
        number = len(self.places) + 1
        if self.is_cancelled:
            outcome = "rejected"
        elif self._free() > 0:
            outcome = "held" if must_pay else "registered"
        else:
            outcome = "waitlisted" if len(self.having("waitlisted")) < self.waiting_places else "rejected"
        if must_pay:
            self._must_pay.add(number)
        person = commitment("event 7", f"person{number}", nonce(number))
        entry = self._log("arrival", number=number, outcome=outcome, person=person_text(person))
        self.receipts[number] = receipt(entry["at"], number)
        self.places[number] = outcome
        return number

    def remove(self, number: int, by: str = "person") -> None:
        self._move(number, "removed", by)
        self._promote()

    def put_aside(self, number: int) -> None:
        """The organizer moves a person from a seat to the waiting list."""
        self._move(number, "waitlisted", "organizer")
        self._aside.add(number)
        self._promote()

    def move_up(self, number: int) -> None:
        """The organizer gives a person who waits a seat, if there is one."""
        if self._free() > 0:
            self._aside.discard(number)
            self._move(number, "registered", "organizer")

    def pay(self, number: int) -> None:
        self._move(number, "registered", "person")

    def expire(self, number: int) -> None:
        self._move(number, "rejected", "service", reason="payment_expired")
        self._promote()

    def resize(self, capacity: int, waiting_places: int) -> None:
        """The organizer changes the capacity, which is never less than the seats that are taken."""
        self.capacity, self.waiting_places = max(capacity, self.capacity - self._free()), waiting_places
        self._log("change", capacity=self.capacity, waiting_places=waiting_places, by="organizer")
        self._promote()

    def cancel(self) -> None:
        self.is_cancelled = True
        self._log("change", event="cancelled", by="organizer")

    def seal(self, *, after: float = 0.4) -> None:
        self._now += timedelta(seconds=after)
        self._log("seal", cut=timestamp(self._now - timedelta(milliseconds=1)))

    def pass_by(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)

    def _free(self) -> int:
        return self.capacity - self._seated_before - len(self.having("registered", "held"))

    def _promote(self) -> None:
        waiting = [number for number in self.having("waitlisted") if number not in self._aside]
        first = [] if self.is_cancelled else waiting[: max(self._free(), 0)]
        # One statement moves them all, and its log has them in any order.
        for number in reversed(first):
            self._move(number, "held" if number in self._must_pay else "registered", "service")

    def _move(self, number: int, status: str, by: str, **more: str) -> None:
        self._log("change", number=number, **{"from": self.places[number], "to": status}, by=by, **more)
        self.places[number] = status

    def _log(self, kind: str, **fields: Any) -> Entry:
        self._now += timedelta(milliseconds=10)
        entry = {"kind": kind, "at": timestamp(self._now), **fields}
        self.entries.append(entry)
        return entry


def nonce(number: int) -> bytes:
    return number.to_bytes(16)


def receipt(at: str, number: int) -> dict[str, Any]:
    """The answer to a registration, whose promise was signed together with others."""
    base_url = f"https://{HOST}"
    mine = receipt_of(
        LogName("events", 7), base_url, datetime.fromisoformat(at), f"person{number}", nonce(number).hex()
    )
    sign_receipts([mine, Receipt("another", ""), Receipt("a third one", "")], base_url, KEY)
    return {
        "next": {"url": f"/api/registrations/7/person{number}", "action": "poll_status"},
        "receipt": msgspec.to_builtins(mine),
    }


def compact_json(entry: Entry) -> bytes:
    return json.dumps(entry, separators=(",", ":")).encode()


def write_log(directory: Path, entries: Sequence[Entry], *, key: Ed25519PrivateKey = KEY, origin: str = ORIGIN) -> Path:
    """Write the files of a log, as its address has them. Returns the directory."""
    return write_texts(directory, [compact_json(entry) for entry in entries], key=key, origin=origin)


def write_texts(directory: Path, texts: Sequence[bytes], *, key: Ed25519PrivateKey = KEY, origin: str = ORIGIN) -> Path:
    """Write the files of a log with any entries. Returns the directory."""
    tree = append(0, {}, [leaf_hash(text) for text in texts])
    files = {tile_path(*tile, len(hashes) // HASH_BYTES): hashes for tile, hashes in tree.tiles.items()}
    for number in range(-(-len(texts) // TILE_WIDTH)):
        part = texts[number * TILE_WIDTH : (number + 1) * TILE_WIDTH]
        files[tile_path("entries", number, len(part))] = bundle(part)
    signer = Signer(origin, key)
    files["checkpoint"] = signer.sign(Checkpoint(origin, tree.size, tree.root).text).encode()
    files["key"] = signer.vkey.encode()
    for path, content in files.items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_bytes(content)
    return directory


def proof_file(entries: Sequence[Entry], index: int) -> ProofFile:
    """The proof file of an entry."""
    texts = [compact_json(entry) for entry in entries]
    tree = append(0, {}, [leaf_hash(text) for text in texts])
    checkpoint = Signer(ORIGIN, KEY).sign(Checkpoint(ORIGIN, tree.size, tree.root).text)
    return ProofFile(index, inclusion_proof(index, tree.size, tree.tiles), checkpoint, texts[index])


HEAD_LOG_ORIGIN = f"{HOST}/log/heads"


def write_head_proof(
    directory: Path, heads: Sequence[bytes], *, origin: str = HEAD_LOG_ORIGIN, cosigner: Cosigner = WITNESS
) -> None:
    """Write the proof that the last of these heads is in the head log."""
    tree = append(0, {}, [leaf_hash(entry) for entry in heads])
    text = Checkpoint(origin, tree.size, tree.root).text
    note = Signer(origin, KEY).sign(text) + cosigner.signature_line(text)
    proof = inclusion_proof(len(heads) - 1, tree.size, tree.tiles)
    (directory / "head-proof").write_text(ProofFile(len(heads) - 1, proof, note, heads[-1]).text)


def checkpoint_of(event: HonestEvent, entries: int, origin: str = ORIGIN) -> bytes:
    tree = append(0, {}, [leaf_hash(compact_json(entry)) for entry in event.entries[:entries]])
    return Checkpoint(origin, tree.size, tree.root).text.encode()
