"""What events register: the next occurrences of series, and events that are handed over."""

from holdfast.events.context import Context
from holdfast.events.events import hand_over_filing, recurrence
from holdfast.kit.background.tasks import Schedule, TimedTask
from holdfast.kit.process.part import Part

PART: Part[Context] = Part(
    loops=(recurrence.LOOP,), timed_tasks=(TimedTask("file_anew", Schedule.minutes(1), hand_over_filing.file_again),)
)
