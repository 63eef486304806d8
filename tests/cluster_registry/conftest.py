# SPDX-License-Identifier: MIT
"""The control plane and operators of the operator's tests."""

from __future__ import annotations

from tests.cluster_operator.conftest import api, api_server, machines, namespace, operators, shop, wait_for

__all__ = ["api", "api_server", "machines", "namespace", "operators", "shop", "wait_for"]
