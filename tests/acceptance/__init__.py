# SPDX-License-Identifier: MIT
"""The specification, executed: every sentence of it, on a real cluster with real processes."""
