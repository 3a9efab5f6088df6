"""A receipt proves its promise alone, and no other text does."""

from datetime import UTC, datetime
from uuid import UUID

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from holdfast_verify.formats.entries import commitment, person_text
from holdfast_verify.formats.receipts import InvalidReceipt, Receipt, receipt_of, sign_receipts, verify_receipt
from holdfast_verify.formats.signed_note import LogName, Signer

BASE_URL = "https://host.example"
KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
VKEY = Signer("host.example/log/promises", KEY).vkey
AT = datetime(2026, 11, 26, 13, 0, tzinfo=UTC)


def receipts(count: int, base_url: str = BASE_URL) -> list[Receipt]:
    batch = [
        receipt_of(LogName("events", 7), base_url, AT, f"person{number}", str(UUID(int=number)))
        for number in range(count)
    ]
    sign_receipts(batch, BASE_URL, KEY)
    return batch


@pytest.mark.parametrize("count", [1, 2, 3, 7, 64, 500])
def test_a_receipt_of_a_batch_is_verified_alone(count: int) -> None:
    batch = receipts(count)

    assert len({receipt.signed for receipt in batch}) == 1
    for number, receipt in enumerate(batch):
        content = verify_receipt(receipt, VKEY)
        person = commitment("event 7", f"person{number}", bytes.fromhex(receipt.nonce))
        assert (content.log, content.within) == ("https://host.example/log/events/7", 60)
        assert content.person == person_text(person)


def test_a_promise_is_compact_json_in_a_fixed_order() -> None:
    nonce = UUID(int=7)

    receipt = receipt_of(LogName("queues", 3), BASE_URL, AT, "visitor", str(nonce), ticket=41)

    assert receipt.nonce == nonce.hex
    assert receipt.promise == (
        '{"log":"https://host.example/log/queues/3","at":"2026-11-26T13:00:00.000000Z",'
        f'"person":"{person_text(commitment("queue 3", "visitor", nonce.bytes))}","within":60,"ticket":41}}'
    )


def test_an_altered_receipt_is_refused() -> None:
    receipt = receipts(5)[3]
    content = msgspec.to_builtins(receipt)
    altered = [
        {**content, name: text[:place] + chr(ord(text[place]) ^ 1) + text[place + 1 :]}
        for name in ("promise", "signed")
        for text in (content[name],)
        for place in range(len(text))
    ]
    altered += [{**content, "index": index} for index in (-1, 0, 2, 4, 5, 2**70)]
    altered += [
        {**content, "path": path} for path in ([], receipt.path[1:], receipt.path[::-1], [*receipt.path, "AA=="])
    ]

    for changed in altered:
        with pytest.raises(InvalidReceipt):
            verify_receipt(msgspec.convert(changed, Receipt), VKEY)


def test_a_receipt_of_another_key_or_about_a_log_of_others_is_refused() -> None:
    [receipt] = receipts(1)
    other = Signer("host.example/log/promises", Ed25519PrivateKey.generate()).vkey
    [foreign] = receipts(1, "https://other.example")

    for wrong, vkey in ((receipt, other), (receipt, "no key"), (foreign, VKEY)):
        with pytest.raises(InvalidReceipt):
            verify_receipt(wrong, vkey)
