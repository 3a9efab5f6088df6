"""A witness at a partner, to which a service publishes its heads."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from holdfast_verify.formats.cosignature import CosignatureVerifier
from holdfast_verify.formats.signed_note import Verifier
from holdfast_verify.witness import Witness, WitnessDirectory
from tests.helpers.serving import bind_port, serve_app

ScriptedAnswer = Callable[[Request], Awaitable[Response]]


class OutsideWitness:
    """A witness at a partner: one of ours, until it is told to answer otherwise.

    answer      what it answers instead
    requests    the bodies that it was sent
    """

    def __init__(self, path: Path, name: str, log_key: str) -> None:
        self.directory = WitnessDirectory(path / name, f"{name}.example.org")
        self.verifier = CosignatureVerifier(self.directory.cosigner.vkey)
        self.answer: ScriptedAnswer | None = None
        self.requests: list[bytes] = []
        self._witness = Witness(self.directory, [Verifier(log_key)])

    @asynccontextmanager
    async def serve(self) -> AsyncGenerator[str]:
        async def add_checkpoint(request: Request) -> Response:
            body = await request.body()
            self.requests.append(body)
            if self.answer:
                return await self.answer(request)
            answer = self._witness.add_checkpoint(body)
            return Response(answer.text.encode(), answer.status, {"content-type": answer.media_type})

        port = bind_port()
        async with serve_app(Starlette(routes=[Route("/add-checkpoint", add_checkpoint, methods=["POST"])]), port):
            yield port.url
