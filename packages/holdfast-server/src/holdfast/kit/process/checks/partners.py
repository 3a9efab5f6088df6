"""Checks of what the service talks to: its own public address, the mail server, the storage of rate limits."""

import asyncio
import os
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

import httpx2
import msgspec
from aiosmtplib.errors import SMTPAuthenticationError, SMTPException, SMTPResponseException
from limits.storage import storage_from_string
from msgspec import Struct

from holdfast.kit.environment.settings import Settings
from holdfast.kit.mail.transport import MailServerUnavailable, SmtpMailer
from holdfast.kit.process.checks.check_list import CheckList, Fault
from holdfast.kit.process.checks.inspection import Inspection
from holdfast.kit.process.discovery import RESOURCE_PATH
from holdfast.kit.security.http_client import HttpClient, trusted_certificates

CHECKS = CheckList()

REQUEST_TIMEOUT_SECONDS = 5.0

ANSWER_TIMEOUT_SECONDS = 8.0
"""Seconds for several requests to one partner: fewer than a check has, so that it can say who did not answer."""

MAX_ANSWER_BYTES = 100_000


class _Resource(Struct):
    """What the RFC 9728 document of a service says of who it is."""

    resource: str = ""
    resource_name: str = ""


@CHECKS.point("base address")
async def check_encryption(inspection: Inspection[Any]) -> None:
    base_url: str = inspection.settings.base_url
    variable = inspection.variable("base_url")
    if urlsplit(base_url).scheme != "https" and not is_local(base_url):
        inspection.wrong(
            f"{variable} is {base_url}: keys and sign-in links cross the network unencrypted.",
            f"Set up TLS at the proxy (docs/deploy/many-processes.md), and set {variable} to an https address.",
        )


def is_local(url: str) -> bool:
    """Whether an address is in the network of this machine, where no certificate is needed; or is empty."""
    host = urlsplit(url).hostname or "localhost"
    try:
        return ip_address(host).is_private
    except ValueError:
        return host == "localhost" or host.endswith((".localhost", ".test", ".local", ".internal"))


@CHECKS.point("base address")
async def check_base_address(inspection: Inspection[Any]) -> None:
    """Whether the public address is set, and leads to this service."""
    settings, variable, title = inspection.settings, inspection.variable("base_url"), inspection.process.title
    base_url = settings.base_url
    if not base_url and (settings.trusted_proxies or settings.database_url):
        inspection.wrong(
            f"{variable} is not set, so links in mails lead to the address on which a process listens.",
            f"Set {variable} to the public address, such as https://{inspection.name}.example.com",
        )
    if not base_url:
        inspection.ok(f"{variable} is not set: links lead to the address on which the process listens.")
        return
    remedy = (
        f"Look at DNS, the firewall, the certificate and the proxy of {base_url}, and that it forwards to the service; "
        f"or correct {variable}."
    )
    answer = await _ask(inspection, RESOURCE_PATH, "answer", f"{base_url} cannot be reached from here", remedy)
    if answer is None:
        return
    status, content = answer
    try:
        document = msgspec.json.decode(content, type=_Resource)
    except msgspec.DecodeError:
        document = None
    if status != 200:
        message = f"{base_url} does not lead to the service: {RESOURCE_PATH} is answered with {status}."
        _miss(inspection, message, remedy)
    elif document is None:
        _miss(inspection, f"{base_url} leads to another program, not to {title}.", remedy)
    elif not document.resource.startswith(f"{base_url}/") or document.resource_name != title:
        program, address = document.resource_name or "another program", document.resource.removesuffix("/mcp")
        _miss(
            inspection,
            f"At {base_url} answers {program} with the address {address}.",
            f"Correct {variable} or the proxy, so that this address leads to {title}; restart processes that still "
            "have another setting.",
        )
    inspection.ok(f"{title} answers at {base_url}.")


async def check_webhooks(inspection: Inspection[Any], path: str, sender: str) -> None:
    """Look whether the address to which a partner sends webhooks leads to the service. Nothing is sent there.

    sender    who sends the webhooks, for the sentences
    """
    base_url, variable = inspection.settings.base_url, inspection.variable("base_url")
    if not base_url:
        inspection.wrong(
            f"{variable} is not set, so {sender} does not know where to send webhooks.",
            f"Set {variable} to the public address, which {sender} can reach.",
        )
        return
    remedy = f"Let the proxy forward {path} to the service, and look whether {sender} can reach {base_url} at all."
    message = f"The address of webhooks, {base_url}{path}, cannot be reached"
    answer = await _ask(inspection, path, "take webhooks", message, remedy)
    # The address takes only POST.
    if answer and answer[0] != 405:
        message = f"{base_url}{path} does not lead to the service: it is answered with {answer[0]}."
        _miss(inspection, message, remedy)
    inspection.ok(f"Webhooks of {sender} reach {base_url}{path}.")


async def _ask(
    inspection: Inspection[Any], path: str, ability: str, message: str, remedy: str
) -> tuple[int, bytes] | None:
    """The status and the content of a path of the base address; None if there is no answer; then there is a finding."""
    if inspection.process_count == 0:
        inspection.skipped(f"no process of the service runs that could {ability}")
        return None
    try:
        async with (
            HttpClient(timeout=REQUEST_TIMEOUT_SECONDS, verify=trusted_certificates(), trust_env=False) as client,
            client.stream("GET", f"{inspection.settings.base_url}{path}") as response,
        ):
            content = bytearray()
            async for chunk in response.aiter_bytes():
                content += chunk
                if len(content) > MAX_ANSWER_BYTES:
                    break
            return response.status_code, bytes(content)
    except httpx2.HTTPError as error:
        reason = str(error).strip().rstrip(".") or type(error).__name__
        if "CERTIFICATE_VERIFY_FAILED" in reason:
            file = os.environ.get("SSL_CERT_FILE")
            authority = f"set to {file} here." if file else "not set here."
            remedy += (
                " If your own authority signed the certificate, see SSL_CERT_FILE in docs/deploy/one-machine.md. "
                f"It is {authority}"
            )
        _miss(inspection, f"{message}: {reason}.", remedy)
        return None


def _miss(inspection: Inspection[Any], message: str, remedy: str) -> None:
    """Tell that the service does not answer at an address. It is wrong if a process runs."""
    if inspection.process_count is None:
        inspection.skipped("nothing of the service answers there, and the database, which knows its processes, is away")
    else:
        inspection.wrong(message, remedy)


@CHECKS.point("mail server")
async def check_mail_server(inspection: Inspection[Any]) -> None:
    """Whether the mail server takes a connection, the login and the sender. No mail is sent."""
    settings: Settings = inspection.settings
    host, folder = settings.smtp_host, (settings.data_dir / "mail").resolve()
    if not host and not is_local(settings.base_url):
        inspection.warning(
            f"SMTP_HOST is not set: mails are written to {folder}, and no recipient gets them.",
            "Set SMTP_HOST, MAIL_FROM and, if the server wants them, SMTP_USERNAME and SMTP_PASSWORD.",
        )
    if not host:
        inspection.ok(f"SMTP_HOST is not set: mails are written to {folder}.")
        return
    try:
        async with asyncio.timeout(ANSWER_TIMEOUT_SECONDS):
            await SmtpMailer(settings).probe()
    except (TimeoutError, MailServerUnavailable) as error:
        reason = str(error) or "it does not answer"
        match error.__cause__:
            case SMTPAuthenticationError():
                message = f"{host} refuses the login"
                remedy = "Correct SMTP_USERNAME and SMTP_PASSWORD."
            case SMTPResponseException():
                message = f"{host} refuses the sender {settings.mail_from}"
                remedy = (
                    "Set MAIL_FROM to an address that this server may send for, or log in: SMTP_USERNAME, "
                    "SMTP_PASSWORD."
                )
            case SMTPException() if "TLS" in reason.upper() or "SSL" in reason.upper():
                message = f"The connection to {host} cannot be encrypted"
                remedy = (
                    "Set SMTP_SECURITY to what the server offers (starttls or tls), with its SMTP_PORT, and SMTP_HOST "
                    "to the name in its certificate."
                )
            case _:
                message = f"The mail server {host} cannot be reached"
                remedy = "Correct SMTP_HOST, SMTP_PORT and SMTP_SECURITY, and let the firewall allow the connection."
        inspection.wrong(f"{message}: {reason}.", remedy)
    limit = f", at most {settings.smtp_max_per_second} a second" if settings.smtp_max_per_second else ""
    inspection.ok(f"{host} takes mails from {settings.mail_from}{limit}.")


CHECKS.query(
    "mails",
    """
    select (select clock_timestamp() - min(coalesce(released_at, inserted_at))
              from mails where ended_at is null and hold is null) as age,
           (select coalesce(': ' || error, '') from mails where ended_at is null and hold is null
             order by coalesce(released_at, inserted_at) limit 1) as reason,
           (select count(*) from mails where outcome = 'failed' and ended_at > now() - interval '7 days') as failed,
           (select error from mails where outcome = 'failed' order by ended_at desc limit 1) as failure,
           (select count(*) from mails where ended_at is null and hold is not null
                                         and inserted_at < now() - interval '7 days') as held
    """,
    Fault(
        "age > interval '15 minutes'",
        "A mail has waited for {age}{reason}.",
        "See all with: holdfast {service} mail list. Correct SMTP_HOST and its other settings; if no process sends, "
        "start: holdfast {service} worker",
    ),
    Fault(
        "failed > 0",
        "{failed:1 mail was|mails were} refused within 7 days, last: {failure}.",
        "See them with: holdfast {service} mail list. Try one again with: holdfast {service} mail retry ID",
        status="warning",
    ),
    Fault(
        "held > 0",
        "{held:1 mail has|mails have} been held for more than 7 days.",
        "They wait until the organizer proves its address: holdfast events mail list names them.",
        status="warning",
    ),
    ok="No mail waits for long or was refused.",
)


@CHECKS.point("rate limits")
async def check_rate_limits(inspection: Inspection[Any]) -> None:
    url, variable = inspection.settings.rate_limit_storage_url, inspection.variable("rate_limit_storage_url")
    if url == "memory://":
        inspection.ok("Each process counts rate limits by itself.")
        return
    storage: Any = storage_from_string(f"async+{url}")
    try:
        async with asyncio.timeout(REQUEST_TIMEOUT_SECONDS):
            has_answered = await storage.check()
    except Exception:
        # Each kind of storage has errors of its own.
        has_answered = False
    finally:
        storage.bridge.storage.connection_pool.disconnect()
    if not has_answered:
        inspection.wrong(
            f"The storage that {variable} names does not answer: each process counts by itself meanwhile.",
            f"Start Redis or Valkey there, or correct {variable}.",
        )
    inspection.ok(f"The storage that {variable} names answers.")
