"""The refusals of pages behind the signed links of e-mails."""

from holdfast.events.site import SITE
from holdfast.kit.contract.problems import Problem
from holdfast.kit.http.handler import Reply, Request
from holdfast.kit.pages.language import language_of


def refuse(problem: Problem, request: Request, *, framed: bool = False) -> Reply:
    """The page for a problem. If the link is not one of ours, it says how people get the right one."""
    refusal = SITE.refuse(problem, request, framed=framed)
    if refusal.status != 404:
        return refusal
    return SITE.page("pages/wrong_link.html", 404, language=language_of(request), framed=framed)
