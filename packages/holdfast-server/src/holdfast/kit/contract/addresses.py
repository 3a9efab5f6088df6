"""Web addresses, and mail addresses: the identity of a mailbox, recipients and senders.

One mailbox is written in many ways: a browser turns a domain into its ASCII form, copied text has invisible marks, a
keyboard makes full-width letters. `identity` is the one form in which addresses are stored and compared.
"""

import re
import unicodedata
from email.utils import parseaddr
from ipaddress import ip_address
from urllib.parse import urlsplit

from holdfast.kit.contract.messages import message


def is_web_address(text: str) -> bool:
    """Whether a text is an absolute http or https address to which a browser can be redirected."""
    if any(character <= " " or character in "\x7f\\" for character in text):
        return False
    try:
        parts = urlsplit(text)
        if _last_label(host := parts.hostname or "").isdecimal():
            ip_address(host)  # by the URL Standard, a host that ends in a number is an IPv4 address or nothing
        return parts.scheme in {"http", "https"} and bool(host) and "@" not in parts.netloc and parts.port != 0
    except ValueError:
        return False


def _last_label(host: str) -> str:
    return host.rsplit(".", 1)[-1]


def is_same_address(text: str, address: str) -> bool:
    """Whether a text is a web address. Capitals in its scheme and host, and slashes at its end, make no difference."""
    scheme, separator, rest = text.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme.lower()}{separator}{host.lower()}{slash}{path}".rstrip("/") == address.rstrip("/")


_LOCAL = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]{1,64}")
_DOMAIN = re.compile(r"(?=.{1,253}\Z)[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*")
_LINE_ENDS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")

NO_ADDRESS = "Mail cannot be sent to this address: it needs a name of ASCII characters, @, and a domain."

_PLAIN = re.compile(
    r"(?=[^@]{1,64}@)[a-z0-9_+-]+(?:\.[a-z0-9_+-]+)*@(?:(?!xn--)[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,63}"
)
"""Addresses that are their own identity, as nearly all are."""

_JOINERS = {"\u200c", "\u200d"}
"""Invisible characters that are letters of some domains."""

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


def identity(address: str) -> str:
    """The form in which an address is stored and compared: small letters, no invisible marks, the domain in its script.

    Raises `NoAddress` if no mail can be sent to it, with a message that begins with a verb.
    """
    if len(address) <= 254 and _PLAIN.fullmatch(address):
        return address
    visible = "".join(
        character
        for character in unicodedata.normalize("NFKC", address)
        if unicodedata.category(character) != "Cf" or character in _JOINERS
    )
    local, _, domain = visible.strip().lower().removeprefix("mailto:").rpartition("@")
    domain = domain.removesuffix(".")
    if not local.isascii():
        raise NoAddress(message("has characters before the @ that are not ASCII, which our mail server does not take"))
    try:
        ascii_domain = _in_ascii(domain)
    except UnicodeError:
        ascii_domain = ""
    labels = ascii_domain.split(".")
    if (
        not _LOCAL.fullmatch(local)
        or "" in local.split(".")
        or not _DOMAIN.fullmatch(ascii_domain)
        or len(labels) < 2
        or labels[-1].isdigit()
        or len(local) + 1 + len(domain) > 254
    ):
        raise NoAddress(message("must be an e-mail address such as ann@example.com"))
    return f"{local}@{_in_script(ascii_domain)}"


def _in_script(ascii_domain: str) -> str:
    """A domain as people write it; in ASCII if it has no other form that leads to the same domain."""
    if "xn--" not in ascii_domain:
        return ascii_domain
    import idna

    try:
        unicode_domain: str = idna.decode(ascii_domain)
        return unicode_domain if _in_ascii(unicode_domain) == ascii_domain else ascii_domain
    except UnicodeError:
        return ascii_domain


def mailbox(address: str) -> str:
    """The address of the mailbox behind an address: without a tag after `+`, and without the dots of Gmail."""
    try:
        address = identity(address)
    except NoAddress:
        address = address.strip().lower()
    local, _, domain = address.rpartition("@")
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
