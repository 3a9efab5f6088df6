"""The program that `elsewhere.py` starts: it answers each question that it reads with one function.

It ends when there are no more questions, which is also when the process that asks them was killed.
"""

import importlib
import os
import signal
import struct
import sys
import traceback
from collections.abc import Callable
from typing import Any, BinaryIO, get_type_hints

import msgspec
from msgspec.msgpack import Decoder

HEADER = struct.Struct(">?I")
"""Before each message: whether it is the traceback of an error, and how many bytes follow."""

LARGEST = 16_000_000
"""The most bytes of a message."""

NICENESS = 19
"""The least share of a busy processor: processes that answer requests get nearly all of it."""


def main(module: str, name: str) -> None:
    """Answer questions with the function of a module until there are no more."""
    # These are sent to all processes of a service at once. The one that asks finishes its work, and then ends this one.
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no answer
    function = getattr(importlib.import_module(module), name)
    [takes] = [each for name, each in get_type_hints(function).items() if name != "return"]
    questions: Decoder[Any] = Decoder(takes)
    os.nice(NICENESS)  # only now: on a busy machine it would take seconds to start
    try:
        _put(answers, b"")
        while (question := _taken(sys.stdin.buffer)) is not None:
            _put(answers, *_answered(function, questions, question))
    except BrokenPipeError:
        os._exit(0)  # nobody waits for an answer; closing the pipe would fail again


def _answered(function: Callable[[Any], Any], questions: Decoder[Any], question: bytes) -> tuple[bytes, bool]:
    """The answer to a question, or the traceback of an error and True."""
    try:
        answer = msgspec.msgpack.encode(function(questions.decode(question)))
        if len(answer) > LARGEST:
            raise ValueError(f"the answer has {len(answer)} bytes; it may have {LARGEST}")
    except Exception:
        return traceback.format_exc()[-100_000:].encode(errors="backslashreplace"), True
    return answer, False


def _put(stream: BinaryIO, message: bytes, is_error: bool = False) -> None:
    stream.write(HEADER.pack(is_error, len(message)) + message)
    stream.flush()


def _taken(stream: BinaryIO) -> bytes | None:
    """The next message; None if there is no whole one any more."""
    header = stream.read(HEADER.size)
    if len(header) < HEADER.size:
        return None
    _, length = HEADER.unpack(header)
    message = stream.read(length)
    return message if len(message) == length else None


if __name__ == "__main__":
    main(*sys.argv[1:])
