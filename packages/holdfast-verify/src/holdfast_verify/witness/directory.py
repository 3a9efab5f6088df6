"""The directory of a witness: its key, and for each log the last head that it has cosigned.

Every file is written beside its place, synchronized to the disk and renamed, and then the directory is synchronized. So
a file is the old one or the new one, whenever the process or the machine ends.
"""

import fcntl
import os
from hashlib import sha256
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from holdfast_verify.formats.cosignature import Cosigner
from holdfast_verify.formats.signed_note import Checkpoint, decode_base64, encode_base64

CHECKPOINT = "checkpoint"
REFUSED = "refused"
"""The endings of files: the last cosigned head of a log, and heads that were not proved to continue one."""

MAX_REFUSED_HEADS = 1000
"""The most refused heads of a log that are kept. Further ones are only in the log of the process."""


def origin_hash(origin: str) -> str:
    """What stands for a log in paths and file names: SHA-256 of its origin, 64 hexadecimal digits."""
    return sha256(origin.encode()).hexdigest()


class WitnessError(Exception):
    """Why a witness cannot start, in a sentence for who runs it."""


class WitnessDirectory:
    """The directory, which no other process uses while this one lives. It is made if it is missing.

    Raises `WitnessError` if another process uses it, or it is of another witness.
    """

    def __init__(self, path: Path, name: str) -> None:
        self._path = path
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = os.open(path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise WitnessError(f"The directory {path} cannot be used: {error.strerror}.") from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(self._lock)
            raise WitnessError(f"Another witness uses the directory {path}. Stop it first.") from error
        try:
            self.cosigner = self._read_key(name) if (path / "key").exists() else self._make_key(name)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let another process use the directory."""
        os.close(self._lock)

    def read(self, hash: str) -> str | None:
        """The last head of a log that was cosigned, as a signed note; None: there is none.

        hash    the hash of its origin
        """
        file = self._path / f"{hash}.{CHECKPOINT}"
        return file.read_text(encoding="utf-8") if file.exists() else None

    def store(self, hash: str, note: str) -> None:
        """Keep a head that is to be cosigned. It is on the disk when this returns. Raises OSError."""
        self._write(f"{hash}.{CHECKPOINT}", note)

    def store_refused(self, hash: str, head: Checkpoint, note: str) -> None:
        """Keep a head that was not proved to continue the cosigned one. Both together may prove a fork of the log.

        Every client can send a head with a wrong proof, so a head does not replace another one.
        """
        if len([*self._path.glob(f"{hash}.*.{REFUSED}")]) < MAX_REFUSED_HEADS:
            self._write(f"{hash}.{head.size}.{head.root.hex()[:16]}.{REFUSED}", note)

    def _read_key(self, name: str) -> Cosigner:
        try:
            stored_name, key = (self._path / "key").read_text(encoding="utf-8").split()
            cosigner = Cosigner(stored_name, Ed25519PrivateKey.from_private_bytes(decode_base64(key)))
        except ValueError as error:
            raise WitnessError(f"The file {self._path / 'key'} is not the key of a witness.") from error
        if cosigner.name != name:
            raise WitnessError(f"The directory {self._path} is of the witness {stored_name}, not of {name}.")
        return cosigner

    def _make_key(self, name: str) -> Cosigner:
        if any(self._path.glob(f"*.{CHECKPOINT}")):
            # Another key could cosign again, which would be right, but readers know the old one.
            raise WitnessError(
                f"The key of the witness is missing from {self._path}. Restore it, or use another directory."
            )
        key = Ed25519PrivateKey.generate()
        try:
            cosigner = Cosigner(name, key)
        except ValueError as error:
            raise WitnessError(f"The name of the witness cannot be used. {error}") from error
        self._write("key", f"{name}\n{encode_base64(key.private_bytes_raw())}\n")
        return cosigner

    def _write(self, name: str, content: str) -> None:
        new = self._path / f"{name}.new"
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        new.replace(self._path / name)
        directory = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
