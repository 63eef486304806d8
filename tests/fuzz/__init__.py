# SPDX-License-Identifier: MIT
"""Coverage-guided fuzzing of every parser of bytes that others write."""
