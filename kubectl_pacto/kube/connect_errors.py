# SPDX-License-Identifier: MIT
"""What keeps the plugin from asking a cluster at all: its configuration, or its credentials."""

from __future__ import annotations

from kubectl_pacto.errors import PactoError


class ConfigProblem(PactoError):
    """{file}: {problem}"""

    hint = "kubeconfig"


class ChoiceProblem(PactoError):
    """{problem}; {files}"""

    hint = "kubeconfig"


class NoClusterConfigured(PactoError):
    """no cluster is configured: set KUBECONFIG, or pass --kubeconfig or --server; {files}"""

    hint = "kubeconfig"


class PluginMissing(PactoError):
    """the credential plugin {command} of user {user} is not installed or not on PATH{advice}"""

    hint = "credentials"


class PluginFailed(PactoError):
    """the credential plugin {command} of user {user} {problem}"""

    hint = "credentials"


class CredentialProblem(PactoError):
    """user {user}: {problem}"""

    hint = "credentials"
