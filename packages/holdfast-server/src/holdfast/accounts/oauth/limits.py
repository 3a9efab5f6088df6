"""The names of the rate limits of the authorization server. The settings of a service set the limits."""

from collections.abc import Mapping

from holdfast.kit.contract.bounds import Bound, address_limit, credential_limit
from holdfast.kit.contract.sources import WIDE_SHARE

ALL_REGISTRATIONS_FACTOR = 100
"""How many times the limit of one client address all of them together have for registrations above their shares."""

SHARE_DIVISOR = 10
"""Of the limit of one client address, 1/10 is admitted whatever others do."""

DOCUMENTS_PER_MINUTE = 20
CONSENTS_PER_HOUR = 60

REGISTRATIONS = "client registrations"
ALL_REGISTRATIONS = "client registrations of all"
TOKENS = "oauth tokens"
DOCUMENTS = "client documents"
CONSENTS = "consents"
"""Registrations of one client address, and of all together with a share for each of them; requests for tokens of one
client address; metadata documents that are read for one account, and its requests that another authorization server is
asked about (`handover.py`); consents of one account."""

BOUNDS: Mapping[str, Bound] = {
    REGISTRATIONS: address_limit("OAuth clients that register", "events", "`OAUTH_REGISTER_RATE_LIMIT`", "an hour"),
    ALL_REGISTRATIONS: Bound(
        name="OAuth clients that register from all addresses",
        service="events",
        total=f"{ALL_REGISTRATIONS_FACTOR} times `OAUTH_REGISTER_RATE_LIMIT` an hour above the shares",
        tenant="-",
        address=f"1/{SHARE_DIVISOR} of `OAUTH_REGISTER_RATE_LIMIT` of its own; a /48 {WIDE_SHARE} times as many",
        reserved="the share of each address",
        stranger="What is above the shares, with more than 100 addresses. Clients of others register all the same.",
    ),
    TOKENS: address_limit(
        "Requests for OAuth tokens, and to end them", "events", "`OAUTH_TOKEN_RATE_LIMIT`", "a minute"
    ),
    DOCUMENTS: credential_limit(
        "Documents of OAuth clients that are read", "events", str(DOCUMENTS_PER_MINUTE), "a minute", who="an account"
    ),
    CONSENTS: credential_limit(
        "Consents to OAuth clients", "events", str(CONSENTS_PER_HOUR), "an hour", who="an account"
    ),
}
"""The bound of each rate limit, by its name."""
