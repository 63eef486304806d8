# SPDX-License-Identifier: MIT
"""A control plane with our kinds, for the commands that the documentation shows."""

from __future__ import annotations

import json

import pytest

from kubectl_pacto.controller.generate import crds
from tests.cluster.fixtures import await_kinds
from tests.cluster.live import Live

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@pytest.fixture(scope="session")
def served(api_server: Live) -> Live:
    """The cluster, with CRDs; another folder may have made them."""
    known = {one["metadata"]["name"] for one in json.loads(api_server.api.raw("GET", CRDS))["items"]}
    for crd in crds():
        if crd["metadata"]["name"] not in known:
            api_server.api.create(crd)
    await_kinds(api_server, crds())
    return api_server
