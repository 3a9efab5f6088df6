"""The settings of every service; each service adds its own. Read once, at start, from the environment and `.env`."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Literal, Self
from urllib.parse import urlsplit

import psycopg
from limits.errors import ConfigurationError
from limits.storage import storage_from_string
from psycopg.conninfo import conninfo_to_dict
from pydantic import Field, PrivateAttr, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from holdfast.kit.contract.addresses import NoAddress, is_web_address, sender_address

DATABASE_URL = "PostgreSQL to use; empty starts the bundled server in the data directory."
OLD_KEY = "The secret key before it was rotated; accepted too. See docs/deploy/secrets.md."
BASE_URL = "Public address of the service, without a slash at the end; empty: the address served."

DEMO_PAYMENTS_FILE = "demo-payments.sqlite"
"""The file of the data directory that `holdfast up` has for demo payments."""

MIN_SECRET_LENGTH = 32
"""The minimum length of a secret, in characters."""

_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|[0-9a-f:]*:[0-9a-f:.]*")
_THIS_MACHINE = {"localhost", "127.0.0.1", "::1"}


class Settings(BaseSettings):
    """Base of a service's settings. They are frozen, and `docs/settings.md` repeats the description of every field.

    Settings contain only texts and numbers; `resources.py` builds objects from them. A service defines the environment
    variables of `database_url`, `base_url`, `secret_key` and `old_secret_key`, and sets `service` to its name. A field
    with `repr=False` is a secret, or contains a password: commands do not show it.

    variables_of_others    variables of other services that resemble ours, and so would be taken for misspelt ones
    """

    service: ClassVar[str]
    variables_of_others: ClassVar[frozenset[str]] = frozenset()

    # Without the prefix, field names would be variables too: DATABASE_URL may belong to another program.
    model_config = SettingsConfigDict(
        env_file=".env", env_prefix="_", extra="ignore", frozen=True, populate_by_name=True
    )

    database_url: str = Field("", repr=False, description=DATABASE_URL)
    base_url: str = Field("", description=BASE_URL)
    secret_key: str = Field("", repr=False, description="What stored secrets are encrypted with.")
    old_secret_key: str = Field("", repr=False, description="The secret key before it was rotated.")
    data_dir: Path = Field(
        Path(".holdfast"),
        validation_alias="HOLDFAST_DATA_DIR",
        description="Directory of the bundled database and everything else on disk.",
    )
    first_port: int = Field(
        8001,
        ge=0,
        le=65_532,
        validation_alias="HOLDFAST_PORT",
        description="Port of inventory in `holdfast up`; events and the demos take the next three; 0 picks free "
        "ones. From 0 to 65532.",
    )
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(
        "INFO", validation_alias="HOLDFAST_LOG_LEVEL", description="The least severe log lines that are written."
    )
    rate_limit_storage_url: str = Field(
        "memory://",
        repr=False,
        validation_alias="RATE_LIMIT_STORAGE_URL",
        description="Where rate limits are counted: memory:// (per process) or redis:// (Redis or Valkey, shared).",
    )
    messages_per_second: int = Field(
        120,
        ge=1,
        validation_alias="MCP_RATE_LIMIT",
        description="Messages to `/mcp` per API key and second, each of a batch.",
    )
    trusted_proxies: str = Field(
        "",
        validation_alias="TRUSTED_PROXIES",
        description="Addresses or networks, with commas between, whose X-Forwarded-For is believed.",
    )
    webhook_test_port: int = Field(
        0,
        ge=0,
        le=65_535,
        validation_alias="WEBHOOK_TEST_PORT",
        description="Port of this machine that endpoints of webhooks may name, as http://127.0.0.1:PORT, so that "
        "`holdfast webhooks listen` gets their messages; 0: none. Only for trials. `holdfast up` takes 8787. "
        "From 0 to 65535.",
    )
    max_connections: int = Field(
        20_000,
        ge=1,
        validation_alias="MAX_CONNECTIONS",
        description="Open connections of one process; the limit of open files may allow fewer.",
    )
    max_connections_per_address: int = Field(
        512,
        ge=1,
        validation_alias="MAX_CONNECTIONS_PER_ADDRESS",
        description="Open connections of one client address to one process; trusted proxies may have more.",
    )
    max_streams: int = Field(
        15_000,
        ge=1,
        validation_alias="MAX_STREAMS",
        description="Open event streams of one process.",
    )
    streams_per_address: int = Field(
        256,
        ge=1,
        validation_alias="MAX_STREAMS_PER_ADDRESS",
        description="Open event streams of one client address to one process.",
    )
    drain_seconds: float = Field(
        0,
        ge=0,
        le=300,
        validation_alias="DRAIN_SECONDS",
        description="Seconds that a process serves on after SIGTERM, not ready, until a load balancer sees that. "
        "From 0 to 300.",
    )
    pool_size: int = Field(
        10,
        ge=3,
        le=200,
        validation_alias="DATABASE_POOL_SIZE",
        description="Database connections of one process for requests. From 3 to 200.",
    )

    metrics_token: str = Field(
        "",
        repr=False,
        validation_alias="METRICS_TOKEN",
        description="Bearer token of 32 or more characters that opens /metrics; empty opens it to programs on the "
        "same machine.",
    )

    smtp_host: str = Field(
        "",
        validation_alias="SMTP_HOST",
        description="Server that sends mails; empty writes them to `mail` in the data directory.",
    )
    smtp_security: Literal["starttls", "tls", "none"] = Field(
        "starttls",
        validation_alias="SMTP_SECURITY",
        description="How the connection to the mail server is encrypted: starttls, tls or none.",
    )
    smtp_port: int = Field(
        0,
        ge=0,
        le=65_535,
        validation_alias="SMTP_PORT",
        description="Port of the mail server; 0 is 587 for starttls, 465 for tls, 25 for none. From 0 to 65535.",
    )
    smtp_username: str = Field(
        "", validation_alias="SMTP_USERNAME", description="User name at the mail server; empty: no login."
    )
    smtp_password: str = Field(
        "",
        repr=False,
        validate_default=True,
        validation_alias="SMTP_PASSWORD",
        description="Password at the mail server.",
    )
    smtp_max_connections: int = Field(
        16,
        ge=1,
        le=64,
        validation_alias="SMTP_MAX_CONNECTIONS",
        description="Connections to the mail server of all processes of the service, at most 4 of each. From 1 to 64.",
    )
    smtp_max_per_second: int = Field(
        0,
        ge=0,
        le=10_000,
        validation_alias="SMTP_MAX_PER_SECOND",
        description="Mails a second of all processes of the service; 0: as many as the mail server takes. From 0 to "
        "10000.",
    )
    mail_from: str = Field(
        "",
        validate_default=True,
        validation_alias="MAIL_FROM",
        description="Sender, as `Name <address>` or a bare address. Required with `SMTP_HOST`.",
    )

    _own_address: bool = PrivateAttr(default=False)

    @classmethod
    def variable(cls, setting: str) -> str:
        """The environment variable of a setting."""
        return str(cls.model_fields[setting].validation_alias)

    def served_at(self, address: str) -> Self:
        """The settings of a process that serves at an address, which becomes the base address if none is set."""
        if self.base_url:
            return self
        served = self.model_copy(update={"base_url": address})
        served._own_address = True
        return served

    def per_machine_state(self) -> Sequence[str]:
        """Descriptions of the state that each machine keeps for itself, and of the settings to share it."""
        if self.rate_limit_storage_url.startswith("memory"):
            return [f"each counts rate limits by itself: set {self.variable('rate_limit_storage_url')} to redis://…"]
        return []

    def is_issuer(self, address: str) -> bool:
        """Whether a token signed with one of our keys may name this issuer.

        Without a set base address, each process that uses the database names the address that it serves.
        """
        return self._own_address or address == self.base_url

    @field_validator("database_url")
    @classmethod
    def _names_a_database(cls, url: str) -> str:
        wrong = ValueError(
            "must look like postgresql://user:password@host:5432/name, with %40 for @, %2F for / and %20 for a space "
            "in the password"
        )
        try:
            hosts = str(conninfo_to_dict(url).get("host", "")).split(",")
        except psycopg.ProgrammingError:
            raise wrong from None  # its message quotes the URL, and so the password
        # After an unescaped @ in a password, the rest of the password becomes part of the host name.
        if any("@" in host and not host.startswith("/") for host in hosts):
            raise wrong
        return url

    @field_validator("base_url")
    @classmethod
    def _is_base_address(cls, url: str) -> str:
        return base_address(url)

    @field_validator("smtp_host")
    @classmethod
    def _is_host(cls, host: str) -> str:
        if host and not _HOST.fullmatch(host):
            raise ValueError("must be the name or address of a mail server alone, such as smtp.example.com")
        return host

    @field_validator("smtp_password")
    @classmethod
    def _fits_the_login(cls, password: str, info: ValidationInfo) -> str:
        host, username = info.data.get("smtp_host", ""), info.data.get("smtp_username", "")
        if bool(password) != bool(username):
            raise ValueError("and SMTP_USERNAME are set together, or neither")
        if password and info.data.get("smtp_security") == "none" and host not in _THIS_MACHINE:
            raise ValueError("would cross the network unencrypted: set SMTP_SECURITY to starttls or tls")
        return password

    @field_validator("mail_from")
    @classmethod
    def _is_sender(cls, sender: str, info: ValidationInfo) -> str:
        if not sender:
            if info.data.get("smtp_host"):
                raise ValueError("is required with SMTP_HOST, and must look like Tickets <tickets@example.com>")
            return sender
        try:
            sender_address(sender)
        except NoAddress as error:
            raise ValueError("must look like Tickets <tickets@example.com>, or tickets@example.com") from error
        return sender

    @field_validator("secret_key", "old_secret_key", "metrics_token")
    @classmethod
    def _is_long_enough(cls, secret: str) -> str:
        if 0 < len(secret) < MIN_SECRET_LENGTH:
            raise ValueError(f"must have {MIN_SECRET_LENGTH} or more characters, and has {len(secret)}")
        return secret

    @field_validator("rate_limit_storage_url")
    @classmethod
    def _is_storage(cls, url: str) -> str:
        try:
            storage_from_string(f"async+{url}")
        except ConfigurationError as error:
            if "prerequisite" in str(error):
                raise ValueError("needs holdfast-server with the extra redis to be installed") from error
            raise ValueError("must be memory:// or look like redis://host:6379") from error
        return url


def base_address(url: str) -> str:
    """The address, to which paths can be added, or an empty text. Raises ValueError."""
    if url and (not is_web_address(url) or {"?", "#"} & {*url}):
        raise ValueError("must be an http or https address, such as https://example.com, without user, ? and #")
    parts = urlsplit(url)
    return parts._replace(scheme=parts.scheme).geturl().rstrip("/")
