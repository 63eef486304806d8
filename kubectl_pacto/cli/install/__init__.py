# SPDX-License-Identifier: MIT
"""What install, upgrade and uninstall share: ownership, server-side apply, removal, waiting."""
