"""Reads the forms of pages, and refuses forms that another site or a program has forged.

A form has a signed token with the time at which it was shown, so it needs no cookie. The time comes from the clock of
the process: it decides only whether the form is shown again. A browser reports the site that a form was sent from; a
form of another site is refused.
"""

import time
from dataclasses import dataclass
from typing import Literal
from urllib.parse import parse_qsl, urlsplit

from holdfast.kit.contract.problems import BAD_REQUEST, ProblemType
from holdfast.kit.http.body import read_body
from holdfast.kit.http.handler import Request
from holdfast.kit.security.secrets import HmacSigner

FOREIGN_FORM = ProblemType(
    "foreign_form", 403, "The form was sent from another site.", "Open the page itself and use its form."
)
ANOTHERS_FORM = ProblemType(
    "anothers_form", 403, "The form was shown to somebody else.", "Open the page again and send its form."
)
"""Refusals that do not depend on the fields of a form. Only pages answer with these problems."""

KIND = "application/x-www-form-urlencoded"

FORM_TTL_SECONDS = 2 * 3600
"""Seconds that a form may be open before it is shown again."""


async def read_form(request: Request) -> dict[str, str]:
    """The fields of a form, without the spaces around their values. Refuses a field that is given twice."""
    body = await read_body(request, KIND)
    try:
        text = body.decode("ascii")
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=50, encoding="utf-8", errors="strict")
    except ValueError as error:
        raise BAD_REQUEST("The form cannot be read.", hint="Open the page again and send its form.") from error
    fields = {name: value.strip() for name, value in pairs}
    if len(fields) != len(pairs):
        raise BAD_REQUEST("A field of the form is given more than once.", hint="Open the page again.")
    return fields


def require_same_site(request: Request, base_url: str) -> None:
    """Raise `foreign_form` if a browser reports that a form was sent from a page of another site.

    A program that sends neither header is accepted: it has no visitor's cookies, and still needs a token.
    """
    site = request.headers.get(b"sec-fetch-site")
    origin = request.headers.get(b"origin")
    if site is not None:
        allowed = site in {b"same-origin", b"none"}
    elif origin is not None:
        # A proxy may request the page under another host name than the browser did.
        named = {urlsplit(base_url).netloc.lower(), request.headers.get(b"host", b"").decode("latin-1").lower()}
        allowed = origin.decode("latin-1").lower().partition("://")[2] in named - {""}
    else:
        allowed = True
    if not allowed:
        raise FOREIGN_FORM()


@dataclass(frozen=True)
class FormTokens:
    """Issues and checks the tokens of forms."""

    signer: HmacSigner

    def issue(self, purpose: str, now: float | None = None) -> str:
        """A token for a form with a purpose, such as `register for 7`."""
        minute = int(time.time() if now is None else now) // 60
        return f"{minute}-{self.signer.sign(f'{purpose} {minute}')}"

    def check(self, purpose: str, token: str, now: float | None = None) -> Literal["good", "old", "forged"]:
        """Whether a token was issued for a purpose, and not too long ago."""
        minute, _, signature = token.partition("-")
        if not (minute.isascii() and minute.isdigit() and len(minute) < 12):
            return "forged"
        if not self.signer.accepts(f"{purpose} {minute}", signature):
            return "forged"
        age = (time.time() if now is None else now) - 60 * int(minute)
        return "good" if -120 < age < FORM_TTL_SECONDS else "old"
