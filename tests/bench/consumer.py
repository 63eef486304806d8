# SPDX-License-Identifier: MIT
"""What one connection record costs the agent's reader, beside plain C and beside a Python callback.

The same records go through three callbacks of the type that libbpf calls, from the same C loop: the
agent's reader (ext/src/flow_reader.c, reached through pacto_native.ring), a minimal C one with an
open hash, and a cffi callback that unpacks and counts in Python. CPU time, interleaved, medians.
"""

from __future__ import annotations

import importlib.util
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from cffi import FFI

from pacto_native.ring import FlowReader
from tests.bench.node import FLOW, records

RECORDS: Final = 50_000
ROUNDS: Final = 9
PYTHON_SHARE: Final = 10  # the Python callback gets one record in ten
DECLARATIONS: Final = """
void drive(uintptr_t callback, uintptr_t context, char *records, size_t size, unsigned int count);
uintptr_t plain(void);
extern "Python" int python_callback(void *context, void *record, size_t size);
"""
SOURCE: Final = r"""
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef int (*callback_t)(void *context, void *record, size_t size);

static void drive(uintptr_t callback, uintptr_t context, char *records, size_t size, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		((callback_t)callback)((void *)context, records + i * size, size);
}

/* the least that a consumer must do: find the key in a table and count */
struct slot { unsigned char key[40]; uint64_t count; uint32_t stamp; int used; };
static struct slot table[16384];

static int plain_callback(void *context, void *record, size_t size)
{
	unsigned char key[40] = { 0 };
	uint64_t words[5], hash = 0;

	(void)context;
	(void)size;
	memcpy(key, record, 20);
	memcpy(key + 20, (char *)record + 24, 16);
	memcpy(key + 36, (char *)record + 40, 2);
	memcpy(words, key, 40);
	for (int i = 0; i < 5; i++)
		hash = (hash ^ words[i]) * 0x9e3779b97f4a7c15ull, hash ^= hash >> 32;
	for (;; hash++) {
		struct slot *slot = &table[hash & 16383];

		if (slot->used && memcmp(slot->key, key, 40))
			continue;
		if (!slot->used) {
			slot->used = 1;
			memcpy(slot->key, key, 40);
		}
		slot->count++;
		return 0;
	}
}

static uintptr_t plain(void)
{
	return (uintptr_t)plain_callback;
}
"""


def compiled(directory: str) -> Any:
    """The loop and the plain consumer, built now with the compiler that Python names."""
    builder = FFI()
    builder.cdef(DECLARATIONS)
    builder.set_source("bench_consumer", SOURCE, extra_compile_args=["-O2"])
    path = builder.compile(tmpdir=directory)
    spec = importlib.util.spec_from_file_location("bench_consumer", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def python_consumer(module: Any) -> Callable[..., int]:
    """A callback as one would write it with cffi alone."""
    totals: dict[tuple[int, int, bytes, int], int] = {}
    ffi = module.ffi

    def callback(_context: Any, record: Any, size: int) -> int:
        cgroup, _, netns, _, address, port, *_ = FLOW.unpack(ffi.buffer(record, size))
        key = (cgroup, netns, address, port)
        totals[key] = totals.get(key, 0) + 1
        return 0

    ffi.def_extern(name="python_callback")(callback)
    return callback


def per_record(module: Any, callback: int, context: int, raw: Any, count: int) -> float:
    """Nanoseconds of CPU time that one record takes."""
    began = time.process_time_ns()
    module.lib.drive(callback, context, raw, FLOW.size, count)
    return (time.process_time_ns() - began) / count


def main() -> None:
    """Run all three in turn and print medians and ratios."""
    with tempfile.TemporaryDirectory() as directory:
        module = compiled(str(Path(directory)))
        ffi = module.ffi
        python_consumer(module)
        raw = ffi.new("char[]", b"".join(records(RECORDS)))
        reader = FlowReader()
        in_python = int(ffi.cast("uintptr_t", module.lib.python_callback))
        found: dict[str, list[float]] = {"plain C": [], "the agent's reader": [], "cffi callback": []}
        for _ in range(ROUNDS):
            found["plain C"].append(per_record(module, module.lib.plain(), 0, raw, RECORDS))
            found["the agent's reader"].append(
                per_record(module, reader.callback, reader.context, raw, RECORDS)
            )
            found["cffi callback"].append(per_record(module, in_python, 0, raw, RECORDS // PYTHON_SHARE))
            reader.take()
    plain = statistics.median(found["plain C"])
    for name, times in found.items():
        median = statistics.median(times)
        print(f"{name:20} {median:8.1f} ns a record   {median / plain:6.1f} times plain C")


if __name__ == "__main__":
    main()
