"""Keeps rich out of the process: structlog imports it for tracebacks, which no service draws.

rich, with attrs and Pygments that it needs, takes 4 MB of each process (docs/upstream.md). structlog also works where
rich is not installed. This is for the promise that a process at rest is small, which docs/benchmarks.md measures.
"""

import sys


def keep_rich_out() -> None:
    """Let this process find no rich, unless it has imported rich before."""
    # None is how Python marks a module that cannot be imported.
    sys.modules.setdefault("rich", None)  # pyright: ignore[reportArgumentType]
