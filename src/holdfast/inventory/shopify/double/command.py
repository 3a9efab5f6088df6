"""`holdfast inventory platform-double`: demo shops as a process of their own, until a signal stops it."""

from pathlib import Path
from typing import Annotated

import typer

from holdfast.inventory.shopify.double import CLIENT_ID, CLIENT_SECRET


def demo_shops(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 picks a free one.")] = 8004,
    app_address: Annotated[str, typer.Option(help="Where the inventory service is served.")] = "http://127.0.0.1:8001",
    client_id: Annotated[str, typer.Option(help="The app's client id.")] = CLIENT_ID,
    client_secret: Annotated[str, typer.Option(help="The app's client secret.")] = CLIENT_SECRET,
    file: Annotated[Path | None, typer.Option(help="Keep everything in this file; without it, in memory.")] = None,
    shop: Annotated[list[str] | None, typer.Option(help="A shop to begin with; may be given several times.")] = None,
    for_tests: Annotated[bool, typer.Option(help="Serve the API for tests, below /_test/.")] = False,
) -> None:
    """Serve a storefront platform of our own, with shops to try the app at. Nothing is sold."""
    from holdfast.inventory.shopify.double import testing
    from holdfast.inventory.shopify.double.whole import Double
    from holdfast.inventory.shopify.double.world import App
    from holdfast.kit.doubles.serving import served
    from holdfast.kit.serving import serve
    from holdfast.kit.sockets import address_of, listen_all

    (listener,) = listen_all(host, port)
    double = Double(address_of(listener), App(client_id, client_secret, app_address.rstrip("/")), path=file)
    for domain in shop or ():
        double.begin(domain)
    if for_tests:
        double.app.router.routes[:0] = testing.routes(double)
    typer.echo(f"Demo shops  {double.address}")
    try:
        serve([served(double.app, listener)])
    finally:
        double.close()
