# SPDX-License-Identifier: MIT
"""One page about verdicts, findings, coverage and who calls whom: collected, laid out, written as HTML."""
