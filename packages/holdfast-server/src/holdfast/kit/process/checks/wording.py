"""Words of findings: durations and lists."""

from collections.abc import Sequence


def duration(seconds: float) -> str:
    """A duration in words, in its largest unit."""
    for unit, length in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= length * 0.95:
            number = max(1, round(seconds / length))
            return f"{number} {unit}" if number == 1 else f"{number} {unit}s"
    return f"{seconds:.0f} seconds"


def names_text(names: Sequence[str], limit: int = 3) -> str:
    """Some names, and how many more there are."""
    more = len(names) - limit
    return ", ".join(names[:limit]) + (f" and {more} more" if more > 0 else "")
