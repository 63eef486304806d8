# SPDX-License-Identifier: MIT
"""`python -m pacto_agent` is `pacto agent`."""

import sys

from kubectl_pacto.launcher import guarded
from pacto_agent.run import main

if __name__ == "__main__":
    sys.exit(guarded("pacto agent", lambda: main(sys.argv[1:])))
