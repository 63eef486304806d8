# SPDX-License-Identifier: MIT
"""What one connection record costs the agent's reader, beside plain C and beside a Python callback.

A ring full of records of 2,000 peers goes through three callbacks of the type that libbpf calls, from
the same C loop: the agent's reader (ext/src/flow_reader.c, reached through pacto_native.ring), a C one
that does the least for the same facts, and a cffi callback that unpacks and counts in Python. CPU time,
interleaved, medians.
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

RECORDS: Final = 4_681  # what the ring holds
PODS, PEERS = 50, 40
ROUNDS: Final = 15
REPEATS: Final = 20  # of the quick ones, in each round
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

/* the least that a consumer must do: find the key in a table, count its outcome, keep the last time */
struct slot { uint64_t key[5]; int used; uint32_t count[2], stamp[2]; };
static struct slot table[16384];

static int plain_callback(void *context, void *record, size_t size)
{
	uint64_t cgroup, cookie, low, high, rest, hash;
	uint32_t netns, stamp;
	uint16_t port;
	int failed = ((unsigned char *)record)[42] == 3;

	(void)context;
	(void)size;
	memcpy(&cgroup, record, 8);
	memcpy(&cookie, (char *)record + 8, 8);
	memcpy(&netns, (char *)record + 16, 4);
	memcpy(&stamp, (char *)record + 20, 4);
	memcpy(&low, (char *)record + 24, 8);
	memcpy(&high, (char *)record + 32, 8);
	memcpy(&port, (char *)record + 40, 2);
	rest = (uint64_t)netns << 32 | port;
	hash = (cgroup * 3 + cookie * 5 + low * 7 + high * 11 + rest) * 0x9e3779b97f4a7c15ull >> 50;
	for (;; hash++) {
		struct slot *slot = &table[hash & 16383];

		if (slot->used && ((slot->key[0] ^ cgroup) | (slot->key[1] ^ cookie) | (slot->key[2] ^ low) |
				(slot->key[3] ^ high) | (slot->key[4] ^ rest)))
			continue;
		if (!slot->used) {
			slot->used = 1;
			slot->key[0] = cgroup, slot->key[1] = cookie, slot->key[2] = low;
			slot->key[3] = high, slot->key[4] = rest;
		}
		slot->count[failed]++;
		if ((int32_t)(stamp - slot->stamp[failed]) > 0)
			slot->stamp[failed] = stamp;
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


def per_record(module: Any, callback: int, context: int, raw: Any) -> float:
    """Nanoseconds of CPU time that one record takes."""
    began = time.process_time_ns()
    module.lib.drive(callback, context, raw, FLOW.size, RECORDS)
    return (time.process_time_ns() - began) / RECORDS


def main() -> None:
    """Run all three in turn and print medians and ratios."""
    with tempfile.TemporaryDirectory() as directory:
        module = compiled(str(Path(directory)))
        ffi = module.ffi
        python_consumer(module)
        raw = ffi.new("char[]", b"".join(records(RECORDS, pods=PODS, peers=PEERS)))
        reader = FlowReader()
        in_python = int(ffi.cast("uintptr_t", module.lib.python_callback))
        found: dict[str, list[float]] = {"plain C": [], "the agent's reader": [], "cffi callback": []}
        for _ in range(ROUNDS):
            for _ in range(REPEATS):
                found["plain C"].append(per_record(module, module.lib.plain(), 0, raw))
                found["the agent's reader"].append(per_record(module, reader.callback, reader.context, raw))
            found["cffi callback"].append(per_record(module, in_python, 0, raw))
            reader.take()
    plain = statistics.median(found["plain C"])
    ours = statistics.median(found["the agent's reader"])
    for name, times in found.items():
        median = statistics.median(times)
        print(
            f"{name:20} {median:8.1f} ns a record   {median / plain:6.2f} times plain C   "
            f"{median / ours:6.1f} times the agent's reader"
        )


if __name__ == "__main__":
    main()
