"""Settings every service has; each adds its own. Read once, at start, from the environment and `.env`."""

from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

DATABASE_URL = "PostgreSQL to use; empty starts the embedded server in the data directory."
BASE_URL = "Public address of the service, without a slash at the end; empty means the address served."


class Settings(BaseSettings):
    """Base of a service's settings: frozen, every field with a description that `docs/settings.md` repeats.

    Settings contain only texts and numbers; `resources.py` builds objects from them. A service defines the environment
    variables of `database_url`, `base_url` and `secret_key`, and sets `service` to its name.
    """

    service: ClassVar[str]

    model_config = SettingsConfigDict(env_file=".env", extra="ignore", frozen=True, populate_by_name=True)

    database_url: str = Field("", description=DATABASE_URL)
    base_url: str = Field("", description=BASE_URL)
    secret_key: str = Field("", description="What stored secrets are encrypted with.")
    data_dir: Path = Field(
        Path(".holdfast"),
        validation_alias="HOLDFAST_DATA_DIR",
        description="Directory of the embedded database and everything else kept on disk.",
    )
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(
        "INFO", validation_alias="HOLDFAST_LOG_LEVEL", description="The least severe log lines that are written."
    )
    rate_limit_storage_url: str = Field(
        "memory://",
        validation_alias="RATE_LIMIT_STORAGE_URL",
        description="Where rate limits are counted: memory:// (per process), or redis:// (Redis or Valkey, shared).",
    )
    messages_per_second: int = Field(
        120,
        ge=1,
        validation_alias="MCP_RATE_LIMIT",
        description="Messages to `/mcp` per API key and second; each message of a batch counts.",
    )
    trusted_proxies: str = Field(
        "",
        validation_alias="TRUSTED_PROXIES",
        description="Addresses or networks, separated by commas, whose X-Forwarded-For headers are believed.",
    )
    max_connections: int = Field(
        20_000,
        ge=1,
        validation_alias="MAX_CONNECTIONS",
        description="Connections that one process may have open; the limit of open files may allow fewer.",
    )
    max_connections_per_address: int = Field(
        512,
        ge=1,
        validation_alias="MAX_CONNECTIONS_PER_ADDRESS",
        description="Connections that one client address may have open to one process; trusted proxies may have more.",
    )
    pool_size: int = Field(
        10,
        ge=3,
        le=200,
        validation_alias="DATABASE_POOL_SIZE",
        description="Database connections one process may hold for requests.",
    )
