"""Where a JVM keeps its files, and who removes them if it could not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from setl.run.spark.jvm_folders import LOCAL_DIRS, make_jvm_folders
from tests.waiting import eventually

# A process and, instead of its JVM, a child that lives on until its own input ends.
STARTED = """
import os, subprocess, sys
from setl.run.spark.jvm_folders import make_jvm_folders
folders = make_jvm_folders({}, os.environ, local=True)
waits = [sys.executable, "-c", "import sys; print(0, flush=True); sys.stdin.read()"]
subprocess.Popen(waits, pass_fds=folders.locks).wait()
"""


@pytest.fixture
def parent(tmp_path, monkeypatch):
    """The folder for temporary files."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def own(parent: Path) -> set[Path]:
    return set(parent.glob("setl-jvm-*"))


def test_folders_are_removed_when_process_and_jvm_are_gone_and_no_sooner(parent):
    disk = parent / "disk"
    environment = {**os.environ, "TMPDIR": str(parent), LOCAL_DIRS: str(disk)}
    process = subprocess.Popen(
        [sys.executable, "-c", STARTED],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdout.readline()
        left = own(parent) | own(disk)
        assert len(left) == 2
        for folder in left:
            (folder / "blockmgr-1").mkdir()
            (folder / "blockmgr-1" / "shuffle_0_0_0.data").write_text("rows")
        make_jvm_folders({}, environment, local=True)
        assert left <= own(parent) | own(disk)
        process.send_signal(signal.SIGKILL)
        process.wait(10)
        make_jvm_folders({}, environment, local=True)  # the child lives
        assert left <= own(parent) | own(disk)
    finally:
        process.kill()
        process.stdin.close()
    process.stdout.read()  # until the child has ended

    def gone() -> bool:
        make_jvm_folders({}, environment, local=True)
        return not left & (own(parent) | own(disk))

    eventually(gone)


def test_what_others_named_so_is_left_alone(parent, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "file").touch()
    (parent / "setl-jvm-link").symlink_to(elsewhere)
    (parent / "setl-jvm-file").touch()
    of_another = parent / "setl-jvm-another"
    of_another.mkdir()
    if os.getuid() == 0:
        os.chown(of_another, 65534, -1)
    (parent / "blockmgr-1").mkdir()
    make_jvm_folders({}, {}, local=True)
    assert (elsewhere / "file").exists()
    assert (parent / "setl-jvm-file").exists()
    assert of_another.exists() == (os.getuid() == 0)
    assert (parent / "blockmgr-1").exists()


def test_folders_that_are_named_have_their_own_inside(parent, monkeypatch):
    monkeypatch.delenv(LOCAL_DIRS, raising=False)
    (parent / "file").touch()
    given = {"spark.local.dir": f"{parent}/a, {parent}/file"}
    folders = make_jvm_folders(given, {}, local=True)
    assert [path.parent for path in folders.local] == [parent / "a", parent]
    assert folders.local[1] == parent / "file"  # Spark says what is wrong with it
    with folders.handed_over():
        assert os.environ[LOCAL_DIRS] == ",".join(map(str, folders.local))
    assert LOCAL_DIRS not in os.environ
    assert make_jvm_folders(given, {}, local=False).local == ()
