"""Rate limits, and how many requests they let through."""

from limits import RateLimitItem, RateLimitItemPerHour, RateLimitItemPerMinute

from holdfast.kit.contract.problems import Problem
from holdfast.kit.operations.rate_limits import Limits

LIMITS: dict[str, RateLimitItem] = {
    "three": RateLimitItemPerMinute(3),
    "ten": RateLimitItemPerMinute(10),
    "hourly": RateLimitItemPerHour(10),
    "five minutes": RateLimitItemPerMinute(2, 5),
}


async def refusal_of(limits: Limits, name: str, who: str) -> Problem | None:
    """The refusal of one request, or None when it is let through."""
    try:
        await limits.hit(name, who)
    except Problem as problem:
        return problem
    return None


async def count_admitted(limits: Limits, name: str, who: str, tries: int = 50) -> int:
    """How many of `tries` requests are let through."""
    return [await refusal_of(limits, name, who) for _ in range(tries)].count(None)
