"""setl as it is installed from its wheel into an empty environment, with no checkout beside it."""

import os
import subprocess
import sys
import urllib.request
import venv
from importlib import metadata
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder
from packaging.requirements import Requirement

from setl import __version__
from setl_embedded.ports import free_port
from tests.waiting import eventually

OPTIONAL = (
    ("setl.run.tracing.open_telemetry", "opentelemetry"),
    ("setl.systems.opensearch.", "opensearchpy"),
    ("setl.systems.opensearch.", "botocore"),
)
"""Of modules that are only imported where an extra is asked for, how they begin, and the extra."""

CHECKOUT = Path(__file__).parents[2]


def needed(names):
    """The distributions of this environment that these ones need, themselves among them."""
    found, open_ones = {}, [Requirement(name) for name in names]
    while open_ones:
        wanted = open_ones.pop()
        key = wanted.name.lower().replace("_", "-"), frozenset(wanted.extras)
        if key in found:
            continue
        found[key] = distribution = metadata.distribution(wanted.name)
        for text in distribution.requires or ():
            further = Requirement(text)
            extras = wanted.extras or {""}
            if further.marker is None or any(further.marker.evaluate({"extra": e}) for e in extras):
                open_ones.append(further)
    return list({id(each): each for each in found.values()}.values())


def link(distributions, position):
    """Lay them into another environment, without copying 500 MB."""
    for distribution in distributions:
        home = Path(str(distribution.locate_file("")))
        for top in {file.parts[0] for file in distribution.files or ()}:
            if top not in ("..", "__pycache__") and not (position / top).exists():
                (position / top).symlink_to(home / top)


class Installed:
    """A virtual environment with the wheel and what it declares, and a folder to work in."""

    def __init__(self, folder):
        wheel = next(WheelBuilder(str(CHECKOUT)).build(directory=str(folder)))
        self.home = folder / "venv"
        venv.create(self.home, symlinks=True)
        self.folder = folder / "work"
        self.folder.mkdir()
        install = [
            sys.executable, "-m", "pip", "--disable-pip-version-check", "--python",
            str(self.home / "bin" / "python"), "install", "--quiet",
            "--no-deps", "--no-index", wheel,
        ]  # fmt: skip
        subprocess.run(install, check=True, timeout=280, cwd=self.folder)
        (self.packages,) = self.home.glob("lib/python*/site-packages")
        (declared,) = metadata.distributions(name="setl", path=[str(self.packages)])
        own = [text for text in declared.requires or () if "extra ==" not in text]
        link(needed(own), self.packages)
        self.environment = {
            "PATH": f"{self.home / 'bin'}:{os.defpath}",
            "HOME": str(self.folder),
            **{f"SHOP_{site}_PASSWORD": "secret" for site in "AB"},
        }

    def run(self, *command, status=0):
        done = subprocess.run(
            command, cwd=self.folder, env=self.environment, capture_output=True, text=True,
            timeout=280, check=False,
        )  # fmt: skip
        assert done.returncode == status, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done.stdout + done.stderr


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    return Installed(tmp_path_factory.mktemp("installed"))


def test_it_is_the_wheels_own_code_that_runs(installed):
    said = installed.run("python", "-c", "import setl, arbiter; print(setl.__file__)")
    assert said.strip() == str(installed.packages / "setl" / "__init__.py")
    assert not (installed.packages / "pytest").exists()


def test_a_first_configuration_is_written_and_right(installed):
    assert __version__ in installed.run("setl", "--version")
    assert "Keep databases in step" in installed.run("setl", "--help")
    installed.run("setl", "init", "etc", "--systemd")
    unit = (installed.folder / "etc" / "setl@.service").read_text()
    assert f"ExecStart={installed.home / 'bin' / 'setl'} %i" in unit
    installed.run("setl", "check", "--offline", "etc/shop.yaml")
    shown = installed.run("setl", "node", "--config", "etc/node.yaml", "--print-config")
    assert "zookeeper: 127.0.0.1:2181" in shown
    assert "configuration file" in shown
    assert "_SETL_COMPLETE" in installed.run("setl", "completion", "bash")


def test_nothing_but_what_is_declared_is_needed(installed):
    script = (
        "import importlib, pkgutil, arbiter, setl\n"
        "for package in arbiter, setl:\n"
        "    for found in pkgutil.walk_packages(package.__path__, f'{package.__name__}.'):\n"
        "        try:\n"
        "            importlib.import_module(found.name)\n"
        "        except ModuleNotFoundError as error:\n"
        f"            known = [m for m, package in {OPTIONAL} if package in error.name]\n"
        "            if not any(map(found.name.startswith, known)):\n"
        "                raise\n"
        "        print(found.name)\n"
    )
    assert "setl.node.engines.spark" in installed.run("python", "-c", script).split()


def test_what_needs_more_says_how_it_is_installed(installed):
    """Drills come with the wheel, but the servers that they need do not."""
    said = installed.run("setl", "drill", "list", status=2)
    assert "setl[embedded]" in said


def test_a_process_serves_its_pages(installed):
    port = free_port()
    command = ["setl", "relay", "--http", f"127.0.0.1:{port}", "--zookeeper", "127.0.0.1:1"]
    process = subprocess.Popen(
        command, cwd=installed.folder, env=installed.environment, stderr=subprocess.DEVNULL
    )
    try:

        def get(path, kind="text/html"):
            request = urllib.request.Request(
                f"http://127.0.0.1:{port}{path}", headers={"Accept": kind}
            )
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.read().decode()

        def answers():
            assert process.poll() is None
            try:
                return get("/liveness")
            except OSError:
                return ""

        eventually(answers, 60)
        page = get("/")
        assert "<html" in page
        static = installed.packages / "setl" / "node" / "console" / "static"
        files = [path for path in static.rglob("*") if path.suffix in (".js", ".css")]
        assert len(files) > 3
        for file in files:
            assert get(f"/console/static/{file.relative_to(static).as_posix()}") == file.read_text()
    finally:
        process.kill()  # in order it would wait for ZooKeeper's answer first
        process.wait(60)
