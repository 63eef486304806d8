# SPDX-License-Identifier: MIT
"""The operator against a real API server, its nodes and agents written by hand."""
