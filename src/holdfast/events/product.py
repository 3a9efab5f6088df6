"""The events service, for the command line and for worker processes."""

from pathlib import Path

from holdfast import accounts
from holdfast.accounts.oauth import trusted_auth
from holdfast.events import api, resources
from holdfast.events.settings import Settings
from holdfast.kit.process import Product
from holdfast.kit.rotation import Sealed

EVENTS = Product(
    name="events",
    title="Holdfast Events",
    settings=Settings,
    resources=resources.build,
    build=api.service,
    migrations=(accounts.MIGRATIONS, Path(__file__).parent / "migrations"),
    factory="holdfast.events.product:worker",
    sealed=(
        Sealed("queue_signing_keys", "kid", "text"),
        Sealed("idempotency_answers", "id", "bytea"),
        trusted_auth.SEALED,
    ),
)
worker = EVENTS.worker
