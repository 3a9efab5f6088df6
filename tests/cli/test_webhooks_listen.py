"""`holdfast webhooks listen` prints what comes, and says whether its signature is right."""

import contextlib
import datetime as dt
import os
import re
import signal
import subprocess
from collections.abc import Generator
from pathlib import Path

import httpx2
import pytest
from standardwebhooks.webhooks import Webhook

from holdfast.kit.webhooks.signing import new_secret, public_key, signed_headers
from tests.helpers.command_line import run_holdfast
from tests.helpers.processes import HOLDFAST

BODY = b'{"type": "event.created", "data": {"title": "Jazz \xc3\xa9\\u001b[2J"}}'
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


class Listener:
    """The running command."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        assert process.stdout
        address = re.search(r"http://127\.0\.0\.1:[0-9]+/", process.stdout.readline())
        assert address
        self.url = address[0]

    def post(self, headers: dict[str, str], body: bytes = BODY) -> int:
        return httpx2.post(self.url, content=body, headers=headers).status_code

    def end(self) -> str:
        """End it; what it has printed."""
        self._process.send_signal(signal.SIGINT)
        output, _ = self._process.communicate(timeout=30)
        return output


@contextlib.contextmanager
def run_listener(*options: str) -> Generator[Listener]:
    process = subprocess.Popen(
        [HOLDFAST, "webhooks", "listen", "--port", "0", *options],
        cwd=Path.cwd(),
        env={**os.environ, "HOLDFAST_DATA_DIR": "unused", "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield Listener(process)
    finally:
        process.kill()
        process.wait()


def webhook_headers(secret: str = SECRET, at: dt.datetime | None = None) -> dict[str, str]:
    """The headers of a message, signed by the library of the specification."""
    moment = at or dt.datetime.now(dt.UTC)
    return {
        "webhook-id": "msg_7",
        "webhook-timestamp": str(int(moment.timestamp())),
        "webhook-signature": Webhook(secret).sign("msg_7", moment, BODY.decode()),
    }


def test_a_message_with_the_right_signature_is_printed_and_acknowledged() -> None:
    with run_listener("--secret", SECRET) as listener:
        assert listener.post(webhook_headers()) == 204

        output = listener.end()

    assert "msg_7  event.created  verified" in output
    assert "Jazz" in output
    assert "\x1b" not in output


def test_a_message_that_is_not_as_it_was_signed_is_refused_with_the_reason() -> None:
    old = dt.datetime.now(dt.UTC) - dt.timedelta(minutes=6)
    with run_listener("--secret", SECRET) as listener:
        statuses = [
            listener.post(webhook_headers(), BODY + b" "),
            listener.post(webhook_headers(at=old)),
            listener.post(webhook_headers(new_secret("v1"))),
            listener.post({**webhook_headers(), "webhook-id": "msg_8"}),
            listener.post({}),
        ]
        output = listener.end()

    assert statuses == [401] * 5
    assert output.count("REFUSED: no signature is right") == 3
    assert output.count("REFUSED: its time differs") == 1
    assert output.count("REFUSED: webhook-id, webhook-timestamp or webhook-signature is missing") == 1


def test_a_message_of_a_key_pair_is_verified_with_the_public_key() -> None:
    secret = new_secret("v1a")
    now = int(dt.datetime.now(dt.UTC).timestamp())
    with run_listener("--secret", public_key(secret) or "") as listener:
        assert listener.post(signed_headers([secret], "msg_7", now, BODY)) == 204
        assert listener.post(signed_headers([new_secret("v1a")], "msg_7", now, BODY)) == 401
        assert "msg_7  event.created  verified" in listener.end()


def test_messages_of_two_endpoints_are_verified_with_the_secret_of_each() -> None:
    other = new_secret("v1")
    with run_listener("--secret", SECRET, "--secret", other) as listener:
        assert [listener.post(webhook_headers(secret)) for secret in (SECRET, other, new_secret("v1"))] == [
            204,
            204,
            401,
        ]
        assert listener.end().count("verified") == 2


def test_a_port_that_is_taken_is_named_with_what_else_would_do() -> None:
    with run_listener() as listener:
        port = listener.url.rpartition(":")[2].rstrip("/")
        answer = run_holdfast("webhooks", "listen", "--port", port, HOLDFAST_DATA_DIR="unused")
        listener.end()

    assert answer.returncode == 1
    assert answer.stderr.startswith(f"Port {port} cannot be used: ")
    assert "WEBHOOK_TEST_PORT" in answer.stderr


def test_without_a_secret_messages_are_printed_as_not_verified() -> None:
    with run_listener("--status", "500") as listener:
        assert listener.post({"webhook-id": "msg_1"}, b"no json") == 500
        assert "msg_1  not JSON  not verified" in listener.end()


@pytest.mark.parametrize("secret", ["whsec_", "whsec_***", "hunter2", "whpk_AAAA"])
def test_a_secret_that_cannot_be_one_is_refused_with_how_one_begins(secret: str) -> None:
    answer = run_holdfast("webhooks", "listen", "--secret", secret, HOLDFAST_DATA_DIR="unused")

    assert answer.returncode == 1
    assert answer.stderr.startswith("The secret must begin with whsec_, or a public key with whpk_")
