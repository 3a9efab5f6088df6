"""Cosignatures of witnesses: as C2SP, tlog-cosignature has them, and as aics-tlog makes and verifies them."""

import time

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from holdfast_verify.formats.cosignature import CosignatureVerifier, Cosigner, find_cosignature
from holdfast_verify.formats.signed_note import InvalidNote, Signer, Verifier, open_note, parse_note, vkey
from tests.verify.formats.verifiers import LogRefused, cosign_with_aics

EXAMPLE = """example.com/behind-the-sofa
20852163
CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=

— example.com/behind-the-sofa \
Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=
— witness.example.com/w1 \
jWbPPwAAAABkGFDLEZMHwSRaJNiIDoe9DYn/zXcrtPHeolMI5OWXEhZCB9dlrDJsX3b2oyin1nPZqhf5nNo0xUe+mbIUBkBIfZ+qnA==
"""
"""The example of C2SP, tlog-cosignature. It does not tell the keys."""

LOG = Signer("example.com/behind-the-sofa", Ed25519PrivateKey.from_private_bytes(bytes(32)))
NOTE = LOG.sign(EXAMPLE.partition("\n\n")[0] + "\n")
WITNESS = Cosigner("witness.example.com/w1", Ed25519PrivateKey.from_private_bytes(bytes([1] * 32)))
AICS_VKEY = Cosigner("aics", Ed25519PrivateKey.from_private_bytes(bytes([2] * 32))).vkey
KEY = CosignatureVerifier(WITNESS.vkey)


def cosigned_note(note: str, witness: Cosigner = WITNESS) -> str:
    return note + witness.signature_line(parse_note(note).text)


def test_a_cosigned_note_opens_with_the_key_of_the_log_and_with_that_of_the_witness() -> None:
    before = int(time.time())
    note = cosigned_note(NOTE)

    cosignature = find_cosignature(note, KEY)

    assert cosignature is not None
    assert note == NOTE + cosignature.line
    assert before <= cosignature.timestamp <= time.time()
    assert open_note(note, [Verifier(LOG.vkey)]) == open_note(note, [KEY]) == parse_note(EXAMPLE).text
    assert find_cosignature(NOTE, KEY) is None


def test_a_cosignature_has_the_form_and_the_time_of_the_example() -> None:
    [_, (name, _, signature)] = parse_note(EXAMPLE).signatures
    [_, (own_name, _, own_signature)] = parse_note(cosigned_note(NOTE)).signatures

    assert (name, len(signature)) == (own_name, len(own_signature))
    assert int.from_bytes(signature[:8]) == 1679315147


def test_a_cosignature_of_another_time_or_text_is_refused() -> None:
    text, [_, (name, key_id, signature)] = parse_note(cosigned_note(NOTE))
    other_time = (int.from_bytes(signature[:8]) + 1).to_bytes(8) + signature[8:]
    no_time = bytes(8) + WITNESS.private_key.sign(f"cosignature/v1\ntime 0\n{text}".encode())

    KEY.verify(text, signature)
    for wrong in (other_time, signature[:-1], b"", no_time, WITNESS.private_key.sign(text.encode())):
        with pytest.raises(InvalidNote, match=r"The (co)?signature of"):
            KEY.verify(text, wrong)
    with pytest.raises(InvalidNote, match="is not one of this text"):
        find_cosignature(cosigned_note(NOTE).replace("20852163", "20852164"), KEY)
    assert (name, key_id) == (KEY.name, KEY.key_id)


def test_the_keys_of_logs_and_of_witnesses_are_not_taken_for_each_other() -> None:
    with pytest.raises(ValueError, match="not an Ed25519 key of a witness"):
        CosignatureVerifier(LOG.vkey)
    with pytest.raises(ValueError, match=r"not an Ed25519 key\."):
        Verifier(WITNESS.vkey)
    same_key = CosignatureVerifier(vkey(WITNESS.name, KEY.public_key, b"\x04"))
    signed_as_text = Signer(WITNESS.name, WITNESS.private_key).sign(parse_note(NOTE).text)
    assert find_cosignature(signed_as_text, same_key) is None


def test_aics_tlog_verifies_our_cosignatures_and_makes_such_as_we_verify() -> None:
    note = cosign_with_aics(cosigned_note(NOTE), LOG.vkey, WITNESS.vkey)

    cosignature = find_cosignature(note, CosignatureVerifier(AICS_VKEY))
    assert cosignature is not None
    assert cosignature.timestamp == 1679315147
    with pytest.raises(LogRefused):
        cosign_with_aics(cosigned_note(NOTE.replace("20852163", "1")), LOG.vkey, WITNESS.vkey)
