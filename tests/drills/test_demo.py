"""`setl demo` from beginning to end, as somebody sees it who ends it with SIGTERM."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import urllib.request
from pathlib import Path

import psutil
import pytest

from tests.waiting import eventually

LIMIT = 240


@pytest.fixture
def short_folder():
    """A folder for temporary files: where the path is long, Spark's workers do without sockets."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@pytest.mark.servers
@pytest.mark.timeout(LIMIT + 50)
def test_it_survives_its_leader_shows_the_console_and_leaves_nothing_behind(tmp_path, short_folder):
    setl = Path(sys.executable).with_name("setl")
    command = (setl, "demo", "--keep", "--seconds", "10", "--rate", "100")
    environment = {**os.environ, "TMPDIR": str(short_folder)}
    demo = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, cwd=tmp_path, env=environment
    )
    assert demo.stdout is not None
    lines = []
    reader = threading.Thread(target=lines.extend, args=(demo.stdout,), daemon=True)
    reader.start()
    try:
        eventually(lambda: "Ctrl-C" in "".join(lines) or demo.poll() is not None, LIMIT)
        said = "".join(lines)
        assert "All equal, nothing echoed" in said
        assert re.search(r"watch it in a browser: http://127.0.0.1:\d+/", said)  # from the start
        (console,) = re.findall(r"In a browser: (\S+)", said)
        page = urllib.request.Request(console, headers={"Accept": "text/html"})  # as browsers do
        with urllib.request.urlopen(page, timeout=20) as answer:
            assert "<title>" in answer.read().decode()
        (folder,) = re.findall(r"Logs: (\S+)", said)
        assert Path(folder, "n2.log").exists()
        children = psutil.Process(demo.pid).children(recursive=True)
        assert len(children) > 5
    finally:
        demo.send_signal(signal.SIGTERM)
        try:
            status = demo.wait(60)
        finally:
            demo.kill()
    assert status == 130
    reader.join(10)
    assert "Stopped, and removed everything." in "".join(lines)
    assert Path(folder).parent == short_folder
    eventually(lambda: not [child for child in children if child.is_running()], 20)
    # The killed node could remove nothing itself.
    left = [each.name for each in short_folder.iterdir()]
    assert [name for name in left if not name.endswith(".lock")] == []
