"""The settings of a service that has sign-in."""

from limits import RateLimitItem, RateLimitItemPerHour
from pydantic import Field

from holdfast.accounts.limits import SIGN_INS_OF_ADDRESS, SIGN_INS_OF_CLIENT
from holdfast.kit.environment import settings as kit


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
        description="Links to sign in that an e-mail address is sent per hour, with all its tagged forms together, and "
        "as many tries of its password; the browsers in which its owner has signed in before have as many of their "
        "own.",
    )

    @property
    def sign_in_limits(self) -> dict[str, RateLimitItem]:
        return {
            SIGN_INS_OF_CLIENT: RateLimitItemPerHour(self.sign_ins_per_hour),
            SIGN_INS_OF_ADDRESS: RateLimitItemPerHour(self.sign_ins_per_address),
        }
