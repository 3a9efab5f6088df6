"""How this program was called."""

import sys

MAX_NAME_LENGTH = 40


def called_as() -> str:
    """The name by which this program was called, so that the commands that it shows can be copied."""
    return sys.argv[0] if "/" in sys.argv[0] and len(sys.argv[0]) < MAX_NAME_LENGTH else "holdfast"
