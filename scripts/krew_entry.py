# SPDX-License-Identifier: MIT
"""Where the plugin of the krew archive starts: the same plugin, in a folder that brings its own Python."""

from __future__ import annotations

import os
import sys
from collections.abc import MutableMapping
from pathlib import Path
from typing import Final

# where Linux distributions keep the certificates that they trust
CERTIFICATES: Final = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)


def settle(environment: MutableMapping[str, str]) -> None:
    """Undo what the folder's launcher does to programs that we start, and find the host's certificates.

    The launcher points LD_LIBRARY_PATH at the folder: a credential plugin would load our libraries
    for its own. The OpenSSL of the folder looks for certificates where its builder had them.
    """
    before = environment.pop("LD_LIBRARY_PATH_ORIG", None)
    environment.pop("LD_LIBRARY_PATH", None)
    if before:
        environment["LD_LIBRARY_PATH"] = before
    if not {"SSL_CERT_FILE", "SSL_CERT_DIR"} & environment.keys():
        found = next((one for one in CERTIFICATES if Path(one).is_file()), None)
        if found:
            environment["SSL_CERT_FILE"] = found


if __name__ == "__main__":
    settle(os.environ)
    from kubectl_pacto.entry import main

    sys.exit(main())
