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

from holdfast.kit.mail.transport import MailServerUnavailable, SmtpMailer
from holdfast.kit.process.checks.inspection import Finding, Findings, Inspection, ok, skipped, warning, wrong
from holdfast.kit.process.discovery import RESOURCE_PATH
from holdfast.kit.security.http_client import HttpClient, trusted_certificates

REQUEST_TIMEOUT_SECONDS = 5.0

ANSWER_TIMEOUT_SECONDS = 8.0
"""Seconds for several requests to one partner: fewer than a check has, so that it can say who did not answer."""

MAX_ANSWER_BYTES = 100_000


class _Resource(Struct):
    """The part of the RFC 9728 document by which a service says who it is."""

    resource: str = ""
    resource_name: str = ""


async def check_base_address(inspection: Inspection[Any]) -> Findings:
    """Whether the public address is set, is https, and leads to this service."""
    settings, variable = inspection.settings, inspection.variable("base_url")
    if not settings.base_url:
        if settings.trusted_proxies or settings.database_url:
            return [
                wrong(
                    f"{variable} is not set, so links in mails lead to the address on which a process listens.",
                    f"Set {variable} to the public address, such as https://{inspection.name}.example.com",
                )
            ]
        return [ok(f"{variable} is not set: links lead to the address on which the process listens.")]
    findings = [*_insecure(settings.base_url, variable)]
    if inspection.process_count == 0:
        return [*findings, skipped("no process of the service runs that could answer")]
    return [*findings, *_if_processes_run(inspection, await _reached(inspection, settings.base_url, variable))]


def _if_processes_run(inspection: Inspection[Any], findings: Findings) -> Findings:
    """The findings on an address that only a process answers, if it is not known whether one runs."""
    if inspection.process_count is None and any(finding.status == "wrong" for finding in findings):
        return [skipped("nothing of the service answers there, and the database, which knows its processes, is away")]
    return findings


def _insecure(base_url: str, variable: str) -> Findings:
    parts = urlsplit(base_url)
    if parts.scheme == "https" or is_local(parts.hostname or ""):
        return []
    return [
        wrong(
            f"{variable} is {base_url}: keys and sign-in links cross the network unencrypted.",
            f"Set up TLS at the proxy (docs/deploy/many-processes.md), and set {variable} to an https address.",
        )
    ]


def is_local(host: str) -> bool:
    """Whether a host is this machine or in its own network, where no certificate is needed."""
    try:
        return ip_address(host).is_private
    except ValueError:
        return host == "localhost" or host.endswith((".localhost", ".test", ".local", ".internal"))


async def _reached(inspection: Inspection[Any], base_url: str, variable: str) -> Findings:
    remedy = (
        f"Look at DNS, the firewall, the certificate and the proxy of {base_url}, and that it forwards to the service; "
        f"or correct {variable}."
    )
    try:
        status, content = await ask(f"{base_url}{RESOURCE_PATH}")
    except httpx2.HTTPError as error:
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            file = os.environ.get("SSL_CERT_FILE")
            remedy += (
                " If your own authority signed the certificate, see SSL_CERT_FILE in docs/deploy/one-machine.md. It is "
                + (f"set to {file} here." if file else "not set here.")
            )
        return [wrong(f"{base_url} cannot be reached from here: {_reason(error)}.", remedy)]
    if status != 200:
        return [wrong(f"{base_url} does not lead to the service: {RESOURCE_PATH} is answered with {status}.", remedy)]
    try:
        document = msgspec.json.decode(content, type=_Resource)
    except msgspec.DecodeError:
        return [wrong(f"{base_url} leads to another program, not to {inspection.product.title}.", remedy)]
    if not document.resource.startswith(f"{base_url}/") or document.resource_name != inspection.product.title:
        return [
            wrong(
                f"At {base_url} answers {document.resource_name or 'another program'} with the address "
                f"{document.resource.removesuffix('/mcp')}.",
                f"Correct {variable} or the proxy, so that this address leads to {inspection.product.title}; restart "
                "processes that still have another setting.",
            )
        ]
    return [ok(f"{inspection.product.title} answers at {base_url}.")]


async def check_webhook_address(inspection: Inspection[Any], path: str, sender: str) -> Findings:
    """Whether the address to which a partner sends webhooks leads to the service. Nothing is sent there.

    sender    who sends the webhooks, for the sentences
    """
    base_url, variable = inspection.settings.base_url, inspection.variable("base_url")
    if not base_url:
        return [
            wrong(
                f"{variable} is not set, so {sender} does not know where to send webhooks.",
                f"Set {variable} to the public address, which {sender} can reach.",
            )
        ]
    if inspection.process_count == 0:
        return [skipped("no process of the service runs that could take webhooks")]
    remedy = f"Let the proxy forward {path} to the service, and look whether {sender} can reach {base_url} at all."
    try:
        status, _ = await ask(f"{base_url}{path}")
    except httpx2.HTTPError as error:
        missed = wrong(f"The address of webhooks, {base_url}{path}, cannot be reached: {_reason(error)}.", remedy)
        return _if_processes_run(inspection, [missed])
    # The address takes only POST.
    if status != 405:
        missed = wrong(f"{base_url}{path} does not lead to the service: it is answered with {status}.", remedy)
        return _if_processes_run(inspection, [missed])
    return [ok(f"Webhooks of {sender} reach {base_url}{path}.")]


async def ask(url: str) -> tuple[int, bytes]:
    """The status and the content of an address. Raises `httpx2.HTTPError`."""
    async with (
        HttpClient(timeout=REQUEST_TIMEOUT_SECONDS, verify=trusted_certificates(), trust_env=False) as client,
        client.stream("GET", url) as response,
    ):
        content = bytearray()
        async for chunk in response.aiter_bytes():
            content += chunk
            if len(content) > MAX_ANSWER_BYTES:
                break
        return response.status_code, bytes(content)


def _reason(error: Exception) -> str:
    return str(error).strip().rstrip(".") or type(error).__name__


async def check_mail_server(inspection: Inspection[Any]) -> Findings:
    """Whether the mail server takes a connection, the login and the sender. No mail is sent."""
    settings = inspection.settings
    base_url: str = settings.base_url
    if not settings.smtp_host:
        if base_url and not is_local(urlsplit(base_url).hostname or ""):
            return [
                warning(
                    f"SMTP_HOST is not set: mails are written to {(settings.data_dir / 'mail').resolve()}, and nobody "
                    "gets them.",
                    "Set SMTP_HOST, MAIL_FROM and, if the server wants them, SMTP_USERNAME and SMTP_PASSWORD.",
                )
            ]
        return [ok(f"SMTP_HOST is not set: mails are written to {(settings.data_dir / 'mail').resolve()}.")]
    try:
        async with asyncio.timeout(ANSWER_TIMEOUT_SECONDS):
            await SmtpMailer(settings).probe()
    except TimeoutError:
        return [_mail_finding(inspection, MailServerUnavailable("it does not answer"))]
    except MailServerUnavailable as error:
        return [_mail_finding(inspection, error)]
    return [ok(f"{settings.smtp_host} takes mails from {settings.mail_from}.")]


def _mail_finding(inspection: Inspection[Any], error: MailServerUnavailable) -> Finding:
    host = inspection.settings.smtp_host
    match error.__cause__:
        case SMTPAuthenticationError():
            return wrong(f"{host} refuses the login: {error}.", "Correct SMTP_USERNAME and SMTP_PASSWORD.")
        case SMTPResponseException():
            return wrong(
                f"{host} refuses the sender {inspection.settings.mail_from}: {error}.",
                "Set MAIL_FROM to an address that this server may send for, or log in: SMTP_USERNAME, SMTP_PASSWORD.",
            )
        case SMTPException() if "TLS" in str(error).upper() or "SSL" in str(error).upper():
            return wrong(
                f"The connection to {host} cannot be encrypted: {error}.",
                "Set SMTP_SECURITY to what the server offers (starttls or tls), with its SMTP_PORT, and SMTP_HOST to "
                "the name in its certificate.",
            )
        case _:
            return wrong(
                f"The mail server {host} cannot be reached: {error}.",
                "Correct SMTP_HOST, SMTP_PORT and SMTP_SECURITY, and let the firewall allow the connection.",
            )


async def check_rate_limits(inspection: Inspection[Any]) -> Findings:
    """Whether the shared storage of rate limits answers."""
    url, variable = inspection.settings.rate_limit_storage_url, inspection.variable("rate_limit_storage_url")
    if url == "memory://":
        return [ok("Each process counts rate limits by itself.")]
    storage: Any = storage_from_string(f"async+{url}")
    try:
        async with asyncio.timeout(REQUEST_TIMEOUT_SECONDS):
            answers = await storage.check()
    except Exception:
        # Each kind of storage has errors of its own.
        answers = False
    finally:
        storage.bridge.storage.connection_pool.disconnect()
    if not answers:
        return [
            wrong(
                f"The storage that {variable} names does not answer: each process counts by itself meanwhile.",
                f"Start Redis or Valkey there, or correct {variable}.",
            )
        ]
    return [ok(f"The storage that {variable} names answers.")]
