"""Misbehaviour on request: what the Admin API does to requests that come."""

import re
from dataclasses import dataclass
from typing import Literal

Kind = Literal["throttle", "before", "after", "down", "slow", "half", "stale", "shifted", "busy"]
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
"""


@dataclass
class Fault:
    """What goes wrong with requests.

    operation   a regular expression that their query contains
    shop        at which shop; empty: at all
    times       how many of them; afterwards everything is well again
    seconds     how long a slow answer takes
    """

    kind: Kind
    operation: str = ""
    shop: str = ""
    times: int = 1
    seconds: float = 30

    def hits(self, shop: str, query: str) -> bool:
        """Whether it concerns a request."""
        return self.shop in ("", shop) and re.search(self.operation, query) is not None
