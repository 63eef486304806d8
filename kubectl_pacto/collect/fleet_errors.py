# SPDX-License-Identifier: MIT
"""What was looked for in a cluster and is not there."""

from __future__ import annotations

from kubectl_pacto.errors import PactoError


class NotInstalled(PactoError):
    """Pacto is not installed in this cluster (there is no {kind}): `kubectl pacto install` installs it"""


class NoSuchPacto(PactoError):
    """there is no Pacto {name} in namespace {namespace}: `kubectl pacto status -A` lists all"""


class NoSuchNode(PactoError):
    """there is no node {name} in this cluster: `kubectl pacto coverage` lists the nodes"""
