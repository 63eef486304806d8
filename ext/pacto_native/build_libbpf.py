# SPDX-License-Identifier: MIT
"""Builds pacto_native._libbpf: libbpf through cffi in API mode, linked statically.

Run by setup.py alone. Only what the agent calls is declared; libelf and zlib stay shared.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from cffi import FFI

DECLARATIONS = """
struct bpf_object;
struct bpf_map;
struct bpf_program;
struct bpf_link;
struct ring_buffer;

const char *libbpf_version_string(void);
int libbpf_num_possible_cpus(void);
long libbpf_get_error(const void *ptr);

struct bpf_object *pacto_open(const void *image, size_t size);
int bpf_object__load(struct bpf_object *object);
void bpf_object__close(struct bpf_object *object);
struct bpf_map *bpf_object__find_map_by_name(const struct bpf_object *object, const char *name);
struct bpf_program *bpf_object__find_program_by_name(const struct bpf_object *object, const char *name);
int bpf_map__fd(const struct bpf_map *map);
int bpf_map__set_max_entries(struct bpf_map *map, uint32_t entries);
const void *bpf_map__initial_value(const struct bpf_map *map, size_t *size);
int bpf_program__fd(const struct bpf_program *program);
struct bpf_link *bpf_program__attach(const struct bpf_program *program);
int bpf_link__destroy(struct bpf_link *link);
int bpf_link__fd(const struct bpf_link *link);
int bpf_iter_create(int link);

struct ring_buffer *pacto_ring_new(int map, uintptr_t callback, uintptr_t context);
void ring_buffer__free(struct ring_buffer *ring);
int ring_buffer__consume(struct ring_buffer *ring);
int ring_buffer__epoll_fd(const struct ring_buffer *ring);

int bpf_map_lookup_elem(int fd, const void *key, void *value);
int pacto_lookup_and_delete_batch(int fd, void *in, void *out, void *keys, void *values, uint32_t *count,
                                  const void *opts);

int64_t pacto_recursion_misses(int program);
size_t pacto_take_log(char *buffer, size_t size);
void pacto_keep_log(void);
"""

SOURCE = r"""
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * A distribution's libbpf.a is often compiled for executables only: its one obstacle in a shared
 * object is a direct reference to the C library's stderr. The build renames that symbol to this
 * one, which is our own, so the reference stays inside the object. See build_libbpf.relocatable.
 */
__attribute__((visibility("hidden"))) FILE *pacto_stderr;

__attribute__((constructor)) static void set_stderr(void)
{
	pacto_stderr = stderr;
}

/* libbpf's messages are its only words about a failure: the last ones are kept for the reason. */
static char log_text[16384];
static size_t log_used;
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;

#define LINE 4096
#define HEAD 256

/*
 * A verifier's log is one message with its reason at the end. Of a long one the beginning, which says
 * what it is, and the end are kept. Returns the length, negative on failure.
 */
static int format_line(char *line, const char *format, va_list arguments)
{
	va_list again;
	char *whole;
	int length;

	va_copy(again, arguments);
	length = vsnprintf(line, LINE, format, arguments);
	if (length >= LINE) {
		whole = malloc((size_t)length + 1);
		if (whole) {
			vsnprintf(whole, (size_t)length + 1, format, again);
			line[HEAD] = '\n';
			memcpy(line + HEAD + 1, whole + length - (LINE - HEAD - 2), LINE - HEAD - 2);
			free(whole);
		}
		length = LINE - 1;
	}
	va_end(again);
	return length;
}

static int keep(enum libbpf_print_level level, const char *format, va_list arguments)
{
	char line[LINE];
	int length;

	if (level == LIBBPF_DEBUG)
		return 0;
	length = format_line(line, format, arguments);
	if (length <= 0)
		return 0;
	pthread_mutex_lock(&log_lock);
	if (log_used + length > sizeof(log_text)) {
		size_t drop = log_used + length - sizeof(log_text);

		memmove(log_text, log_text + drop, log_used - drop);
		log_used -= drop;
	}
	memcpy(log_text + log_used, line, length);
	log_used += length;
	pthread_mutex_unlock(&log_lock);
	return length;
}

static void pacto_keep_log(void)
{
	libbpf_set_print(keep);
}

static size_t pacto_take_log(char *buffer, size_t size)
{
	size_t used;

	pthread_mutex_lock(&log_lock);
	used = log_used < size ? log_used : size;
	memcpy(buffer, log_text + (log_used - used), used);
	log_used = 0;
	pthread_mutex_unlock(&log_lock);
	return used;
}

static struct bpf_object *pacto_open(const void *image, size_t size)
{
	LIBBPF_OPTS(bpf_object_open_opts, options, .object_name = "pacto_flow");

	return bpf_object__open_mem(image, size, &options);
}

static struct ring_buffer *pacto_ring_new(int map, uintptr_t callback, uintptr_t context)
{
	return ring_buffer__new(map, (ring_buffer_sample_fn)callback, (void *)context, NULL);
}

static int pacto_lookup_and_delete_batch(int fd, void *in, void *out, void *keys, void *values,
					uint32_t *count, const void *opts)
{
	return bpf_map_lookup_and_delete_batch(fd, in, out, keys, values, count, opts);
}

/* Runs that the kernel skipped because the program was running on that CPU; -errno; 0 before 5.12. */
static int64_t pacto_recursion_misses(int program)
{
	/* The field may be younger than the headers: the words after run_cnt are read by position. */
	struct {
		struct bpf_prog_info info;
		uint64_t younger[16];
	} got;
	uint32_t size = sizeof(got);
	size_t end = offsetof(struct bpf_prog_info, run_cnt) + 2 * sizeof(uint64_t);
	uint64_t misses = 0;

	memset(&got, 0, sizeof(got));
	if (bpf_obj_get_info_by_fd(program, &got, &size))
		return -errno;
	if (size >= end)
		memcpy(&misses, (char *)&got + end - sizeof(misses), sizeof(misses));
	return (int64_t)misses;
}
"""


def static_library() -> Path:
    """libbpf.a: LIBBPF_A, else where pkg-config says, else the usual place."""
    if named := os.environ.get("LIBBPF_A"):
        return Path(named)
    version = pkg_config("--modversion")
    if version.startswith("0."):
        raise SystemExit(
            f"libbpf {version} is too old: 1.0 or newer (Debian 12, Ubuntu 24.04), or PACTO_PURE=1"
        )
    return Path(pkg_config("--variable=libdir") or "/usr/lib") / "libbpf.a"


def pkg_config(question: str) -> str:
    """What pkg-config says of libbpf; nothing where it cannot."""
    if shutil.which("pkg-config") is None:
        return ""
    command = ["pkg-config", question, "libbpf"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def relocatable(library: Path) -> Path:
    """A copy of the archive that links into a shared object (see pacto_stderr in SOURCE)."""
    if not library.exists():
        raise SystemExit(f"{library} is missing: apt-get install libbpf-dev, or PACTO_PURE=1")
    copy = Path("build/libbpf.a")
    copy.parent.mkdir(exist_ok=True)
    subprocess.run(["objcopy", "--redefine-sym", "stderr=pacto_stderr", library, copy], check=True)
    return copy.absolute()


ffibuilder = FFI()
ffibuilder.cdef(DECLARATIONS)
ffibuilder.set_source(
    "pacto_native._libbpf",
    SOURCE,
    extra_objects=[str(relocatable(static_library()))],
    libraries=["elf", "z"],
    extra_link_args=["-Wl,--exclude-libs,ALL", "-Wl,-Bsymbolic", "-Wl,--strip-debug"],
)
