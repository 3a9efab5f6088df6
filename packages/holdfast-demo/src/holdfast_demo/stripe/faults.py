"""Faults on demand: errors before and after a request was done, slow answers, an outage."""

import re
from dataclasses import dataclass
from typing import Literal

Kind = Literal["before", "after", "remembered", "slow", "down", "limited", "locked"]
"""When a request fails: `before` it was done; `after`, with its answer lost on the way, so that the next one with the
key gets it; `remembered`, so that the next one gets the error again, as Stripe keeps errors of its own; `slow`, done
at once and answered later; `down`, by something in front of the processor, whose answer is no JSON; `limited`, since
there were too many, with how long to wait; `locked`, since another one is changing the same object."""


@dataclass
class Fault:
    """A planned failure of requests.

    path      a regular expression that matches a part of their path
    times     how many requests fail; later ones succeed
    seconds   the duration of a slow answer, or the wait that `limited` demands
    """

    kind: Kind
    path: str = ""
    method: str = "POST"
    times: int = 1
    seconds: float = 30

    def hits(self, method: str, path: str) -> bool:
        """Whether it concerns a request."""
        return method == self.method and re.search(self.path, path) is not None
