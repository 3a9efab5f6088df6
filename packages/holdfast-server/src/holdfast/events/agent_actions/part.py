"""What the actions of agents register: the reading by pages, and their end after 90 days."""

from holdfast.events.agent_actions import operations
from holdfast.events.resources import Context
from holdfast.kit.background.tasks import Schedule, TimedTask, in_batches
from holdfast.kit.process.part import Part

PART: Part[Context] = Part(
    operations=(operations.LIST_AGENT_ACTIONS,),
    timed_tasks=(TimedTask("forget_agent_actions", Schedule.daily("03:53"), in_batches(operations.forget_actions)),),
)
