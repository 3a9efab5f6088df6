"""The releases, and the commits they were made of. Tests upgrade from them, and hold what they have promised.

`python -m tests.programs.releases` gives the commits the tags that a clone lacks (`v0.1.0`, …), and prints them. It
fails if the history of the clone ends before one of them. It needs nothing but Python and git.

A release is in the changelog, and its commit has its tag; or, where there are no tags, the subject that is made of its
number. Ids of commits are written nowhere: they change when history is moved to another place.
"""

import io
import re
import subprocess
import sys
import tarfile
from functools import cache
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]

SUBJECTS = {"0.1.0": "Look up a cached page without a search for ended ones"}
"""The subjects of commits that were releases before these were named for their number. The schema of 0.1.0 is the
baseline, and nothing else."""

HEADING = re.compile(r"^## (\d+\.\d+\.\d+)(?= |$)", re.MULTILINE)


class MissingRelease(Exception):
    """The history of this clone does not have a release."""


def releases() -> list[str]:
    """The numbers of all releases, the oldest first. The changelog names them."""
    changes = (CHECKOUT / "CHANGELOG.md").read_text(encoding="utf-8")
    return sorted(HEADING.findall(changes), key=lambda release: [int(part) for part in release.split(".")])


def subject_of(release: str) -> str:
    """The subject of the commit of a release."""
    return SUBJECTS.get(release, f"Release {release}")


@cache
def commit_of(release: str) -> str:
    """The commit of a release: that of its tag, else the one with its subject. Raises `MissingRelease`."""
    if tagged := _git("tag", "--list", f"v{release}", "--format=%(objectname)"):
        return _git("rev-parse", f"{tagged}^{{commit}}")
    for line in reversed(_git("log", "--format=%H %s").splitlines()):
        commit, _, subject = line.partition(" ")
        if subject == subject_of(release):
            return commit
    raise MissingRelease(
        f"This clone has neither the tag v{release} nor a commit with the subject “{subject_of(release)}”, of which "
        f"release {release} was made. Fetch them: git fetch --tags --unshallow"
    )


def files_of(release: str, directory: Path) -> None:
    """Write the files of a release into a directory. Raises `MissingRelease`."""
    archive = subprocess.run(
        ["git", "-C", CHECKOUT, "archive", commit_of(release)], capture_output=True, check=True
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(directory, filter="data")


def migrations_of(release: str) -> dict[str, str]:
    """The texts of the migrations of a release, by the paths that they have now. Raises `MissingRelease`."""
    commit = commit_of(release)
    paths = _git("ls-tree", "-r", "--name-only", commit, "src", "packages").splitlines()
    return {
        re.sub(r"(?<!/schema)/migrations/", "/schema/migrations/", path.rpartition("src/")[2]): _git(
            "show", f"{commit}:{path}", is_text=True
        )
        for path in paths
        if "/migrations/" in path
    }


def schema_of_release(release: str, service: str) -> str:
    """The text of `schema.sql` of a service in a release. Raises `MissingRelease`."""
    commit = commit_of(release)
    paths = _git("ls-tree", "-r", "--name-only", commit, "src", "packages").splitlines()
    path = next(path for path in paths if re.search(rf"/{service}/(schema/)?schema\.sql$", path))
    return _git("show", f"{commit}:{path}", is_text=True)


def _git(*words: str, is_text: bool = False) -> str:
    """What git prints, without the blanks at its end unless it is a text. Raises `MissingRelease`."""
    try:
        done = subprocess.run(["git", "-C", CHECKOUT, *words], capture_output=True, check=True, encoding="utf-8")
    except FileNotFoundError as error:
        raise MissingRelease("The program git is not installed, and releases are found in its history.") from error
    except subprocess.CalledProcessError as error:
        raise MissingRelease(
            f"Releases are found in the history of this project, and git cannot read it: {error.stderr.strip()} "
            "If this is a copy without history, clone the project instead."
        ) from error
    return done.stdout if is_text else done.stdout.strip()


def main() -> None:
    try:
        for release in releases():
            commit = commit_of(release)
            if not _git("tag", "--list", f"v{release}"):
                _git("tag", f"v{release}", commit)
            print(f"v{release} {commit}")
    except MissingRelease as error:
        print(error, file=sys.stderr)
        raise SystemExit(1) from error


if __name__ == "__main__":
    main()
