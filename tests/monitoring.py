"""Finds Prometheus' programs, which `deploy/install dev` unpacks without their service."""

import shutil
import subprocess
import sys
from pathlib import Path

MONITORING = Path(__file__).parents[1] / "deploy" / "monitoring"


def prometheus_program(name):
    """Full path of ``prometheus`` or ``promtool``."""
    found = shutil.which(name) or shutil.which(name, path=Path(sys.prefix, "prometheus/usr/bin"))
    assert found, f"{name} is not there: run deploy/install dev, or install Prometheus"
    return found


def promtool(*arguments, given=""):
    """What promtool says; fails if that is not that all is well."""
    done = subprocess.run(
        [prometheus_program("promtool"), *map(str, arguments)],
        input=given,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    return said
