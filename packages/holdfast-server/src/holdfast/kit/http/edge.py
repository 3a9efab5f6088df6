"""What caches in front of a service may keep, and for how long. A cache is a proxy or a content delivery network.

Answers with one of these headers are the same for everybody who requests the same address in the same language and
encoding. All other answers are `NO_STORE`. docs/edge.md lists both.
"""

from holdfast.kit.contract.problems import Problem
from holdfast.kit.http.handler import Header, RenderProblem, Reply, Request

LIVE_SECONDS = 1
"""Seconds for which a cache gives a page that changes while people look at it."""

RENEWAL_SECONDS = 4
"""Further seconds for which a cache gives such a page while it requests a new one. If a service takes longer than this,
caches send it all requests for the page."""

OUTAGE_SECONDS = 600
"""Seconds for which a cache gives such a page while the service fails. The form on it is valid for two hours, and was
made at most half an hour before."""


def cache_control(seconds: int, renewal: int = 0, outage: int = 0) -> Header:
    """A header by which browsers ask each time, and shared caches do so after `seconds`."""
    value = f"public, max-age=0, s-maxage={seconds}"
    value += f", stale-while-revalidate={renewal}" if renewal else ""
    value += f", stale-if-error={outage}" if outage else ""
    return b"cache-control", value.encode()


LIVE = cache_control(LIVE_SECONDS, RENEWAL_SECONDS, OUTAGE_SECONDS)
"""For what people look at while it changes: pages, forms, the progress of a waiting room."""

FEED = cache_control(60, 60, 86_400)
"""For what programs fetch from time to time."""

BRIEF = cache_control(LIVE_SECONDS)
"""For an answer that is right only for a moment: that there is no such page, or how much can be sold."""

IMMUTABLE: Header = (b"cache-control", b"public, max-age=31536000, immutable")
"""For an address whose content never changes. Browsers do not ask again."""


def kept_refusals(refuse: RenderProblem) -> RenderProblem:
    """Return a function that renders problems of a public page. A cache keeps for a moment that there is no such page.

    So a crowd at a page that is gone reaches the service once a second.
    """

    def render(problem: Problem, request: Request) -> Reply:
        reply = refuse(problem, request)
        if problem.status in (404, 410) and request.method in ("GET", "HEAD"):
            reply.headers = [*(header for header in reply.headers if header[0] != BRIEF[0]), BRIEF]
        return reply

    return render
