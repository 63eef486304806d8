# SPDX-License-Identifier: MIT
"""From the previous release to this one, on a real cluster."""
