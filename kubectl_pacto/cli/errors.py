# SPDX-License-Identifier: MIT
"""What keeps a command of the plugin from its end; nothing here decides by its text."""

from __future__ import annotations

from kubectl_pacto.errors import PactoError


class CannotWrite(PactoError):
    """{file}: cannot be written: {problem}"""


class NotPossible(PactoError):
    """this cluster cannot take it: {problems} (--skip-checks goes on all the same)"""


class NoFolder(PactoError):
    """none of the folders of PATH can be written: save the output of `kubectl pacto completion` as
    {name} in one of them and make it executable"""


class FieldsInConflict(PactoError):
    """{object}: {problem} (--force-conflicts takes these fields over)"""


class HelmOwns(PactoError):
    """{object} belongs to the Helm release {release} of namespace {namespace}: change it with `helm upgrade
    {release} -n {namespace}`, or remove it with `helm uninstall` first"""


class AnotherOwns(PactoError):
    """{object} was made by {manager}, not by this plugin: remove that operator first, or pass
    --take-ownership if nothing uses it any more"""


class NotPrivileged(PactoError):
    """namespace/{namespace} is there already, with Pod Security level {level}, and is not made privileged for
    the node agent: choose a namespace of its own with --set nodeAgent.namespace=NAME, or label this one
    pod-security.kubernetes.io/enforce=privileged yourself"""


class NothingInstalled(PactoError):
    """nothing is installed in namespace {namespace} by this plugin: `kubectl pacto install` installs it"""


class WouldDowngrade(PactoError):
    """version {installed} is installed and this plugin would install {ours}: update the plugin, or pass
    --allow-downgrade"""


class NotReadyInTime(PactoError):
    """not ready after {timeout:g}s: {missing}"""
