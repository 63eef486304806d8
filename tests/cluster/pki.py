# SPDX-License-Identifier: MIT
"""The cluster's certificate authority, key pairs and kubeconfigs, made with openssl."""

from __future__ import annotations

import json
import secrets
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.cluster.layout import API_PORT, API_SERVICE_ADDRESS, CONTROL_PLANE_ADDRESS, Cluster, ClusterError

DAYS: Final = "30"
KEY: Final = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


@dataclass(frozen=True)
class Subject:
    """Whom a certificate names: user, groups, and for servers its addresses."""

    name: str
    user: str
    group: str = ""
    addresses: tuple[str, ...] = ()


API_ADDRESSES: Final = (
    "DNS:localhost",
    "DNS:kubernetes",
    "DNS:kubernetes.default",
    "DNS:kubernetes.default.svc",
    "IP:127.0.0.1",
    f"IP:{CONTROL_PLANE_ADDRESS}",
    f"IP:{API_SERVICE_ADDRESS}",
)
SUBJECTS: Final = (
    Subject("apiserver", "kube-apiserver", addresses=API_ADDRESSES),
    Subject("kubelet-client", "apiserver-kubelet-client", "system:masters"),
    Subject("admin", "admin", "system:masters"),
    Subject("controller-manager", "system:kube-controller-manager"),
    Subject("scheduler", "system:kube-scheduler"),
    Subject("proxy", "system:kube-proxy"),
)


def openssl(*arguments: str, cwd: Path) -> None:
    """Run openssl, its words only when it fails."""
    done = subprocess.run(["openssl", *arguments], cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ClusterError(f"openssl {arguments[0]}: {done.stderr.strip()}")


def kubeconfig(cluster: Cluster, name: str, server: str) -> str:
    """A kubeconfig of the named key pair (JSON, which is YAML)."""
    files = {"client-certificate": f"{cluster.pki}/{name}.crt", "client-key": f"{cluster.pki}/{name}.key"}
    context = f"pacto-{cluster.name}"
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {
                    "name": context,
                    "cluster": {"server": server, "certificate-authority": f"{cluster.pki}/ca.crt"},
                }
            ],
            "users": [{"name": name, "user": files}],
            "contexts": [{"name": context, "context": {"cluster": context, "user": name}}],
            "current-context": context,
        },
        indent=1,
    )


def certificate(cluster: Cluster, subject: Subject) -> None:
    """A key pair signed by the cluster's authority, and its kubeconfig; once."""
    pki, name = cluster.pki, subject.name
    target = pki / f"{name}.kubeconfig"
    if target.exists():
        return
    organisation = f"/O={subject.group}" if subject.group else ""
    openssl(
        "req",
        *KEY,
        "-keyout",
        f"{name}.key",
        "-out",
        f"{name}.csr",
        "-subj",
        f"{organisation}/CN={subject.user}",
        cwd=pki,
    )
    extensions = ["extendedKeyUsage=clientAuth,serverAuth"]
    if subject.addresses:
        extensions.append(f"subjectAltName={','.join(subject.addresses)}")
    (pki / f"{name}.ext").write_text("\n".join(extensions) + "\n")
    signer = ("-CA", "ca.crt", "-CAkey", "ca.key", "-days", DAYS, "-extfile", f"{name}.ext")
    serial = ("-set_serial", f"0x{secrets.randbits(63):x}")
    openssl("x509", "-req", "-in", f"{name}.csr", "-out", f"{name}.crt", *signer, *serial, cwd=pki)
    target.write_text(kubeconfig(cluster, name, f"https://{CONTROL_PLANE_ADDRESS}:{API_PORT}"))


def certificates(cluster: Cluster, subjects: Sequence[Subject] = SUBJECTS) -> None:
    """The authority and these key pairs; what exists is kept."""
    pki = cluster.pki
    pki.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not (pki / "sa.pub").exists():
        openssl(
            "req",
            "-x509",
            *KEY,
            "-keyout",
            "ca.key",
            "-out",
            "ca.crt",
            "-subj",
            "/CN=pacto-test",
            "-days",
            DAYS,
            cwd=pki,
        )
        openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", "sa.key", cwd=pki)
        openssl("ec", "-in", "sa.key", "-pubout", "-out", "sa.pub", cwd=pki)
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda subject: certificate(cluster, subject), subjects))
