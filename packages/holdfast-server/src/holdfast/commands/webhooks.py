"""`holdfast webhooks listen`: gets webhooks on this machine, verifies them, and prints them."""

import signal
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from holdfast.kit.process.startup import importing
from holdfast.kit.webhooks import LISTEN_PORT

if TYPE_CHECKING:
    from collections.abc import Sequence
    from http.server import ThreadingHTTPServer

    from holdfast.kit.webhooks.signing import SignatureFault

MAX_BODY_BYTES = 65_536
"""The longest message that is read. Those of our services have less than 20 kB."""

webhooks = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Try webhooks.")


@webhooks.callback()
def _webhooks() -> None:  # pyright: ignore[reportUnusedFunction] - with one command alone, its name would be left out
    pass


@webhooks.command()
def listen(
    secret: Annotated[
        list[str] | None,
        typer.Option(
            envvar="WEBHOOK_SECRET",
            metavar="WHSEC",
            help="The secret of the endpoint, or its public key (whpk_...); may be given several times, such as for an "
            "endpoint of each service. Without it nothing is verified.",
        ),
    ] = None,
    port: Annotated[
        int, typer.Option(min=0, max=65_535, help="Port to listen at: WEBHOOK_TEST_PORT of the services. 0 picks one.")
    ] = LISTEN_PORT,
    status: Annotated[
        int, typer.Option(min=200, max=599, help="Status of the answer to messages that are verified.")
    ] = 204,
) -> None:
    """Get webhooks on this machine, verify them, and print them.

    For trials. Services on this machine send to it if WEBHOOK_TEST_PORT is its port: `holdfast up` takes 8787. In the
    console, add the address that is printed first. A message with a wrong signature is answered with 401.
    """
    with importing():
        from holdfast.kit.contract.problems import CannotStart
        from holdfast.kit.webhooks.signing import signature_fault

    secrets = [text for text in secret or () if text]
    if any(signature_fault(text, {}, b"") == "key" for text in secrets):
        raise CannotStart("The secret must begin with whsec_, or a public key with whpk_, and go on with base64.")
    try:
        server = _server(port, secrets, status)
    except OSError as error:
        raise CannotStart(
            f"Port {port} cannot be used: {error.strerror}. End the program that listens there; or start the services "
            f"with another port in WEBHOOK_TEST_PORT, and give the same with --port."
        ) from error
    typer.echo(f"Listens at http://127.0.0.1:{server.server_port}/. Stop with Ctrl-C.")
    if not secrets:
        typer.echo("Nothing is verified: give the secret of the endpoint with --secret.", err=True)
    # A shell starts what runs in its background so that SIGINT is ignored; SIGTERM would end it without a word.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        typer.echo()
    finally:
        server.server_close()


def _server(port: int, secrets: "Sequence[str]", status: int) -> "ThreadingHTTPServer":
    """The server that prints what it gets. Raises `OSError` if it cannot listen."""
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
    from threading import Lock

    printing = Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 60

        def do_POST(self) -> None:
            length = self.headers.get("content-length", "")
            if not length.isdecimal() or int(length) > MAX_BODY_BYTES:
                self._answer(413)
                return
            body = self.rfile.read(int(length))
            headers = {name.lower(): value for name, value in self.headers.items()}
            is_verified, lines = describe(secrets, headers, body)
            with printing:
                for line in lines:
                    typer.echo(line)
            self._answer(status if is_verified is not False else 401)

        def _answer(self, status: int) -> None:
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.send_header("Connection", "keep-alive" if status < 400 else "close")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing: each message is printed by itself."""

    return ThreadingHTTPServer(("127.0.0.1", port), Handler)


def describe(secrets: "Sequence[str]", headers: "dict[str, str]", body: bytes) -> "tuple[bool | None, list[str]]":
    """Whether a message is verified with one of the secrets, None without any, and the lines that show it."""
    import json

    from holdfast.kit.webhooks.signing import FAULTS, signature_fault

    try:
        content: Any = json.loads(body)
    except ValueError:
        content = None
    members = cast(dict[str, Any], content) if isinstance(content, dict) else None
    name = "not JSON" if members is None else members.get("type", "no type")
    faults: list[SignatureFault | None] = [signature_fault(secret, headers, body) for secret in secrets]
    is_verified = None in faults if secrets else None
    verdict = "verified" if is_verified else "not verified"
    # Where there is a fault with every secret, it is the same with each: of the headers, the time or the signature.
    if is_verified is False and faults[0]:
        verdict = f"REFUSED: {FAULTS[faults[0]]}"
    text = json.dumps(content, ensure_ascii=True, indent=2) if content is not None else ascii(body[:200])
    head = f"{headers.get('webhook-id', 'no id')}  {name}  {verdict}"
    return is_verified, [ascii(head)[1:-1], *(f"  {line}" for line in text.splitlines())]
