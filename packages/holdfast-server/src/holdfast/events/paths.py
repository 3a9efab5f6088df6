"""The paths of the pages of organizers and events, and the ids in paths."""

from holdfast.kit.contract.problems import NOT_FOUND


def organizer_path(slug: str) -> str:
    """The path of the page of an organizer."""
    return f"/organizers/{slug}"


def event_path(organizer_slug: str, event_id: int) -> str:
    """The path of the page of an event."""
    return f"{organizer_path(organizer_slug)}/events/{event_id}"


def id_of(text: str) -> int:
    """The id in a path. Raises `not_found`."""
    if text.isascii() and text.isdigit() and len(text) < 19 and text[0] != "0":
        return int(text)
    raise NOT_FOUND()
