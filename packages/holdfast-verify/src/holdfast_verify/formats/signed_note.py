"""Notes signed with Ed25519 (C2SP, signed-note), the checkpoints of logs, which are notes (tlog-checkpoint), and the
names of logs.
"""

import re
from base64 import b64decode
from binascii import b2a_base64
from collections.abc import Iterable
from hashlib import sha256
from typing import Literal, NamedTuple

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from holdfast_verify.formats.tree import HASH_BYTES

MAX_SIGNATURES = 100

ED25519 = b"\x01"
"""The type of signatures of a text alone, as vkeys and ids of keys have it."""

_NAME = r"[^\s+\x00-\x1f\ud800-\udfff]+"
_SIGNATURE_LINE = re.compile(rf"— ({_NAME}) (\S+)")
_VERIFIER_KEY = re.compile(rf"({_NAME})\+([0-9a-f]{{8}})\+(\S+)")
_CHECKPOINT = re.compile(r"([^\n]+)\n(0|[1-9][0-9]{0,17})\n([^\n]+)\n(?:[^\n]+\n)*")
_UNSIGNABLE = re.compile(r"[\x00-\x09\x0b-\x1f\ud800-\udfff]")


class InvalidNote(ValueError):
    """A note is malformed, or is not signed as it should. The message is a sentence."""


class Signer:
    """A name and the private key that signs under it. `vkey` is the text that verifiers need of it.

    It raises ValueError if the name is empty or has a space, a plus sign or a control character.
    """

    signature_type = ED25519

    def __init__(self, name: str, private_key: Ed25519PrivateKey) -> None:
        if not re.fullmatch(_NAME, name):
            raise ValueError("The name of a key has no spaces, plus signs or control characters, and is not empty.")
        public_key = private_key.public_key().public_bytes_raw()
        self.name = name
        self.private_key = private_key
        self.vkey = vkey(name, public_key, self.signature_type)
        self._key_id = _key_id(name, self.signature_type + public_key)

    def sign(self, text: str) -> str:
        """The text with a signature. It raises ValueError if no note can have the text."""
        return f"{text}\n{self.signature_line(text)}"

    def signature_line(self, text: str) -> str:
        """The line with the signature of a text alone. It raises ValueError as `sign` does."""
        if not text.endswith("\n") or _UNSIGNABLE.search(text):
            raise ValueError("The text of a note ends with a line break and has no other control characters.")
        return signature_line(self.name, self._key_id, self._signature(text))

    def _signature(self, text: str) -> bytes:
        return self.private_key.sign(text.encode())


def vkey(name: str, public_key: bytes, signature_type: bytes = ED25519) -> str:
    """A public key of Ed25519 under a name, as text."""
    return f"{name}+{_key_id(name, signature_type + public_key).hex()}+{encode_base64(signature_type + public_key)}"


class Verifier:
    """A public key that is trusted under its name. It raises ValueError if the text is no vkey of Ed25519."""

    signature_type = ED25519
    type_name = "an Ed25519 key"

    def __init__(self, vkey: str) -> None:
        match = _VERIFIER_KEY.fullmatch(vkey)
        if not match:
            raise ValueError("The key is not of the form name+id+key.")
        self.name, key_id, key = match.groups()
        content = decode_base64(key)
        if len(content) != 33 or content[:1] != self.signature_type:
            raise ValueError(f"The key is not {self.type_name}.")
        self.key_id = _key_id(self.name, content)
        if self.key_id.hex() != key_id:
            raise ValueError("The id of the key is not that of its name and key.")
        self.public_key = content[1:]

    def verify(self, text: str, signature: bytes) -> None:
        """Raise InvalidNote unless the signature is one of the text with this key."""
        self._verify_signature(text, signature)

    def _verify_signature(self, text: str, signature: bytes) -> None:
        try:
            Ed25519PublicKey.from_public_bytes(self.public_key).verify(signature, text.encode())
        except InvalidSignature:
            raise InvalidNote(f"The signature of {self.name} is not one of this text.") from None


class Checkpoint(NamedTuple):
    """The head of a log: its origin, which names the log, the number of its leaves, and the root of their tree."""

    origin: str
    size: int
    root: bytes

    @property
    def text(self) -> str:
        """The text that is signed."""
        return f"{self.origin}\n{self.size}\n{encode_base64(self.root)}\n"


def signature_line(name: str, key_id: bytes, signature: bytes) -> str:
    """A signature as a line of a note."""
    return f"— {name} {encode_base64(key_id + signature)}\n"


class ParsedNote(NamedTuple):
    """A note of which nothing is verified: its text; of each signature the name, the id of the key, and its bytes."""

    text: str
    signatures: list[tuple[str, bytes, bytes]]


def parse_note(note: str) -> ParsedNote:
    """The parts of a note. It raises InvalidNote if the note is malformed."""
    body, separator, signatures = note.rpartition("\n\n")
    if not separator or not signatures.endswith("\n") or _UNSIGNABLE.search(note):
        raise InvalidNote("The note is not a text, an empty line and signatures.")
    lines = signatures.removesuffix("\n").split("\n")
    if len(lines) > MAX_SIGNATURES:
        raise InvalidNote(f"The note has more than {MAX_SIGNATURES} signatures.")
    return ParsedNote(body + "\n", [_parse_signature(line) for line in lines])


def open_note(note: str, verifiers: Iterable[Verifier]) -> str:
    """The text of a note, if at least one of these keys has signed it.

    It raises InvalidNote if the note is malformed, if none of the keys has signed it, or if a signature under the name
    and id of one of them is not of this key. Signatures of other keys are ignored.
    """
    parsed = parse_note(note)
    trusted = {(verifier.name, verifier.key_id): verifier for verifier in verifiers}
    is_signed = False
    for name, key_id, signature in parsed.signatures:
        verifier = trusted.get((name, key_id))
        if verifier:
            verifier.verify(parsed.text, signature)
            is_signed = True
    if not is_signed:
        raise InvalidNote("The note is not signed with a trusted key.")
    return parsed.text


def parse_checkpoint(text: str) -> Checkpoint:
    """The checkpoint that is the text of a note; further lines are ignored. It raises InvalidNote if it is none."""
    match = _CHECKPOINT.fullmatch(text)
    try:
        root = decode_base64(match[3]) if match else b""
    except ValueError:
        root = b""
    if not match or len(root) != HASH_BYTES:
        raise InvalidNote("The text is not the checkpoint of a log: its origin, size and root, each in a line.")
    return Checkpoint(match[1], int(match[2]), root)


def encode_base64(content: bytes) -> str:
    """The encoding of RFC 4648, section 4."""
    return b2a_base64(content, newline=False).decode()


def decode_base64(text: str) -> bytes:
    """The bytes of which a text is the encoding. It raises ValueError if it is the exact encoding of none."""
    content = b64decode(text, validate=True)
    if encode_base64(content) != text:
        raise ValueError("The text is not in base64.")
    return content


def _parse_signature(line: str) -> tuple[str, bytes, bytes]:
    """The name, the id of the key and the signature of a signature line."""
    match = _SIGNATURE_LINE.fullmatch(line)
    try:
        content = decode_base64(match[2]) if match else b""
    except ValueError:
        content = b""
    if not match or len(content) < 5:
        raise InvalidNote("A line of the note below its empty line is not a signature.")
    return match[1], content[:4], content[4:]


def _key_id(name: str, typed_key: bytes) -> bytes:
    """The id of a key: of its name, and of its type with the public key after it."""
    return sha256(name.encode() + b"\n" + typed_key).digest()[:4]


Noun = Literal["events", "queues", "heads"]
"""What has a log, as addresses say it. There is one log of heads, the head log."""


class LogName(NamedTuple):
    """Which log is meant.

    noun         what the log is of
    id           the id of the event or queue; 0 for the head log
    generation   the generation of its log, from 1
    """

    noun: Noun
    id: int
    generation: int = 1

    @property
    def subject(self) -> str:
        """The event or queue, as commitments and sentences say it: `event 7`."""
        return "all heads" if self.noun == "heads" else f"{self.noun[:-1]} {self.id}"

    @property
    def path(self) -> str:
        """The path of the addresses of the log; the first generation has none of its own."""
        path = "heads" if self.noun == "heads" else f"{self.noun}/{self.id}"
        return f"/log/{path}" + (f"/{self.generation}" if self.generation > 1 else "")

    def origin(self, base_url: str) -> str:
        """What the log calls itself: its address without a scheme."""
        return base_url.partition("://")[2] + self.path
