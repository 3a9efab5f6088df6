"""Demo shops in the process of the services: `holdfast up`."""

import socket
from pathlib import Path

from holdfast.inventory.shopify.double import CLIENT_ID
from holdfast.inventory.shopify.double.whole import Double
from holdfast.inventory.shopify.double.world import App
from holdfast.kit.doubles import serving
from holdfast.kit.serving import Served
from holdfast.kit.sockets import address_of

FILE = "demo-shops.sqlite"
"""What the platform keeps, in the data directory."""


def served(listener: socket.socket, inventory_url: str, secret: str, data_dir: Path, domain: str) -> Served:
    """The platform, ready to be served on a socket.

    inventory_url    the address of the service that its shops can install
    secret           the client secret of that service
    domain           the shop that is there from the beginning
    """
    double = Double(address_of(listener), App(CLIENT_ID, secret, inventory_url), path=data_dir / FILE)
    double.begin(domain)
    return serving.served(double.app, listener)
