/* SPDX-License-Identifier: MIT */
/* The rows that the iterators write; one layout for the BPF object and its reader. */
#ifndef PACTO_ITER_H
#define PACTO_ITER_H

#ifdef PACTO_BPF
#include "kernel.h"
#else
#include <linux/types.h>
#endif

enum pacto_row_state {
	PACTO_ROW_ESTABLISHED = 1,
	PACTO_ROW_SYN_SENT = 2,
	PACTO_ROW_LISTEN = 10,
};

/* One process; its number is the outermost pid namespace's, never to be joined with a nested /proc. */
struct pacto_process_row {
	__u64 started_ns; /* since boot */
	__u64 cgroup_id; /* in the v2 hierarchy */
	__u64 v1_cgroup_id; /* in the pids controller's hierarchy; that of an ancestor on a pure v2 host */
	__u64 net_cookie; /* 0 before 6.1 */
	__u32 netns;
	__u32 pid;
	__u32 parent;
	__u32 unused;
};

/* One socket per descriptor that holds it. Addresses in network order, ports in host order. */
struct pacto_socket_row {
	__u64 inode;
	__u64 cgroup_id; /* that created the socket */
	__u64 net_cookie;
	__u8 local[16];
	__u8 remote[16];
	__u32 netns;
	__u16 local_port;
	__u16 remote_port;
	__u8 state; /* enum pacto_row_state */
	__u8 family; /* 4 or 6, of the socket: IPv4-mapped is still 6 */
	__u8 v6only;
	__u8 retransmits;
	__u32 unused;
};

_Static_assert(sizeof(struct pacto_process_row) == 48, "the row is a wire format");
_Static_assert(sizeof(struct pacto_socket_row) == 72, "the row is a wire format");

#endif
