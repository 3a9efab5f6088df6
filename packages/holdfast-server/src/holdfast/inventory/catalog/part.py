"""What the catalog registers: the import of a shop's products, and the nightly import of all shops."""

from typing import Any

from holdfast.inventory.catalog import importing
from holdfast.inventory.catalog.model import IMPORT
from holdfast.kit.background.tasks import Job, PeriodicJob
from holdfast.kit.process.part import Part

PART: Part[Any] = Part(
    tasks=(Job(IMPORT, importing.advance_import),),
    timed=(PeriodicJob("23 2 * * *", importing.import_all),),
)
