"""The compose file is what the specification says, and its parts fit together.

Nothing is started here: that takes a Docker daemon, and images from elsewhere.
"""

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from compose_spec import PyCompose

from setl.cli.main import cli
from setl.cli.nodes.config import VARIABLES
from tests.unit.deploy.configured import options, settings

FOLDER = Path(__file__).parents[3] / "deploy" / "compose"
TEXT = (FOLDER / "compose.yaml").read_text()
CONTENT = yaml.safe_load(TEXT)
SERVICES = CONTENT["services"]
NODES = [name for name in SERVICES if name.startswith("node")]
CHECKOUT = FOLDER.parents[1]


def test_it_follows_the_specification():
    PyCompose.from_yaml(yaml.safe_dump(CONTENT))
    wrong = {**SERVICES, "node1": {**SERVICES["node1"], "restarts": "always"}}
    with pytest.raises(ValueError, match="restarts"):
        PyCompose.from_yaml(yaml.safe_dump({**CONTENT, "services": wrong}))


def test_there_is_what_was_promised():
    assert NODES == ["node1", "node2", "node3"]
    assert set(SERVICES) - set(NODES) == {
        "db-a", "db-b", "zk1", "zk2", "zk3", "setl", "prometheus", "grafana",
    }  # fmt: skip


@pytest.mark.parametrize("name", [name for name in SERVICES if name != "setl"])
def test_every_service_comes_back_and_is_looked_after(name):
    service = SERVICES[name]
    assert service["restart"] == "unless-stopped"
    assert service.get("build") or service["healthcheck"]["test"]  # an image of setl has its own
    for port in service.get("ports", ()):
        assert port.startswith("127.0.0.1:")  # nothing but this machine is asked in


@pytest.mark.parametrize("name", SERVICES)
def test_no_password_is_an_argument(name):
    """Arguments are in the list of processes; only the shell that runs a line may name one."""
    service = SERVICES[name]
    said = [*service.get("healthcheck", {}).get("test", ()), *service.get("command", ())]
    for word in " ".join(map(str, said)).split():
        assert "PASSWORD" not in word or re.match(r"[A-Z_]+=", word), word
        assert not re.match(r"--?p(assword)?=", word), word


def test_ports_are_taken_once():
    taken = [port.split(":")[1] for each in SERVICES.values() for port in each.get("ports", ())]
    assert len(taken) == len(set(taken))


@pytest.mark.parametrize("name", SERVICES)
def test_what_is_mounted_is_there(name):
    for mount in SERVICES[name].get("volumes", ()):
        source = mount.split(":")[0]
        if source.startswith("."):
            assert (FOLDER / source).exists(), source
        else:
            assert source in CONTENT["volumes"]
    for each, how in SERVICES[name].get("depends_on", {}).items():
        assert how == {"condition": "service_healthy"}
        assert "test" in SERVICES[each]["healthcheck"]


def test_the_example_sets_every_variable_that_is_asked_for():
    asked = set(re.findall(r"\$\{(\w+):\?", TEXT))
    given = dict(re.findall(r"(?m)^(\w+)=(.*)$", (FOLDER / "example.env").read_text()))
    assert set(given) == asked
    # Compose refuses an empty one, and says what to do; a node would refuse a made-up one later.
    assert [name for name, value in given.items() if not value] == ["SETL_HTTP_TOKEN"]


@pytest.mark.parametrize("name", NODES)
def test_a_node_is_run_with_what_setl_reads(name, capsys):
    service = SERVICES[name]
    known = {*VARIABLES.values(), *options(), "SETL_HTTP_TOKEN"}
    environment = service["environment"]
    assert {each for each in environment if each.startswith("SETL_")} <= known
    own = {
        each: value.replace("/etc/setl", str(FOLDER))
        for each, value in environment.items()
        if "$" not in value
    }
    found = settings(service["command"], own, capsys)
    assert (found["id"], service["hostname"]) == (name, name)
    assert found["master"] == "local[2]"  # of the file
    assert found["http"].rpartition(":")[2] == service["ports"][0].rpartition(":")[2]
    servers = found["zookeeper"].split(",")
    assert [each.split(":")[0] for each in servers] == ["zk1", "zk2", "zk3"]
    assert all(each.split(":")[0] in SERVICES for each in servers)


def test_zookeepers_know_each_other():
    for number, name in enumerate(("zk1", "zk2", "zk3"), 1):
        environment = SERVICES[name]["environment"]
        assert environment["ZOO_MY_ID"] == str(number)
        assert f"server.{number}={name}:" in environment["ZOO_SERVERS"]


def test_databases_differ():
    numbers = {SERVICES[name]["command"][0] for name in ("db-a", "db-b")}
    assert numbers == {"--server-id=1", "--server-id=2"}
    hosts = [SERVICES["node1"]["environment"][f"SHOP_{site}_HOST"] for site in "AB"]
    assert hosts == ["db-a", "db-b"]


def test_prometheus_asks_every_node():
    (targets,) = yaml.safe_load((FOLDER / "targets.yml").read_text())
    assert targets["targets"] == [f"{name}:8080" for name in NODES]
    mounted = dict(mount.split(":")[:2] for mount in SERVICES["prometheus"]["volumes"])
    (job,) = yaml.safe_load((FOLDER.parent / "monitoring" / "prometheus.yml").read_text())[
        "scrape_configs"
    ]
    (found,) = job["file_sd_configs"]
    assert mounted["./targets.yml"] == f"/etc/prometheus/{found['files'][0]}"


def test_grafana_finds_its_data_and_its_dashboards():
    mounted = dict(mount.split(":")[:2] for mount in SERVICES["grafana"]["volumes"])
    provisioning = FOLDER.parent / "monitoring" / "grafana" / "provisioning"
    assert mounted["../monitoring/grafana/provisioning"] == "/etc/grafana/provisioning"
    (file,) = (provisioning / "dashboards").iterdir()
    (provider,) = yaml.safe_load(file.read_text())["providers"]
    assert provider["options"]["path"] in mounted.values()
    (file,) = (provisioning / "datasources").iterdir()
    (source,) = yaml.safe_load(file.read_text())["datasources"]
    host, port = source["url"].removeprefix("http://").split(":")
    assert SERVICES[host]["ports"][0].endswith(f":{port}")


def test_commands_in_the_head_exist():
    head = TEXT[: TEXT.index("name: setl")]
    commands = re.findall(r"run --rm setl (\w+)", head)
    assert commands
    for name in commands:
        assert cli.get_command(None, name) is not None  # pyright: ignore[reportArgumentType]


@pytest.fixture(scope="module")
def stages():
    """The Dockerfile's instructions, a list for each stage."""
    text = (FOLDER.parent / "docker" / "Dockerfile").read_text()
    joined = re.sub(r"\\\n\s*", "", re.sub(r"(?m)^#.*\n", "", text))
    found = []
    for line in joined.splitlines():
        if line.startswith("FROM "):
            found.append([])
        if line and found:  # what stands in front of the first is an argument of the build
            found[-1].append(line)
    return found


def test_the_image_is_made_of_what_its_context_has(stages):
    build, _ = stages
    ignored = (FOLDER.parent / "docker" / "Dockerfile.dockerignore").read_text()
    let_in = [line[1:] for line in ignored.splitlines() if line.startswith("!")]
    for path in let_in:
        assert (CHECKOUT / path).exists()
    for line in build:
        if line.startswith("COPY "):
            for source in line.split()[1:-1]:
                name = source.rstrip("/")
                assert (CHECKOUT / name).exists()
                assert any(each == name or each.startswith(f"{name}/") for each in let_in)


def test_the_image_has_all_that_the_wheel_is_built_from():
    hatch = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    wheel = hatch["targets"]["wheel"]
    ignored = (FOLDER.parent / "docker" / "Dockerfile.dockerignore").read_text()
    let_in = {line[1:] for line in ignored.splitlines() if line.startswith("!")}
    assert {*wheel["packages"], *wheel["force-include"]} <= let_in


def test_the_image_runs_a_node_as_nobody_in_particular(stages):
    _, final = stages
    words = {line.split()[0]: line.split(maxsplit=1)[1] for line in final}
    assert words["FROM"] == stages[0][0].split()[1]  # the same Python for the same environment
    assert int(words["USER"].split(":")[0]) > 0
    assert words["CMD"] == '["node"]'
    assert words["ENTRYPOINT"].endswith('"setl"]')
    assert "/liveness" in words["HEALTHCHECK"]
    probes = re.search(r"SETL_PROBES=(127\.0\.0\.1:\d+)", words["ENV"])  # nobody else reaches it
    assert probes
    assert f"http://{probes[1]}/" in words["HEALTHCHECK"]
    port = words["EXPOSE"]
    assert f"SETL_HTTP=0.0.0.0:{port}" in words["ENV"]
