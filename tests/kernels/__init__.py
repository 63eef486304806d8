# SPDX-License-Identifier: MIT
"""Other Linux kernels for tests: Debian's, in an emulator, with a root directory as user space."""
