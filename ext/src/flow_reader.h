/* SPDX-License-Identifier: MIT */
/*
 * Where ring records go: connections are summed per (cgroup, namespace, peer) in a table, listen
 * events are kept one by one in a log, in the order of the ring. Both are bounded, and what does
 * not fit is counted per kind. One origin has a share of the table; what passes its share is cut,
 * counted with the origin, and lost to nobody else. One thread runs the reader, another takes what
 * it gathered; a mutex stands between, held for one pass over the ring or for the swap of two buffers.
 */
#ifndef PACTO_FLOW_READER_H
#define PACTO_FLOW_READER_H

#include <pthread.h>
#include <stddef.h>
#include "flow.h"

#define PACTO_TABLE_BITS 14
#define PACTO_TABLE_SLOTS (1 << PACTO_TABLE_BITS)
#define PACTO_TABLE_ENTRIES 8192
#define PACTO_ORIGIN_BITS 12
#define PACTO_ORIGIN_SLOTS (1 << PACTO_ORIGIN_BITS)
#define PACTO_ORIGINS 2048
#define PACTO_LOG_ENTRIES 8192
#define PACTO_LINE_BYTES 64
#define PACTO_BATCH 256
#define PACTO_SECRETS 5

/* A peer of an origin. Its last four fields are one word, too: all of a key is then five. */
struct pacto_peer_key {
	__u64 cgroup_id;
	__u64 net_cookie;
	__u64 address[2]; /* the record's sixteen bytes */
	union {
		struct {
			__u32 netns;
			__u16 port;
			__u8 family;
			__u8 zero;
		};
		__u64 rest;
	};
};

/* A cache line: counts are of a moment, from one take to the next. */
struct pacto_entry {
	struct pacto_peer_key key; /* outcomes are columns here */
	__u32 succeeded;
	__u32 failed;
	__u32 aborted;
	__u32 success_stamp;
	__u32 failure_stamp;
	__u32 reason;
};

/* Who made sockets: the same in cgroup, cookie and namespace. */
struct pacto_origin {
	__u64 cgroup_id;
	__u64 net_cookie;
	__u64 cut; /* events of peers past PACTO_ORIGIN_PEERS, or past its share of the spill map */
	__u32 netns;
	__u32 stamp; /* of the last one cut */
	__u32 peers; /* its entries */
};

struct pacto_buffer {
	__u16 index[PACTO_TABLE_SLOTS]; /* 0: free; else the number of the entry, counted from 1 */
	__u16 origin_index[PACTO_ORIGIN_SLOTS]; /* likewise */
	_Alignas(PACTO_LINE_BYTES) struct pacto_entry entries[PACTO_TABLE_ENTRIES];
	struct pacto_origin origins[PACTO_ORIGINS];
	struct pacto_flow log[PACTO_LOG_ENTRIES];
	unsigned int used;
	unsigned int known; /* origins */
	unsigned int logged;
};

/* libbpf's functions, whose addresses cffi gives: this module links no libbpf */
typedef int (*pacto_consume)(void *ring);
typedef int (*pacto_lookup)(int fd, const void *key, void *value);
typedef int (*pacto_batch)(int fd, void *in, void *out, void *keys, void *values, __u32 *count,
			   const void *opts);

struct pacto_calls {
	pacto_consume consume;
	pacto_lookup lookup;
	pacto_batch lookup_and_delete_batch;
};

struct pacto_source {
	void *ring;
	int ring_epoll;
	int lost_fd;
	int spilled_fd;
	unsigned int cpus;
};

struct pacto_reader {
	pthread_mutex_t lock;
	struct pacto_calls calls;
	struct pacto_source source;
	struct pacto_buffer *filling;
	struct pacto_buffer *taken;
	struct pacto_lost *per_cpu;
	struct pacto_lost kernel; /* sums over CPUs, as last read */
	__u64 secret[PACTO_SECRETS]; /* of the table's hash */
	__u64 overflowed[PACTO_KINDS]; /* events that found no room in the buffer */
	__u64 cut; /* events past their origin's share */
	__u64 malformed; /* records that were none of ours */
	__u64 records;
	__u64 passes;
	__u64 passed_ms; /* CLOCK_MONOTONIC of the last complete pass */
	int epoll;
	int stop_event;
	int error; /* errno of the pass that failed, 0 while all is well */
};

struct pacto_reader *pacto_reader_new(void);
void pacto_reader_free(struct pacto_reader *reader);

/* The ring's callback: 0, always; a record that is none of ours is counted. */
int pacto_reader_feed(void *reader, void *record, size_t size);
void pacto_reader_feed_spilled(struct pacto_reader *reader, const struct pacto_spill_key *key,
			       const struct pacto_spill *value);

int pacto_reader_connect(struct pacto_reader *reader, const struct pacto_calls *calls,
			 const struct pacto_source *source);
/* One pass: ring, lost counters, spilled connections. 0 or an errno. */
int pacto_reader_pass(struct pacto_reader *reader);
/* Passes after each wake and each timeout until stopped; 0 or an errno. */
int pacto_reader_run(struct pacto_reader *reader, int timeout_ms);
void pacto_reader_stop(struct pacto_reader *reader);
/* What was gathered since the last call; valid until the next one. */
struct pacto_buffer *pacto_reader_take(struct pacto_reader *reader);

#endif
