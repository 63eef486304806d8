# SPDX-License-Identifier: MIT
"""The API group of our kinds and its one version, spelled here alone."""

from __future__ import annotations

from typing import Final

GROUP: Final = "pacto.trianalab.io"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
