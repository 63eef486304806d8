# SPDX-License-Identifier: MIT
"""The faults: each a function that breaks something, waits, and mends it."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from kubectl_pacto.controller.election import LEASE_NAME
from kubectl_pacto.model.group import API_VERSION
from kubectl_pacto.model.instant import parse_instant
from kubectl_pacto.model.node_codec import KIND
from tests.acceptance.actions import signal_agents
from tests.acceptance.objects import App
from tests.acceptance.release import AGENTS, OPERATORS
from tests.acceptance.watcher import API
from tests.cluster import control_plane, process
from tests.cluster.layout import Cluster
from tests.cluster.live import LocalCluster
from tests.faults.ground import Fault, Ground, Wronged
from tests.faults.operators import NAME, HostOperator
from tests.faults.proxy import FaultyProxy

STALE_SECONDS: Final = 14.0
PROXY_SECONDS: Final = 45.0
READY_SECONDS: Final = 60.0
# its own words do not match its pattern
FIND_KUBELET: Final = """
for one in /proc/[0-9]*; do
  case "$(tr "\\0" " " <$one/cmdline 2>/dev/null)" in *" kubelet --confi"[g]*) echo ${one#/proc/};; esac
done
"""
# connects to nobody who listens, as fast as it can
BURST: Final = """
import socket, sys, time
end = time.monotonic() + float(sys.argv[1])
count = 0
while time.monotonic() < end:
    for number in range(1, 200):
        one = socket.socket(); one.settimeout(0.2)
        try: one.connect(("127.0.0.1", 20000 + (count + number) % 20000))
        except OSError: pass
        one.close()
    count += 199
print(count)
"""
# listens and stops again, as fast as it can: connections give way in the ring, these do not
LISTENS: Final = """
import socket, sys, time
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    for _ in range(100):
        one = socket.socket(); one.bind(("127.0.0.1", 0)); one.listen(1); one.close()
"""


def burst(ground: Ground, seconds: float, program: str = BURST) -> None:
    """As many failing connections as a pod can make, to addresses that differ; or another program."""
    pod = ground.scene.pods("shop")[0]["metadata"]["name"]
    ground.live.in_pod(ground.scene.namespace, pod, "python3", "-c", program, str(seconds))


def kill_agents_in_a_burst(ground: Ground) -> None:
    """SIGKILL to every agent while events pour in; the kubelet starts them again."""
    before = _restarts(ground)
    pouring = threading.Thread(target=burst, args=(ground, 6.0))
    pouring.start()
    time.sleep(2)
    for node in ground.live.nodes:
        signal_agents(ground.live, node, "KILL")
    pouring.join()
    until(lambda: _restarts(ground) >= before + len(ground.live.nodes), "the agents are started again")


def _restarts(ground: Ground) -> int:
    statuses = [one for pod in ground.live.pods(AGENTS) for one in pod["status"].get("containerStatuses", [])]
    return sum(one["restartCount"] for one in statuses)


def until(condition: Callable[[], object], what: str) -> None:
    """Wait for a fault to take effect, or to be over. Raises Wronged."""
    deadline = time.monotonic() + READY_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise Wronged(f"not within {READY_SECONDS:g} s: {what}")
        time.sleep(0.5)


def _dropped(ground: Ground) -> int:
    found = [ground.live.api.get(API_VERSION, KIND, node, AGENTS) or {} for node in ground.live.nodes]
    return sum(one.get("collection", {}).get("droppedEvents", 0) for one in found)


def overflow_the_ring(ground: Ground) -> None:
    """The agents stop to read, for less than a heartbeat may be old, while a pod fills the ring."""
    before = _dropped(ground)
    for node in ground.live.nodes:
        signal_agents(ground.live, node, "STOP")
    try:
        burst(ground, 3.5, LISTENS)
    finally:
        for node in ground.live.nodes:
            signal_agents(ground.live, node, "CONT")
    until(lambda: _dropped(ground) > before, "the agents count what they lost")
    time.sleep(5)


def freeze_agents(ground: Ground) -> None:
    """No Lease is renewed for longer than the bound."""
    for node in ground.live.nodes:
        signal_agents(ground.live, node, "STOP")
    time.sleep(3 * STALE_SECONDS)
    for node in ground.live.nodes:
        signal_agents(ground.live, node, "CONT")


def delete_node_objects(ground: Ground) -> None:
    """Every node object goes; the agents write theirs again."""
    for node in ground.live.nodes:
        ground.live.api.delete(API_VERSION, KIND, node, AGENTS)
    time.sleep(5)


def delete_leases(ground: Ground) -> None:
    """Every heartbeat goes."""
    for node in ground.live.nodes:
        ground.live.api.delete("coordination.k8s.io/v1", "Lease", node, AGENTS)
    time.sleep(5)


def cluster_of(ground: Ground) -> Cluster:
    """The cluster of this package that the run is on."""
    provider = ground.live.provider
    assert isinstance(provider, LocalCluster)
    return provider.cluster


def stop_api_server(seconds: float) -> Callable[[Ground], None]:
    """The API server is gone for so long, and starts again."""

    def stop(ground: Ground) -> None:
        cluster = cluster_of(ground)
        running = process.running(cluster, "apiserver")
        assert running is not None
        running.kill()
        time.sleep(seconds)
        control_plane.up(cluster, cluster.version)

    return stop


@contextmanager
def installed_operators(ground: Ground, count: int) -> Iterator[None]:
    """So many operators in the cluster for a while; one again afterwards."""
    _scale(ground, count)
    try:
        yield
    finally:
        _scale(ground, 1)


def _scale(ground: Ground, count: int) -> None:
    ground.live.kubectl("scale", f"deployment/{NAME}", "-n", OPERATORS, f"--replicas={count}")
    until(lambda: _running(ground) == (count, count), f"{count} operators are ready")


def _running(ground: Ground) -> tuple[int, int]:
    """How many pods there are, and how many of them are ready."""
    pods = ground.live.pods(OPERATORS, "app.kubernetes.io/name=pacto-operator")
    statuses = [one for pod in pods for one in pod["status"].get("containerStatuses", [])]
    return len(pods), sum(one["ready"] for one in statuses)


@contextmanager
def through_a_proxy(ground: Ground, skew: float = 0.0, *, alone: bool = True) -> Iterator[FaultyProxy]:
    """An operator on this machine behind a proxy, in the place of the installed one or beside it."""
    token = ground.live.token(OPERATORS, NAME)
    proxy = FaultyProxy(ground.live.as_token(token))
    operator = HostOperator(ground.live, proxy, ground.folder, skew)
    with contextlib.ExitStack() as undo:
        if alone:
            undo.enter_context(installed_operators(ground, 0))
        proxy.start()
        undo.callback(proxy.stop)
        operator.start()
        undo.callback(operator.stop)
        time.sleep(8)
        ground.scene.touch()
        yield proxy
        ground.scene.touch()
        if not operator.runs:
            raise Wronged(f"the operator ended\n{operator.log()}")


def misbehave(mode: str, seconds: float = PROXY_SECONDS) -> Callable[[Ground], None]:
    """The way to the API server answers like that for a while."""

    def run(ground: Ground) -> None:
        with through_a_proxy(ground) as proxy:
            ground.calm(time.monotonic())
            proxy.mode = mode
            time.sleep(seconds)
            proxy.mode = "pass"
            ground.calm(time.monotonic())
            used = [name for name, count in proxy.counts.items() if count]
            if mode != "stall" and not any(name.startswith(mode) for name in used):
                raise Wronged(f"nothing went through the proxy as {mode}: {proxy.counts}")

    return run


def skewed(seconds: float) -> Callable[[Ground], None]:
    """The only operator's clock is so many seconds away from all others'."""

    def run(ground: Ground) -> None:
        with through_a_proxy(ground, skew=seconds):
            ground.calm(time.monotonic())
            for name in ground.scenario.apps:
                written = parse_instant(ground.scene.status(name)["lastReconciledAt"])
                # the last status is at most an interval old
                if not -60 < written - time.time() - seconds < 10:
                    raise Wronged(f"{name} was not checked by a clock that is {seconds:g} s off")
            time.sleep(35)
            ground.calm(time.monotonic())

    return run


def second_operator(ground: Ground) -> None:
    """An operator without election writes beside the installed one."""
    with through_a_proxy(ground, alone=False):
        for _ in range(4):
            ground.scene.touch()
            time.sleep(8)


def fail_over(ground: Ground) -> None:
    """Of two operators the one that leads is killed without a farewell."""
    with installed_operators(ground, 2):
        leader = _leader(ground)
        ground.live.kubectl("delete", "pod", leader, "-n", OPERATORS, "--grace-period=0", "--force")
        until(lambda: _leader(ground) not in ("", leader), f"somebody leads after {leader}")
        ground.scene.touch()


def _leader(ground: Ground) -> str:
    lease = ground.live.api.get("coordination.k8s.io/v1", "Lease", LEASE_NAME, OPERATORS)
    return str((lease or {}).get("spec", {}).get("holderIdentity", ""))


def churn(ground: Ground) -> None:
    """Pods come and go under a Deployment, addresses and network namespaces with them."""
    for count in (4, 1, 5, 1):
        ground.live.kubectl(
            "scale",
            "deployment/good",
            "deployment/store",
            "-n",
            ground.scene.namespace,
            f"--replicas={count}",
        )
        time.sleep(4)
    ground.live.kubectl("rollout", "restart", "deployment/good", "-n", ground.scene.namespace)
    time.sleep(4)


def delete_in_a_check(ground: Ground) -> None:
    """Pactos go while they are checked."""
    api = ground.live.api
    for number in range(12):
        app = App(ground.scene.namespace, "good", {"called": f"brief-{number}"})
        made = app.pacto()
        made["metadata"]["name"] = f"brief-{number}"
        api.create(made)
        time.sleep(0.05 * (number % 4))
        api.delete(API, "Pacto", f"brief-{number}", ground.scene.namespace)


def broken_contract(ground: Ground) -> None:
    """Contracts that cannot be read, among good ones."""
    api, namespace = ground.live.api, ground.scene.namespace
    for number, text in enumerate(("pactoVersion: [", "{}", "pactoVersion: '9.0'\nservice: {name: x}", "\t")):
        made = App(namespace, "good", {}).pacto()
        made["metadata"]["name"] = f"broken-{number}"
        made["spec"]["contractRef"] = {"inline": text}
        api.create(made)
    ground.scene.touch()
    for number in range(4):
        status = ground.scene.status(f"broken-{number}")
        if status.get("contractStatus") != "Invalid":
            raise Wronged(f"broken-{number} is {status.get('contractStatus')}")
        api.delete(API, "Pacto", f"broken-{number}", namespace)


def restart_kubelet(ground: Ground) -> None:
    """The kubelets end; their nodes start them again and find their pods running."""
    for node in ground.live.nodes:
        pids = ground.live.on_node(node, "sh", "-c", FIND_KUBELET).stdout.split()
        ground.live.on_node(node, "kill", "-KILL", *pids)
    time.sleep(10)


FAULTS: Final = (
    Fault(
        "agents-killed",
        "all agents killed in the middle of a burst of connections",
        kill_agents_in_a_burst,
        short=True,
    ),
    Fault("ring-overflow", "agents held back while a pod fills the ring", overflow_the_ring, short=True),
    Fault("agents-frozen", "no agent renews its Lease for three times the bound", freeze_agents),
    Fault("objects-deleted", "all node objects deleted", delete_node_objects, short=True),
    Fault("leases-deleted", "all heartbeats deleted", delete_leases, short=True),
    Fault("api-restart", "API server killed and started again", stop_api_server(0), local=True, short=True),
    Fault("api-gone", "API server gone for a minute", stop_api_server(60), local=True),
    Fault("kubelet-restart", "kubelets killed and started again", restart_kubelet, local=True),
    Fault("churn", "pods come and go", churn),
    Fault("pacto-deleted", "Pactos deleted while they are checked", delete_in_a_check, short=True),
    Fault("broken-contracts", "contracts that cannot be read, among good ones", broken_contract, short=True),
    Fault("fail-over", "of two operators the leader killed", fail_over, restarts=True),
    Fault("two-operators", "a second operator writes without election", second_operator, restarts=True),
    Fault("watch-410", "every watch ends with 410 Gone", misbehave("gone"), restarts=True),
    Fault("api-429", "every request is answered with 429", misbehave("429"), restarts=True),
    Fault("api-500", "every request is answered with 500", misbehave("500"), restarts=True),
    Fault("half-open", "watches stay open and silent", misbehave("stall", 100.0), restarts=True),
    Fault("clock-behind", "the operator's clock is five minutes behind", skewed(-300), restarts=True),
    Fault("clock-ahead", "the operator's clock is five minutes ahead", skewed(300), restarts=True),
)
