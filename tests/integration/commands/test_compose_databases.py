"""What the compose file runs on its two databases leaves `setl check` nothing to ask for."""

import subprocess
from pathlib import Path

import pytest
import yaml

from setl.cli.main import run
from tests.integration.pipelines import execute, install_system_tables

DEPLOY = Path(__file__).parents[3] / "deploy"
SERVICES = yaml.safe_load((DEPLOY / "compose" / "compose.yaml").read_text())["services"]
PASSWORD = """it's\\\\ of a "test" $PATH `id` \\'"""  # quotes, backslashes, what a shell expands

pytestmark = [
    pytest.mark.servers,
    pytest.mark.family("mysql", why="the compose file runs MySQL"),
]


def statements(text):
    bare = "\n".join(line for line in text.splitlines() if not line.startswith("--"))
    return [each for each in bare.split(";\n") if each.strip()]


def account():
    """What the script gives to the function of the image's entry point."""
    script = f". {DEPLOY / 'compose' / 'databases' / '40-account.sh'}"
    done = subprocess.run(
        ["bash", "-euc", f"docker_process_sql() {{ cat; }}; {script}"],
        env={"SHOP_PASSWORD": PASSWORD, "PATH": "/usr/bin:/bin"},
        capture_output=True, text=True, check=True, timeout=280,
    )  # fmt: skip
    return statements(done.stdout)


@pytest.fixture
def sites(site_a, site_b):
    scripts = [
        mount.split(":")[0]
        for mount in SERVICES["db-a"]["volumes"]
        if "docker-entrypoint-initdb.d" in mount
    ]
    assert [Path(name).name for name in scripts] == [
        "retl.sql", "fence.sql", "30-shop.sql", "40-account.sh",
    ]  # fmt: skip
    for server in (site_a, site_b):
        install_system_tables(server)  # the first two, which other tests have run as well
        execute(server, *statements((DEPLOY / "compose/databases/30-shop.sql").read_text()))
        execute(server, *account())
    yield site_a, site_b
    for server in (site_a, site_b):
        execute(server, "DROP DATABASE shop", "DROP USER 'retl'@'%'")


def test_the_example_channel_finds_all_it_needs(sites, monkeypatch, capsys):
    for name, server in zip("AB", sites, strict=True):
        monkeypatch.setenv(f"SHOP_{name}_HOST", server.host)
        monkeypatch.setenv(f"SHOP_{name}_PORT", str(server.port))
        monkeypatch.setenv(f"SHOP_{name}_PASSWORD", PASSWORD)
    status = run(["check", str(DEPLOY / "examples" / "shop.yaml"), "-v"])
    assert status == 0, capsys.readouterr().out
