"""The settings of a service that has sign-in."""

from limits import RateLimitItem, RateLimitItemPerHour
from pydantic import Field

from holdfast.accounts.limits import (
    LINKS_TO_ADDRESS,
    LINKS_WITH_SHARES,
    PASSWORDS_OF_ADDRESS,
    SIGN_INS_OF_CLIENT,
    SIGN_INS_OF_OWNER,
)
from holdfast.kit.environment import settings as kit
from holdfast.kit.running.rate_limits import SharedLimit


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
        description="Links to sign in that one client address can have sent to an e-mail address per hour, with all "
        "its tagged forms together; all client addresses together three times as many, the first of each address "
        "before the others. As many tries of its password by all together, half of them by one. The browsers in which "
        "its owner has signed in before have as many of their own.",
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
