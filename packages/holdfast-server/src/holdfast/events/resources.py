"""The resources of operations and jobs of the events service besides the database."""

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from holdfast.events.problems import PAYMENTS_NOT_CONFIGURED
from holdfast.events.processor.processor import Processor
from holdfast.events.settings import Settings
from holdfast.events.storage.store import MissingPackage, Store
from holdfast.events.texts.rendering import TextRenderer
from holdfast.kit.mail.transport import mailer_of
from holdfast.kit.operations import steps
from holdfast.kit.operations.rate_limits import Limits
from holdfast.kit.outbound.requests import OutboundClient
from holdfast.kit.postgres import database
from holdfast.kit.process import resources
from holdfast.kit.security.service_secret import HmacSigner, Secret


@dataclass(frozen=True)
class Resources(resources.Resources[Settings]):
    """The events service's resources.

    outbound    the HTTP client for URLs that users give
    documents   the HTTP client for metadata documents of OAuth clients
    beacon      the HTTP client for rounds of the public beacon
    push        the HTTP client for the push services that browsers name
    texts       renders the Markdown of users
    photos      the store of photos and uploads
    processor   the payment processor; None if payments are not configured
    """

    outbound: OutboundClient
    documents: OutboundClient
    beacon: OutboundClient
    push: OutboundClient
    texts: TextRenderer
    photos: Store
    processor: Processor | None

    @cached_property
    def limits(self) -> Limits:
        """The rate limits of this process."""
        return Limits(
            self.settings.rate_limit_storage_url,
            self.settings.limits,
            shared=self.settings.limits_shared,
            together=self.settings.limits_together,
            refused=self.settings.limits_refused,
        )

    def require_processor(self) -> Processor:
        """The payment processor. Raises `payments_not_configured` if there is none."""
        if self.processor is None:
            raise PAYMENTS_NOT_CONFIGURED()
        return self.processor


def build(settings: Settings) -> Resources:
    """Build the resources from the settings. Raises `MissingPackage`."""
    secret = resources.secret_of(settings)
    return Resources(
        settings,
        secret,
        mailer_of(settings),
        outbound=OutboundClient(),
        documents=OutboundClient(seconds=5),
        beacon=OutboundClient(seconds=5),
        push=OutboundClient(seconds=5),
        texts=TextRenderer(),
        photos=photo_store(settings, secret),
        processor=_processor(settings, secret),
        webhooks=resources.webhook_client(settings),
    )


def photo_store(settings: Settings, secret: Secret) -> Store:
    """The store of photos that the settings name. Raises `MissingPackage`."""
    return _bucket(settings) if settings.s3_bucket else _directory(settings, secret.signer("uploads"))


def _bucket(settings: Settings) -> Store:
    try:
        from holdfast.events.storage.s3 import S3Store
    except ModuleNotFoundError as error:
        raise MissingPackage(
            "S3_BUCKET is set, which needs boto3: install holdfast-server with the extra s3; docs/deploy.md says how."
        ) from error
    return S3Store(
        settings.s3_bucket,
        settings.s3_endpoint_url,
        settings.s3_region,
        settings.s3_access_key_id,
        settings.s3_secret_access_key,
    )


def _processor(settings: Settings, secret: Secret) -> Processor | None:
    if not settings.stripe_key:
        return None
    from holdfast.events.processor.stripe_api import Stripe  # its library is slow to load

    namespace = secret.signer("payment processor", 16).sign("namespace")
    return Stripe(settings.stripe_key, namespace, settings.stripe_api, settings.stripe_country)


def _directory(settings: Settings, signer: HmacSigner) -> Store:
    from holdfast.events.storage.disk import DiskStore

    return DiskStore(settings.data_dir / "media", settings.base_url, signer)


Reader: TypeAlias = database.Reader[Resources]
Writer: TypeAlias = database.Writer[Resources]
Tx: TypeAlias = database.Tx[Resources]
Steps: TypeAlias = steps.Steps[Resources]
Conclusion = steps.Conclusion
Database: TypeAlias = database.Database[Resources]
