# SPDX-License-Identifier: MIT
"""The cluster's fixtures for the tests of this folder."""

from __future__ import annotations

from tests.cluster.fixtures import api_server, cluster

__all__ = ["api_server", "cluster"]
