# SPDX-License-Identifier: MIT
"""The operator, and the objects that run it and the node agent."""
