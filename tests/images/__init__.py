# SPDX-License-Identifier: MIT
"""Images without a registry: roots from Debian packages, written as OCI archives."""
