"""The events service, for the command line and for worker processes."""

from pathlib import Path

from holdfast import accounts
from holdfast.accounts.oauth import trusted_auth
from holdfast.events import api, resources
from holdfast.events.log.generations import begin_generations
from holdfast.events.settings import Settings
from holdfast.kit.process.service_process import ServiceProcess
from holdfast.kit.security.secret_rotation import SealedTable

EVENTS = ServiceProcess(
    name="events",
    title="Holdfast Events",
    settings=Settings,
    resources=resources.build,
    build=api.service,
    schema_folders=(accounts.FOLDER, Path(__file__).parent),
    factory="holdfast.events.product:worker",
    sealed=(
        SealedTable("queue_signing_keys", "kid", "text"),
        SealedTable("log_keys", "id", "bigint"),
        SealedTable("idempotency_answers", "id", "bytea"),
        trusted_auth.SEALED,
    ),
    after_restore=begin_generations,
    other_services={"Holdfast Inventory": "ledger"},
)
worker = EVENTS.worker
