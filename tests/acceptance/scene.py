# SPDX-License-Identifier: MIT
"""One scenario carried out: its namespace, its applications, its steps, and how long each verdict took."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from tests.acceptance import expect
from tests.acceptance.objects import App, programs
from tests.acceptance.release import AGENTS, WINDOW_SECONDS, Plugin
from tests.acceptance.table import Expected, Scenario, Step
from tests.acceptance.watcher import API, Watcher
from tests.cluster.api import Object
from tests.cluster.fixtures import wait_until
from tests.cluster.live import Live
from tests.cluster.manifests import ready

READY_SECONDS: Final = 240.0
POLL_SECONDS: Final = 0.4
# many publish intervals
EVIDENCE_SECONDS: Final = 60.0
EVIDENCE: Final = "pactos,services,endpointslices,pods,deployments,replicasets,statefulsets"


class StepFailed(AssertionError):
    """A verdict did not come, or was another one."""


@dataclass(frozen=True)
class Row:
    """One line of the table: what was caused, what came of it, and after how many seconds."""

    scenario: str
    proves: tuple[str, ...]
    cause: str
    verdict: str
    seconds: float


@dataclass
class World:
    """What all scenarios share. `mine` is the node that has no agent of the operator's."""

    live: Live
    watcher: Watcher
    plugin: Plugin
    mine: str


@dataclass
class Scene:
    """A scenario in its namespace."""

    world: World
    scenario: Scenario
    rows: list[Row] = field(default_factory=list)
    touched: int = 0

    @property
    def namespace(self) -> str:
        """Its own, and the prefix of its contracts' names."""
        return f"acc-{self.scenario.continues or self.scenario.id}"

    def run(self, act: Act) -> list[Row]:
        """All steps; the namespace goes in the end. Raises StepFailed."""
        apps = [name for name, app in self.scenario.apps.items() if not app.get("later")]
        try:
            if not self.scenario.continues:
                self._make_namespace()
            for number, step in enumerate(self.scenario.steps):
                self._step(step, act, deploy=[] if number or self.scenario.continues else apps)
        finally:
            if not self.scenario.keeps:
                self.world.live.api.delete("v1", "Namespace", self.namespace)
        return self.rows

    def _make_namespace(self) -> None:
        api = self.world.live.api
        api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}})
        api.create(programs(self.namespace))
        # a pod is let in once its account is there
        if not wait_until(partial(api.get, "v1", "ServiceAccount", "default", self.namespace), READY_SECONDS):
            raise StepFailed(f"no account in {self.namespace}")

    def app(self, name: str) -> App:
        """An application, with addresses in the place of names."""
        raw = self.fill(dict(self.scenario.apps[name]))
        return App(self.namespace, name, raw)

    def fill(self, raw: Any) -> Any:
        """A value with `${ip:APP}`, `${pod:APP}`, `${full:APP}` and `${ns}` replaced."""
        text = json.dumps(raw)
        found = re.sub(
            r"\$\{(\w+)(?::([\w-]+))?\}", lambda match: self._named(match[1], match[2] or ""), text
        )
        return json.loads(found)

    def _named(self, what: str, name: str) -> str:
        match what:
            case "ip":
                service = self.world.live.api.get("v1", "Service", name, self.namespace) or {}
                return str(service["spec"]["clusterIP"])
            case "pod":
                return str(self.pods(name)[0]["status"]["podIP"])
            case "full":
                return App(self.namespace, name, self.scenario.apps[name]).full_name
            case "ns":
                return self.namespace
            case "mine":
                return self.world.mine
            case _:
                raise ValueError(f"no placeholder {what}")

    def deploy(self, *names: str) -> None:
        """Create applications in their order, wait until their pods are Ready, then create their Pactos.

        Before that the API alone may rightly call them absent, on a machine that starts pods slowly.
        """
        api, made = self.world.live.api, []
        for name in names:
            made.append(self.app(name))
            for one in made[-1].objects():
                api.create(one)
        deadline = time.monotonic() + READY_SECONDS
        for app in made:
            if app.raw.get("awaited", True):
                self._await(app.name, app.raw.get("replicas", 1), deadline)
        for app in made:
            if app.is_checked:
                api.create(app.pacto())

    def _await(self, name: str, count: int, deadline: float) -> None:
        while len(running := [pod for pod in self.pods(name) if ready(pod)]) < count:
            if time.monotonic() > deadline:
                told = self.world.live.describe(self.namespace)
                raise StepFailed(f"{len(running)} of {count} pods of {name} are Ready\n{told}")
            time.sleep(POLL_SECONDS)

    def pods(self, name: str) -> list[Object]:
        """The pods of an application that are not being deleted."""
        return [
            pod
            for pod in self.world.live.pods(self.namespace)
            if _is_of(pod["metadata"], name) and "deletionTimestamp" not in pod["metadata"]
        ]

    def status(self, name: str) -> Object:
        """A Pacto's latest status, with contracts under their short names."""
        return self._short(self.world.watcher.status((self.namespace, name)))

    def _short(self, status: Object) -> Object:
        found: Object = json.loads(json.dumps(status).replace(f"{self.namespace}-", ""))
        return found

    def _step(
        self, step: Step, act: Callable[[Scene, str, Any], None], deploy: list[str] | None = None
    ) -> None:
        begun = time.monotonic()
        if deploy:
            self.deploy(*deploy)
        for action in step.do:
            ((name, argument),) = action.items()
            act(self, name, self.fill(argument))
        caused = time.monotonic()
        seconds = self._until(step, caused)
        if step.hold:
            self._hold(step)
        self._check_never(step, begun)
        for name, expected in step.expect.items():
            if expected.evidence:
                self._await_evidence(name, expected)
        told = [f"{name}: {self._told(name)}" for name in step.expect]
        self.rows.append(
            Row(self.scenario.id, self.scenario.proves, step.cause, "; ".join(told), max(0.0, seconds))
        )

    def _told(self, name: str) -> str:
        status = self.status(name)
        found = [expect.words_of(item) for item in status.get("findings", ())]
        return " ".join([status["contractStatus"], *found])

    def _until(self, step: Step, caused: float) -> float:
        """Seconds from the cause until the last of the expected statuses was told."""
        deadline = time.monotonic() + step.timeout
        while True:
            wrong = {name: text for name, one in step.expect.items() if (text := self._wrong(name, one))}
            if not wrong:
                last = [self.world.watcher.history((self.namespace, name))[-1].at for name in step.expect]
                return max(last, default=caused) - caused
            if time.monotonic() > deadline:
                raise StepFailed(self._story(step, wrong))
            self.world.watcher.wait(1.0)

    def _wrong(self, name: str, expected: Expected) -> str:
        return expect.mismatch(expected, self.status(name))

    def _story(self, step: Step, wrong: Mapping[str, str]) -> str:
        """What a person needs to see why a verdict did not come."""
        parts = [f"{self.scenario.id}: {step.cause}: not within {step.timeout:g} s"]
        for name, text in wrong.items():
            parts.append(f"{name} {text}")
            seen = self.world.watcher.history((self.namespace, name))
            parts += [f"  {one.wall:.1f} {expect.summary(one.status)}" for one in seen[-8:]]
            evidence = self.status(name).get("kernelEvidence")
            parts.append(f"  kernel evidence {evidence}")
        return "\n".join([*parts, self.world.live.describe(self.namespace)])

    def touch(self) -> None:
        """Change each Pacto of the scenario a little, as a user might: it is checked at once."""
        self.touched += 1
        for name in self._checked_names():
            change = {"spec": {"checkIntervalSeconds": 30 + self.touched}}
            made = self.world.live.api.patch(API, "Pacto", name, change, self.namespace)
            wanted = made["metadata"]["generation"]
            deadline = time.monotonic() + 30
            while self.status(name).get("observedGeneration", 0) < wanted:
                if time.monotonic() > deadline:
                    raise StepFailed(f"{name} was not checked within 30 s of its change")
                self.world.watcher.wait(0.5)

    def _checked_names(self) -> list[str]:
        found = self.world.live.api.items(API, "Pacto", self.namespace)
        return [item["metadata"]["name"] for item in found]

    def _hold(self, step: Step) -> None:
        """Two more checks with the window between them: the first could open it, the second end it."""
        for pause in (0.0, WINDOW_SECONDS + 1.5):
            time.sleep(pause)
            self.touch()
        wrong = {name: text for name, one in step.expect.items() if (text := self._wrong(name, one))}
        if wrong:
            raise StepFailed("it did not stand past the window; " + self._story(step, wrong))

    def _check_never(self, step: Step, begun: float) -> None:
        for name in step.expect:
            for seen in self.world.watcher.history((self.namespace, name), begun):
                said = {seen.status.get("contractStatus"), *expect.codes(seen.status)}
                if seen.at >= begun and (wrong := said.intersection(step.never)):
                    text = expect.summary(seen.status)
                    raise StepFailed(
                        f"{self.scenario.id}: {step.cause}: {name} said {wrong} for a moment: {text}"
                    )

    def _await_evidence(self, name: str, expected: Expected) -> None:
        """A verdict may stand before the node that also vouches for it has published."""
        deadline = time.monotonic() + EVIDENCE_SECONDS
        while missing := set(expected.evidence) - (lines := self._evidence(name)):
            if time.monotonic() > deadline:
                raise StepFailed(
                    f"{self.scenario.id}: {name}: evidence {sorted(lines)} lacks {sorted(missing)}"
                )
            time.sleep(1)

    def _evidence(self, name: str) -> set[str]:
        """What the plugin's own evaluation of the same objects says was observed, and by whom."""
        live = self.world.live
        told = [live.kubectl("get", EVIDENCE, "-n", self.namespace, "-o", "yaml").stdout]
        told.append(live.kubectl("get", "noderuntimeobservations,leases", "-n", AGENTS, "-o", "yaml").stdout)
        window = f"{WINDOW_SECONDS:g}s"
        said = self.world.plugin.run(
            "evaluate", "-f", "-", "-o", "json", "--evidence", "--fail-on", "never",
            "--stabilization-window", window, text="\n---\n".join(told),
        )  # fmt: skip
        (found,) = [one for one in json.loads(said) if one["name"] == name]
        return {_evidence_words(item) for item in self._short(found)["evidence"]["observations"]}


def _is_of(metadata: Object, name: str) -> bool:
    """Whether a pod is an application's: by its name, for another's may carry its labels."""
    return bool(metadata["name"] == name or metadata.get("generateName", "").startswith(f"{name}-"))


def _evidence_words(item: Object) -> str:
    subject = f"{item['subject']['kind']}/{item['subject']['name']}"
    value = " ".join(f"{key}={value}" for key, value in sorted((item.get("value") or {}).items()))
    return " ".join(f"{subject} {item['outcome']} {value} {item['provenance']['collector']}".split())


Act = Callable[[Scene, str, Any], None]
