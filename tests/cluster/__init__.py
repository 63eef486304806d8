# SPDX-License-Identifier: MIT
"""A real Kubernetes cluster on one machine, for tests: control plane and kind-like nodes.

`python -m tests.cluster --help` is the command, `fixtures.py` has the pytest fixtures. Only the
standard library is used: the command also runs before anything is installed.
"""
