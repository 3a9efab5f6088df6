"""The HTTP interface of a witness (C2SP, tlog-witness)."""

import asyncio

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from holdfast_verify.formats.add_checkpoint import MAX_BODY_BYTES, PATH
from holdfast_verify.witness.cosigning import Witness, WitnessAnswer

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
            Route(PATH, add_checkpoint, methods=["POST"]),
            Route("/{hash}/checkpoint", read_checkpoint),
        ]
    )


def _response(answer: WitnessAnswer) -> Response:
    # As bytes: for a text, Starlette would add a charset to the media type.
    return Response(answer.text.encode(), answer.status, {"content-type": answer.media_type})
