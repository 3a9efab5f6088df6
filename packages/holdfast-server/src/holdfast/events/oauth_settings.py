"""The settings of a service that lets apps act for people, and the names of its rate limits."""

import re
from collections.abc import Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit

from limits import RateLimitItem, RateLimitItemPerHour, RateLimitItemPerMinute
from pydantic import Field, ValidationInfo, field_validator

from holdfast.kit.contract.bounds import Bound, address_limit, credential_limit
from holdfast.kit.contract.client import WIDE_SHARE
from holdfast.kit.environment import settings as kit
from holdfast.kit.operations.rate_limits import SharedLimit

AUTHORIZATION_PARAMETERS = frozenset(
    {"client_id", "redirect_uri", "response_type", "response_mode", "scope", "state", "resource", "prompt", "nonce"}
    | {"code_challenge", "code_challenge_method"}
)
"""The query parameters that the pages of the authorization server read."""

ALL_REGISTRATIONS_FACTOR = 100
"""How many times the limit of one client address all of them together have for registrations above their shares."""

SHARE_DIVISOR = 10
"""A tenth of the limit of one client address is admitted whatever others do."""

DOCUMENTS_PER_MINUTE = 20
CONSENTS_PER_HOUR = 60

REGISTRATIONS = "client registrations"
ALL_REGISTRATIONS = "client registrations of all"
TOKENS = "oauth tokens"
DOCUMENTS = "client documents"
CONSENTS = "consents"
"""Registrations of one client address, and of all together with a share for each of them; requests for tokens of one
client address; metadata documents that are read for one account, and its requests that another authorization server is
asked about (`events/oauth/external_consent.py`); consents of one account."""

BOUNDS: Mapping[str, Bound] = {
    REGISTRATIONS: address_limit("OAuth clients that register", "events", "`OAUTH_REGISTER_RATE_LIMIT`", "an hour"),
    ALL_REGISTRATIONS: Bound(
        name="OAuth clients that register from all addresses",
        service="events",
        total=f"{ALL_REGISTRATIONS_FACTOR} times `OAUTH_REGISTER_RATE_LIMIT` an hour above the shares",
        tenant="-",
        address=f"1/{SHARE_DIVISOR} of `OAUTH_REGISTER_RATE_LIMIT`; a /48 {WIDE_SHARE} times as many",
        reserved="the shares",
        stranger="With more than 100 addresses it can use up what is above the shares.",
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


_ISSUER = re.compile(r"""https?://[^/?#@"\\ ]+(/[^?#"\\ ]*)?""")
_UNFIT = re.compile(r"""[\x00-\x1f\x7f-\x9f"'\\]""")


class OAuthSettings(kit.Settings):
    """Base of the settings of such a service."""

    oauth_issuer: str = Field(
        "",
        validation_alias="OAUTH_ISSUER",
        description="Issuer of the authorization server whose access tokens `/mcp` accepts, exactly as in its "
        "metadata; https, unless on this machine; empty: keys alone.",
    )
    oauth_audience: str = Field(
        "",
        validation_alias="OAUTH_AUDIENCE",
        description="Audience that access tokens must name; empty: the address of `/mcp`.",
    )
    oauth_builtin: bool = Field(
        False,
        validation_alias="OAUTH_BUILTIN",
        description="Whether the service is its own authorization server, so that agents connect by a click; on "
        "in `holdfast up`, off with `OAUTH_ISSUER`.",
    )
    handover_url: str = Field(
        "",
        validation_alias="OAUTH_HANDOVER_URL",
        description="API at which the server of `OAUTH_ISSUER` is told who is signed in to the console and what they"
        " allow, such as https://api.stytch.com/v1; empty: the server asks people itself.",
    )
    handover_id: str = Field(
        "",
        validation_alias="OAUTH_HANDOVER_ID",
        description="Id of your project at the server of `OAUTH_HANDOVER_URL`.",
    )
    handover_secret: str = Field(
        "", repr=False, validation_alias="OAUTH_HANDOVER_SECRET", description="Secret of that project."
    )
    handover_profile: str = Field(
        "",
        validation_alias="OAUTH_HANDOVER_PROFILE",
        description="Trusted-auth profile of that project; its keys are at `/oauth/trusted-auth/jwks.json` of this "
        "service.",
    )
    handover_audience: str = Field(
        "",
        validate_default=True,
        validation_alias="OAUTH_HANDOVER_AUDIENCE",
        description="Audience that the profile wants in trusted-auth tokens.",
    )
    clients_per_hour: int = Field(
        60,
        ge=1,
        validation_alias="OAUTH_REGISTER_RATE_LIMIT",
        description="OAuth clients that register per client address and hour: a tenth is reserved for each address; "
        "all addresses together may register 100 times as many.",
    )
    tokens_per_minute: int = Field(
        120,
        ge=1,
        validation_alias="OAUTH_TOKEN_RATE_LIMIT",
        description="Requests for OAuth tokens, and to end them, per client address and minute.",
    )

    @property
    def has_own_server(self) -> bool:
        """Whether the service is its own authorization server."""
        return self.oauth_builtin and not self.oauth_issuer

    @property
    def authorization_server(self) -> str:
        """The issuer of the access tokens that `/mcp` accepts; empty: it accepts none."""
        return self.base_url if self.has_own_server else self.oauth_issuer

    @property
    def oauth_limits(self) -> dict[str, RateLimitItem]:
        """The rate limits of the authorization server."""
        return {
            REGISTRATIONS: RateLimitItemPerHour(self.clients_per_hour),
            TOKENS: RateLimitItemPerMinute(self.tokens_per_minute),
            DOCUMENTS: RateLimitItemPerMinute(DOCUMENTS_PER_MINUTE),
            CONSENTS: RateLimitItemPerHour(CONSENTS_PER_HOUR),
        }

    @property
    def oauth_shared_limits(self) -> dict[str, SharedLimit]:
        return {
            ALL_REGISTRATIONS: SharedLimit(
                RateLimitItemPerHour(ALL_REGISTRATIONS_FACTOR * self.clients_per_hour),
                RateLimitItemPerHour(max(1, self.clients_per_hour // SHARE_DIVISOR)),
            )
        }

    @field_validator("oauth_issuer")
    @classmethod
    def _is_issuer(cls, issuer: str) -> str:
        """Require https, except on this machine: an attacker who changes the keys on the network can forge tokens."""
        if issuer and not (_ISSUER.fullmatch(issuer) and issuer.isascii() and issuer.isprintable()):
            raise ValueError("must look like https://login.example.com, in ASCII, without user, ?, # and quotes")
        if issuer.startswith("http:") and not _is_this_machine(urlsplit(issuer).hostname or ""):
            raise ValueError("must be https, unless its host is localhost or a loopback address")
        return issuer

    @field_validator("handover_url")
    @classmethod
    def _is_api(cls, url: str) -> str:
        if url.startswith("http:") and not _is_this_machine(urlsplit(url).hostname or ""):
            raise ValueError("must be https, unless its host is localhost or a loopback address")
        return kit.base_address(url)

    @field_validator("handover_audience")
    @classmethod
    def _comes_with_the_rest(cls, audience: str, info: ValidationInfo) -> str:
        others = [info.data.get(f"handover_{name}", "") for name in ("url", "id", "secret", "profile")]
        if any([*others, audience]) and not all([*others, audience, info.data.get("oauth_issuer")]):
            raise ValueError(
                "and OAUTH_ISSUER and the other settings OAUTH_HANDOVER_… are set together, or none of them"
            )
        return audience

    @field_validator("oauth_audience")
    @classmethod
    def _fits_a_header(cls, audience: str) -> str:
        if _UNFIT.search(audience):
            raise ValueError("must have no quotes, backslashes and control characters")
        return audience


def _is_this_machine(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
