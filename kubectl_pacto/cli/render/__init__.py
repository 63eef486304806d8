# SPDX-License-Identifier: MIT
"""Text of all commands. Imports nothing: `status` must not pay for what only `evaluate` needs."""
