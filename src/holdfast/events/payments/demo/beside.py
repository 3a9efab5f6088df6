"""Demo payments in the process of the services: `holdfast up --demo-payments`."""

import socket
from pathlib import Path

import uvicorn

from holdfast.events.payments.demo.processor import SECRET, Processor
from holdfast.events.payments.demo.webhooks import Endpoint
from holdfast.kit.serving import Served
from holdfast.kit.sockets import address_of

FILE = "demo-payments.sqlite"
"""What the processor keeps, in the data directory."""


def served(listener: socket.socket, events_url: str, data_dir: Path) -> Served:
    """The processor, ready to be served on a socket.

    events_url    the address of the service that gets its webhooks
    """
    endpoints = [Endpoint(f"{events_url}/stripe/webhook", SECRET)]
    processor = Processor(address_of(listener), path=data_dir / FILE, endpoints=endpoints)
    return Served(configured(processor), listener)


def configured(processor: Processor) -> uvicorn.Config:
    """How a processor is served."""
    return uvicorn.Config(processor.app, log_level="warning", log_config=None, access_log=False, ws="none")
