"""The program that `subprocess_call.py` starts: it answers each question that it reads by calling one function.

It ends when its input ends, so also when the parent process was killed.
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

MESSAGE_HEADER = struct.Struct(">?I")
"""The header of each message: whether it is the traceback of an error, and its length in bytes."""

MAX_MESSAGE_BYTES = 16_000_000
"""The maximum size of a message, in bytes."""

NICENESS = 19
"""The lowest priority: processes that answer requests get nearly all of a busy processor."""


def main(module: str, name: str, niceness: str) -> None:
    """Answer questions with the function of a module until there are no more."""
    # The event loop passes on what its own process inherited, such as the socket that a worker listens on. Held here,
    # it would keep the port taken after the service has ended.
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    # All processes of a service get these signals. The parent finishes its work, and then ends this process.
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signal_number, signal.SIG_IGN)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # a library may print, and that must not become part of an answer
    function = getattr(importlib.import_module(module), name)
    [argument_type] = [annotation for name, annotation in get_type_hints(function).items() if name != "return"]
    questions: Decoder[Any] = Decoder(argument_type)
    os.nice(int(niceness))  # only now: on a busy machine it would take seconds to start
    try:
        _write_message(answers, b"")
        while (question := _read_message(sys.stdin.buffer)) is not None:
            _write_message(answers, *_answer(function, questions, question))
    except BrokenPipeError:
        os._exit(0)  # the parent has ended; closing the pipe would fail again


def _answer(function: Callable[[Any], Any], questions: Decoder[Any], question: bytes) -> tuple[bytes, bool]:
    """The answer to a question, or the traceback of an error and True."""
    try:
        answer = msgspec.msgpack.encode(function(questions.decode(question)))
        if len(answer) > MAX_MESSAGE_BYTES:
            raise ValueError(f"the answer has {len(answer)} bytes; it may have {MAX_MESSAGE_BYTES}")
    except Exception:
        return traceback.format_exc()[-100_000:].encode(errors="backslashreplace"), True
    return answer, False


def _write_message(stream: BinaryIO, message: bytes, is_error: bool = False) -> None:
    stream.write(MESSAGE_HEADER.pack(is_error, len(message)) + message)
    stream.flush()


def _read_message(stream: BinaryIO) -> bytes | None:
    """The next message; None if the input ends before it is complete."""
    header = stream.read(MESSAGE_HEADER.size)
    if len(header) < MESSAGE_HEADER.size:
        return None
    _, length = MESSAGE_HEADER.unpack(header)
    message = stream.read(length)
    return message if len(message) == length else None


if __name__ == "__main__":
    main(*sys.argv[1:])
