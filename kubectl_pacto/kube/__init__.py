# SPDX-License-Identifier: MIT
"""The only HTTP of this project: raw JSON from and to the Kubernetes API."""
