"""Moments in forms of the console: people enter them in the local time of a time zone."""

import datetime as dt
import re
from typing import Literal

from holdfast.events.events.time_zones import ZONES, zone
from holdfast.kit.pages.language import local_time

_LOCAL = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?")


def moment_of(text: str, name: str) -> str | None:
    """The moment of a local time in a time zone. None if it is not a date, or if the clock change skips it."""
    if not _LOCAL.fullmatch(text):
        return None
    # The field of the time zone has its own error.
    timezone = zone(name if name in ZONES else None)
    try:
        clock = dt.datetime.fromisoformat(text)
        moment = clock.replace(tzinfo=timezone).astimezone(dt.UTC)
        back = moment.astimezone(timezone).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return None
    return moment.isoformat() if back == clock else None


def local_text(moment: dt.datetime | None, zone: str | None, precision: Literal["minutes", "seconds", "auto"]) -> str:
    """The local time of a moment in a time zone, as a field shows it. Empty for None."""
    if moment is None:
        return ""
    return local_time(moment, zone or "UTC").replace(tzinfo=None, fold=0).isoformat(timespec=precision)
