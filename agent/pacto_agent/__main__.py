# SPDX-License-Identifier: MIT
"""`python -m pacto_agent` is `pacto agent`."""

import sys

from pacto_agent.run import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
