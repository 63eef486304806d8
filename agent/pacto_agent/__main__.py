# SPDX-License-Identifier: MIT
"""`python -m pacto_agent` is `pacto agent`."""

import sys

from kubectl_pacto.errors import PactoError
from pacto_agent.run import main

if __name__ == "__main__":
    try:
        status = main(sys.argv[1:])
    except PactoError as error:
        print(f"pacto agent: {error}", file=sys.stderr)
        status = error.exit_code
    sys.exit(status)
