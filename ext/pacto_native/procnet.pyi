# SPDX-License-Identifier: MIT
from pacto_native.rows import SocketRow

def scan_sockets(text: bytes | bytearray | memoryview) -> tuple[list[SocketRow], int, int]: ...
