// SPDX-License-Identifier: MIT
/* The reader's tables: what a record does to them. How records get here: flow_passes.c. */
#include "flow_reader.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
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
INLINE __u64 hash_of(const struct pacto_reader *reader, const struct key_words *words)
{
	const __u64 *secret = reader->secret;
	__u64 rest = (__u64)words->netns << 32 | (__u64)words->port << 8 | words->family;

	return words->cgroup_id * secret[0] + words->net_cookie * secret[1] + words->address[0] * secret[2] +
	       words->address[1] * secret[3] + rest * secret[4];
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

/* Asked for peers that are new in this moment alone. NULL: all are in use by others. */
static struct pacto_origin *origin_of(struct pacto_reader *reader, const struct key_words *words)
{
	struct pacto_buffer *buffer = reader->filling;
	struct key_words alone = { .cgroup_id = words->cgroup_id,
				   .net_cookie = words->net_cookie,
				   .netns = words->netns };
	__u64 slot = hash_of(reader, &alone) >> (64 - PACTO_ORIGIN_BITS);
	__u16 *number;

	/* half the slots at most are used here, too */
	for (;; slot++) {
		struct pacto_origin *origin;

		number = &buffer->origin_index[slot & (PACTO_ORIGIN_SLOTS - 1)];
		if (!*number)
			break;
		origin = &buffer->origins[*number - 1];
		if (origin->cgroup_id == words->cgroup_id && origin->net_cookie == words->net_cookie &&
		    origin->netns == words->netns)
			return origin;
	}
	if (buffer->known == PACTO_ORIGINS)
		return NULL;
	*number = ++buffer->known;
	buffer->origins[*number - 1] = (struct pacto_origin){ .cgroup_id = words->cgroup_id,
							      .net_cookie = words->net_cookie,
							      .netns = words->netns };
	return &buffer->origins[*number - 1];
}

static int is_later(__u32 stamp, __u32 than)
{
	return (int)(stamp - than) > 0; /* stamps wrap after 49 days */
}

static void cut(struct pacto_reader *reader, struct pacto_origin *origin, __u32 stamp, __u64 count)
{
	if (!origin->cut || is_later(stamp, origin->stamp))
		origin->stamp = stamp;
	origin->cut += count;
	reader->cut += count;
}

/* What an event says beside its key. */
struct outcome {
	int kind;
	int reason;
	__u32 stamp;
	__u64 count;
};

/* NULL: no room, which is counted. */
static struct pacto_entry *new_entry(struct pacto_reader *reader, __u16 *number,
				     const struct key_words *words, const struct outcome *outcome)
{
	struct pacto_buffer *buffer = reader->filling;
	struct pacto_origin *origin = origin_of(reader, words);
	struct pacto_entry *entry;

	if (origin && origin->peers == PACTO_ORIGIN_PEERS) {
		cut(reader, origin, outcome->stamp, outcome->count);
		return NULL;
	}
	if (!origin || buffer->used == PACTO_TABLE_ENTRIES) {
		reader->overflowed[outcome->kind] += outcome->count;
		return NULL;
	}
	origin->peers++;
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

INLINE struct pacto_entry *entry_of(struct pacto_reader *reader, const struct key_words *words,
				    const struct outcome *outcome)
{
	struct pacto_buffer *buffer = reader->filling;

	/* half the slots at most are used, so there is a free one */
	for (__u64 slot = hash_of(reader, words) >> (64 - PACTO_TABLE_BITS);; slot++) {
		__u16 *number = &buffer->index[slot & (PACTO_TABLE_SLOTS - 1)];

		if (!*number)
			return new_entry(reader, number, words, outcome);
		if (is_same(words, &buffer->entries[*number - 1].key))
			return &buffer->entries[*number - 1];
	}
}

INLINE __u32 sum_of(__u32 count, __u64 more)
{
	return more > UINT32_MAX - count ? UINT32_MAX : count + (__u32)more;
}

INLINE void add(struct pacto_reader *reader, const struct key_words *key, struct outcome outcome)
{
	struct pacto_entry *entry = entry_of(reader, key, &outcome);

	if (!entry)
		return;
	if (outcome.kind == PACTO_CONNECTED) {
		if (!entry->succeeded || is_later(outcome.stamp, entry->success_stamp))
			entry->success_stamp = outcome.stamp;
		entry->succeeded = sum_of(entry->succeeded, outcome.count);
	} else if (outcome.reason == PACTO_REASON_ABORTED) {
		entry->aborted = sum_of(entry->aborted, outcome.count);
	} else {
		if (!entry->failed || !is_later(entry->failure_stamp, outcome.stamp)) {
			entry->failure_stamp = outcome.stamp;
			entry->reason = outcome.reason;
		}
		entry->failed = sum_of(entry->failed, outcome.count);
	}
}

/* The kernel's share for this origin: past it, events were cut there. */
static void read_head(struct pacto_reader *reader, const struct key_words *key,
		      const struct pacto_spill *head)
{
	struct pacto_origin *origin;
	__u64 beyond;

	if (head->count <= PACTO_ORIGIN_SPILLED)
		return;
	beyond = head->count - PACTO_ORIGIN_SPILLED;
	origin = origin_of(reader, key);
	if (origin)
		cut(reader, origin, head->stamp, beyond);
	else
		reader->overflowed[PACTO_FAILED] += beyond; /* its kinds are not told apart */
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
		add(reader, &key, (struct outcome){ flow->kind, flow->reason, flow->stamp, 1 });
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
	if (spilled->kind == PACTO_SPILL_HEAD)
		read_head(reader, &key, value);
	else
		add(reader, &key, (struct outcome){ kind, value->reason, value->stamp, value->count });
}

struct pacto_buffer *pacto_reader_take(struct pacto_reader *reader)
{
	struct pacto_buffer *full;

	memset(reader->taken->index, 0, sizeof(reader->taken->index));
	memset(reader->taken->origin_index, 0, sizeof(reader->taken->origin_index));
	reader->taken->used = reader->taken->known = reader->taken->logged = 0;
	pthread_mutex_lock(&reader->lock);
	full = reader->filling;
	reader->filling = reader->taken;
	reader->taken = full;
	pthread_mutex_unlock(&reader->lock);
	return full;
}
