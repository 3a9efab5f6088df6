"""The files of `deploy/kubernetes` fit the schemas of Kubernetes, each other, and the services.

No cluster is here to run them. The operator's own kinds are held against what this project needs of them.
"""

import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from holdfast.events.service import EVENTS
from holdfast.inventory.service import INVENTORY
from holdfast.kit.environment.settings import Settings
from tests.helpers.forking import forks

ROOT = Path(__file__).parents[2]
DIRECTORY = ROOT / "deploy/kubernetes"
PAGE = (ROOT / "docs/deploy/kubernetes.md").read_text(encoding="utf-8")
PRODUCTS = {"events": EVENTS, "inventory": INVENTORY}
PORTS = {"events": 8002, "inventory": 8001}
OF_OPERATOR = "postgresql.cnpg.io/v1"
CONNECTIONS_BESIDE_REQUESTS = 5
"""Connections of each process beside `DATABASE_POOL_SIZE` (docs/deploy/many-processes.md)."""

GRACE_SECONDS = 10
"""Seconds that a process gives to what was begun, after its drain."""


@cache
def documents(name: str) -> list[dict[str, Any]]:
    text = (DIRECTORY / name).read_text(encoding="utf-8")
    return cast("list[dict[str, Any]]", [*yaml.safe_load_all(text)])


def resources() -> list[dict[str, Any]]:
    names = sorted(path.name for path in DIRECTORY.glob("*.yaml"))
    return [resource for name in names if name != "kustomization.yaml" for resource in documents(name)]


def named_resource(kind: str, name: str) -> dict[str, Any]:
    matches = [one for one in resources() if (one["kind"], one["metadata"]["name"]) == (kind, name)]
    assert len(matches) == 1
    return matches[0]


def pod_of(kind: str, name: str) -> dict[str, Any]:
    return named_resource(kind, name)["spec"]["template"]["spec"]


PODS = [
    *(("Deployment", f"holdfast-{service}", service) for service in PRODUCTS),
    *(("Job", f"holdfast-migrate-{service}", service) for service in PRODUCTS),
]


def test_every_file_fits_the_schemas_of_kubernetes_and_has_no_other_members() -> None:
    files = [path for path in sorted(DIRECTORY.glob("*.yaml")) if path.name != "kustomization.yaml"]
    command = [Path(sys.executable).with_name("kubernetes-validate"), "--strict", *files]
    validated = subprocess.run(command, capture_output=True, text=True, check=False)

    output = validated.stdout + validated.stderr
    assert validated.returncode == 0, output
    of_operator = [resource for resource in resources() if resource["apiVersion"] == OF_OPERATOR]
    assert output.count("Couldn't find schema") == len(of_operator) == 2
    assert output.count(" passed for resource ") == len(resources()) - len(of_operator)


def test_the_kustomization_has_every_file_but_the_example_of_secrets() -> None:
    [kustomization] = documents("kustomization.yaml")
    files = {path.name for path in DIRECTORY.glob("*.yaml")}

    assert {*kustomization["resources"]} == files - {"kustomization.yaml", "secrets.example.yaml"}
    images = {container["image"] for kind, name, _ in PODS for container in pod_of(kind, name)["containers"]}
    assert images == {image["name"] for image in kustomization["images"]}


@pytest.mark.parametrize("service", PRODUCTS)
def test_settings_and_secrets_are_accepted_by_the_service(service: str, tmp_path: Path) -> None:
    secrets = named_resource("Secret", f"holdfast-{service}")["stringData"][".env"]
    (tmp_path / ".env").write_text(re.sub(r"=$", f"={'s' * 40}", secrets, flags=re.MULTILINE))
    settings = named_resource("ConfigMap", f"holdfast-{service}")["data"]
    kind = PRODUCTS[service].settings
    known = {kind.variable(field) for field in kind.model_fields}

    checked = forks().run(["holdfast", "config", "check", "--service", service], tmp_path, settings)

    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert {*settings, *re.findall(r"^(\w+)=", secrets, re.MULTILINE)} <= known
    assert re.findall(r"=(.+)$", secrets, re.MULTILINE) == []
    assert not [name for name in settings if re.search("KEY|PASSWORD|TOKEN", name)]


@pytest.mark.parametrize(("kind", "name", "service"), PODS)
def test_a_pod_runs_a_command_without_rights_and_writes_only_where_it_may(
    kind: str, name: str, service: str, tmp_path: Path
) -> None:
    pod = pod_of(kind, name)
    [container] = pod["containers"]

    words = container["args"]
    help = forks().run(["holdfast", *words[:2], "--help"], tmp_path, {}).stdout
    assert words[0] == service
    assert [word for word in words[2:] if word.startswith("--") and word not in help] == []
    assert (pod["securityContext"]["runAsNonRoot"], pod["securityContext"]["runAsUser"]) == (True, 10001)
    assert pod["automountServiceAccountToken"] is False
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert "memory" in container["resources"]["limits"]
    writable = {mount["mountPath"] for mount in container["volumeMounts"] if not mount.get("readOnly")}
    assert writable == {"/var/lib/holdfast", "/tmp"}
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    assert {mount["name"] for mount in container["volumeMounts"]} == {*volumes}
    assert volumes["secrets"]["secret"]["secretName"] == f"holdfast-{service}"
    assert container["envFrom"] == [{"configMapRef": {"name": f"holdfast-{service}"}}]


@pytest.mark.parametrize("service", PRODUCTS)
def test_a_service_is_probed_at_its_port_and_has_time_to_end(service: str) -> None:
    pod = pod_of("Deployment", f"holdfast-{service}")
    [container] = pod["containers"]
    settings = named_resource("ConfigMap", f"holdfast-{service}")["data"]
    readiness, drain = container["readinessProbe"], int(settings["DRAIN_SECONDS"])

    assert container["args"][-1] == str(PORTS[service])
    assert container["ports"] == [{"name": "http", "containerPort": PORTS[service]}]
    assert readiness["httpGet"] == {"path": "/readyz", "port": "http"}
    assert container["livenessProbe"]["httpGet"] == container["startupProbe"]["httpGet"]
    assert container["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "http"}
    assert readiness["periodSeconds"] * readiness["failureThreshold"] < drain
    assert drain + GRACE_SECONDS < pod["terminationGracePeriodSeconds"]
    assert named_resource("Service", f"holdfast-{service}")["spec"]["ports"][0]["port"] == PORTS[service]


@pytest.mark.parametrize("service", PRODUCTS)
def test_selectors_of_a_deployment_match_the_labels_of_its_pods(service: str) -> None:
    name = f"holdfast-{service}"
    labels = named_resource("Deployment", name)["spec"]["template"]["metadata"]["labels"]

    selectors = [
        named_resource("Deployment", name)["spec"]["selector"]["matchLabels"],
        named_resource("Service", name)["spec"]["selector"],
        named_resource("PodDisruptionBudget", name)["spec"]["selector"]["matchLabels"],
        named_resource("NetworkPolicy", "holdfast-services")["spec"]["podSelector"]["matchLabels"],
    ]
    assert all(selector.items() <= labels.items() for selector in selectors)
    assert named_resource("HorizontalPodAutoscaler", name)["spec"]["scaleTargetRef"] == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "name": name,
    }
    # The autoscaler needs a request to compare the load with, and no number of replicas beside its own.
    assert named_resource("Deployment", name)["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"][
        "cpu"
    ]
    assert "replicas" not in named_resource("Deployment", name)["spec"]


def test_the_ingress_leads_to_the_services_and_closes_what_is_not_for_the_public() -> None:
    ingress = named_resource("Ingress", "holdfast")["spec"]

    for service in PRODUCTS:
        host = named_resource("ConfigMap", f"holdfast-{service}")["data"][f"{service.upper()}_BASE_URL"].removeprefix(
            "https://"
        )
        [rule] = [rule for rule in ingress["rules"] if rule["host"] == host]
        backends = {path["path"]: path["backend"]["service"] for path in rule["http"]["paths"]}
        assert backends.pop("/") == {"name": f"holdfast-{service}", "port": {"name": "http"}}
        assert {*backends} == {"/metrics", "/readyz", "/healthz"}
        assert {backend["name"] for backend in backends.values()} == {"holdfast-closed"}
        assert [host] in [tls["hosts"] for tls in ingress["tls"]]
    assert "selector" not in named_resource("Service", "holdfast-closed")["spec"]


def test_postgresql_has_three_instances_on_three_nodes_and_a_standby_that_confirms() -> None:
    cluster = named_resource("Cluster", "holdfast-postgres")["spec"]

    assert cluster["instances"] == 3
    assert cluster["postgresql"]["synchronous"] == {
        "method": "any",
        "number": 1,
        "dataDurability": "required",
        "failoverQuorum": True,
    }
    assert cluster["affinity"]["podAntiAffinityType"] == "required"
    assert "synchronous_commit" not in cluster["postgresql"]["parameters"]


def test_every_process_there_may_be_has_its_connections_and_two_are_left() -> None:
    pools = int(Settings.model_fields["pool_size"].default) + CONNECTIONS_BESIDE_REQUESTS
    most = sum(
        named_resource("HorizontalPodAutoscaler", f"holdfast-{name}")["spec"]["maxReplicas"] + 1 for name in PRODUCTS
    )
    cluster = named_resource("Cluster", "holdfast-postgres")["spec"]

    assert most * pools < int(cluster["postgresql"]["parameters"]["max_connections"])


def test_both_services_have_a_database_that_the_same_role_owns() -> None:
    cluster, database = named_resource("Cluster", "holdfast-postgres"), named_resource("Database", "holdfast-inventory")
    made = cluster["spec"]["bootstrap"]["initdb"]
    databases = {made["database"]: made["owner"], database["spec"]["name"]: database["spec"]["owner"]}

    assert databases == {"events": "holdfast", "inventory": "holdfast"}
    assert database["spec"]["cluster"]["name"] == cluster["metadata"]["name"]
    for service in PRODUCTS:
        url = named_resource("ConfigMap", f"holdfast-{service}")["data"][f"{service.upper()}_DATABASE_URL"]
        assert url.startswith(f"postgresql://holdfast@{cluster['metadata']['name']}-rw:5432/{service}?")
        [password] = pod_of("Deployment", f"holdfast-{service}")["containers"][0]["env"]
        assert password["valueFrom"]["secretKeyRef"]["name"] == f"{cluster['metadata']['name']}-app"


def test_the_kustomization_of_the_page_changes_what_the_base_has() -> None:
    [text] = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    example, [base] = yaml.safe_load(text), documents("kustomization.yaml")

    assert {image["name"] for image in example["images"]} == {image["name"] for image in base["images"]}
    assert example["resources"] == ["../holdfast/deploy/kubernetes"]
    for patch in example["patches"]:
        changed = yaml.safe_load(patch["patch"])
        assert {*changed["data"]} <= {*named_resource(changed["kind"], changed["metadata"]["name"])["data"]}


def test_the_kubernetes_page_lists_every_manifest() -> None:
    rows = "".join(line for line in PAGE.splitlines() if line.startswith("| `"))

    assert {*re.findall(r"`([\w.]+\.yaml)`", rows)} == {path.name for path in DIRECTORY.glob("*.yaml")} - {
        "kustomization.yaml"
    }
