"""Other versions of Python on this machine, for modules that promise the same in all of them."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

VERSIONS = ("3.11", "3.12", "3.13", "3.14")


def python(version: str) -> str:
    """The program of a version, such as `3.13`. Skips the test where there is none."""
    if f"{sys.version_info[0]}.{sys.version_info[1]}" == version:
        return sys.executable
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates = [*map(str, sorted(pyenv.glob(f"{version}.*/bin/python"))), f"python{version}"]
    for program in candidates:
        try:
            version_line = subprocess.run([program, "-I", "-V"], capture_output=True, text=True, check=True)
        except (OSError, subprocess.CalledProcessError):
            continue
        if re.match(rf"Python {re.escape(version)}\.", version_line.stdout):
            return program
    pytest.skip(f"there is no Python {version} here")
