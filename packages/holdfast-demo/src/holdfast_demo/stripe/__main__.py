"""`python -m holdfast_demo.stripe`: demo payments as a process of their own, until a signal stops it."""

from pathlib import Path
from typing import Annotated

import typer

from holdfast.kit.http.sockets import address_of, listen_all
from holdfast.kit.process.serving import serve
from holdfast_demo.shared.serving import guarded_server
from holdfast_demo.stripe import testing
from holdfast_demo.stripe.processor import StripeDouble, load_or_create_secrets, new_secrets
from holdfast_demo.stripe.webhooks import Endpoint


def run(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 picks a free one.")] = 8003,
    key: Annotated[str, typer.Option(help="The secret key that requests have to name; without it, a random one.")] = "",
    file: Annotated[Path | None, typer.Option(help="Keep everything in this file; without it, in memory.")] = None,
    webhook_url: Annotated[str, typer.Option(help="Where webhooks are sent to.")] = "",
    webhook_secret: Annotated[str, typer.Option(help="What webhooks are signed with; without it, a random one.")] = "",
    for_tests: Annotated[bool, typer.Option(help="Serve the API for tests, below /_test/.")] = False,
) -> None:
    """A payment processor for demonstrations and tests. No money moves."""
    (listener,) = listen_all(host, port)
    random = load_or_create_secrets(file) if file else new_secrets()
    endpoints = [Endpoint(webhook_url, webhook_secret or random.webhooks)] if webhook_url else []
    processor = StripeDouble(address_of(listener), key=key or random.api, path=file, endpoints=endpoints)
    if for_tests:
        processor.app.router.routes[:0] = testing.routes(processor)
    typer.echo(f"Demo payments  {processor.address}")
    if not key:
        typer.echo(f"  secret key   {random.api}")
    if webhook_url and not webhook_secret:
        typer.echo(f"  webhooks     {random.webhooks}")
    try:
        serve([guarded_server(processor.app, listener)])
    finally:
        processor.close()


if __name__ == "__main__":
    typer.run(run)
