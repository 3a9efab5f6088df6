"""`holdfast inventory platform-double`: demo shops as a process of their own, until a signal stops it."""

from pathlib import Path
from typing import Annotated

import typer

from holdfast.doubles.shopify import CLIENT_ID, MISSING_EXTRA, is_installed


def demo_shops(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 picks a free one.")] = 8004,
    app_address: Annotated[str, typer.Option(help="Where the inventory service is served.")] = "http://127.0.0.1:8001",
    client_id: Annotated[str, typer.Option(help="The app's client id.")] = CLIENT_ID,
    client_secret: Annotated[str, typer.Option(help="The app's client secret; without it, a random one.")] = "",
    file: Annotated[Path | None, typer.Option(help="Keep everything in this file; without it, in memory.")] = None,
    shop: Annotated[list[str] | None, typer.Option(help="A shop to begin with; may be given several times.")] = None,
    for_tests: Annotated[bool, typer.Option(help="Serve the API for tests, below /_test/.")] = False,
) -> None:
    """Serve demo shops to try the app at.

    They are a storefront platform of our own, where nothing is sold.
    """
    from holdfast.kit.contract.problems import CannotStart

    if not is_installed():
        raise CannotStart(MISSING_EXTRA)

    from secrets import token_urlsafe

    from holdfast.doubles.shared.serving import guarded_server
    from holdfast.doubles.shopify import testing
    from holdfast.doubles.shopify.application import ShopifyDouble
    from holdfast.doubles.shopify.platform_state import App
    from holdfast.kit.http.sockets import address_of, listen_all
    from holdfast.kit.process.serving import serve
    from holdfast.kit.security.secrets import secret

    (listener,) = listen_all(host, port)
    random = not client_secret
    if random:
        client_secret = secret("", file.with_suffix(".secret")).value.decode() if file else token_urlsafe(32)
    double = ShopifyDouble(address_of(listener), App(client_id, client_secret, app_address.rstrip("/")), path=file)
    for domain in shop or ():
        double.begin(domain)
    if for_tests:
        double.app.router.routes[:0] = testing.routes(double)
    typer.echo(f"Demo shops  {double.address}")
    if random:
        typer.echo(f"  INVENTORY_CLIENT_SECRET={client_secret}")
    try:
        serve([guarded_server(double.app, listener)])
    finally:
        double.close()
