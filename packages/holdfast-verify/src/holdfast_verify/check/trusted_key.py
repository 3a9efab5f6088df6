"""The key of a log: given by the user of the check, or else served by the log itself."""

from typing import NamedTuple

from holdfast_verify.check.log_source import LogSource, VerificationError
from holdfast_verify.formats.signed_note import Verifier, open_note, parse_note, vkey

MAX_KEYS = 20


class BadSignature(VerificationError):
    """A note is not signed by the key."""


class TrustedKey(NamedTuple):
    """Public keys, of which one must have signed. They sign all logs of a service, each under the name of its log.

    is_pinned    whether the person who checks named the key; else the log itself has served the keys
    """

    public_keys: tuple[bytes, ...]
    is_pinned: bool

    def open_note(self, note: str, name: str, subject: str) -> str:
        """The text of a note that this key has signed under a name. Raises `VerificationError`.

        subject    what the note is, for the message
        """
        try:
            return open_note(note, [Verifier(vkey(name, key)) for key in self.public_keys])
        except ValueError as error:
            raise BadSignature(f"{subject} is not signed by the key: {error}") from error

    def has_signed(self, note: str, name: str) -> bool:
        """Whether a signature of a note claims to be of this key, under a name. It may be wrong."""
        try:
            ids = {Verifier(vkey(name, key)).key_id for key in self.public_keys}
        except ValueError:  # no key can have the name
            return False
        return any(signer == name and key_id in ids for signer, key_id, _ in parse_note(note).signatures)


def parse_keys(vkeys: str, *, is_pinned: bool = True) -> TrustedKey:
    """The keys of lines such as `events.example.com/log/events/7+530d903a+AekyeR…`. Raises `VerificationError`."""
    lines = vkeys.split()
    try:
        keys = tuple(Verifier(line).public_key for line in lines)
    except ValueError as error:
        raise VerificationError(f"The key cannot be used: {error}") from error
    if not 1 <= len(lines) <= MAX_KEYS:
        raise VerificationError(f"From one to {MAX_KEYS} keys are needed, each in a line.")
    return TrustedKey(keys, is_pinned)


async def key_of(source: LogSource | None, vkeys: str | None) -> TrustedKey:
    """The keys of a text; without one those that the log serves. Raises `VerificationError`."""
    if vkeys:
        return parse_keys(vkeys)
    if source is None:
        raise VerificationError("Without the log, a key must be given: --key.")
    return parse_keys((await source.get("key")).decode(errors="replace"), is_pinned=False)
