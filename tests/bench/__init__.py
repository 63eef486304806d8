# SPDX-License-Identifier: MIT
"""Benchmarks, run by hand: `python -m tests.bench.NAME`. They print; they assert no absolute figure."""
