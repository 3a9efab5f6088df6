"""Why PostgreSQL takes no connection, and what an operator does about it.

PostgreSQL and its library say why only in words: there is no code before a connection is made.
"""

import re
from typing import NamedTuple


class _Cause(NamedTuple):
    """A cause, by the words of its errors. In the remedy, `{variable}` is the setting with the URL of the database."""

    words: str
    remedy: str


_CAUSES = (
    _Cause(
        words=r"no space left on device|disk quota exceeded",
        remedy="Make room on the disk of PostgreSQL, and look in its log. Then start it again if it has ended.",
    ),
    _Cause(
        words=r"too many (clients|connections)|remaining connection slots",
        remedy="All connections of PostgreSQL are in use. See who has them, as a superuser, for whom some are kept: "
        "select * from pg_stat_activity. End what is not needed, raise max_connections (or the limit of the role or "
        "the database), or lower DATABASE_POOL_SIZE.",
    ),
    _Cause(
        words=r"database system is|not (yet )?accepting connections",
        remedy="Wait until it has started. If that lasts, look in its log; a full disk is a common reason.",
    ),
    _Cause(
        words=r"password|authentication|pg_hba\.conf|role \"|not permitted to log in",
        remedy="Correct the user and the password in {variable}, and let pg_hba.conf of PostgreSQL admit this user "
        "from this machine.",
    ),
    _Cause(
        words=r"database \".*\" does not exist",
        remedy="Correct the name of the database in {variable}, or make the database with: createdb NAME",
    ),
    _Cause(
        words=r"\bSSL\b|certificate",
        remedy="Correct sslmode and sslrootcert in {variable}, or set up TLS in PostgreSQL.",
    ),
    _Cause(
        words=r"read-only|in hot standby mode|not in standby",
        remedy="Name all servers in {variable}, and look which of them takes changes. If the primary is gone, promote "
        "a standby.",
    ),
    _Cause(
        words=r"translate host name|name or service not known|name resolution|nodename nor servname|no address ass",
        remedy="Correct the host in {variable}, or look at DNS on this machine.",
    ),
    _Cause(
        words=r"connection refused|no such file or directory|closed the connection|connection reset",
        remedy="PostgreSQL does not run there. Start it, and look in its log for why it has ended; a full disk is a "
        "common reason. If it runs elsewhere, correct the address in {variable}.",
    ),
    _Cause(
        words=r"timed out|timeout|unreachable|no route to host",
        remedy="Look whether that machine runs, and whether PostgreSQL stands still: its disk does not answer, or its "
        "processes are suspended. Look at the network and the firewall between it and this one too. If the address is "
        "another one, correct {variable}.",
    ),
    _Cause(
        words="",
        remedy="Check the address, the user and the password in {variable}, that PostgreSQL runs, and look in its log.",
    ),
)
"""The first one whose words are in an error counts."""


def connection_failure(error: BaseException) -> str:
    """Why there is no connection, without a full stop at the end."""
    if isinstance(error, TimeoutError):
        return "it does not answer in time"
    line, *attempts = str(error).strip().splitlines() or [type(error).__name__]
    if attempts and line.endswith(":"):
        # Several addresses were tried: a line for each follows.
        line = "; ".join(attempt.strip(" -") for attempt in attempts if attempt.startswith("-"))
    # psycopg says twice that there is none.
    return line.removeprefix("connection failed: ").removeprefix("connection is bad: ").rstrip(".")


def connection_remedy(error: BaseException, variable: str) -> str:
    """What an operator does, for the setting with the URL of the database."""
    return _remedy(error).format(variable=variable)


def remedy_at_server(error: BaseException) -> str | None:
    """What an operator does at the server, for any setting; None if the setting may be wrong."""
    remedy = _remedy(error)
    return None if "{variable}" in remedy else remedy


def _remedy(error: BaseException) -> str:
    text = "timeout" if isinstance(error, TimeoutError) else str(error)
    return next(cause.remedy for cause in _CAUSES if re.search(cause.words, text, re.IGNORECASE))
