"""Faults of addresses, and of what the services talk to."""

from tests.cli.planted_faults import NOWHERE, SHOP, Fault

PAYMENTS = {"stripe_key": "sk_test", "stripe_webhook_secret": "whsec_test"}
PLATFORM = {"client_id": "app", "client_secret": "not the one of the platform"}

FAULTS = {
    "a base address of another program": Fault(
        "events base address",
        "does not lead to the service: /.well-known/oauth-protected-resource is answered with 404.",
        "that it forwards to the service; or correct EVENTS_BASE_URL.",
        settings={"base_url": "SERVER"},
        running=1,
    ),
    "a base address that nobody reaches": Fault(
        "inventory base address",
        f"{NOWHERE} cannot be reached from here: ",
        "Look at DNS, the firewall, the certificate and the proxy",
        settings={"base_url": NOWHERE},
        running=1,
    ),
    "a base address without encryption": Fault(
        "events base address",
        "keys and sign-in links cross the network unencrypted.",
        "set EVENTS_BASE_URL to an https address.",
        settings={"base_url": "http://events.example.com"},
    ),
    "no base address behind a proxy": Fault(
        "events base address",
        "EVENTS_BASE_URL is not set, so links in mails lead to the address on which a process listens.",
        "Set EVENTS_BASE_URL to the public address",
        settings={"base_url": "", "trusted_proxies": "10.0.0.0/8"},
    ),
    "a mail server that nobody reaches": Fault(
        "events mail server",
        "The mail server 127.0.0.1 cannot be reached: ",
        "Correct SMTP_HOST, SMTP_PORT and SMTP_SECURITY",
        settings={
            "smtp_host": "127.0.0.1",
            "smtp_port": 1,
            "smtp_security": "none",
            "mail_from": "tickets@events.example",
        },
    ),
    "a sender that the mail server refuses": Fault(
        "events mail server",
        "127.0.0.1 refuses the sender Holdfast <tickets@events.example>: 553 Not yours on this server.",
        "Set MAIL_FROM to an address that this server may send for",
        mail={"MAIL": "553 Not yours on this server."},
    ),
    "a mail server without encryption": Fault(
        "inventory mail server",
        "The connection to 127.0.0.1 cannot be encrypted: ",
        "Set SMTP_SECURITY to what the server offers",
        settings={"smtp_security": "starttls"},
        mail={},
    ),
    "a storage of rate limits that nobody reaches": Fault(
        "events rate limits",
        "The storage that RATE_LIMIT_STORAGE_URL names does not answer: each process counts by itself meanwhile.",
        "Start Redis or Valkey there, or correct RATE_LIMIT_STORAGE_URL.",
        settings={"rate_limit_storage_url": "redis://127.0.0.1:1"},
    ),
    "a bucket that nobody reaches": Fault(
        "events photo store",
        f"Files cannot be written to and read from the bucket photos at {NOWHERE}: ",
        "Correct S3_BUCKET, S3_ENDPOINT_URL",
        settings={
            "s3_bucket": "photos",
            "s3_endpoint_url": NOWHERE,
            "s3_access_key_id": "key",
            "s3_secret_access_key": "key",
        },
    ),
    "a key that the payment processor refuses": Fault(
        "events payments",
        "refuses STRIPE_SECRET_KEY: Invalid API Key provided",
        "Set STRIPE_SECRET_KEY to the secret key of the platform's account",
        settings={**PAYMENTS, "stripe_api": "SERVER"},
    ),
    "a payment processor that nobody reaches": Fault(
        "events payments",
        f"{NOWHERE} cannot be reached: ",
        "Let the firewall allow connections to api.stripe.com",
        settings={**PAYMENTS, "stripe_api": NOWHERE},
    ),
    "an address of webhooks that nobody reaches": Fault(
        "events payment webhooks",
        f"The address of webhooks, {NOWHERE}/stripe/webhook, cannot be reached: ",
        "Let the proxy forward /stripe/webhook to the service",
        settings={**PAYMENTS, "base_url": NOWHERE},
        running=1,
    ),
    "webhooks that lead to another program": Fault(
        "inventory webhook address",
        "/webhooks/shopify does not lead to the service: it is answered with 404.",
        "Let the proxy forward /webhooks/shopify to the service",
        SHOP,
        {"base_url": "SERVER"},
        running=1,
    ),
    "a client secret that the platform refuses": Fault(
        "inventory platform",
        "The storefront platform refuses INVENTORY_CLIENT_ID or INVENTORY_CLIENT_SECRET: ",
        "Set both to what the platform shows for the app.",
        SHOP,
        {**PLATFORM, "platform_address": "SERVER/{shop}"},
    ),
    "a platform that nobody reaches": Fault(
        "inventory platform",
        "The storefront platform is not reached for ada.myshopify.com: ",
        "or correct PLATFORM_ADDRESS.",
        SHOP,
        {**PLATFORM, "platform_address": f"{NOWHERE}/{{shop}}"},
    ),
    "an address that is not that of the platform": Fault(
        "inventory platform",
        "The storefront platform does not answer as it should for ada.myshopify.com: ",
        "Correct PLATFORM_ADDRESS",
        SHOP,
        {**PLATFORM, "platform_address": "SERVER/elsewhere/{shop}"},
    ),
    "an access that was withdrawn": Fault(
        "inventory shops",
        "The shop ada.myshopify.com has withdrawn the access: the token ended.",
        "http://inventory.test/auth?shop=ada.myshopify.com",
        SHOP + "update installs set broken = 'the token ended'",
    ),
    "webhooks that the platform refuses to send": Fault(
        "inventory shops",
        "The platform refuses webhooks of ada.myshopify.com: orders/updated: Address is not allowed.",
        "Correct INVENTORY_BASE_URL",
        SHOP + "update installs set subscription_errors = '{\"orders/updated: Address is not allowed\"}'",
    ),
}
