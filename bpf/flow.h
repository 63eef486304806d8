/* SPDX-License-Identifier: MIT */
/*
 * The record that the kernel program hands to the agent: the one place where its layout is
 * written. Compiled into the BPF object, into the C reader (cffi) and, through flow.pxd, into
 * the Cython reader; a test compares all of them with the object's BTF.
 */
#ifndef PACTO_FLOW_H
#define PACTO_FLOW_H

#ifdef PACTO_BPF
#include "kernel.h"
#else
#include <linux/types.h>
#endif

enum pacto_kind {
	PACTO_LISTEN = 0,
	PACTO_UNLISTEN = 1,
	PACTO_CONNECTED = 2,
	PACTO_FAILED = 3,
	PACTO_KINDS = 4,
};

enum pacto_reason {
	PACTO_REASON_NONE = 0,
	PACTO_REASON_REFUSED = 1,
	PACTO_REASON_TIMEOUT = 2,
	PACTO_REASON_UNREACHABLE = 3,
	PACTO_REASON_RESET = 4,
	PACTO_REASON_OTHER = 5,
	PACTO_REASON_ABORTED = 6, /* the caller's doing: no evidence about the peer */
	PACTO_REASONS = 7,
};

enum pacto_flag {
	PACTO_V6ONLY = 1,
	PACTO_MPTCP = 2,
};

enum pacto_bounds {
	PACTO_RING_BYTES = 256 << 10,
	PACTO_WAKE_BYTES = 64 << 10,
	PACTO_SPILL_ENTRIES = 4096,
	PACTO_ORIGIN_PEERS = 128, /* of one origin in the reader's table, as many as are kept of a pod */
	PACTO_ORIGIN_SPILLED = 3 * PACTO_ORIGIN_PEERS, /* and in the spill map, an entry per outcome */
};

/*
 * Addresses are in network order, an IPv4 address in the first four bytes with the rest zero;
 * ports are in host order. IPv4-mapped IPv6 is told as IPv4.
 */
struct pacto_flow {
	__u64 cgroup_id; /* that created the socket; 0 or 1 (the root): unknown */
	__u64 net_cookie; /* 0 where the kernel has none (before 6.1) */
	__u32 netns; /* inode of the network namespace */
	__u32 stamp; /* listen, unlisten: inode of the socket; else milliseconds since boot, mod 2^32 */
	__u8 address[16]; /* listen, unlisten: local; else the peer's */
	__u16 port; /* of that address; 0 at unlisten, and at a listen() without bind */
	__u8 kind; /* enum pacto_kind */
	__u8 family; /* 4 or 6 */
	__u8 reason; /* enum pacto_reason, of PACTO_FAILED alone */
	__u8 flags; /* enum pacto_flag */
	__u16 spare;
};

/*
 * A connection event that found no room in the ring is counted under this key instead.
 *
 * An origin is who made a socket: cgroup, cookie and namespace. Each has a head in the spill map, of
 * the kind PACTO_SPILL_HEAD without address, port and family: how many entries it made, and after
 * PACTO_ORIGIN_SPILLED of them how many events were cut.
 */
enum pacto_spill_kind {
	PACTO_SPILL_ABORTED =
		PACTO_KINDS, /* an outcome of its own, never merged with a failure of the peer */
	PACTO_SPILL_HEAD = PACTO_KINDS + 1,
};

struct pacto_spill_key {
	__u64 cgroup_id;
	__u64 net_cookie;
	__u32 netns;
	__u8 address[16];
	__u16 port;
	__u8 kind; /* PACTO_CONNECTED, PACTO_FAILED or enum pacto_spill_kind */
	__u8 family;
};

struct pacto_spill {
	__u64 count;
	__u32 stamp; /* of the last one */
	__u32 reason; /* of the last one */
};

/* Per CPU, only growing: events that were neither in the ring nor in the spill map. */
struct pacto_lost {
	__u64 lost[PACTO_KINDS];
	__u64 spilled;
};

_Static_assert(sizeof(struct pacto_flow) == 48, "the record is a wire format");
_Static_assert(sizeof(struct pacto_spill_key) == 40, "the spill key has no padding");
_Static_assert(sizeof(struct pacto_spill) == 16, "the spill value has no padding");

#endif
