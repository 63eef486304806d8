/* SPDX-License-Identifier: MIT */
/* Which process is in which network namespace and cgroups; see procfs.pyx. */
#ifndef PACTO_PROC_SCAN_H
#define PACTO_PROC_SCAN_H

#include <stddef.h>
#include <stdint.h>

#define PACTO_CGROUP_BYTES 8192

enum pacto_found {
	PACTO_FOUND_END, /* no process is left */
	PACTO_FOUND_PROCESS, /* filled in */
	PACTO_FOUND_GONE, /* ended while it was read: normal */
	PACTO_FOUND_DENIED, /* its ns/net may not be read: needs SYS_PTRACE */
	PACTO_FOUND_MALFORMED, /* none of /proc's formats, or a cgroup text past the bound */
};

struct pacto_process {
	int32_t pid;
	int32_t parent;
	uint64_t started; /* clock ticks since boot */
	uint32_t netns; /* inode */
	uint32_t cgroup_bytes;
	uint8_t cgroup[PACTO_CGROUP_BYTES];
};

struct pacto_scan;

/* Returns NULL and sets errno. */
struct pacto_scan *pacto_scan_open(const char *proc);
void pacto_scan_close(struct pacto_scan *scan);
enum pacto_found pacto_scan_next(struct pacto_scan *scan, struct pacto_process *process);

#endif
