"""A module that a process cannot import, since another one has imported it before."""

import os
from pathlib import Path

if "UNFIT" in os.environ:
    raise RuntimeError("this module cannot be imported here")


def exists(path: str) -> bool:
    return Path(path).exists()
