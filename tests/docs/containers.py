"""Containers without an engine: `buildah` builds an image, and namespaces of Linux run it as `compose.yaml` says.

No registry of images is needed: `mmdebstrap` makes the base. A container has a read-only root, mounts and processes of
its own, the user of the image, and no capabilities. The containers of a `Host` share a network that leads nowhere else.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest

from tests.helpers.installed_programs import program

ROOT = Path(__file__).parents[2]
CONTAINERFILE = ROOT / "deploy/container/Containerfile"

MMDEBSTRAP = ("mmdebstrap", "--quiet", "--mode=root", "--variant=minbase")
BASE_PACKAGES = "python3,python3-venv,ca-certificates"
BASE_SOURCE = "deb http://deb.debian.org/debian bookworm main"
UNUSED_IN_BASE = ("var/cache/apt", "var/lib/apt/lists", "usr/share/doc", "usr/share/locale", "usr/share/man", "dev/*")
"""What would only be copied again and again."""

BASE_CONTAINERFILE = """
FROM scratch
ADD base.tar /
ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
"""

UNREACHABLE = re.compile(r"Couldn't download|Failed retrieving|Failed to fetch|error sending request|dns error")

TIMEOUT_SECONDS = 120
"""The most that a step may take on a machine that is busy with other tests."""

LOOPBACK_UP = """
import fcntl, socket, struct, sys
with socket.socket() as any_socket:
    fcntl.ioctl(any_socket, 0x8914, struct.pack("16sh", b"lo", 0x41))  # SIOCSIFFLAGS: IFF_UP, IFF_RUNNING
print("ready", flush=True)
sys.stdin.read()
"""


def require_root() -> None:
    """Skip the test without the rights and the programs that it needs. In CI, fail without the programs."""
    if os.geteuid() != 0:
        pytest.skip("only root can make a base, mounts and namespaces here")
    for name in ("buildah", "mmdebstrap", "unshare", "nsenter", "curl"):
        program(name)


def run_program(*words: str | Path) -> str:
    """What a program says. A test whose program needs the network is skipped without it, but not in CI."""
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode and UNREACHABLE.search(done.stderr + done.stdout):
        reason = "packages cannot be downloaded"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout


class Image(NamedTuple):
    """An image: its files, and what it says of its containers."""

    root: Path
    config: Mapping[str, Any]


class Store:
    """Images that `buildah` keeps in a directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._driver = "overlay"
        try:
            self.buildah("mount", self.buildah("from", "scratch").strip())
        except AssertionError:
            self._driver = "vfs"  # it copies all files of an image for each container, and works on every file system

    def buildah(self, *words: str | Path) -> str:
        """Run a command of `buildah`. Its files are those of this store alone."""
        places = ["--root", self._directory / self._driver, "--runroot", self._directory / "run"]
        return run_program("buildah", *places, "--storage-driver", self._driver, *words)

    def make_base(self) -> None:
        """Make the image `localhost/base`: Debian with Python."""
        context, base = self._directory / "context", self._directory / "base"
        context.mkdir()
        base.mkdir()
        excluded = [f"--exclude=./{path}" for path in UNUSED_IN_BASE]
        lines = [
            # In memory: dpkg waits for the disk after each package.
            ["mount", "-t", "tmpfs", "tmpfs", base],
            # What `debootstrap` makes too, for half of the processor time.
            [*MMDEBSTRAP, f"--include={BASE_PACKAGES}", "bookworm", base / "debian", BASE_SOURCE],
            ["tar", "-C", base / "debian", "-cf", context / "base.tar", *excluded, "."],
        ]
        script = "\n".join(shlex.join(map(str, line)) for line in lines)
        run_program("unshare", "--mount", "sh", "-euc", script)
        (context / "Containerfile").write_text(BASE_CONTAINERFILE)
        self.buildah("build", "--isolation=chroot", "--tag=localhost/base", context)

    def build(self) -> Image:
        """Build the image of the checkout, as its page says, on that base."""
        trusted = os.environ.get("SSL_CERT_FILE")
        self.buildah(
            "build",
            "--isolation=chroot",
            "--format=docker",
            "--build-arg=BASE=localhost/base",
            *([f"--secret=id=authorities,src={trusted}"] if trusted else []),
            f"--file={CONTAINERFILE}",
            "--tag=localhost/holdfast",
            ROOT,
        )
        described = json.loads(self.buildah("inspect", "--type=image", "localhost/holdfast"))["Docker"]
        container = self.buildah("from", "--pull-never", "localhost/holdfast").strip()
        root = Path(self.buildah("mount", container).strip())
        return Image(root, described["config"])

    def remove(self) -> None:
        """Remove all containers and images, their mounts, and the directory."""
        self.buildah("rm", "--all")
        shutil.rmtree(self._directory)


class Container:
    """A running container. Its command has the number 1 in it."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process

    def _first(self) -> psutil.Process:
        """The process with the number 1 in the container."""
        [first] = psutil.Process(self.process.pid).children()
        return first

    def tell_to_end(self) -> None:
        """SIGTERM to its first process."""
        self._first().terminate()

    def kill(self) -> None:
        """SIGKILL to its first process, with which all others end, if it has not ended."""
        if self.process.poll() is None:
            self._first().kill()
            self.wait()

    def wait(self) -> int:
        return self.process.wait(timeout=TIMEOUT_SECONDS)


class Host:
    """A network of its own, in which the names of containers lead to it.

    directory    where its file of names and its volumes are
    """

    def __init__(self, image: Image, directory: Path, names: Sequence[str]) -> None:
        self._image = image
        self.directory = directory
        self._hosts = directory / "hosts"
        self._hosts.write_text(f"127.0.0.1 localhost {' '.join(names)}\n")
        self._containers: list[Container] = []
        command = ["unshare", "--net", sys.executable, "-c", LOOPBACK_UP]
        self._network = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._network.stdout
        assert self._network.stdout.readline() == "ready\n"

    def entering(self, *words: str | Path) -> list[str]:
        """The command that runs a program of the system in this network. It ends with this process."""
        return ["setpriv", "--pdeathsig=KILL", "nsenter", f"--net=/proc/{self._network.pid}/ns/net", *map(str, words)]

    def curl(self, *words: str) -> str:
        """What curl says in this network."""
        command = self.entering("curl", "--silent", *words)
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout

    def volume(self, name: str, target: str) -> Path:
        """The directory of a volume. A new one gets the owner that the image has for its target, as engines do."""
        path = self.directory / "volumes" / name
        if not path.exists():
            path.mkdir(parents=True)
            place = self._image.root / target.lstrip("/")
            if place.exists():
                os.chown(path, place.stat().st_uid, place.stat().st_gid)
                path.chmod(place.stat().st_mode & 0o777)
        return path

    def start(self, service: Mapping[str, Any], *, log: Path) -> Container:
        """Start a container as a service of `compose.yaml` says.

        service    its `command`, `entrypoint`, `user`, `environment`, `volumes`; what it does not say, the image says
        """
        config, root = self._image.config, self._image.root
        mounts = [(self._hosts, "/etc/hosts", "ro")]
        for text in service.get("volumes", ()):
            source, target, mode = (*text.split(":"), "rw")[:3]
            is_file = source.startswith(".")
            path = (CONTAINERFILE.parent / source).resolve() if is_file else self.volume(source, target)
            mounts.append((path, target, mode))
        for source, target, _ in mounts:
            place = root / target.lstrip("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.touch() if source.is_file() else place.mkdir(exist_ok=True)
        inside = root.as_posix()
        lines = [
            f"mount --bind {inside} {inside}",
            f"mount -o remount,bind,ro {inside}",
            f"mount -t proc proc {inside}/proc",
            f"mount --rbind /dev {inside}/dev",
            f"mount -t tmpfs -o mode=1777 tmpfs {inside}/tmp",
        ]
        for source, target, mode in mounts:
            lines.append(f"mount --bind {shlex.quote(str(source))} {inside}{target}")
            if mode.startswith("ro"):
                lines.append(f"mount -o remount,bind,ro {inside}{target}")
        user, group = (service.get("user") or config["User"]).split(":")
        variables = dict(line.split("=", 1) for line in config["Env"])
        variables |= {name: str(value) for name, value in service.get("environment", {}).items()}
        entrypoint = service.get("entrypoint") or config["Entrypoint"]
        limits = ["--clear-groups", "--no-new-privs", "--bounding-set=-all", f"--reuid={user}", f"--regid={group}"]
        limits += ["--pdeathsig=KILL"]
        command = [
            *("chroot", inside, "/usr/bin/setpriv", *limits, "/usr/bin/env", "-i", "-C", config["WorkingDir"]),
            *(f"{name}={value}" for name, value in variables.items()),
            *entrypoint,
            *service.get("command", ()),
        ]
        script = "\n".join(["set -eu", *lines, f"exec {shlex.join(command)}"])
        isolated = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script]
        with log.open("a") as file:
            process = subprocess.Popen(self.entering(*isolated), stdout=file, stderr=file, text=True)
        self._containers.append(Container(process))
        return self._containers[-1]

    def run(self, service: Mapping[str, Any]) -> tuple[int, str]:
        """Run a container until it ends: its exit status, and what it said."""
        log = self.directory / f"{len(self._containers)}.log"
        return self.start(service, log=log).wait(), log.read_text()

    def close(self) -> None:
        """End all that runs."""
        for container in self._containers:
            container.kill()
        self._network.communicate()
