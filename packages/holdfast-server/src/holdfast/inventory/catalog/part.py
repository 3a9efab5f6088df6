"""What the catalog registers: the import of a shop's products, and the nightly import of all shops."""

from typing import Any

from holdfast.inventory.catalog import importing
from holdfast.inventory.catalog.model import IMPORT
from holdfast.kit.background.tasks import Schedule, TaskHandler, TimedTask
from holdfast.kit.process.part import Part

PART: Part[Any] = Part(
    tasks=(TaskHandler(IMPORT, importing.advance_import),),
    timed_tasks=(TimedTask("import_all", Schedule.daily("02:23"), importing.import_all),),
)
