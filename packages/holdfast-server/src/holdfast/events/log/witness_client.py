"""Asks a witness for its cosignature on a checkpoint (C2SP, tlog-witness)."""

import asyncio
import time
from collections.abc import Awaitable, Callable

import httpx2
import structlog
from prometheus_client import Counter

from holdfast.kit.security.certificates import trusted_certificates
from holdfast.kit.security.http_client import HttpClient
from holdfast_verify.formats.add_checkpoint import PATH, SIZE_MEDIA_TYPE, AddCheckpoint
from holdfast_verify.formats.cosignature import CosignatureVerifier, find_cosignature
from holdfast_verify.formats.signed_note import InvalidNote, parse_checkpoint, parse_note

TIMEOUT_SECONDS = 2.0
"""Seconds within which a witness answers, with both requests together if it is asked twice."""

MAX_PAUSE_SECONDS = 60.0
"""The most seconds for which a witness is left out that did not answer rightly. Each failure doubles them, from 1."""

MAX_ANSWER_BYTES = 65_536

Prove = Callable[[int], Awaitable[list[bytes]]]
"""Makes the proof that the checkpoint begins with so many entries."""

FAILURES = Counter("holdfast_log_witness_failures", "Requests that a witness has not cosigned.", ["witness"])

log = structlog.get_logger()


class WitnessFailure(Exception):
    """A witness did not give its cosignature. The message says why, as the end of a sentence about it."""


def http_client() -> httpx2.AsyncClient:
    """A client for the requests to all witnesses. It keeps connections."""
    return HttpClient(timeout=TIMEOUT_SECONDS, verify=trusted_certificates(), trust_env=False)


class WitnessClient:
    """A witness, and what this process knows of it."""

    def __init__(self, client: httpx2.AsyncClient, url: str, verifier: CosignatureVerifier) -> None:
        self._client = client
        self._url = f"{url}{PATH}"
        self._verifier = verifier
        self._sizes: dict[str, int] = {}
        self._failure_count = 0
        self._due_at = 0.0

    async def cosign(self, note: str, prove: Prove) -> str:
        """The line with the cosignature of a checkpoint.

        Empty: the checkpoint has it already, or the witness does not give it, or it is left out for now.
        """
        signers = {(name, key_id) for name, key_id, _ in parse_note(note).signatures}
        if (self._verifier.name, self._verifier.key_id) in signers or time.monotonic() < self._due_at:
            return ""
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                line = await self._ask(note, prove)
        except TimeoutError:
            self._fail(f"did not answer within {TIMEOUT_SECONDS:.0f} seconds")
        except httpx2.HTTPError as error:
            self._fail(f"cannot be reached: {str(error).strip() or type(error).__name__}")
        except WitnessFailure as error:
            self._fail(str(error))
        else:
            self._failure_count = 0
            return line
        return ""

    async def _ask(self, note: str, prove: Prove) -> str:
        head = parse_checkpoint(parse_note(note).text)
        old_size = min(self._sizes.get(head.origin, 0), head.size)
        status, media_type, answer = await self._post(note, old_size, prove)
        if status == 409 and media_type == SIZE_MEDIA_TYPE:
            old_size = _size(answer)
            if old_size > head.size:
                raise WitnessFailure(
                    f"has cosigned {old_size:,} entries of {head.origin}, which has {head.size:,} here: the database "
                    "was restored without `holdfast restore`, or another service signs with its key"
                )
            status, _, answer = await self._post(note, old_size, prove)
        if status != 200:
            raise WitnessFailure(f"answers {status}: {answer.strip()[:200]}")
        try:
            cosignature = find_cosignature(note + answer, self._verifier)
        except InvalidNote as error:
            raise WitnessFailure(f"answers with a false cosignature: {error}") from error
        if cosignature is None:
            raise WitnessFailure("answers without a cosignature of its key")
        self._sizes[head.origin] = head.size
        return cosignature.line

    async def _post(self, note: str, old_size: int, prove: Prove) -> tuple[int, str, str]:
        """The status, media type and text of the answer."""
        body = AddCheckpoint(old_size, await prove(old_size), note).body
        async with self._client.stream("POST", self._url, content=body) as response:
            content = bytearray()
            async for chunk in response.aiter_bytes():
                content += chunk
                if len(content) > MAX_ANSWER_BYTES:
                    raise WitnessFailure(f"answers with more than {MAX_ANSWER_BYTES:,} bytes")
            return response.status_code, response.headers.get("content-type", ""), content.decode(errors="replace")

    def _fail(self, reason: str) -> None:
        FAILURES.labels(self._verifier.name).inc()
        if not self._failure_count:
            log.warning("a witness has not cosigned the head log", witness=self._verifier.name, reason=reason)
        self._due_at = time.monotonic() + min(2.0**self._failure_count, MAX_PAUSE_SECONDS)
        self._failure_count = min(self._failure_count + 1, 10)


def _size(answer: str) -> int:
    text = answer.removesuffix("\n")
    if not text.isascii() or not text.isdecimal() or len(text) > 18:
        raise WitnessFailure("answers 409 without a size")
    return int(text)
