"""Channels that triggers notify are those that the code listens to: comments in SQL name the constants."""

import re
from importlib import import_module
from pathlib import Path

import pytest

import holdfast

SOURCE = Path(holdfast.__file__).parent
POINTER = re.compile(r"it must match (\w+) in ([\w/]+)\.py\.\n.*?pg_notify\('holdfast', '(\w+) ", re.DOTALL)


@pytest.mark.parametrize("service", ["events", "inventory"])
def test_a_comment_on_a_channel_names_the_constant_with_its_name(service: str) -> None:
    pointers = [
        (path.name, *pointer)
        for path in sorted((SOURCE / service / "schema").glob("*/*.sql"))
        if path.parent.name in {"tables", "functions"}
        for pointer in POINTER.findall(path.read_text(encoding="utf-8"))
    ]

    assert pointers
    for file, constant, module, channel in pointers:
        package = "holdfast" if module.startswith("kit/") else f"holdfast.{service}"
        listener = import_module(f"{package}.{module.replace('/', '.')}")
        assert getattr(listener, constant, None) == channel, (file, constant, module)
