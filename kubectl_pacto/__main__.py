# SPDX-License-Identifier: MIT
"""`python -m kubectl_pacto` is the plugin."""

import sys

from kubectl_pacto.entry import main

if __name__ == "__main__":
    sys.exit(main())
