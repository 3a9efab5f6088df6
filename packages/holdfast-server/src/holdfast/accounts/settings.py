"""The settings of a service that has sign-in, and the names of its rate limits."""

from collections.abc import Mapping

from limits import RateLimitItem, RateLimitItemPerHour
from pydantic import Field

from holdfast.kit.contract.bounds import Bound, address_limit, bound_without_strangers
from holdfast.kit.environment import settings as kit
from holdfast.kit.operations.rate_limits import SharedLimit

LINKS_WITH_SHARES = 3
"""How many times the links that one client address can ask for an e-mail address gets from all of them together."""

SIGN_INS_OF_CLIENT = "sign in"
"""What one client address asks for."""

LINKS_TO_ADDRESS = "links to an e-mail address"
PASSWORDS_OF_ADDRESS = "passwords of an e-mail address"
"""What all client addresses together ask for one e-mail address, with a share for each of them."""

SIGN_INS_OF_OWNER = "sign in by the owner"
"""What browsers ask for one e-mail address in which its owner has signed in before. Other people cannot use it up."""

BOUNDS: Mapping[str, Bound] = {
    SIGN_INS_OF_CLIENT: address_limit(
        "Links to sign in, tries of passwords, and wrong links", "both", "`SIGN_IN_RATE_LIMIT`", "an hour"
    ),
    LINKS_TO_ADDRESS: Bound(
        name="Links to sign in to one e-mail address",
        service="both",
        total=f"{LINKS_WITH_SHARES} times `SIGN_IN_ADDRESS_RATE_LIMIT` an hour",
        tenant="-",
        address="`SIGN_IN_ADDRESS_RATE_LIMIT` an hour, a /48 about as many; 1 whatever others do",
        reserved="browsers that the owner has used",
        stranger="With 21 addresses it can stop links for browsers that the owner has not used.",
    ),
    PASSWORDS_OF_ADDRESS: Bound(
        name="Tries of the password of one e-mail address",
        service="both",
        total="`SIGN_IN_ADDRESS_RATE_LIMIT` an hour",
        tenant="-",
        address="half of them, a /48 about as many; 1 whatever others do",
        reserved="browsers that the owner has used",
        stranger="With 6 addresses it can stop passwords, but not links, in browsers that the owner has not used.",
    ),
    SIGN_INS_OF_OWNER: bound_without_strangers(
        name="Signing in in browsers that the owner has used",
        service="both",
        total="`SIGN_IN_ADDRESS_RATE_LIMIT` links an hour for one e-mail address, and as many tries of its password",
        tenant="-",
    ),
}
"""The bound of each rate limit, by its name."""


class SignInSettings(kit.Settings):
    """Base of the settings of such a service."""

    sign_ins_per_hour: int = Field(
        100,
        ge=1,
        validation_alias="SIGN_IN_RATE_LIMIT",
        description="Links to sign in and tries of a password per client address and hour.",
    )
    sign_ins_per_address: int = Field(
        10,
        ge=1,
        validation_alias="SIGN_IN_ADDRESS_RATE_LIMIT",
        description="Links to sign in per client address, e-mail address (with its tagged forms) and hour. "
        "docs/deploy/bounds.md has the limits for all client addresses, and for passwords.",
    )

    @property
    def sign_in_limits(self) -> dict[str, RateLimitItem]:
        return {
            SIGN_INS_OF_CLIENT: RateLimitItemPerHour(self.sign_ins_per_hour),
            SIGN_INS_OF_OWNER: RateLimitItemPerHour(self.sign_ins_per_address),
        }

    @property
    def sign_in_shared_limits(self) -> dict[str, SharedLimit]:
        """The rate limits of one e-mail address, which one client address cannot use up.

        Links are mails that their recipient may not have asked for, and passwords can be guessed: so both are limited
        for all client addresses together, too.
        """
        most = self.sign_ins_per_address
        share = RateLimitItemPerHour(1)
        return {
            LINKS_TO_ADDRESS: SharedLimit(
                RateLimitItemPerHour(max(1, most - 1)),
                share,
                most=RateLimitItemPerHour(LINKS_WITH_SHARES * most),
                wide_share=1,
            ),
            PASSWORDS_OF_ADDRESS: SharedLimit(
                RateLimitItemPerHour(max(1, most // 2 - 1)), share, most=RateLimitItemPerHour(most), wide_share=1
            ),
        }
