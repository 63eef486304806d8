# SPDX-License-Identifier: MIT
"""Benchmarks: each prints a ratio measured in one run, and asserts no absolute figure."""
