"""Settings every service has; each adds its own. Read once, at start, from the environment and `.env`."""

from pathlib import Path
from typing import Literal

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    """Base of a service's settings: frozen, every field with a description that `docs/settings.md` repeats."""

    model_config = SettingsConfigDict(env_file=".env", extra="ignore", frozen=True, populate_by_name=True)

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
    trusted_proxies: str = Field(
        "",
        validation_alias="TRUSTED_PROXIES",
        description="Addresses or networks, separated by commas, whose X-Forwarded-For headers are believed.",
    )
    pool_size: int = Field(
        10,
        ge=3,
        le=200,
        validation_alias="DATABASE_POOL_SIZE",
        description="Database connections one process may hold for requests.",
    )
