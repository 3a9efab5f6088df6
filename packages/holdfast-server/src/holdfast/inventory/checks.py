"""What `holdfast check` looks at in the inventory service alone."""

from typing import LiteralString

from holdfast.accounts.checks import check_mailboxes
from holdfast.inventory.settings import Settings
from holdfast.inventory.shopify.platform import Platform, PlatformRefusal, PlatformUnreachable
from holdfast.inventory.shopify.token_endpoint import TokenEndpoint
from holdfast.inventory.stock import operations
from holdfast.inventory.webhooks.routes import PATH
from holdfast.kit.environment.logs import first_line
from holdfast.kit.postgres.database import Reader
from holdfast.kit.process.checks import partners
from holdfast.kit.process.checks.common import FOUNDATION
from holdfast.kit.process.checks.inspection import AnyCheck, DatabaseCheck, Finding, Findings, Inspection, ok, wrong
from holdfast.kit.process.checks.work import overdue
from holdfast_verify.terminal import names_text

LEDGER_TIMEOUT_SECONDS = 30.0
"""Seconds to sum all ledgers."""

MAX_SHOWN_SHOPS = 5

NO_REFRESH_TOKEN = "holdfast-check"  # noqa: S105 - it is no token, on purpose
"""A refresh token that the platform refuses. It looks at the client id and the secret before."""

WRONG_CLIENT = {"invalid_client", "application_cannot_be_found", "unauthorized_client"}
"""Codes by which the platform refuses the client id or the secret."""

WRONG_TOKEN = {"invalid_grant", "invalid_request", "app_not_installed"}
"""Codes by which it refuses the token, after it has accepted the client."""

InventoryInspection = Inspection[Settings]


async def check_platform(inspection: InventoryInspection, reader: Reader[None]) -> Findings:
    """Whether the storefront platform is reached and accepts the client id and the secret."""
    settings = inspection.settings
    domain: str | None = await reader.value(
        """
        select domain from installs join shops on shops.id = shop_id
         where uninstalled_at is null order by broken is not null, installed_at desc limit 1
        """
    )
    if not (settings.client_id and settings.client_secret):
        if domain is None:
            return [ok("No shop is connected with the storefront platform.")]
        return [
            wrong(
                f"The shop {domain} is connected, and INVENTORY_CLIENT_ID or INVENTORY_CLIENT_SECRET is not set.",
                "Set both to what the storefront platform shows for the app.",
            )
        ]
    if domain is None:
        return [ok("The client id and the secret are set; no shop has installed the app yet.")]
    return await _ask_platform(settings, domain)


async def _ask_platform(settings: Settings, domain: str) -> Findings:
    platform = Platform(
        settings.platform_address, settings.platform_api_version, seconds=partners.ANSWER_TIMEOUT_SECONDS
    )
    try:
        await TokenEndpoint(platform, settings.client_id, settings.client_secret).refreshed(domain, NO_REFRESH_TOKEN)
    except PlatformUnreachable as error:
        return [
            wrong(
                f"The storefront platform is not reached for {domain}: {first_line(error)}",
                "Let the firewall allow connections to the platform, or correct PLATFORM_ADDRESS.",
            )
        ]
    except PlatformRefusal as refusal:
        if refusal.code in WRONG_CLIENT:
            return [
                wrong(
                    f"The storefront platform refuses INVENTORY_CLIENT_ID or INVENTORY_CLIENT_SECRET: {refusal}",
                    "Set both to what the platform shows for the app. After a new secret: the one before goes into "
                    "INVENTORY_OLD_CLIENT_SECRET.",
                )
            ]
        if refusal.code not in WRONG_TOKEN:
            return [
                wrong(
                    f"The storefront platform does not answer as it should for {domain}: {refusal}",
                    "Correct PLATFORM_ADDRESS, or look whether the shop was closed at the platform.",
                )
            ]
    finally:
        await platform.close()
    return [ok("The storefront platform answers, and accepts the client id and the secret.")]


async def check_shops(inspection: InventoryInspection, reader: Reader[None]) -> Findings:
    """Whether shops have withdrawn the access, or topics of webhooks were refused."""
    rows = await reader.tuples(
        """
        select domain, broken, subscription_errors from installs join shops on shops.id = shop_id
         where uninstalled_at is null and (broken is not null or subscription_errors <> '{}') order by domain
        """
    )
    base_url = inspection.settings.base_url or "the address of the service"
    findings = list[Finding]()
    for domain, broken, refused in rows[:MAX_SHOWN_SHOPS]:
        if broken:
            findings.append(
                wrong(
                    f"The shop {domain} has withdrawn the access: {broken.rstrip('.')}.",
                    f"Its merchant opens the app again, or {base_url}/auth?shop={domain}",
                )
            )
        if refused:
            findings.append(
                wrong(
                    f"The platform refuses webhooks of {domain}: {names_text(refused)}.",
                    "Correct INVENTORY_BASE_URL (a public https address), and the scopes and the data access of the "
                    "app at the platform. It is tried again every hour.",
                )
            )
    if len(rows) > MAX_SHOWN_SHOPS:
        findings.append(
            wrong(
                f"{len(rows) - MAX_SHOWN_SHOPS} more shops have one of these faults.",
                "See all shops with: holdfast inventory shop list",
            )
        )
    return findings or [ok("Every connected shop gives access, and sends webhooks.")]


async def check_webhooks(inspection: InventoryInspection, reader: Reader[None]) -> Findings:
    """Whether webhooks could not be handled, or wait for long."""
    parked, topic, error, seconds = (
        await reader.tuples(
            """
            select (select count(*) from webhooks where due_at is null and handled_at is null), last.topic, last.error,
                   (select extract(epoch from clock_timestamp() - min(due_at))::float8 from webhooks
                     where due_at is not null)
              from (select) as always
              left join lateral (select topic, error from webhooks where due_at is null and handled_at is null
                                  order by id desc limit 1) as last on true
            """
        )
    )[0]
    findings = list[Finding]()
    if parked:
        count = "1 webhook was" if parked == 1 else f"{parked} webhooks were"
        findings.append(
            wrong(
                f"{count} given up after many attempts, last {topic}: {error or 'no reason is stored'}.",
                "See them with: holdfast inventory webhooks. Correct the reason, then run: "
                "holdfast inventory webhooks --retry-all",
            )
        )
    findings += overdue(inspection, "A webhook of the platform waits", seconds)
    return findings or [ok("No webhook was given up, and none waits for long.")]


async def check_webhook_address(inspection: InventoryInspection, reader: Reader[None]) -> Findings:
    """Whether the address of the platform's webhooks leads to the service, if a shop is connected."""
    if not await reader.value("select exists (select from installs where uninstalled_at is null)"):
        return [ok("No shop sends webhooks yet.")]
    return await partners.check_webhook_address(inspection, PATH, "the storefront platform")


async def check_due_pushes(inspection: InventoryInspection, reader: Reader[None]) -> Findings:
    """Whether levels wait for long to be pushed to the platform."""
    seconds: float | None = await reader.value(
        """
        select extract(epoch from clock_timestamp() - min(greatest(due_at, leased_until)))::float8
          from syncs join installs on installs.shop_id = syncs.shop_id and uninstalled_at is null and broken is null
         where due_at is not null
        """
    )
    return overdue(inspection, "The stock of a shop waits to be pushed", seconds) or [ok("No push is overdue.")]


async def check_ledger(_: InventoryInspection, reader: Reader[None]) -> Findings:
    """Whether every pool holds what its ledger says."""
    findings = [
        wrong(difference, f"Compare with: {POOL_QUERY}. Then correct the pool in the console, and tell the merchant.")
        for shop_id in await operations.shops(reader)
        for difference in await operations.audit(reader, shop_id)
    ]
    return findings or [ok("Every pool holds what its ledger says.")]


POOL_QUERY: LiteralString = "select * from ledger where pool_id = ID order by seq"

CHECKS: tuple[AnyCheck, ...] = (
    *FOUNDATION,
    DatabaseCheck("ledger", check_ledger, LEDGER_TIMEOUT_SECONDS),
    DatabaseCheck("platform", check_platform),
    DatabaseCheck("shops", check_shops),
    DatabaseCheck("mailboxes", check_mailboxes("merchants")),
    DatabaseCheck("webhooks", check_webhooks),
    DatabaseCheck("webhook address", check_webhook_address),
    DatabaseCheck("pushes", check_due_pushes),
)
