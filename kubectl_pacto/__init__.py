# SPDX-License-Identifier: MIT
"""kubectl-pacto: runtime conformance of services on Kubernetes, from evidence that is proven."""

from typing import Final

__version__: Final = "0.1.0"
