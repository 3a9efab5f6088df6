"""The key of a log: given by whoever checks, or else served by the log itself."""

from hashlib import sha256
from typing import NamedTuple

from holdfast.commands.verification.log_source import LogSource, VerificationError
from holdfast.kit.tlog.signed_note import Verifier, decode_base64, encode_base64, open_note

ED25519 = b"\x01"
"""The type of the signatures (C2SP, signed-note)."""


class BadSignature(VerificationError):
    """A note is not signed by the key."""


class TrustedKey(NamedTuple):
    """A public key. One key signs all logs of a service, each under the name of its log.

    is_given    whether the key was given; else the log itself has served it
    """

    public_key: bytes
    is_given: bool

    def vkey(self, name: str) -> str:
        """The key under a name, as text (C2SP, signed-note)."""
        material = ED25519 + self.public_key
        key_id = sha256(name.encode() + b"\n" + material).digest()[:4]
        return f"{name}+{key_id.hex()}+{encode_base64(material)}"

    def open_note(self, note: str, name: str, subject: str) -> str:
        """The text of a note that this key has signed under a name. Raises `VerificationError`.

        subject    what the note is, for the message
        """
        try:
            return open_note(note, [Verifier(self.vkey(name))])
        except ValueError as error:
            raise BadSignature(f"{subject} is not signed by the key: {error}") from error


def parse_key(vkey: str, *, is_given: bool = True) -> TrustedKey:
    """The key of a text such as `events.example.com/log/events/7+530d903a+AekyeR…`. Raises `VerificationError`."""
    try:
        Verifier(vkey.strip())
    except ValueError as error:
        raise VerificationError(f"The key cannot be used: {error}") from error
    return TrustedKey(decode_base64(vkey.strip().split("+", 2)[2])[1:], is_given)


async def key_of(source: LogSource | None, given: str | None) -> TrustedKey:
    """The given key; else the one that the log serves. Raises `VerificationError`."""
    if given:
        return parse_key(given)
    if source is None:
        raise VerificationError("Without the log, a key must be given: --key.")
    return parse_key((await source.get("key")).decode(errors="replace"), is_given=False)
