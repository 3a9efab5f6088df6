"""The inventory service for the command line and worker processes."""

from pathlib import Path

from holdfast import accounts
from holdfast.inventory import api, resources
from holdfast.inventory.problems import error_body
from holdfast.inventory.settings import Settings
from holdfast.kit.process.service_process import ServiceProcess
from holdfast.kit.security.secret_rotation import SealedTable

INVENTORY = ServiceProcess(
    name="inventory",
    title="Holdfast Inventory",
    settings=Settings,
    resources=resources.build,
    build=api.service,
    schema_folders=(accounts.FOLDER, Path(__file__).parent),
    factory="holdfast.inventory.product:worker",
    sealed=(
        SealedTable("api_keys", "id", "bigint"),
        SealedTable("signing_keys", "kid", "text"),
        SealedTable("idempotency_answers", "id", "bytea"),
        SealedTable("platform_tokens", "shop_id", "bigint"),
    ),
    tenancy=resources.TENANCY,
    error_body=error_body,
    other_services={"Holdfast Events": "registrations"},
)
worker = INVENTORY.worker
