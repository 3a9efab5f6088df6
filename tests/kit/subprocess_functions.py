"""Functions that tests run in another process."""

import os
import signal
import time
from pathlib import Path

from msgspec import Struct

PATH = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
"""Where the other process finds this module: the `PYTHONPATH` to be set."""


class Addends(Struct):
    """Two numbers to be added."""

    left: int
    right: int


def add_numbers(sum: Addends) -> tuple[int, int]:
    """The sum, and the process that made it."""
    print("this is no answer")
    return sum.left + sum.right, os.getpid()


def cut(text: str) -> str:
    """The first character; raises `IndexError` where there is none."""
    return text[0]


def repeat_byte(times: int) -> bytes:
    return b"x" * times


def niceness(_: None) -> int:
    return os.nice(0)


def killed_until(path: str) -> str:
    """Is killed once for each line of a file, which it removes; then it returns."""
    lines = Path(path).read_text().splitlines()
    if lines:
        Path(path).write_text("\n".join(lines[1:]))
        os.kill(os.getpid(), signal.SIGKILL)
    return "done"


def write_mails(kinds: list[str]) -> list[bytes]:
    """A mail of each kind; `deadly` ones end the process."""
    if "deadly" in kinds:
        os.kill(os.getpid(), signal.SIGKILL)
    return [kind.encode() for kind in kinds]


def hang(seconds: float) -> float:
    time.sleep(seconds)
    return seconds
