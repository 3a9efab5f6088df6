"""Settings of the events service; see `docs/settings.md`."""

from collections.abc import Sequence

from limits import RateLimitItem, RateLimitItemPerHour, RateLimitItemPerMinute, RateLimitItemPerSecond
from pydantic import Field, field_validator

from holdfast.accounts.settings import SignInSettings
from holdfast.events.oauth_settings import OAuthSettings
from holdfast.kit.environment import settings as kit
from holdfast.kit.operations.rate_limits import SharedLimit
from holdfast_verify.formats.cosignature import CosignatureVerifier

UPLOADS_PER_PHOTO = 4
"""How many times the limit of added photos addresses of uploads may be requested: to make one costs less."""

ORGANIZER_ADDRESS_SHARE = 2
"""How often in an hour each client address may register an organizer with one e-mail address, whatever others do."""


class Settings(OAuthSettings, SignInSettings):
    """The settings, read from the environment once at start."""

    service = "events"
    variables_of_others = frozenset({"MAX_STREAMS_PER_KEY", "MAX_STREAMS_PER_SHOP"})

    database_url: str = Field("", repr=False, validation_alias="EVENTS_DATABASE_URL", description=kit.DATABASE_URL)
    base_url: str = Field("", validation_alias="EVENTS_BASE_URL", description=kit.BASE_URL)
    secret_key: str = Field(
        "",
        repr=False,
        validation_alias="EVENTS_SECRET_KEY",
        description="Secret of 32 or more characters that encrypts what is stored and signs uploads. Required "
        "with `EVENTS_DATABASE_URL`; else empty makes one in the data directory.",
    )
    old_secret_key: str = Field("", repr=False, validation_alias="EVENTS_OLD_SECRET_KEY", description=kit.OLD_KEY)
    platform_fee_percent: int = Field(
        5,
        ge=0,
        le=90,
        validation_alias="PLATFORM_FEE_PERCENT",
        description="Percentage of each card payment that the operator keeps. From 0 to 90.",
    )
    stripe_key: str = Field(
        "",
        repr=False,
        validation_alias="STRIPE_SECRET_KEY",
        description="Secret key of the operator's Stripe account; empty: nothing can be paid.",
    )
    stripe_webhook_secret: str = Field(
        "",
        repr=False,
        validation_alias="STRIPE_WEBHOOK_SECRET",
        description="Secret of the endpoint `/stripe/webhook`; two with a comma between while one replaces the "
        "other. Empty: Stripe is asked from time to time.",
    )
    stripe_api: str = Field("", validation_alias="STRIPE_API_BASE", description="Another address of Stripe's API.")
    stripe_country: str = Field(
        "",
        validation_alias="STRIPE_ACCOUNT_COUNTRY",
        description="Country of new Stripe accounts, as two letters; empty: that of the operator's account.",
    )
    hold_minutes: int = Field(
        15,
        ge=5,
        le=1380,
        validation_alias="PAYMENT_HOLD_MINUTES",
        description="Minutes for which a seat is held until it is paid, from 5 to 1380.",
    )
    claim_hours: int = Field(
        12,
        ge=1,
        le=23,
        validation_alias="PAYMENT_CLAIM_HOURS",
        description="Hours for which a seat of a paid event is held for a person who moves up, from 1 to 23.",
    )
    registrations_per_minute: int = Field(
        600,
        ge=1,
        validation_alias="API_REGISTRATION_RATE_LIMIT",
        description="POST /api/registrations per API key and minute.",
    )
    notify: bool = Field(
        True,
        validation_alias="API_REGISTRATION_NOTIFY",
        description="Whether people get mails about registrations by an API key that does not say `notify`.",
    )
    public_logs: bool = Field(
        True,
        validation_alias="EVENTS_PUBLIC_LOGS",
        description="Whether new events and queues may get a public log of their order.",
    )
    log_witnesses: str = Field(
        "",
        validation_alias="EVENTS_LOG_WITNESSES",
        description="Witnesses that cosign heads of public logs: the key (`name+id+key`), a space, the address; "
        "commas between witnesses.",
    )
    organizers_per_hour: int = Field(
        10,
        ge=1,
        validation_alias="API_ORGANIZER_REGISTER_RATE_LIMIT",
        description="Organizers made by POST /api/organizers/register, per client address and hour.",
    )
    refused_organizers_per_hour: int = Field(
        60,
        ge=1,
        validation_alias="API_ORGANIZER_REGISTER_REFUSED_RATE_LIMIT",
        description="Refused POST /api/organizers/register, per client address and hour.",
    )
    organizers_per_email: int = Field(
        5,
        ge=1,
        validation_alias="API_ORGANIZER_REGISTER_EMAIL_RATE_LIMIT",
        description="POST /api/organizers/register, also refused ones, per e-mail address and hour, of all client "
        "addresses; each has 2 of its own.",
    )
    keys_per_hour: int = Field(
        60,
        ge=1,
        validation_alias="API_KEY_CREATION_RATE_LIMIT",
        description="New API keys and onboarding links, and calls that make, rotate, test or send again webhooks, per "
        "organizer and hour.",
    )
    keys_share: int = Field(
        5,
        ge=1,
        validation_alias="API_ORGANIZER_RATE_FACTOR",
        description="How many times the limit of one API key all of an organizer may use: registrations, photos, "
        "queue joins, messages to `/mcp`.",
    )
    photos_per_minute: int = Field(
        30,
        ge=1,
        validation_alias="API_PHOTO_UPLOAD_RATE_LIMIT",
        description="POST /api/events/<event_id>/photos, and requests that attach uploads, per API key and minute; "
        "four times as many POST /api/uploads/presign.",
    )
    cdn_base_url: str = Field(
        "",
        validation_alias="CDN_BASE_URL",
        description="Where the public finds photos, without a slash at the end; empty: /media of this service.",
    )
    s3_bucket: str = Field(
        "",
        validation_alias="S3_BUCKET",
        description="Bucket for photos in an S3-compatible store; empty keeps them in the data directory.",
    )
    s3_endpoint_url: str = Field(
        "", validation_alias="S3_ENDPOINT_URL", description="Address of the store; empty: AWS."
    )
    s3_region: str = Field("us-east-1", validation_alias="S3_REGION", description="Region of the bucket.")
    s3_access_key_id: str = Field(
        "",
        validation_alias="S3_ACCESS_KEY_ID",
        description="Access key for the bucket; empty asks the machine's role, as boto3 does.",
    )
    s3_secret_access_key: str = Field(
        "",
        repr=False,
        validation_alias="S3_SECRET_ACCESS_KEY",
        description="Secret of the access key.",
    )
    joins_per_minute: int = Field(
        60,
        ge=1,
        validation_alias="API_QUEUE_JOIN_RATE_LIMIT",
        description="POST /api/queues/<id>/join per API key and minute.",
    )
    room_joins_per_minute: int = Field(
        120,
        ge=1,
        validation_alias="QUEUE_PAGE_JOIN_RATE_LIMIT",
        description="Places that waiting-room pages give, per client address and minute.",
    )
    forms_per_minute: int = Field(
        20,
        ge=1,
        validation_alias="FORM_RATE_LIMIT",
        description="Registration forms, and registrations that people cancel, per client address and minute.",
    )
    forms_per_event: int = Field(
        3_000,
        ge=1,
        validation_alias="FORM_EVENT_RATE_LIMIT",
        description="New registrations by forms per event and minute, above what each client address has by "
        "`FORM_EVENT_ADDRESS_RATE_LIMIT`.",
    )
    forms_share: int = Field(
        5,
        ge=1,
        validation_alias="FORM_EVENT_ADDRESS_RATE_LIMIT",
        description="Registration forms per event, client address and minute, whatever others send.",
    )
    wrong_links_per_minute: int = Field(
        30,
        ge=1,
        validation_alias="WRONG_LINK_RATE_LIMIT",
        description="Links to registrations and data that were never made, per client address and minute.",
    )
    streams_per_organizer: int = Field(
        100,
        ge=1,
        validation_alias="MAX_STREAMS_PER_ORGANIZER",
        description="Open event streams of console pages of one organizer to one process.",
    )
    queue_interval: int = Field(
        60,
        ge=1,
        le=86_400,
        validation_alias="QUEUE_RELEASE_INTERVAL_SECONDS",
        description="Seconds in which a queue releases `release_rate` visitors; the same everywhere. From 1 to 86400.",
    )
    beacon_url: str = Field(
        "https://api.drand.sh",
        validation_alias="EVENTS_BEACON_URL",
        description="Server of drand's HTTP interface for the rounds of draws; empty: they are entered with "
        "`holdfast events draw`.",
    )

    keys_per_organizer: int = Field(
        50, ge=1, validation_alias="ORGANIZER_MAX_KEYS", description="Active API keys of an organizer."
    )
    events_per_organizer: int = Field(
        1_000,
        ge=1,
        validation_alias="ORGANIZER_MAX_EVENTS",
        description="Events of an organizer that are neither cancelled nor over.",
    )
    text_per_organizer: int = Field(
        50_000_000,
        ge=1,
        validation_alias="ORGANIZER_MAX_TEXT_BYTES",
        description="Bytes of text in all events of an organizer, also those that are over.",
    )
    queues_per_organizer: int = Field(
        100, ge=1, validation_alias="ORGANIZER_MAX_QUEUES", description="Queues of an organizer."
    )
    photos_per_organizer: int = Field(
        2_000,
        ge=1,
        validation_alias="ORGANIZER_MAX_PHOTOS",
        description="Photos and uploads of an organizer, of at most 5 MB each.",
    )

    @property
    def takes_payments(self) -> bool:
        return bool(self.stripe_key)

    @property
    def stripe_webhook_secrets(self) -> list[str]:
        return [secret for part in self.stripe_webhook_secret.split(",") if (secret := part.strip())]

    @property
    def media_url(self) -> str:
        """The public base address of photos."""
        return self.cdn_base_url.rstrip("/") or f"{self.base_url}/media"

    @property
    def log_witness_keys(self) -> list[tuple[CosignatureVerifier, str]]:
        """The keys of the witnesses, each with its address without a slash at the end."""
        return [_witness(text) for text in self.log_witnesses.split(",") if text.strip()]

    @field_validator("log_witnesses")
    @classmethod
    def _are_witnesses(cls, text: str) -> str:
        witnesses = [_witness(part) for part in text.split(",") if part.strip()]
        if len({verifier.public_key for verifier, _ in witnesses}) < len(witnesses):
            raise ValueError("must name no key twice")
        return text

    @field_validator("beacon_url", "cdn_base_url", "s3_endpoint_url", "stripe_api")
    @classmethod
    def _are_base_addresses(cls, url: str) -> str:
        return kit.base_address(url)

    def per_machine_state(self) -> Sequence[str]:
        photos = f"each keeps photos on its own disk: set {self.variable('s3_bucket')} to a bucket"
        return [*super().per_machine_state(), *([] if self.s3_bucket else [photos])]

    @property
    def limits(self) -> dict[str, RateLimitItem]:
        return {
            "messages": RateLimitItemPerSecond(self.messages_per_second),
            "registrations": RateLimitItemPerMinute(self.registrations_per_minute),
            "photos": RateLimitItemPerMinute(self.photos_per_minute),
            "uploads": RateLimitItemPerMinute(UPLOADS_PER_PHOTO * self.photos_per_minute),
            "organizer registration": RateLimitItemPerHour(self.organizers_per_hour),
            "keys": RateLimitItemPerHour(self.keys_per_hour),
            "queue joins": RateLimitItemPerMinute(self.joins_per_minute),
            "waiting room joins": RateLimitItemPerMinute(self.room_joins_per_minute),
            "forms": RateLimitItemPerMinute(self.forms_per_minute),
            "wrong links": RateLimitItemPerMinute(self.wrong_links_per_minute),
            **self.oauth_limits,
            **self.sign_in_limits,
        }

    @property
    def limits_shared(self) -> dict[str, SharedLimit]:
        """The rate limits of one thing that many addresses use, with the share of each address."""
        return {
            "forms of an event": SharedLimit(
                RateLimitItemPerMinute(self.forms_per_event), RateLimitItemPerMinute(self.forms_share)
            ),
            "organizer registration of an address": SharedLimit(
                RateLimitItemPerHour(self.organizers_per_email), RateLimitItemPerHour(ORGANIZER_ADDRESS_SHARE)
            ),
            **self.oauth_shared_limits,
            **self.sign_in_shared_limits,
        }

    @property
    def limits_together(self) -> dict[str, RateLimitItem]:
        """The rate limits of all keys of one organizer together."""
        share = self.keys_share
        return {
            "messages": RateLimitItemPerSecond(share * self.messages_per_second),
            "registrations": RateLimitItemPerMinute(share * self.registrations_per_minute),
            "photos": RateLimitItemPerMinute(share * self.photos_per_minute),
            "uploads": RateLimitItemPerMinute(share * UPLOADS_PER_PHOTO * self.photos_per_minute),
            "queue joins": RateLimitItemPerMinute(share * self.joins_per_minute),
            "keys": RateLimitItemPerHour(self.keys_per_hour),
        }

    @property
    def limits_refused(self) -> dict[str, RateLimitItem]:
        """The rate limits of refused requests."""
        return {"organizer registration": RateLimitItemPerHour(self.refused_organizers_per_hour)}


def _witness(text: str) -> tuple[CosignatureVerifier, str]:
    """The key and the address of a witness. Raises ValueError."""
    vkey, separator, address = text.strip().partition(" ")
    if not separator or not address.strip():
        raise ValueError("must be the key of each witness, a space and its address")
    try:
        return CosignatureVerifier(vkey), kit.base_address(address.strip())
    except ValueError as error:
        raise ValueError(f"has a witness that cannot be used: {error}") from error
