# SPDX-License-Identifier: MIT
"""The one source of what is installed: objects as functions of values, CRDs as generated files.

The plugin, the chart and the operator all take them from here; it imports the model alone, so the
plugin may import it although it may import nothing else of the controller.
"""
