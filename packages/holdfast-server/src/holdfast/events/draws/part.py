"""What draws register: the loop that draws each list that is due."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from holdfast.events.draws.drawing import drawing_loop
from holdfast.events.draws.model import DrawSubject
from holdfast.events.resources import Database
from holdfast.kit.process.part import Part


def draws_part(subjects: Sequence[DrawSubject], after: Callable[[Database], Awaitable[object]]) -> Part[Any]:
    """The part of a service with lists of these kinds. `after` does what follows from draws."""
    return Part(loops=(drawing_loop("service.draw", subjects, after),))
