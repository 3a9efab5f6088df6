"""Logs go to standard error, as one JSON object a line if it is no terminal."""

import json
import subprocess
import sys
from typing import Any

SPEAK = """
import logging, sys
import structlog
from holdfast.kit.environment import logs
logs.configure(sys.argv[1])
structlog.get_logger().info("hello", who="Ada")
logging.getLogger("some.library").warning("a %s of %d lines\\nand more", "message", 2)
logging.getLogger("some.library").debug("a detail")
logging.getLogger("httpx2").info("a request")
try:
    1 / 0
except ZeroDivisionError as error:
    structlog.get_logger().error("failed", exc_info=error)
"""


def lines(level: str) -> list[dict[str, Any]]:
    """What is written at a level."""
    spoken = subprocess.run([sys.executable, "-c", SPEAK, level], check=True, capture_output=True, text=True)
    assert spoken.stdout == ""
    return [json.loads(line) for line in spoken.stderr.splitlines()]


def test_every_line_is_one_object_with_its_time_and_level() -> None:
    hello, library, failed = lines("INFO")

    assert (hello["event"], hello["who"], hello["level"]) == ("hello", "Ada", "info")
    assert (library["event"], library["level"]) == ("a message of 2 lines\nand more", "warning")
    assert all(line["timestamp"].endswith("Z") for line in (hello, library, failed))


def test_a_failure_is_logged_with_its_trace() -> None:
    failed = lines("INFO")[-1]

    assert (failed["event"], failed["level"]) == ("failed", "error")
    assert "ZeroDivisionError" in failed["exception"]


def test_a_log_line_below_the_level_is_not_written() -> None:
    assert [line["event"] for line in lines("ERROR")] == ["failed"]
    assert "a detail" in [line["event"] for line in lines("DEBUG")]


def test_outgoing_requests_are_not_logged() -> None:
    for level in ("INFO", "DEBUG"):
        assert "a request" not in [line["event"] for line in lines(level)]
