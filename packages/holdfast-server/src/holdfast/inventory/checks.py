"""What `holdfast check` looks at in the inventory service alone."""

from functools import partial

from holdfast.accounts.checks import check_mailboxes
from holdfast.inventory.partner_webhooks.routes import SHOPIFY_WEBHOOKS_PATH
from holdfast.inventory.settings import Settings
from holdfast.inventory.shopify.platform_client import Platform, PlatformRefusal, PlatformUnreachable
from holdfast.inventory.shopify.platform_tokens import TokenEndpoint
from holdfast.inventory.stock import ledger_audit
from holdfast.kit.environment.logs import first_line
from holdfast.kit.process.checks import partners
from holdfast.kit.process.checks.check_list import CheckList, Fault, overdue
from holdfast.kit.process.checks.common import FOUNDATION
from holdfast.kit.process.checks.inspection import Inspection

CHECKS = CheckList(FOUNDATION)

NO_REFRESH_TOKEN = "holdfast-check"  # noqa: S105 - it is no token, on purpose
"""A refresh token that the platform refuses. It looks at the client id and the secret before."""

WRONG_CLIENT = {"invalid_client", "application_cannot_be_found", "unauthorized_client"}
"""Codes by which the platform refuses the client id or the secret."""

WRONG_TOKEN = {"invalid_grant", "invalid_request", "app_not_installed"}
"""Codes by which it refuses the token, after it has accepted the client."""

InventoryInspection = Inspection[Settings]


@CHECKS.point("ledger", seconds=30)
async def check_ledger(inspection: InventoryInspection) -> None:
    for shop_id in await ledger_audit.list_shop_ids(inspection.database):
        for difference in await ledger_audit.audit(inspection.database, shop_id):
            inspection.wrong(
                difference,
                "Compare with: select * from ledger where pool_id = ID order by seq. Then correct the pool in the "
                "console, and tell the merchant.",
            )
    inspection.ok("Every pool holds what its ledger says.")


@CHECKS.point("platform")
async def check_platform(inspection: InventoryInspection) -> None:
    """Whether the storefront platform is reached and accepts the client id and the secret."""
    settings = inspection.settings
    domain: str | None = await inspection.database.value(
        """
        select domain from installs join shops on shops.id = shop_id
         where uninstalled_at is null order by broken is not null, installed_at desc limit 1
        """
    )
    if settings.client_id and settings.client_secret and domain:
        await _try_refresh(inspection, domain)
    elif domain:
        inspection.wrong(
            f"The shop {domain} is connected, and INVENTORY_CLIENT_ID or INVENTORY_CLIENT_SECRET is not set.",
            "Set both to what the storefront platform shows for the app.",
        )
    elif settings.client_id and settings.client_secret:
        inspection.ok("The client id and the secret are set; no shop has installed the app yet.")
    else:
        inspection.ok("No shop is connected with the storefront platform.")


async def _try_refresh(inspection: InventoryInspection, domain: str) -> None:
    settings, seconds = inspection.settings, partners.ANSWER_TIMEOUT_SECONDS
    platform = Platform(settings.platform_address, settings.platform_api_version, seconds=seconds)
    try:
        await TokenEndpoint(platform, settings.client_id, settings.client_secret).refreshed(domain, NO_REFRESH_TOKEN)
    except PlatformUnreachable as error:
        inspection.wrong(
            f"The storefront platform is not reached for {domain}: {first_line(error)}",
            "Let the firewall allow connections to the platform, or correct PLATFORM_ADDRESS.",
        )
    except PlatformRefusal as refusal:
        if refusal.code in WRONG_CLIENT:
            inspection.wrong(
                f"The storefront platform refuses INVENTORY_CLIENT_ID or INVENTORY_CLIENT_SECRET: {refusal}",
                "Set both to what the platform shows for the app. After a new secret: the one before goes into "
                "INVENTORY_OLD_CLIENT_SECRET.",
            )
        elif refusal.code not in WRONG_TOKEN:
            inspection.wrong(
                f"The storefront platform does not answer as it should for {domain}: {refusal}",
                "Correct PLATFORM_ADDRESS, or look whether the shop was closed at the platform.",
            )
    finally:
        await platform.close()
    inspection.ok("The storefront platform answers, and accepts the client id and the secret.")


CHECKS.query(
    "shops",
    """
    select domain, rtrim(broken, '.') as broken, subscription_errors, row_number() over (order by domain) as number,
           count(*) over () - 5 as others, coalesce(nullif(%(base_url)s, ''), 'the address of the service') as address
      from installs join shops on shops.id = shop_id
     where uninstalled_at is null and (broken is not null or subscription_errors <> '{}') order by domain
    """,
    Fault(
        "number <= 5 and broken <> ''",
        "The shop {domain} has withdrawn the access: {broken}.",
        "Its merchant opens the app again, or {address}/auth?shop={domain}",
    ),
    Fault(
        "number <= 5 and subscription_errors <> '{}'",
        "The platform refuses webhooks of {domain}: {subscription_errors}.",
        "Correct INVENTORY_BASE_URL (a public https address), and the scopes and the data access of the app at the "
        "platform. It is tried again every hour.",
    ),
    Fault(
        "number = 6",
        "{others} more shops have one of these faults.",
        "See all shops with: holdfast inventory shop list",
    ),
    ok="Every connected shop gives access, and sends webhooks.",
)

CHECKS.point("mailboxes")(partial(check_mailboxes, "merchants"))

CHECKS.query(
    "webhooks",
    """
    select (select count(*) from webhooks where due_at is null and handled_at is null) as parked,
           (select topic || ': ' || coalesce(nullif(error, ''), 'no reason is stored') from webhooks
             where due_at is null and handled_at is null order by id desc limit 1) as last,
           (select clock_timestamp() - min(due_at) from webhooks where due_at is not null) as age
    """,
    Fault(
        "parked > 0",
        "{parked:1 webhook was|webhooks were} given up after many attempts, last {last}.",
        "See them with: holdfast inventory webhooks. Correct the reason, then run: "
        "holdfast inventory webhooks --retry-all",
    ),
    *overdue("A webhook of the platform waits"),
    ok="No webhook was given up, and none waits for long.",
)


@CHECKS.point("webhook address")
async def check_webhook_address(inspection: InventoryInspection) -> None:
    """Whether the address of the platform's webhooks leads to the service, if a shop is connected."""
    if await inspection.database.value("select exists (select from installs where uninstalled_at is null)"):
        await partners.check_webhooks(inspection, SHOPIFY_WEBHOOKS_PATH, "the storefront platform")
    else:
        inspection.ok("No shop sends webhooks yet.")


CHECKS.query(
    "pushes",
    """
    select clock_timestamp() - min(greatest(due_at, leased_until)) as age
      from syncs join installs on installs.shop_id = syncs.shop_id and uninstalled_at is null and broken is null
     where due_at is not null
    """,
    *overdue("The stock of a shop waits to be pushed"),
    ok="No push is overdue.",
)
