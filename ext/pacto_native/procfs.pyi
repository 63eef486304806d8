# SPDX-License-Identifier: MIT
from pacto_native.rows import ProcessRow

class ProcessScan:
    gone: int
    denied: int
    malformed: int
    def __init__(self, proc: str | bytes) -> None: ...
    def close(self) -> None: ...
    def batch(self, limit: int) -> list[ProcessRow]: ...
