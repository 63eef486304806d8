# SPDX-License-Identifier: MIT
"""A Helm release that runs: operator and agents on nodes, `helm test`, TLS, rights of one namespace."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cluster.live import Live
from tests.cluster_chart.conftest import Installers
from tests.images.runtime import NAME as IMAGE
from tests.support.helm import NAMESPACE, RELEASE

pytestmark = pytest.mark.cluster
REPOSITORY, _, TAG = IMAGE.rpartition(":")
RUNTIME = {
    "image": {"repository": REPOSITORY, "tag": TAG, "pullPolicy": "Never"},
    "nodeAgent": {"enabled": True, "image": IMAGE, "imagePullPolicy": "Never", "publishInterval": "2s"},
    "controller": {"kernelEvidence": {"staleness": "10s"}},
}
# asks the operator's own port with a token, from a container that has Python
READ = """
import ssl, sys, urllib.error, urllib.request
request = urllib.request.Request("https://127.0.0.1:8080/metrics")
if len(sys.argv) > 1:
    request.add_header("Authorization", "Bearer " + sys.argv[1])
context = ssl.create_default_context(cafile="/etc/pacto/metrics/tls.crt")
context.check_hostname = False
try:
    print(urllib.request.urlopen(request, context=context, timeout=10).status)
except urllib.error.HTTPError as error:
    print(error.code)
"""


def certificate(live: Live, folder: Any) -> None:
    """A Secret as `kubectl create secret tls` makes it."""
    import subprocess

    key, crt = folder / "tls.key", folder / "tls.crt"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    subject = ["-subj", f"/CN={RELEASE}-metrics.{NAMESPACE}.svc", "-days", "2"]
    subprocess.run([*command, "-keyout", key, "-out", crt, *subject], check=True, capture_output=True)
    words = ["create", "secret", "tls", "metrics", "-n", NAMESPACE, f"--cert={crt}", f"--key={key}"]
    live.kubectl(*words)


def status_for(live: Live, *token: str) -> int:
    """What the operator answers a reader of metrics, once the pod of the last change is the only one."""
    live.kubectl("rollout", "status", f"deployment/{RELEASE}", "-n", NAMESPACE, "--timeout", "120s")
    (pod,) = [
        one
        for one in live.pods(NAMESPACE, f"app.kubernetes.io/name={RELEASE}")
        if not one["metadata"].get("deletionTimestamp")
    ]
    return int(live.in_pod(NAMESPACE, pod["metadata"]["name"], "python3", "-c", READ, *token))


def test_a_release_runs_is_tested_and_changes(cluster: Live, installers: Installers, tmp_path: Any) -> None:
    file = installers.helm.values_file(RUNTIME)
    installers.install("-f", file, "--wait", "--timeout", "240s")
    assert "Phase:          Succeeded" in installers.helm(
        "test", RELEASE, "-n", NAMESPACE, "--timeout", "180s"
    )
    agents = ("pacto.trianalab.io/v1alpha1", "NodeRuntimeObservation", "pacto-node-agent")
    installers.wait_for(
        lambda: {one["metadata"]["name"] for one in cluster.api.items(*agents)} == set(cluster.nodes),
        180,
        "every node reports",
    )
    # an agent may report before its kubelet has told that its pod is ready
    cluster.kubectl("rollout", "status", f"daemonset/{agents[-1]}", "-n", agents[-1], "--timeout", "180s")
    groups = json.loads(installers.plugin("check", "-o", "json"))["groups"]
    failed = [one for group in groups for one in group["checks"] if one["result"] == "failed"]
    assert failed == []

    certificate(cluster, tmp_path)
    cluster.kubectl("create", "namespace", "shop")
    try:
        narrow = "controller.watchNamespace=shop,nodeAgent.enabled=false"
        secure = "metrics.secure=true,metrics.certificate.secretName=metrics"
        installers.upgrade("-f", file, "--set", f"{narrow},{secure}", "--wait", "--timeout", "240s")
        installers.wait_for(lambda: installers.gone("pacto-node-agent"), 180)
        text = installers.helm("test", RELEASE, "-n", NAMESPACE, "--timeout", "180s")
        assert "Phase:          Succeeded" in text
        cluster.kubectl("create", "serviceaccount", "reader", "-n", "shop")
        token = cluster.token("shop", "reader")
        assert status_for(cluster) == 401
        assert status_for(cluster, token) == 403
        role = [f"--clusterrole={RELEASE}-metrics-reader", "--serviceaccount=shop:reader"]
        cluster.kubectl("create", "clusterrolebinding", "reads-metrics", *role)
        # what was answered stands for half a minute, so another token is asked anew; and the authorizer
        # follows the bindings, a moment behind
        installers.wait_for(
            lambda: status_for(cluster, cluster.token("shop", "reader")) == 200, 60, "the right to read"
        )
    finally:
        cluster.kubectl("delete", "clusterrolebinding", "reads-metrics", "--ignore-not-found")
        cluster.api.delete("v1", "Namespace", "shop")
