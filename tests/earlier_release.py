"""The code of an earlier release, for tests of upgrades."""

import io
import subprocess
import tarfile
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[1]
COMMIT = "a7b499c8c1fee571ad3603a56cf8f87d185479a3"
"""What stands for the release before; once there are releases, the last one's tag."""

FOLDERS = ("setl", "arbiter", "schemas", "sql", "deploy")

NOT_HERE = "the earlier release is not in this clone, which has no whole history"


def unpack(folder):
    """Lay the earlier code out there; gives back the variable that makes Python import it.

    A clone without the whole history does not have it; then the test is skipped.
    """
    found = subprocess.run(
        ["git", "-C", str(CHECKOUT), "archive", COMMIT, *FOLDERS],
        capture_output=True, check=False, timeout=60,
    )  # fmt: skip
    if found.returncode:
        pytest.skip(NOT_HERE)
    with tarfile.open(fileobj=io.BytesIO(found.stdout)) as archive:
        # Debian's Python 3.11.2 knows no `filter`; this is what git has made of our own files.
        archive.extractall(folder)
    entry = folder / "setl" / "cli" / "entry.py"
    if not entry.exists():
        # The script that is installed is that of today's release, which begins there.
        entry.write_text("from setl.cli.main import main as main\n")
    return {"PYTHONPATH": f"{folder}:{folder / 'deploy'}"}
