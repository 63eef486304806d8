# SPDX-License-Identifier: MIT
"""`kubectl pacto demo`: pods without a cluster, watched by the real agent, judged by the real `evaluate`."""
