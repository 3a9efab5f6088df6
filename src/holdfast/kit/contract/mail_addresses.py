"""Mail addresses of recipients and senders."""

import re
from email.utils import parseaddr

_LOCAL = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]{1,64}")
_DOMAIN = re.compile(r"(?=.{1,253}\Z)[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*")
_LINE_ENDS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")

NO_ADDRESS = "Mail cannot be sent to this address: it needs a name of ASCII characters, @, and a domain."

_GMAIL = {"gmail.com", "googlemail.com"}


class NoAddress(ValueError):
    """The text is not an address to which mail can be sent."""


def envelope_address(text: str) -> str:
    """An address as SMTP takes it, with the ASCII form of its domain.

    Raises `NoAddress`.
    """
    local, _, domain = text.rpartition("@")
    try:
        ascii_domain = _in_ascii(domain)
    except UnicodeError:
        ascii_domain = ""
    if not _LOCAL.fullmatch(local) or not _DOMAIN.fullmatch(ascii_domain):
        raise NoAddress(NO_ADDRESS)
    return f"{local}@{ascii_domain}"


def mailbox(address: str) -> str:
    """The address of the mailbox behind an address: without a tag after `+`, and without the dots of Gmail."""
    local, _, domain = address.strip().lower().rpartition("@")
    try:
        domain = _in_ascii(domain)
    except UnicodeError:
        domain = ""  # no mail can be sent there
    base = local.partition("+")[0] or local
    if domain in _GMAIL:
        base, domain = base.replace(".", "") or base, "gmail.com"
    return f"{base}@{domain}"


def _in_ascii(domain: str) -> str:
    """The ASCII form of a domain, by IDNA 2008 as registries use it. Raises `UnicodeError` if the text is no domain.

    Python's own codec turns `straße.de` into `strasse.de`, which belongs to another owner.
    """
    if not domain.isascii():
        import idna  # its tables are large, and few domains need them

        domain = idna.encode(domain, uts46=True).decode()
    return domain.encode("idna").decode()  # this codec checks the lengths


def sender_address(text: str) -> str:
    """The address in `Name <address>`, or in a bare address. Raises `NoAddress`."""
    if _LINE_ENDS.search(text):
        raise NoAddress("An address is on one line.")
    return envelope_address(parseaddr(text)[1])
