"""Notes signed with Ed25519 (C2SP, signed-note), and the checkpoints of logs, which are notes (tlog-checkpoint)."""

import re
from base64 import b64decode
from binascii import b2a_base64
from collections.abc import Iterable
from hashlib import sha256
from typing import NamedTuple

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from holdfast.kit.tlog.tree import HASH_BYTES

MAX_SIGNATURES = 100

_ED25519 = b"\x01"
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

    def __init__(self, name: str, private_key: Ed25519PrivateKey) -> None:
        if not re.fullmatch(_NAME, name):
            raise ValueError("The name of a key has no spaces, plus signs or control characters, and is not empty.")
        public_key = private_key.public_key().public_bytes_raw()
        self.name = name
        self._private_key = private_key
        self._key_id = _key_id(name, public_key)
        self.vkey = vkey(name, public_key)

    def sign(self, text: str) -> str:
        """The text with a signature. It raises ValueError if no note can have the text."""
        if not text.endswith("\n") or _UNSIGNABLE.search(text):
            raise ValueError("The text of a note ends with a line break and has no other control characters.")
        signature = self._private_key.sign(text.encode())
        return f"{text}\n— {self.name} {encode_base64(self._key_id + signature)}\n"


def vkey(name: str, public_key: bytes) -> str:
    """A public key of Ed25519 under a name, as text."""
    return f"{name}+{_key_id(name, public_key).hex()}+{encode_base64(_ED25519 + public_key)}"


class Verifier:
    """A public key that is trusted under its name. It raises ValueError if the text is no vkey of Ed25519."""

    def __init__(self, vkey: str) -> None:
        match = _VERIFIER_KEY.fullmatch(vkey)
        if not match:
            raise ValueError("The key is not of the form name+id+key.")
        self.name, key_id, key = match.groups()
        content = decode_base64(key)
        if len(content) != 33 or content[:1] != _ED25519:
            raise ValueError("The key is not an Ed25519 key.")
        self.key_id = _key_id(self.name, content[1:])
        if self.key_id.hex() != key_id:
            raise ValueError("The id of the key is not that of its name and key.")
        self._public_key = Ed25519PublicKey.from_public_bytes(content[1:])

    def verify(self, text: str, signature: bytes) -> None:
        """Raise InvalidNote unless the signature is one of the text with this key."""
        try:
            self._public_key.verify(signature, text.encode())
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


def open_note(note: str, verifiers: Iterable[Verifier]) -> str:
    """The text of a note, if at least one of these keys has signed it.

    It raises InvalidNote if the note is malformed, if none of the keys has signed it, or if a signature under the name
    and id of one of them is not of this key. Signatures of other keys are ignored.
    """
    body, separator, signatures = note.rpartition("\n\n")
    if not separator or not signatures.endswith("\n") or _UNSIGNABLE.search(note):
        raise InvalidNote("The note is not a text, an empty line and signatures.")
    text = body + "\n"
    lines = signatures.removesuffix("\n").split("\n")
    if len(lines) > MAX_SIGNATURES:
        raise InvalidNote(f"The note has more than {MAX_SIGNATURES} signatures.")
    trusted = {(verifier.name, verifier.key_id): verifier for verifier in verifiers}
    is_signed = False
    for line in lines:
        name, key_id, signature = _parse_signature(line)
        verifier = trusted.get((name, key_id))
        if verifier:
            verifier.verify(text, signature)
            is_signed = True
    if not is_signed:
        raise InvalidNote("The note is not signed with a trusted key.")
    return text


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


def _key_id(name: str, public_key: bytes) -> bytes:
    return sha256(name.encode() + b"\n" + _ED25519 + public_key).digest()[:4]
