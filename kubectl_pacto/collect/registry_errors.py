# SPDX-License-Identifier: MIT
"""What can go wrong between a Pacto and its contract in a registry.

Unavailable ones leave the contract unknown: they may pass. The others make it invalid.
"""

from __future__ import annotations

from kubectl_pacto.errors import PactoError


class RegistryError(PactoError):
    """{ref}: {problem}"""


class Unavailable(RegistryError):
    """{ref}: {problem}"""


class RegistryUnreachable(Unavailable):
    """{ref}: the registry cannot be reached: {problem}"""


class RegistryDenied(Unavailable):
    """{ref}: the registry refuses: {problem}"""


class ArtifactNotFound(Unavailable):
    """{ref}: the registry has no such artifact"""


class BadReference(RegistryError):
    """{ref}: not an OCI reference such as oci://registry.example/team/service:1.0.0"""


class BadArtifact(RegistryError):
    """{ref}: not a contract bundle: {problem}"""


class BadPullSecret(RegistryError):
    """{ref}: the pull secret {problem}"""
