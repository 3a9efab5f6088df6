"""What a witness answers, over HTTP (C2SP, tlog-witness): it cosigns a head of a log if that continues the last one
that it has cosigned.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

import structlog
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from holdfast_verify.formats.cosignature import (
    ADD_CHECKPOINT_PATH,
    MAX_BODY_BYTES,
    SIZE_MEDIA_TYPE,
    InvalidRequest,
    parse_add_checkpoint,
)
from holdfast_verify.formats.signed_note import (
    Checkpoint,
    InvalidNote,
    Verifier,
    open_note,
    parse_checkpoint,
    parse_note,
    signature_line,
)
from holdfast_verify.formats.tree import EMPTY_ROOT, InvalidProof, verify_consistency
from holdfast_verify.witness.directory import WitnessDirectory, origin_hash

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
