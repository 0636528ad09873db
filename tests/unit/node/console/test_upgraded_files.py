"""A wheel that is installed again under a running node changes none of its pages."""

import shutil
import subprocess
import sys
from pathlib import Path

import setl

_PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
import setl
from setl.node.console.pages import rendering
assert setl.__file__.startswith(sys.argv[1])
print("read", flush=True)
sys.stdin.readline()
values = {"title": "Not found", "text": "Nothing", "log_in": False, "live": "", "kind": "fault",
          "here": "n1", "session": None, "writable": False, "path": "/", "notes": ()}
sys.stdout.write(rendering.page("fault.html", values))
"""


def test_pages_are_made_from_the_templates_that_the_process_began_with(tmp_path):
    package = Path(setl.__file__).parent
    shutil.copytree(package, tmp_path / "setl", ignore=shutil.ignore_patterns("__pycache__"))
    process = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, str(tmp_path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "read\n"
        for template in (tmp_path / "setl/node/console/templates").rglob("*.html"):
            template.write_text("{{ what_the_old_code_does_not_know }}")
        out, _ = process.communicate("go on\n", timeout=280)
    finally:
        process.kill()
    assert process.returncode == 0
    assert "Not found" in out
