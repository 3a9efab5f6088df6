"""`python -m holdfast.events.payments.demo`: demo payments as a process of their own, until a signal stops it."""

from pathlib import Path
from typing import Annotated

import typer

from holdfast.events.payments.demo import testing
from holdfast.events.payments.demo.processor import KEY, SECRET, Processor
from holdfast.events.payments.demo.webhooks import Endpoint
from holdfast.kit.doubles.serving import served
from holdfast.kit.serving import serve
from holdfast.kit.sockets import address_of, listen_all


def run(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 picks a free one.")] = 8003,
    key: Annotated[str, typer.Option(help="The secret key that requests have to name.")] = KEY,
    file: Annotated[Path | None, typer.Option(help="Keep everything in this file; without it, in memory.")] = None,
    webhook_url: Annotated[str, typer.Option(help="Where webhooks are sent to.")] = "",
    webhook_secret: Annotated[str, typer.Option(help="What webhooks are signed with.")] = SECRET,
    for_tests: Annotated[bool, typer.Option(help="Serve the API for tests, below /_test/.")] = False,
) -> None:
    """A payment processor for demonstrations and tests. No money moves."""
    (listener,) = listen_all(host, port)
    endpoints = [Endpoint(webhook_url, webhook_secret)] if webhook_url else []
    processor = Processor(address_of(listener), key=key, path=file, endpoints=endpoints)
    if for_tests:
        processor.app.router.routes[:0] = testing.routes(processor)
    typer.echo(f"Demo payments  {processor.address}")
    try:
        serve([served(processor.app, listener)])
    finally:
        processor.close()


if __name__ == "__main__":
    typer.run(run)
