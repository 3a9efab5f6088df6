"""The connectors that `docs/events/waiting-room.md` offers."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[2] / "docs/events/waiting-room.md"

CONNECTORS = PAGE.parent / "connectors"


def load_python_connector() -> Any:
    spec = spec_from_file_location("queue_door", CONNECTORS / "queue_door.py")
    assert spec
    assert spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
