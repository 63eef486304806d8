# SPDX-License-Identifier: MIT
"""The node agent: TCP socket events of one node, matched to pods, published as one object."""
