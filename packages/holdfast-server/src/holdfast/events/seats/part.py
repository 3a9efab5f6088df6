"""What seats register: the settlement of registrations."""

from holdfast.events.context import Context
from holdfast.events.seats import settlement
from holdfast.kit.process.part import Part

PART: Part[Context] = Part(loops=(settlement.LOOP,))
