"""Demo shops in the process of the services: `holdfast up`."""

import socket
from pathlib import Path

from holdfast.kit.http.sockets import address_of
from holdfast.kit.process.serving import ServedService
from holdfast_demo.shared import serving
from holdfast_demo.shopify import CLIENT_ID
from holdfast_demo.shopify.application import ShopifyDouble
from holdfast_demo.shopify.platform_state import App

FILE = "demo-shops.sqlite"
"""The database of the platform, in the data directory."""


def served(listener: socket.socket, inventory_url: str, secret: str, data_dir: Path, domain: str) -> ServedService:
    """A server for the platform on a socket.

    inventory_url    the address of the service that its shops can install
    secret           the client secret of that service
    domain           the shop that exists from the start
    """
    double = ShopifyDouble(address_of(listener), App(CLIENT_ID, secret, inventory_url), path=data_dir / FILE)
    double.begin(domain, with_more=True)
    return serving.guarded_server(double.app, listener)
