"""Fills a folder of `setl_embedded.server_home` from Debian's archive.

``python -m setl_embedded.unpacking NAME`` does it, unless it is done, for one of `RELEASES`.
"""

from __future__ import annotations

import fcntl
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from setl_embedded.errors import EmbeddedError
from setl_embedded.server_home import RELEASES, Release, ServerHome

# What only the packages' installation scripts and manuals use; the programs need none of it.
_LEFT_OUT = ("perl", "libperl", "dpkg", "debconf", "tar", "gcc-", "libc-gconv", "media-types")
_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")


def unpack(release: Release, home: ServerHome) -> bool:
    """Download and unpack what is missing; two at once wait for each other.

    Args:
        release: what.
        home: where.

    Returns:
        Whether there was something to do.

    Raises:
        EmbeddedError: apt-get is missing, the archive cannot be reached or lacks a package, or
            the folder cannot be written.
    """
    try:
        home.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EmbeddedError(f"{home.folder} cannot be made: {error}") from error
    with (home.folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if home.filled:
            return False
        with tempfile.TemporaryDirectory(prefix="apt-", dir=home.folder) as scratch:
            packages = _download(release, Path(scratch))
            shutil.rmtree(home.root, ignore_errors=True)
            for package in packages:
                _run("dpkg-deb", "--extract", str(package), str(home.root))
        _wrap(home, release)
        _run(*home.program(release.program), "--version")
        home.stamp.write_text("".join(f"{package.name}\n" for package in packages))
        return True


def _wrap(home: ServerHome, release: Release) -> None:
    """Write the scripts of `ServerHome.wrapped`."""
    shutil.rmtree(home.wrapped, ignore_errors=True)
    for folder, name in release.wrapped:
        script = home.wrapped / folder / name
        script.parent.mkdir(parents=True, exist_ok=True)
        script.write_text(f'#!/bin/sh\nexec {shlex.join(home.program(name))} "$@"\n')
        script.chmod(0o755)
    if release.wrapped:
        (home.wrapped / "share").symlink_to(home.base / "share")


def _download(release: Release, scratch: Path) -> list[Path]:
    """The packages and all they need, in `scratch`; the system's own apt stays as it is."""
    sources = scratch / "sources.list"
    sources.write_text("".join(f"{line}\n" for line in _sources(release)))
    for folder in ("lists/partial", "cache/archives/partial", "packages"):
        (scratch / folder).mkdir(parents=True)
    apt = (
        "apt-get",
        "-qq",
        f"-oDir::State::Lists={scratch / 'lists'}",
        f"-oDir::Etc::SourceList={sources}",
        "-oDir::Etc::SourceParts=/dev/null",
        "-oDir::Etc::Preferences=/dev/null",
        "-oDir::Etc::PreferencesParts=/dev/null",
        f"-oDir::Cache={scratch / 'cache'}",
        # Nothing counts as installed, so every library is in the answer.
        "-oDir::State::Status=/dev/null",
        # apt's own user cannot write into this folder.
        "-oAPT::Sandbox::User=root",
        "-oAcquire::Retries=3",
    )
    _run(*apt, "update")
    listed = _run(
        *apt, "install", "-y", "--no-install-recommends", "--print-uris", *release.packages
    )
    # A line of the answer: 'ADDRESS' NAME_VERSION_ARCHITECTURE.deb SIZE HASH
    names = [line.split()[1].split("_")[0] for line in listed.splitlines() if ".deb" in line]
    wanted = [name for name in names if not name.startswith(_LEFT_OUT)]
    _run(*apt, "download", *wanted, cwd=scratch / "packages")
    return sorted((scratch / "packages").glob("*.deb"))


def _sources(release: Release) -> list[str]:
    """Where apt is to look."""
    archive = _mirror()
    lines = [f"deb [signed-by={_KEYRING}] {archive} {release.suite} main"]
    if release.security:
        updates = f"{archive.rstrip('/')}-security"
        lines.append(f"deb [signed-by={_KEYRING}] {updates} {release.suite}-security main")
    return lines


def _mirror() -> str:
    """The Debian archive that this machine's apt is configured for."""
    listed = _run(
        "apt-get", "indextargets", "--format", "$(CODENAME) $(REPO_URI)", "Created-By: Packages"
    )
    for line in listed.splitlines():
        codename, _, address = line.partition(" ")
        # bookworm, not bookworm-security or another's archive, which have no other releases.
        if "debian" in address and "-" not in codename:
            return address.strip()
    raise EmbeddedError(
        "apt is not configured for a Debian archive, which servers are unpacked from; put an"
        " unpacked one elsewhere and name its folder in SETL_MYSQL_HOME or SETL_MARIADB_HOME"
    )


def _run(*command: str, cwd: Path | None = None) -> str:
    try:
        done = subprocess.run(
            command, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise EmbeddedError(f"{command[0]} cannot be run: {error}") from error
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip()
        raise EmbeddedError(
            f"the server cannot be unpacked: {command[0]} ended with {done.returncode}: {said}"
        )
    return done.stdout


def main(arguments: Sequence[str]) -> int:
    """Fill one folder and say so."""
    if len(arguments) != 1 or arguments[0] not in RELEASES:
        print(f"name one of {', '.join(RELEASES)}", file=sys.stderr)
        return 2
    (name,) = arguments
    home = ServerHome.of_this_machine(name)
    try:
        done = unpack(RELEASES[name], home)
    except EmbeddedError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 1
    print(f"{name}: {'unpacked' if done else 'there already'}, in {home.folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
