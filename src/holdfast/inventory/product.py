"""The inventory service as the command line and worker processes know it."""

from pathlib import Path

from holdfast import accounts
from holdfast.inventory import api, resources
from holdfast.inventory.problems import error_body
from holdfast.inventory.settings import Settings
from holdfast.kit.process import Product
from holdfast.kit.rotation import Sealed

INVENTORY = Product(
    name="inventory",
    title="Holdfast Inventory",
    settings=Settings,
    resources=resources.build,
    build=api.service,
    migrations=(accounts.MIGRATIONS, Path(__file__).parent / "migrations"),
    factory="holdfast.inventory.product:worker",
    sealed=(
        Sealed("api_keys", "id", "bigint"),
        Sealed("signing_keys", "kid", "text"),
        Sealed("idempotency_answers", "id", "bytea"),
        Sealed("platform_tokens", "shop_id", "bigint"),
    ),
    tenancy=resources.TENANCY,
    error_body=error_body,
)
worker = INVENTORY.worker
