"""The time zones that an event can have.

Their names come from the package `tzdata`, so that every machine takes the same ones: the directories of a machine also
have names that mean another zone on the next machine, such as `localtime`.
"""

import datetime as dt
from importlib.resources import files
from zoneinfo import ZoneInfo

from holdfast.kit.said import said

ZONES = frozenset((files("tzdata") / "zones").read_text(encoding="ascii").split()) - {"Factory"}
"""The IANA names of all time zones, old ones included. `Factory` is the clock of a machine that has none yet."""


def zone(name: str | None) -> dt.tzinfo:
    """The time zone of a name; UTC for None."""
    return dt.UTC if name is None else ZoneInfo(name)


def unknown_zone(name: str | None) -> str | None:
    """An error message if a name is not exactly that of a time zone, else None."""
    if name is None or name in ZONES:
        return None
    return said("must be the IANA name of a time zone, such as Europe/Berlin")
