"""Fills the folder of `setl_embedded.mysql_home` from Debian's archive.

``python -m setl_embedded.mysql_unpacking`` does it, unless it is done.
"""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from setl_embedded.errors import EmbeddedError
from setl_embedded.mysql_home import MysqlHome

RELEASE = "sid"
_PACKAGES = ("mysql-server-core", "mysql-client-core")
# What only the packages' installation scripts and manuals use; the programs need none of it.
_LEFT_OUT = ("perl", "libperl", "dpkg", "debconf", "tar", "gcc-", "libc-gconv", "media-types")
_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")


def unpack(home: MysqlHome) -> bool:
    """Download and unpack what is missing; two at once wait for each other.

    Returns:
        Whether there was something to do.

    Raises:
        EmbeddedError: apt-get is missing, the archive cannot be reached or lacks a package, or
            the folder cannot be written.
    """
    try:
        home.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EmbeddedError(f"MySQL cannot be unpacked: {error}") from error
    with (home.folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if home.filled:
            return False
        with tempfile.TemporaryDirectory(prefix="apt-", dir=home.folder) as scratch:
            packages = _download(Path(scratch))
            shutil.rmtree(home.root, ignore_errors=True)
            for package in packages:
                _run("dpkg-deb", "--extract", str(package), str(home.root))
        _run(*home.program("mysqld"), "--version")
        home.stamp.write_text("".join(f"{package.name}\n" for package in packages))
        return True


def _download(scratch: Path) -> list[Path]:
    """The packages and all they need, in `scratch`; the system's own apt stays as it is."""
    sources = scratch / "sources.list"
    sources.write_text(f"deb [signed-by={_KEYRING}] {_mirror()} {RELEASE} main\n")
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
        f"-oAPT::Default-Release={RELEASE}",
        # apt's own user cannot write into this folder.
        "-oAPT::Sandbox::User=root",
        "-oAcquire::Retries=3",
    )
    _run(*apt, "update")
    listed = _run(*apt, "install", "-y", "--no-install-recommends", "--print-uris", *_PACKAGES)
    # A line of the answer: 'ADDRESS' NAME_VERSION_ARCHITECTURE.deb SIZE HASH
    names = [line.split()[1].split("_")[0] for line in listed.splitlines() if ".deb" in line]
    wanted = [name for name in names if not name.startswith(_LEFT_OUT)]
    _run(*apt, "download", *wanted, cwd=scratch / "packages")
    return sorted((scratch / "packages").glob("*.deb"))


def _mirror() -> str:
    """The Debian archive that this machine's apt is configured for."""
    listed = _run(
        "apt-get", "indextargets", "--format", "$(CODENAME) $(REPO_URI)", "Created-By: Packages"
    )
    for line in listed.splitlines():
        codename, _, address = line.partition(" ")
        # bookworm, not bookworm-security or another's archive, which have no unstable release.
        if "debian" in address and "-" not in codename:
            return address.strip()
    raise EmbeddedError(
        "apt is not configured for a Debian archive, which MySQL is unpacked from; "
        "put an unpacked one elsewhere and name its folder in SETL_MYSQL_HOME"
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
            f"MySQL cannot be unpacked: {command[0]} ended with {done.returncode}: {said}"
        )
    return done.stdout


def main() -> int:
    """Fill the folder and say so."""
    home = MysqlHome.of_this_machine()
    try:
        done = unpack(home)
    except EmbeddedError as error:
        print(f"mysql: {error}", file=sys.stderr)
        return 1
    print(f"mysql: {'unpacked' if done else 'there already'}, in {home.folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
