"""What the image installs is in its lock files, with hashes, and fits what setl asks for.

Nothing is built here: that takes a Docker daemon, and images from elsewhere.
"""

import re
import tomllib
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

CHECKOUT = Path(__file__).parents[3]
FOLDER = CHECKOUT / "deploy" / "docker"
PROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())
DOCKERFILE = re.sub(r"\\\n\s*", " ", (FOLDER / "Dockerfile").read_text())
EXTRAS = re.findall(r"--extra (\S+)", (FOLDER / "lock.sh").read_text())
LOCKS = ("requirements.txt", "build-requirements.txt")


def locked(name):
    """Versions by package, of a lock file; each has hashes."""
    text = re.sub(r"\\\n\s*", " ", (FOLDER / name).read_text())
    found = {}
    for line in text.splitlines():
        if line.strip() and not line.lstrip().startswith("#"):
            package = re.fullmatch(
                r"([a-z0-9-]+)==([0-9a-z.]+)((?: +--hash=sha256:[0-9a-f]{64})+)", line.strip()
            )
            assert package, line
            found[package[1]] = package[2]
    return found


def missing(wanted, versions):
    """Of requirements, those that a lock file does not fulfil, with those of what it names."""
    queue, seen, wrong = [Requirement(text) for text in wanted], set(), []
    while queue:
        each = queue.pop()
        name = canonicalize_name(each.name)
        if (version := versions.get(name)) is None or version not in each.specifier:
            wrong.append(str(each))
            continue
        key = (name, frozenset(each.extras))
        if key in seen:
            continue
        seen.add(key)
        try:
            further = map(Requirement, requires(name) or ())
        except PackageNotFoundError:
            continue  # pip looks at it while the image is built
        queue += [
            part
            for part in further
            if not part.marker
            or any(part.marker.evaluate({"extra": extra}) for extra in each.extras or {""})
        ]
    return wrong


@pytest.mark.parametrize("extra", [None, *EXTRAS])
def test_what_setl_needs_is_locked(extra):
    project = PROJECT["project"]
    wanted = project["optional-dependencies"][extra] if extra else project["dependencies"]
    assert not missing(wanted, locked("requirements.txt"))


def test_what_builds_it_is_locked():
    lines = (FOLDER / "build-requirements.in").read_text().splitlines()
    wanted = [line for line in lines if line and not line.startswith("#")]
    assert not missing([*PROJECT["build-system"]["requires"], *wanted], locked(LOCKS[1]))


def test_what_is_missing_or_too_old_is_noticed():
    versions = locked("requirements.txt")
    assert missing(["pyyaml>=99"], versions) == ["pyyaml>=99"]
    del versions["cffi"]  # of cryptography, which pymysql[rsa] brings
    assert any(text.startswith("cffi") for text in missing(["pymysql[rsa]"], versions))


@pytest.mark.parametrize("name", LOCKS)
def test_no_address_is_in_a_lock_file(name):
    assert not re.search(r"://|--(?:extra-)?index|--find-links", (FOLDER / name).read_text())


def test_nothing_is_installed_without_hashes():
    calls = re.findall(r"\bpip (?:--\S+ \S+ )?(?:install|wheel|download)\b[^&\n]*", DOCKERFILE)
    assert len(calls) == 4
    for call in calls:
        assert "--require-hashes" in call or "--no-index" in call, call
        # A build in isolation fetches what it builds with, without hashes.
        assert "wheel" not in call.split()[:4] or "--no-build-isolation" in call, call


def test_the_lock_files_are_in_the_context_of_the_build():
    allowed = (FOLDER / "Dockerfile.dockerignore").read_text().splitlines()
    for name in LOCKS:
        assert f"deploy/docker/{name}" in DOCKERFILE
        assert f"!deploy/docker/{name}" in allowed
