"""Signed notes and checkpoints: C2SP's examples, and whatever is not exactly such a note."""

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast_verify.formats.signed_note import (
    Checkpoint,
    InvalidNote,
    Signer,
    Verifier,
    encode_base64,
    open_note,
    parse_checkpoint,
)

EXAMPLE_KEY = Verifier("example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k")
EXAMPLE = """This is an example message.

— example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=
"""
"""The example of C2SP, signed-note, "Verifier keys"."""

EXAMPLE_CHECKPOINT = "example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n"
"""The example of C2SP, tlog-checkpoint."""

SIGNER = Signer("host/log/events/7", Ed25519PrivateKey.from_private_bytes(bytes(32)))
KEY = Verifier(SIGNER.vkey)
OTHER_KEY = Verifier(Signer("other", Ed25519PrivateKey.from_private_bytes(bytes([1] * 32))).vkey)
NOTE = SIGNER.sign("One\n\nTwo\n")
SIGNATURE = NOTE.rpartition("\n\n")[2]


def test_the_example_note_of_the_specification_is_opened() -> None:
    assert open_note(EXAMPLE, [OTHER_KEY, EXAMPLE_KEY]) == "This is an example message.\n"


@settings(max_examples=50)
@given(st.text("a \n\u2014\u00e9\u0085\u2028\U0001f3ab", max_size=30))
def test_a_signed_text_opens_with_its_key_alone(text: str) -> None:
    note = SIGNER.sign(text + "\n")

    assert open_note(note, [OTHER_KEY, KEY]) == text + "\n"
    with pytest.raises(InvalidNote, match=r"The note is not signed with a trusted key\."):
        open_note(note, [OTHER_KEY])


def test_a_note_opens_with_the_signature_of_any_of_its_keys_and_others_are_ignored() -> None:
    unknown = f"— cosigner {encode_base64(bytes(2424))}\n"

    assert open_note(NOTE + unknown, [KEY]) == "One\n\nTwo\n"
    assert open_note(NOTE.replace(SIGNATURE, unknown * 99 + SIGNATURE), [KEY]) == "One\n\nTwo\n"


def test_a_note_with_any_character_altered_is_refused() -> None:
    for at in range(len(NOTE)):
        for character in {"", "A", "\n", "\r", "\0", "é", "\ud800"} - {NOTE[at]}:
            with pytest.raises(InvalidNote, match=r"^[A-Z].*\.$"):
                open_note(NOTE[:at] + character + NOTE[at + 1 :], [KEY])


@pytest.mark.parametrize(
    ("note", "sentence"),
    [
        ("", "The note is not a text, an empty line and signatures."),
        ("One\n", "The note is not a text, an empty line and signatures."),
        ("One\n\n", "The note is not a text, an empty line and signatures."),
        (SIGNATURE, "The note is not a text, an empty line and signatures."),
        (NOTE + "\n", "The note is not a text, an empty line and signatures."),
        (NOTE + "signed\n", "A line of the note below its empty line is not a signature."),
        (NOTE + "— name AAAA\n", "A line of the note below its empty line is not a signature."),
        (NOTE + "— name AAAAAAB=\n", "A line of the note below its empty line is not a signature."),
        (NOTE + "— na+me AAAAAAA=\n", "A line of the note below its empty line is not a signature."),
        (NOTE + SIGNATURE * 100, "The note has more than 100 signatures."),
        (NOTE.replace("One", "Three"), "The signature of host/log/events/7 is not one of this text."),
        (NOTE.replace("host/log/events/7", "host/log/events/8"), "The note is not signed with a trusted key."),
    ],
)
def test_an_invalid_signed_note_is_refused_with_a_sentence(note: str, sentence: str) -> None:
    with pytest.raises(InvalidNote) as refusal:
        open_note(note, [KEY])

    assert str(refusal.value) == sentence


@pytest.mark.parametrize("text", ["", "no line break", "tabs\t\n", "\r\n", "half a character \ud800\n"])
def test_an_invalid_text_of_a_note_is_not_signed(text: str) -> None:
    with pytest.raises(ValueError, match="The text of a note ends with a line break"):
        SIGNER.sign(text)


@pytest.mark.parametrize("name", ["", "two words", "a+b", "line\n", "a\u2003b"])
def test_a_name_that_no_key_can_have_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="The name of a key has no spaces"):
        Signer(name, Ed25519PrivateKey.from_private_bytes(bytes(32)))


@pytest.mark.parametrize(
    "vkey",
    [
        "",
        "name",
        SIGNER.vkey + "\n",
        SIGNER.vkey[:-1],
        SIGNER.vkey.replace("events/7", "events/8"),
        SIGNER.vkey.replace("+", " ", 1),
        f"name+00000000+{encode_base64(bytes(33))}",
        f"name+00000000+{encode_base64(bytes([1] * 32))}",
        f"name+00000000+{encode_base64(bytes([4] * 33))}",
        "name+00000000+é",
    ],
)
def test_an_invalid_verifier_key_is_refused(vkey: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        Verifier(vkey)


def test_a_checkpoint_has_the_text_of_the_specification() -> None:
    checkpoint = parse_checkpoint(EXAMPLE_CHECKPOINT)

    assert (checkpoint.origin, checkpoint.size) == ("example.com/behind-the-sofa", 20852163)
    assert checkpoint.text == EXAMPLE_CHECKPOINT
    assert parse_checkpoint(EXAMPLE_CHECKPOINT + "an extension\n") == checkpoint
    assert parse_checkpoint(Checkpoint("origin", 0, bytes(32)).text) == ("origin", 0, bytes(32))


@pytest.mark.parametrize(
    "text",
    [
        "",
        EXAMPLE_CHECKPOINT[:-1],
        EXAMPLE_CHECKPOINT + "\n",
        "\n" + EXAMPLE_CHECKPOINT,
        EXAMPLE_CHECKPOINT.replace("20852163", "020852163"),
        EXAMPLE_CHECKPOINT.replace("20852163", "-1"),
        EXAMPLE_CHECKPOINT.replace("20852163", "1" * 19),
        EXAMPLE_CHECKPOINT.replace("20852163", "\u0661"),
        EXAMPLE_CHECKPOINT.replace("2I=", "2J="),
        EXAMPLE_CHECKPOINT.replace("CsUY", ""),
    ],
)
def test_an_invalid_checkpoint_is_refused(text: str) -> None:
    with pytest.raises(InvalidNote, match=r"The text is not the checkpoint of a log: its origin, size and root"):
        parse_checkpoint(text)
