# SPDX-License-Identifier: MIT
"""The operator as a process of its own: probes, a secured scrape, and an end that keeps nobody waiting."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

import pytest

from kubectl_pacto.controller.manifests.operator_objects import release_objects
from kubectl_pacto.controller.metrics import HELP
from tests.cluster.api import Api, Object
from tests.cluster.fixtures import WaitFor
from tests.cluster.live import Live
from tests.cluster_operator.conftest import AGENTS, OPERATORS
from tests.cluster_operator.machines import Machines
from tests.cluster_operator.test_release import as_operator
from tests.cluster_operator.test_scenarios import Scene
from tests.support.sources import ROOT
from tests.support.tls_api import authority

pytestmark = pytest.mark.cluster
GROUP = "pacto.trianalab.io/v1alpha1"
RBAC = "rbac.authorization.k8s.io/v1"
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{OPERATORS}/leases/a4917283.pacto.io"
LAUNCH = "from kubectl_pacto.launcher import main; raise SystemExit(main())"
SAMPLE = re.compile(r'[a-z_]+(\{[a-z]+="(?:[^"\\]|\\.)*"(?:,[a-z]+="(?:[^"\\]|\\.)*")*\})? -?[0-9.e+-]+')
PATIENCE = 30  # seconds for an answer: no kubelet, which would ask again, is behind these requests
READINESS = """
readiness:
  expires: "2099-01-01"
  claims: [{id: runbook, type: url, status: done, evidence: "https://wiki.example/r", weight: 1}]
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Process:
    """`pacto operator` with the rights of a release, and those to ask who may read metrics."""

    def __init__(self, kubeconfig: str, folder: Path, identity: str) -> None:
        self.health, self.metrics, self.identity = free_port(), free_port(), identity
        made = authority()
        self.log = folder / f"{identity}.log"
        arguments = [
            "--kubeconfig", kubeconfig, "--leader-elect", "--kernel-evidence-namespace", AGENTS,
            f"--health-probe-bind-address=127.0.0.1:{self.health}",
            f"--metrics-bind-address=127.0.0.1:{self.metrics}",
            "--metrics-secure", "--metrics-cert-path", str(made.certificate.parent),
            "--metrics-cert-name", made.certificate.name, "--metrics-cert-key", made.key.name,
        ]  # fmt: skip
        environment = {**os.environ, "POD_NAMESPACE": OPERATORS, "POD_NAME": identity}
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", LAUNCH, "operator", *arguments],
                cwd=ROOT,
                env=environment,
                stderr=log,
            )

    def probe(self, path: str) -> tuple[int, str]:
        """The answer to a probe; 0 while nobody listens."""
        try:
            with urlopen(f"http://127.0.0.1:{self.health}{path}", timeout=PATIENCE) as answer:
                return answer.status, answer.read().decode()
        except HTTPError as error:
            with error:
                return error.code, error.read().decode()
        except (URLError, OSError):
            return 0, ""

    def scrape(self, token: str) -> tuple[int, str]:
        """A scrape of the metrics with a bearer token."""
        context = ssl.create_default_context(cafile=str(authority().certificate))
        connection = http.client.HTTPSConnection("localhost", self.metrics, context=context, timeout=PATIENCE)
        try:
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            connection.request("GET", "/metrics", headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def end(self) -> tuple[int, float]:
        """End it as a kubelet does; its exit status and how long it took."""
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60), time.monotonic() - began


def bind(api: Api, name: str, role: str, account: str) -> None:
    """An account holds a ClusterRole."""
    subject = {"kind": "ServiceAccount", "name": account, "namespace": OPERATORS}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
    metadata = {"name": name}
    api.apply(
        {
            "apiVersion": RBAC,
            "kind": "ClusterRoleBinding",
            "metadata": metadata,
            "roleRef": reference,
            "subjects": [subject],
        }
    )


@pytest.fixture
def processes(api: Api, api_server: Live, tmp_path: Path) -> Iterator[list[Process]]:
    """What a test started."""
    values = {"controller": {"kernelEvidence": {"namespace": AGENTS}}}
    objects = release_objects(values, namespace=OPERATORS)
    api.apply(*[one for one in objects if one["kind"] != "Deployment"])
    bind(api, "pacto-operator-auth-delegator", "system:auth-delegator", "pacto-operator")
    reader: Object = {
        "apiVersion": RBAC,
        "kind": "ClusterRole",
        "metadata": {"name": "pacto-metrics-reader"},
        "rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}],
    }
    api.apply(reader)
    for name in ("scraper", "stranger"):
        metadata = {"name": name, "namespace": OPERATORS}
        api.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
    bind(api, "pacto-scraper", "pacto-metrics-reader", "scraper")
    started: list[Process] = []
    yield started
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
            one.process.wait(10)


def holder(api: Api) -> str:
    """Who leads."""
    return str(json.loads(api.raw("GET", LEASE))["spec"].get("holderIdentity", ""))


@pytest.fixture
def scene(api: Api, machines: Machines, namespace: str, wait_for: WaitFor, shop: str) -> Scene:
    """A namespace with a target whose contract has a readiness gate."""
    machines.frozen.clear()
    machines.skew = 0.0
    machines.says(shop, listens=[8080])
    made = Scene(api, namespace, wait_for)
    made.deploy(shop)
    found = api.get(GROUP, "Pacto", shop, namespace)
    assert found is not None
    source = {"inline": found["spec"]["contractRef"]["inline"] + READINESS}
    api.patch(GROUP, "Pacto", shop, {"spec": {"contractRef": source}}, namespace)
    return made


def ready(scene: Scene, process: Process) -> None:
    """Wait until a process says that it is ready."""
    scene.wait_for(lambda: process.probe("/readyz")[0] == 200, 120, f"ready: {process.log.read_text()}")


def test_probes_a_secured_scrape_and_a_clean_end(
    scene: Scene, api_server: Live, processes: list[Process], shop: str, tmp_path: Path
) -> None:
    kubeconfig = as_operator(api_server, tmp_path)
    one = Process(kubeconfig, tmp_path, "one")
    processes.append(one)
    ready(scene, one)
    assert one.probe("/healthz") == (200, "ok\n")
    scene.until(shop, "Compliant")
    tokens = {name: api_server.token(OPERATORS, name) for name in ("scraper", "stranger")}
    refused = [one.scrape(token)[0] for token in ("", "made up", tokens["stranger"])]
    assert refused == [401, 401, 403]
    labels = f'name="{shop}",namespace="{scene.namespace}",level="complete"'
    covered = f"pacto_kernel_coverage_pods{{{labels}}} 1"
    # a check tells its metrics after it has written its status; a refusal may stand for half a minute
    scene.wait_for(lambda: covered in one.scrape(tokens["scraper"])[1].splitlines(), 90, "its series")
    lines = one.scrape(tokens["scraper"])[1].splitlines()
    samples = [line for line in lines if not line.startswith("#")]
    assert [line for line in samples if not SAMPLE.fullmatch(line)] == []
    assert {name for name in HELP if not any(line.startswith(name) for line in samples)} == set()
    assert "pacto_leader 1" in samples
    assert covered in samples

    two = Process(kubeconfig, tmp_path, "two")
    processes.append(two)
    ready(scene, two)
    assert holder(scene.api) == "one"
    assert "pacto_leader 0" in two.scrape(tokens["scraper"])[1]
    status, seconds = one.end()
    assert (status, seconds < 12) == (0, True), one.log.read_text()
    # the Lease would have held for 15 s
    scene.wait_for(lambda: holder(scene.api) == "two", 10, "the second to lead at once")
    assert two.end()[0] == 0
    assert holder(scene.api) == ""
    for log in (one.log, two.log):
        assert "Traceback" not in log.read_text()


def test_without_the_rights_to_list_it_is_alive_and_not_ready_and_says_why(
    api_server: Live, processes: list[Process], tmp_path: Path, wait_for: WaitFor
) -> None:
    config: Object = json.loads(api_server.kubeconfig.read_text())
    (tmp_path / "token").write_text(api_server.token(OPERATORS, "stranger"))
    config["users"][0]["user"] = {"tokenFile": str(tmp_path / "token")}
    path = tmp_path / "config"
    path.write_text(json.dumps(config))
    one = Process(str(path), tmp_path, "powerless")
    processes.append(one)
    wait_for(lambda: one.probe("/readyz")[0] == 503, 120, f"it to answer: {one.log.read_text()}")
    assert "not listed yet: Pacto" in one.probe("/readyz")[1]
    assert one.probe("/healthz")[0] == 200
    wait_for(lambda: "not allowed" in one.log.read_text(), 90, "the refusal in its log")
    assert one.end()[0] == 0
    assert "Traceback" not in one.log.read_text()
