"""Faults on request: planned failures of requests to the Admin API."""

import re
from dataclasses import dataclass
from typing import Literal

Kind = Literal["throttle", "before", "after", "down", "slow", "half", "stale", "shifted", "busy", "away", "failing"]
"""What happens to a request:

throttle   it is told to wait, whatever it costs
before     500, and nothing was done
after      500, and it was done
down       503 by something in front of the platform, whose answer is no JSON
slow       it is done at once, and answered later, perhaps too late
half       every second field that may be null is null, with an error beside the data
stale      levels are shown as they were before their last change
shifted    pages begin with the last one of the page before
busy       its key is said to be in use
away       levels cannot be changed by differences for a while: nothing is done
failing    the same, as a failure
"""


@dataclass
class Fault:
    """A planned failure of requests.

    operation   a regular expression that matches a part of their query
    shop        the shop; empty: all shops
    times       how many requests fail; later ones succeed
    seconds     the duration of a slow answer
    """

    kind: Kind
    operation: str = ""
    shop: str = ""
    times: int = 1
    seconds: float = 30

    def hits(self, shop: str, query: str) -> bool:
        """Whether it concerns a request."""
        return self.shop in ("", shop) and re.search(self.operation, query) is not None
