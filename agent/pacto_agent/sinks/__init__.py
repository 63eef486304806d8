# SPDX-License-Identifier: MIT
"""Where a node's view can go."""
