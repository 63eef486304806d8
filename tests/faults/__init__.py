# SPDX-License-Identifier: MIT
"""What is claimed while things break: agents, operators, nodes, the API server and the network to it."""
