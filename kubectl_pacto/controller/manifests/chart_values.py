# SPDX-License-Identifier: MIT
"""Every value of the chart, for Helm and for the plugin: names, defaults, words, what each may be.

Names are the specification's and, where it has none, the public project's. `make gen` writes the
chart's values.yaml, its values.schema.json and docs/helm.md from here.
"""

from __future__ import annotations

from typing import Final

from kubectl_pacto.controller.manifests import values_schema as kinds
from kubectl_pacto.controller.manifests.agent_values import MAPPERS, SECCOMP_PROFILES, NodeAgentValues
from kubectl_pacto.controller.manifests.values_schema import Section, Value

AGENT: Final = NodeAgentValues()
PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
OPERATOR_IMAGE: Final = "ghcr.io/trianalab/pacto/operator"

_KERNEL_EVIDENCE: Final = Section(
    "How the operator reads the kernel's evidence; on with `nodeAgent.enabled` or a namespace here.",
    {
        "namespace": Value(
            "",
            "Where node agents report that you run yourself; empty: those of `nodeAgent`.",
            kinds.OPTIONAL_NAME,
        ),
        "staleness": Value(
            "",
            "From which age of a node's heartbeat its view is Stale; empty: three publish intervals.",
            kinds.POSITIVE,
        ),
        "recency": Value("", "How long a connection counts as recent; empty: the staleness.", kinds.POSITIVE),
        "hostKernelRuntimeClasses": Value(
            ["runc", "crun", "nvidia"],
            "Runtime classes whose pods use the node's own TCP stack.",
            kinds.TEXTS,
        ),
        "meshProxies": Value(
            [], "Names of more containers that are a mesh's proxy, beside Istio's and Linkerd's.", kinds.TEXTS
        ),
    },
)

_CONTROLLER: Final = Section(
    "What the operator checks, and how.",
    {
        "watchNamespace": Value(
            "",
            "Check the Pactos of one namespace only; the operator's rights then end there, but for"
            " namespaces and nodes. Empty: all namespaces.",
            kinds.OPTIONAL_NAME,
        ),
        "stabilizationWindow": Value(
            "", "How long an absence must last before it is a finding; empty: 2m.", kinds.DURATION
        ),
        "workers": Value(4, "Checks at a time.", kinds.number(1, 64)),
        "enableProbing": Value(
            False,
            "Connect to Service ports: which protocol an interface speaks, and its health.",
            kinds.SWITCH,
        ),
        "enableMetricsObservation": Value(
            False, "Ask the metrics endpoints of targets that declare them.", kinds.SWITCH
        ),
        "interfaceNameMatchDiscovery": Value(
            False, "An interface without a binding is the Service port of its name.", kinds.SWITCH
        ),
        "kernelEvidence": _KERNEL_EVIDENCE,
    },
)

_METRICS: Final = Section(
    "The operator's Prometheus metrics.",
    {
        "enabled": Value(True, "Serve them, behind a Service.", kinds.SWITCH),
        "secure": Value(
            False,
            "Over TLS, and only to who may get `/metrics`: bind the ClusterRole NAME-metrics-reader to them.",
            kinds.SWITCH,
        ),
        "certificate": Section(
            "The certificate of `metrics.secure`, which may be renewed at any time.",
            {
                "secretName": Value("", "The Secret that holds it, of the operator's namespace.", kinds.TEXT),
                "certName": Value("tls.crt", "Its key in the Secret.", kinds.GIVEN_TEXT),
                "keyName": Value("tls.key", "The private key's key in the Secret.", kinds.GIVEN_TEXT),
            },
        ),
        "service": Section("That Service.", {"port": Value(8080, "Its port.", kinds.number(1, 65535))}),
        "serviceMonitor": Section(
            "A ServiceMonitor of the Prometheus operator, whose CRDs must be there.",
            {
                "enabled": Value(False, "Create it.", kinds.SWITCH),
                "labels": Value({}, "Labels by which your Prometheus selects it.", kinds.TEXT_MAP),
                "tlsConfig": Value(
                    {},
                    "How Prometheus knows the certificate; empty: by the `ca.crt` of its Secret.",
                    kinds.FREE,
                ),
                "interval": Value("", "How often to scrape; empty: as Prometheus does.", kinds.POSITIVE),
                "scrapeTimeout": Value(
                    "", "When a scrape has failed; empty: as Prometheus does.", kinds.POSITIVE
                ),
            },
        ),
    },
)

_NODE_AGENT: Final = Section(
    "The node agent: one privileged pod per Linux node, in a namespace of its own.",
    {
        "enabled": Value(
            False, "Run it, and read its evidence. Off removes its namespace and all in it.", kinds.SWITCH
        ),
        "namespace": Value(
            AGENT.namespace,
            "Its namespace, made here with Pod Security level privileged; never the operator's own.",
            kinds.NAME,
        ),
        "image": Value("", f"Its image; empty: `{AGENT.image}`.", kinds.TEXT),
        "imagePullPolicy": Value(
            AGENT.image_pull_policy, "When the image is pulled.", kinds.choice(*PULL_POLICIES)
        ),
        "imagePullSecrets": Value(
            [], "Secrets to pull it with; they must be in the agent's namespace.", kinds.PULL_SECRETS
        ),
        "publishInterval": Value(
            AGENT.publish_interval, f"How often a node reports; {kinds.INTERVAL_WORDS}.", kinds.INTERVAL
        ),
        "resyncInterval": Value(
            AGENT.resync_interval,
            f"How often a node's sockets are read anew; {kinds.INTERVAL_WORDS}.",
            kinds.INTERVAL,
        ),
        "mapper": Value(
            AGENT.mapper,
            "How sockets are matched to pods: `iter` needs Linux 5.11 and one capability less (SYS_PTRACE),"
            " `auto` takes it where it works and `proc` elsewhere.",
            kinds.choice(*MAPPERS),
        ),
        "sysResource": Value(
            False,
            "Add SYS_RESOURCE, for nodes before Linux 5.11 whose memlock limit is below 736 KiB.",
            kinds.SWITCH,
        ),
        "seccompProfile": Value(
            AGENT.seccomp_profile,
            "Its seccomp profile; Unconfined where the runtime's own denies bpf().",
            kinds.choice(*SECCOMP_PROFILES),
        ),
        "maxUnavailable": Value(
            AGENT.max_unavailable, "How many nodes a rollout updates at a time.", kinds.SHARE
        ),
        "priorityClassName": Value("", "Its pods' priority class.", kinds.TEXT),
        "resources": Value(
            AGENT.resources, "Its CPU and memory; the memory also pays for the ring buffer.", kinds.RESOURCES
        ),
        "nodeSelector": Value(
            {},
            "Run on these nodes only, beside `kubernetes.io/os: linux`; others read as Stale.",
            kinds.TEXT_MAP,
        ),
        "tolerations": Value(
            AGENT.tolerations, "Taints that it tolerates; by default all.", kinds.TOLERATIONS
        ),
    },
)

VALUES: Final = Section(
    "Values of the chart pacto-operator.",
    {
        "replicaCount": Value(1, "Pods of the operator; above 1 needs leader election.", kinds.number(1)),
        "image": Section(
            "The operator's image.",
            {
                "repository": Value(OPERATOR_IMAGE, "Where it is.", kinds.GIVEN_TEXT),
                "pullPolicy": Value("IfNotPresent", "When it is pulled.", kinds.choice(*PULL_POLICIES)),
                "tag": Value("", "Its tag; empty: the chart's appVersion.", kinds.TEXT),
            },
        ),
        "imagePullSecrets": Value([], "Secrets of this namespace to pull it with.", kinds.PULL_SECRETS),
        "nameOverride": Value("", "Instead of `pacto-operator` in the objects' names.", kinds.OBJECT_NAME),
        "fullnameOverride": Value(
            "", "The objects' name, whatever the release is called.", kinds.OBJECT_NAME
        ),
        "insecureRegistries": Value(
            [], "Registries (HOST:PORT) that contracts may be read from over plain HTTP.", kinds.TEXTS
        ),
        "crds": Section(
            "The CustomResourceDefinitions.",
            {
                "enabled": Value(True, "Create them, and bring them up to date.", kinds.SWITCH),
                "keep": Value(
                    True,
                    "Keep them, and every Pacto, when the release is removed (Helm only; the plugin has"
                    " `uninstall --delete-crds`).",
                    kinds.SWITCH,
                ),
            },
        ),
        "serviceAccount": Section(
            "The operator's identity.",
            {
                "create": Value(True, "Create it.", kinds.SWITCH),
                "automount": Value(True, "Mount its token; the operator needs one.", kinds.SWITCH),
                "annotations": Value({}, "Annotations, such as those of cloud identities.", kinds.TEXT_MAP),
                "name": Value("", "Its name; empty: the objects' name.", kinds.TEXT),
            },
        ),
        "podAnnotations": Value({}, "Annotations of the operator's pods.", kinds.TEXT_MAP),
        "podLabels": Value({}, "More labels of the operator's pods.", kinds.TEXT_MAP),
        "podSecurityContext": Value(
            {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
            "Security context of the operator's pods; the default passes the restricted level.",
            kinds.FREE,
        ),
        "securityContext": Value(
            {
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
                "readOnlyRootFilesystem": True,
                "runAsNonRoot": True,
                "runAsUser": 65532,
            },
            "Security context of the operator's container.",
            kinds.FREE,
        ),
        "resources": Value(
            {
                "requests": {"cpu": "50m", "memory": "128Mi"},
                "limits": {"cpu": "500m", "memory": "512Mi"},
            },
            "CPU and memory of the operator.",
            kinds.RESOURCES,
        ),
        "priorityClassName": Value("", "Priority class of the operator's pods.", kinds.TEXT),
        "controller": _CONTROLLER,
        "leaderElection": Section(
            "One of several pods leads.",
            {"enabled": Value(True, "Elect it; a rollout needs it, too.", kinds.SWITCH)},
        ),
        "metrics": _METRICS,
        "networkPolicy": Section(
            "Who may connect to the pods: to the operator for metrics and probes, to the agent nobody.",
            {
                "enabled": Value(False, "Create it.", kinds.SWITCH),
                "metricsFrom": Value([], "Who may read metrics, as peers; empty: everybody.", kinds.PEERS),
            },
        ),
        "nodeAgent": _NODE_AGENT,
        "nodeSelector": Value({}, "Nodes for the operator.", kinds.TEXT_MAP),
        "tolerations": Value([], "Taints that the operator tolerates.", kinds.TOLERATIONS),
        "affinity": Value({}, "Affinity of the operator's pods.", kinds.AFFINITY),
    },
)
