"""Demo payments in the process of the services: `holdfast up`."""

import socket
from pathlib import Path

from holdfast.events.payments.demo.processor import SECRET, Processor
from holdfast.events.payments.demo.webhooks import Endpoint
from holdfast.kit.sockets import address_of

FILE = "demo-payments.sqlite"
"""What the processor keeps, in the data directory."""


def processor(listener: socket.socket, events_url: str, data_dir: Path) -> Processor:
    """The processor that will be served on a socket.

    events_url    the address of the service that gets its webhooks
    """
    endpoints = [Endpoint(f"{events_url}/stripe/webhook", SECRET)]
    return Processor(address_of(listener), path=data_dir / FILE, endpoints=endpoints)
