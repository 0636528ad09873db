"""The manifests are what Kubernetes' own schemas ask for, and what setl understands."""

from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from tests.unit.deploy.configured import settings

FOLDER = Path(__file__).parents[3] / "deploy" / "kubernetes"
BASE = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())
FILES = [*BASE["resources"], "secret.example.yaml"]
VERSIONS = ("1.27", "1.37")  # the oldest and the newest that are looked at


def objects(*names):
    return [each for name in names for each in yaml.safe_load_all((FOLDER / name).read_text())]


def the(kind):
    (found,) = (each for each in objects(*BASE["resources"]) if each["kind"] == kind)
    return found


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", FILES)
def test_kubernetes_knows_every_field(name, version):
    for each in objects(name):
        kubernetes_validate.validate(each, version, strict=True)
        misspelt = each | {"automountServiceAccountTokens": False}
        with pytest.raises(kubernetes_validate.ValidationError):
            kubernetes_validate.validate(misspelt, version, strict=True)


def test_everything_in_the_folder_belongs_to_the_base():
    generated = [name for each in BASE["configMapGenerator"] for name in each["files"]]
    known = {*FILES, *generated, "kustomization.yaml"}
    assert {path.name for path in FOLDER.iterdir()} == known


def test_all_of_it_is_about_the_same_pods():
    (labels,) = (the("StatefulSet")["spec"]["template"]["metadata"]["labels"],)
    selectors = [
        the("StatefulSet")["spec"]["selector"]["matchLabels"],
        the("PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
        the("NetworkPolicy")["spec"]["podSelector"]["matchLabels"],
        *(each["spec"]["selector"] for each in objects("services.yaml")),
    ]
    rules = the("StatefulSet")["spec"]["template"]["spec"]["affinity"]["podAntiAffinity"]
    (must,) = rules["requiredDuringSchedulingIgnoredDuringExecution"]
    (should,) = rules["preferredDuringSchedulingIgnoredDuringExecution"]
    selectors += [
        must["labelSelector"]["matchLabels"],
        should["podAffinityTerm"]["labelSelector"]["matchLabels"],
    ]
    assert [each for each in selectors if each != labels] == []


def test_what_is_named_is_there():
    workload = the("StatefulSet")["spec"]
    pod = workload["template"]["spec"]
    (container,) = pod["containers"]
    services = {each["metadata"]["name"]: each for each in objects("services.yaml")}
    assert services[workload["serviceName"]]["spec"]["clusterIP"] == "None"
    assert pod["serviceAccountName"] == the("ServiceAccount")["metadata"]["name"]
    ports = {port["name"] for port in container["ports"]}
    assert {p["targetPort"] for each in services.values() for p in each["spec"]["ports"]} <= ports
    volumes = {each["name"] for each in pod["volumes"]}
    assert {each["name"] for each in container["volumeMounts"]} == volumes
    configured = {each["configMap"]["name"] for each in pod["volumes"] if "configMap" in each}
    assert configured == {each["name"] for each in BASE["configMapGenerator"]}
    assert container["image"] in {each["name"] for each in BASE["images"]}
    (secret,) = objects("secret.example.yaml")
    named = [each["secretRef"]["name"] for each in container["envFrom"]]
    assert named == [secret["metadata"]["name"]]


def test_a_pod_runs_a_node_with_its_own_id(capsys):
    pod = the("StatefulSet")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    variables = {each["name"]: each for each in container["env"]}
    named = variables.pop("SETL_NODE_ID")
    assert named["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.name"
    own = {name: each["value"] for name, each in variables.items()}
    arguments = [word.replace("/etc/setl", str(FOLDER)) for word in container["args"]]
    found = settings(arguments, {**own, named["name"]: "setl-1"}, capsys)
    assert found["id"] == "setl-1"
    ports = {each["name"]: str(each["containerPort"]) for each in container["ports"]}
    for name in ("http", "probes"):
        assert found[name].rpartition(":")[2] == ports[name]


def test_only_the_kubelet_reaches_the_port_of_probes():
    pod = the("StatefulSet")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"]["port"] == "probes"
    (rule,) = the("NetworkPolicy")["spec"]["ingress"]
    assert [each["port"] for each in rule["ports"]] == ["http"]


def test_a_pod_has_time_to_drain():
    pod = the("StatefulSet")["spec"]["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] > 30  # a drain takes up to 30 s
