"""Demo payments in the process of the services: `holdfast up`."""

import socket
from pathlib import Path

from holdfast.kit.environment.settings import DEMO_PAYMENTS_FILE
from holdfast.kit.http.sockets import address_of
from holdfast_demo.stripe.processor import ProcessorSecrets, StripeDouble, load_or_create_secrets
from holdfast_demo.stripe.webhooks import Endpoint


def secrets_in(data_dir: Path) -> ProcessorSecrets:
    """The secrets of the processor."""
    return load_or_create_secrets(data_dir / DEMO_PAYMENTS_FILE)


def processor(listener: socket.socket, events_url: str, data_dir: Path) -> StripeDouble:
    """The processor that will be served on a socket.

    events_url    the address of the service that gets its webhooks
    """
    ours = secrets_in(data_dir)
    endpoints = [Endpoint(f"{events_url}/stripe/webhook", ours.webhooks)]
    return StripeDouble(address_of(listener), key=ours.api, path=data_dir / DEMO_PAYMENTS_FILE, endpoints=endpoints)
