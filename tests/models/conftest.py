"""The databases of both services."""

from tests.inventory.conftest import inventory_template, inventory_url

__all__ = ["inventory_template", "inventory_url"]
