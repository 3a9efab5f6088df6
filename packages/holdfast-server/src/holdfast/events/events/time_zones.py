"""The time zones that events can have.

They have the names of the package `tzdata`, so that every machine accepts the same ones: the directories of a machine
also have names that mean another zone on the next machine, such as `localtime`.
"""

import datetime as dt
from importlib.resources import files
from zoneinfo import ZoneInfo

from holdfast.kit.contract.messages import message

ZONES = frozenset((files("tzdata") / "zones").read_text(encoding="ascii").split()) - {"Factory"}
"""The IANA names of all time zones, old ones included. `Factory` stands for a machine without a configured zone."""


def zone(name: str | None) -> dt.tzinfo:
    """The time zone of a name; UTC for None."""
    return dt.UTC if name is None else ZoneInfo(name)


def zone_error(name: str | None) -> str | None:
    """The error message for a name that is not exactly the name of a time zone; None for a valid name."""
    if name is None or name in ZONES:
        return None
    return message("must be the IANA name of a time zone, such as Europe/Berlin")
