"""The tests of plans run every operation, so each needs arguments. Here it is told in a second, without their rows."""

from holdfast.events import service as events
from holdfast.inventory import service as inventory
from tests.events.agents import samples as events_samples
from tests.inventory import samples as inventory_samples
from tests.plans import events_arguments, inventory_arguments


def test_every_operation_of_events_has_arguments() -> None:
    without = {operation.name for operation in events.ALL_OPERATIONS} - {
        *events_samples.ARGUMENTS,
        *events_arguments.OTHER_ARGUMENTS,
    }

    assert not without, f"{sorted(without)}: in {events_samples.__file__}; no tools: in {events_arguments.__file__}"


def test_every_operation_of_the_inventory_has_arguments() -> None:
    operations = (*inventory.ALL_OPERATIONS, *inventory.TENANTLESS_OPERATIONS)
    without = {operation.name for operation in operations} - {
        *inventory_samples.ARGUMENTS,
        *inventory_arguments.OTHER_ARGUMENTS,
    }

    assert not without, (
        f"{sorted(without)}: in {inventory_samples.__file__}; no tools: in {inventory_arguments.__file__}"
    )
