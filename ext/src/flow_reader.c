// SPDX-License-Identifier: MIT
#include "flow_reader.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

/* Inlined, a key stays in registers: half of what a record costs. */
#define INLINE static inline __attribute__((always_inline))

static void make_secret(struct pacto_reader *reader)
{
	if (getrandom(reader->secret, sizeof(reader->secret), GRND_NONBLOCK) != sizeof(reader->secret))
		for (int i = 0; i < PACTO_SECRETS; i++) /* early in a boot: no secret, but still a hash */
			reader->secret[i] = 0x9e3779b97f4a7c15ull * (2 * i + 1);
	for (int i = 0; i < PACTO_SECRETS; i++)
		reader->secret[i] |= 1;
}

/* All zero and untouched, so that only what is used takes memory. */
static struct pacto_buffer *new_buffer(void)
{
	void *buffer = mmap(NULL, sizeof(struct pacto_buffer), PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return buffer == MAP_FAILED ? NULL : buffer;
}

static void free_buffer(struct pacto_buffer *buffer)
{
	if (buffer)
		munmap(buffer, sizeof(*buffer));
}

struct pacto_reader *pacto_reader_new(void)
{
	struct pacto_reader *reader = calloc(1, sizeof(*reader));

	if (!reader)
		return NULL;
	reader->epoll = reader->stop_event = -1;
	pthread_mutex_init(&reader->lock, NULL);
	reader->filling = new_buffer();
	reader->taken = new_buffer();
	reader->stop_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	make_secret(reader);
	if (reader->filling && reader->taken && reader->stop_event >= 0)
		return reader;
	pacto_reader_free(reader);
	return NULL;
}

void pacto_reader_free(struct pacto_reader *reader)
{
	if (!reader)
		return;
	if (reader->epoll >= 0)
		close(reader->epoll);
	if (reader->stop_event >= 0)
		close(reader->stop_event);
	free(reader->per_cpu);
	free_buffer(reader->taken);
	free_buffer(reader->filling);
	pthread_mutex_destroy(&reader->lock);
	free(reader);
}

/* A key in registers: built in memory piece by piece it could not be read back in words at once. */
struct key_words {
	__u64 cgroup_id;
	__u64 net_cookie;
	__u64 address[2];
	__u32 netns;
	__u16 port;
	__u8 family;
};

/*
 * Multiply and add by secret odd numbers, whose upper bits are then as good as random whatever peers
 * a pod connects to. The products do not wait for each other.
 */
INLINE __u64 slot_of(const struct pacto_reader *reader, const struct key_words *words)
{
	const __u64 *secret = reader->secret;
	__u64 rest = (__u64)words->netns << 32 | (__u64)words->port << 8 | words->family;
	__u64 hash = words->cgroup_id * secret[0] + words->net_cookie * secret[1] +
		     words->address[0] * secret[2] + words->address[1] * secret[3] + rest * secret[4];

	return hash >> (64 - PACTO_TABLE_BITS);
}

INLINE int is_same(const struct key_words *words, const struct pacto_spill_key *key)
{
	__u64 address[2];

	memcpy(address, key->address, sizeof(address));
	return !((words->cgroup_id ^ key->cgroup_id) | (words->net_cookie ^ key->net_cookie) |
		 (words->address[0] ^ address[0]) | (words->address[1] ^ address[1]) |
		 (words->netns ^ key->netns) | (__u32)(words->port ^ key->port) |
		 (__u32)(words->family ^ key->family));
}

static struct pacto_entry *new_entry(struct pacto_buffer *buffer, __u16 *number,
				     const struct key_words *words)
{
	struct pacto_entry *entry;

	if (buffer->used == PACTO_TABLE_ENTRIES)
		return NULL;
	*number = ++buffer->used;
	entry = &buffer->entries[*number - 1];
	*entry = (struct pacto_entry){ .key = { .cgroup_id = words->cgroup_id,
						.net_cookie = words->net_cookie,
						.netns = words->netns,
						.port = words->port,
						.family = words->family } };
	memcpy(entry->key.address, words->address, sizeof(entry->key.address));
	return entry;
}

INLINE struct pacto_entry *entry_of(struct pacto_reader *reader, const struct key_words *words)
{
	struct pacto_buffer *buffer = reader->filling;

	/* half the slots at most are used, so there is a free one */
	for (__u64 slot = slot_of(reader, words);; slot++) {
		__u16 *number = &buffer->index[slot & (PACTO_TABLE_SLOTS - 1)];

		if (!*number)
			return new_entry(buffer, number, words);
		if (is_same(words, &buffer->entries[*number - 1].key))
			return &buffer->entries[*number - 1];
	}
}

static int is_later(__u32 stamp, __u32 than)
{
	return (int)(stamp - than) > 0; /* stamps wrap after 49 days */
}

INLINE __u32 sum_of(__u32 count, __u64 more)
{
	return more > UINT32_MAX - count ? UINT32_MAX : count + (__u32)more;
}

INLINE void add(struct pacto_reader *reader, const struct key_words *key, int kind, int reason, __u32 stamp,
		__u64 count)
{
	struct pacto_entry *entry = entry_of(reader, key);

	if (!entry) {
		reader->overflowed[kind] += count;
	} else if (kind == PACTO_CONNECTED) {
		if (!entry->succeeded || is_later(stamp, entry->success_stamp))
			entry->success_stamp = stamp;
		entry->succeeded = sum_of(entry->succeeded, count);
	} else if (reason == PACTO_REASON_ABORTED) {
		entry->aborted = sum_of(entry->aborted, count);
	} else {
		if (!entry->failed || !is_later(entry->failure_stamp, stamp)) {
			entry->failure_stamp = stamp;
			entry->reason = reason;
		}
		entry->failed = sum_of(entry->failed, count);
	}
}

/* in place: a test's bytes need not be aligned, and the ring's are */
typedef struct pacto_flow unaligned_flow __attribute__((aligned(1)));

INLINE int is_ours(const unaligned_flow *flow)
{
	if (flow->kind >= PACTO_KINDS || (flow->family != 4 && flow->family != 6))
		return 0;
	if (flow->kind == PACTO_FAILED)
		return flow->reason > PACTO_REASON_NONE && flow->reason < PACTO_REASONS;
	return flow->reason == PACTO_REASON_NONE;
}

int pacto_reader_feed(void *context, void *record, size_t size)
{
	struct pacto_reader *reader = context;
	struct pacto_buffer *buffer = reader->filling;
	const unaligned_flow *flow = record;

	reader->records++;
	if (size != sizeof(*flow)) {
		reader->malformed++;
		return 0;
	}
	if (!is_ours(flow)) {
		reader->malformed++;
	} else if (flow->kind == PACTO_LISTEN || flow->kind == PACTO_UNLISTEN) {
		if (buffer->logged == PACTO_LOG_ENTRIES)
			reader->overflowed[flow->kind]++;
		else
			buffer->log[buffer->logged++] = *flow;
	} else {
		struct key_words key = {
			.cgroup_id = flow->cgroup_id,
			.net_cookie = flow->net_cookie,
			.netns = flow->netns,
			.port = flow->port,
			.family = flow->family,
		};

		memcpy(key.address, flow->address, sizeof(key.address));
		add(reader, &key, flow->kind, flow->reason, flow->stamp, 1);
	}
	return 0;
}

void pacto_reader_feed_spilled(struct pacto_reader *reader, const struct pacto_spill_key *spilled,
			       const struct pacto_spill *value)
{
	struct key_words key = {
		.cgroup_id = spilled->cgroup_id,
		.net_cookie = spilled->net_cookie,
		.netns = spilled->netns,
		.port = spilled->port,
		.family = spilled->family,
	};
	int kind = spilled->kind == PACTO_CONNECTED ? PACTO_CONNECTED : PACTO_FAILED;

	memcpy(key.address, spilled->address, sizeof(key.address));
	add(reader, &key, kind, value->reason, value->stamp, value->count);
}

int pacto_reader_connect(struct pacto_reader *reader, const struct pacto_calls *calls,
			 const struct pacto_source *source)
{
	struct epoll_event ring = { .events = EPOLLIN }, stop = { .events = EPOLLIN };

	if (reader->epoll >= 0)
		return EISCONN;
	reader->source = *source;
	reader->per_cpu = calloc(source->cpus, sizeof(*reader->per_cpu));
	reader->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (!reader->per_cpu || reader->epoll < 0)
		return errno ? errno : ENOMEM;
	if (epoll_ctl(reader->epoll, EPOLL_CTL_ADD, source->ring_epoll, &ring) ||
	    epoll_ctl(reader->epoll, EPOLL_CTL_ADD, reader->stop_event, &stop))
		return errno;
	reader->calls = *calls; /* last: a pass may run from here on */
	return 0;
}

/* The kernel sums per CPU; returns whether connections were spilled since the last pass. */
static int read_lost(struct pacto_reader *reader, int *error)
{
	struct pacto_lost sum = { 0 };
	__u32 zero = 0;
	int spilled;

	if (reader->calls.lookup(reader->source.lost_fd, &zero, reader->per_cpu)) {
		*error = errno;
		return 0;
	}
	for (unsigned int cpu = 0; cpu < reader->source.cpus; cpu++) {
		for (int kind = 0; kind < PACTO_KINDS; kind++)
			sum.lost[kind] += reader->per_cpu[cpu].lost[kind];
		sum.spilled += reader->per_cpu[cpu].spilled;
	}
	spilled = sum.spilled != reader->kernel.spilled;
	reader->kernel = sum;
	return spilled;
}

static int drain_spilled(struct pacto_reader *reader)
{
	struct pacto_spill_key keys[PACTO_BATCH];
	struct pacto_spill values[PACTO_BATCH];
	__u32 position = 0, count;
	int first = 1, failed;

	do {
		count = PACTO_BATCH;
		failed = reader->calls.lookup_and_delete_batch(reader->source.spilled_fd,
							       first ? NULL : &position, &position, keys,
							       values, &count, NULL);
		if (failed && errno != ENOENT) /* ENOENT: that was the end of the map */
			return errno;
		for (__u32 i = 0; i < count; i++)
			pacto_reader_feed_spilled(reader, &keys[i], &values[i]);
		first = 0;
	} while (!failed);
	return 0;
}

static __u64 now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (__u64)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int pacto_reader_pass(struct pacto_reader *reader)
{
	int consumed, error = 0;

	if (!reader->calls.consume)
		return ENOTCONN;
	pthread_mutex_lock(&reader->lock);
	consumed = reader->calls.consume(reader->source.ring);
	if (consumed < 0)
		error = -consumed;
	else if (read_lost(reader, &error))
		error = drain_spilled(reader);
	if (error) {
		reader->error = error;
	} else {
		reader->passes++;
		reader->passed_ms = now_ms();
	}
	pthread_mutex_unlock(&reader->lock);
	return error;
}

int pacto_reader_run(struct pacto_reader *reader, int timeout_ms)
{
	struct epoll_event events[2];
	eventfd_t stop;
	int error;

	if (!reader->calls.consume)
		return ENOTCONN;
	/* A record without a wake-up stays in the ring until someone looks: pass after timeouts too. */
	do {
		if (epoll_wait(reader->epoll, events, 2, timeout_ms) < 0 && errno != EINTR)
			return reader->error = errno;
		error = pacto_reader_pass(reader);
		if (error)
			return error;
	} while (eventfd_read(reader->stop_event, &stop));
	return 0;
}

void pacto_reader_stop(struct pacto_reader *reader)
{
	eventfd_write(reader->stop_event, 1);
}

struct pacto_buffer *pacto_reader_take(struct pacto_reader *reader)
{
	struct pacto_buffer *full;

	memset(reader->taken->index, 0, sizeof(reader->taken->index));
	reader->taken->used = reader->taken->logged = 0;
	pthread_mutex_lock(&reader->lock);
	full = reader->filling;
	reader->filling = reader->taken;
	reader->taken = full;
	pthread_mutex_unlock(&reader->lock);
	return full;
}
