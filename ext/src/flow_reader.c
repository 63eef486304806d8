// SPDX-License-Identifier: MIT
#include "flow_reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

struct pacto_reader *pacto_reader_new(void)
{
	struct pacto_reader *reader = calloc(1, sizeof(*reader));

	if (!reader)
		return NULL;
	reader->epoll = reader->stop_event = -1;
	pthread_mutex_init(&reader->lock, NULL);
	reader->filling = calloc(1, sizeof(*reader->filling));
	reader->taken = calloc(1, sizeof(*reader->taken));
	reader->stop_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
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
	free(reader->taken);
	free(reader->filling);
	pthread_mutex_destroy(&reader->lock);
	free(reader);
}

static __u64 hash_of(const struct pacto_spill_key *key)
{
	__u64 words[sizeof(*key) / 8], hash = 0x9e3779b97f4a7c15ull;

	memcpy(words, key, sizeof(words));
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		hash ^= words[i];
		hash *= 0xff51afd7ed558ccdull;
		hash ^= hash >> 32;
	}
	return hash;
}

static struct pacto_entry *entry_of(struct pacto_buffer *buffer, const struct pacto_spill_key *key)
{
	__u64 slot = hash_of(key);

	for (;; slot++) { /* half the slots at most are used, so there is a free one */
		__u16 *number = &buffer->index[slot & (PACTO_TABLE_SLOTS - 1)];

		if (!*number) {
			if (buffer->used == PACTO_TABLE_ENTRIES)
				return NULL;
			*number = ++buffer->used;
			buffer->entries[*number - 1] = (struct pacto_entry){ .key = *key };
			return &buffer->entries[*number - 1];
		}
		if (!memcmp(&buffer->entries[*number - 1].key, key, sizeof(*key)))
			return &buffer->entries[*number - 1];
	}
}

static int is_later(__u32 stamp, __u32 than)
{
	return (int)(stamp - than) > 0; /* stamps wrap after 49 days */
}

static void add(struct pacto_reader *reader, const struct pacto_spill_key *key, int kind, int reason,
		__u32 stamp, __u64 count)
{
	struct pacto_entry *entry = entry_of(reader->filling, key);

	if (!entry) {
		reader->overflowed[kind] += count;
	} else if (kind == PACTO_CONNECTED) {
		if (!entry->succeeded || is_later(stamp, entry->success_stamp))
			entry->success_stamp = stamp;
		entry->succeeded += count;
	} else if (reason == PACTO_REASON_ABORTED) {
		entry->aborted += count;
	} else {
		if (!entry->failed || !is_later(entry->failure_stamp, stamp)) {
			entry->failure_stamp = stamp;
			entry->reason = reason;
		}
		entry->failed += count;
	}
}

static int is_ours(const struct pacto_flow *flow)
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
	struct pacto_flow flow;

	reader->records++;
	if (size != sizeof(flow)) {
		reader->malformed++;
		return 0;
	}
	memcpy(&flow, record, sizeof(flow)); /* a test's bytes need not be aligned */
	if (!is_ours(&flow)) {
		reader->malformed++;
	} else if (flow.kind == PACTO_LISTEN || flow.kind == PACTO_UNLISTEN) {
		if (buffer->logged == PACTO_LOG_ENTRIES)
			reader->overflowed[flow.kind]++;
		else
			buffer->log[buffer->logged++] = flow;
	} else {
		struct pacto_spill_key key = {
			.cgroup_id = flow.cgroup_id,
			.net_cookie = flow.net_cookie,
			.netns = flow.netns,
			.port = flow.port,
			.family = flow.family,
		};

		memcpy(key.address, flow.address, sizeof(key.address));
		add(reader, &key, flow.kind, flow.reason, flow.stamp, 1);
	}
	return 0;
}

void pacto_reader_feed_spilled(struct pacto_reader *reader, const struct pacto_spill_key *spilled,
			       const struct pacto_spill *value)
{
	struct pacto_spill_key key = *spilled;
	int kind = key.kind == PACTO_CONNECTED ? PACTO_CONNECTED : PACTO_FAILED;

	key.kind = 0;
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
