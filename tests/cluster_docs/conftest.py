# SPDX-License-Identifier: MIT
"""A control plane with our kinds, for the commands that the documentation shows."""

from __future__ import annotations

import json

import pytest

from kubectl_pacto.controller.generate import crds
from tests.cluster.live import Live

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@pytest.fixture(scope="session")
def served(api_server: Live) -> Live:
    """The cluster, with CRDs; another folder may have made them."""
    known = {one["metadata"]["name"] for one in json.loads(api_server.api.raw("GET", CRDS))["items"]}
    for crd in crds():
        if crd["metadata"]["name"] not in known:
            api_server.api.create(crd)
    api_server.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
    return api_server
