"""A witness, over HTTP (C2SP, tlog-witness): it cosigns a head of a log if that continues the last one that it has
cosigned.

Its directory has its key, and for each log the last head that it has cosigned. Every file is written beside its place,
synchronized to the disk and renamed, and then the directory is synchronized. So a file is the old one or the new one,
whenever the process or the machine ends.
"""

import asyncio
import fcntl
import os
from collections import defaultdict
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import structlog
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from holdfast_verify.formats.cosignature import (
    ADD_CHECKPOINT_PATH,
    MAX_BODY_BYTES,
    SIZE_MEDIA_TYPE,
    Cosigner,
    InvalidRequest,
    parse_add_checkpoint,
)
from holdfast_verify.formats.signed_note import (
    Checkpoint,
    InvalidNote,
    Verifier,
    decode_base64,
    encode_base64,
    open_note,
    parse_checkpoint,
    parse_note,
    signature_line,
)
from holdfast_verify.formats.tree import EMPTY_ROOT, InvalidProof, verify_consistency

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


TEXT = "text/plain; charset=utf-8"

log = structlog.get_logger()


class WitnessAnswer(NamedTuple):
    """An answer over HTTP."""

    status: int
    text: str
    media_type: str = TEXT


class Witness:
    """A witness of the logs whose keys it was given. The name of a key is the origin of its log."""

    def __init__(self, directory: WitnessDirectory, keys: Iterable[Verifier]) -> None:
        self._directory = directory
        self._keys: dict[str, list[Verifier]] = defaultdict(list)
        for key in keys:
            self._keys[key.name].append(key)

    def add_checkpoint(self, body: bytes) -> WitnessAnswer:
        """Cosign the head in the body of a request, or say why not. Statuses are those of C2SP, tlog-witness.

        No two calls may run at the same time. Raises OSError if the head cannot be kept; then it is not cosigned.
        """
        try:
            request = parse_add_checkpoint(body)
            text, signatures = parse_note(request.checkpoint)
            head = parse_checkpoint(text)
        except (InvalidRequest, InvalidNote) as error:
            return _refusal(400, str(error))
        keys = self._keys.get(head.origin)
        if keys is None:
            return _refusal(404, f"This witness does not know the log {head.origin}.")
        try:
            open_note(request.checkpoint, keys)
        except InvalidNote as error:
            return _refusal(403, str(error))
        if request.old_size > head.size:
            return _refusal(400, f"The old size, {request.old_size}, is larger than the size of the checkpoint.")
        hash = origin_hash(head.origin)
        last = self._last_head(hash, head.origin)
        if request.old_size != last.size:
            return WitnessAnswer(409, f"{last.size}\n", SIZE_MEDIA_TYPE)
        ids = {key.key_id for key in keys}
        signed = f"{text}\n" + "".join(
            signature_line(name, key_id, signature)
            for name, key_id, signature in signatures
            if name == head.origin and key_id in ids
        )
        try:
            verify_consistency(last.size, head.size, last.root, head.root, request.proof)
        except InvalidProof as error:
            log.warning("a head was not proved to continue the last one", note=signed, last=last.size)
            if head != last:
                self._directory.store_refused(hash, head, signed)
            return _refusal(422, str(error))
        line = self._directory.cosigner.signature_line(text)
        # Only what is on the disk is cosigned, so after any end of the process nothing else is.
        self._directory.store(hash, signed + line)
        return WitnessAnswer(200, line)

    def read_checkpoint(self, hash: str) -> WitnessAnswer:
        """The last cosigned head of the log whose origin has this hash."""
        note = self._directory.read(hash) if hash in map(origin_hash, self._keys) else None
        return WitnessAnswer(200, note) if note else _refusal(404, "This witness has cosigned no head of such a log.")

    def _last_head(self, hash: str, origin: str) -> Checkpoint:
        """The last head of a log that was cosigned; at first the empty tree."""
        note = self._directory.read(hash)
        return parse_checkpoint(parse_note(note).text) if note else Checkpoint(origin, 0, EMPTY_ROOT)


def _refusal(status: int, sentence: str) -> WitnessAnswer:
    return WitnessAnswer(status, f"{sentence}\n")


BODY_TIMEOUT_SECONDS = 10.0
"""Seconds within which the body of a request must have come."""


def application(witness: Witness) -> Starlette:
    """The application of a witness."""

    async def add_checkpoint(request: Request) -> Response:
        body = bytearray()
        try:
            async with asyncio.timeout(BODY_TIMEOUT_SECONDS):
                async for chunk in request.stream():
                    body += chunk
                    if len(body) > MAX_BODY_BYTES:
                        return _response(WitnessAnswer(413, f"A body has at most {MAX_BODY_BYTES} bytes.\n"))
        except (TimeoutError, ClientDisconnect):
            return _response(WitnessAnswer(408, "The body did not come in time.\n"))
        # Nothing is awaited from here on, so no other request comes between the check and what is kept.
        return _response(witness.add_checkpoint(bytes(body)))

    async def read_checkpoint(request: Request) -> Response:
        return _response(witness.read_checkpoint(request.path_params["hash"]))

    return Starlette(
        routes=[
            Route(ADD_CHECKPOINT_PATH, add_checkpoint, methods=["POST"]),
            Route("/{hash}/checkpoint", read_checkpoint),
        ]
    )


def _response(answer: WitnessAnswer) -> Response:
    # As bytes: for a text, Starlette would add a charset to the media type.
    return Response(answer.text.encode(), answer.status, {"content-type": answer.media_type})
