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

_Static_assert(sizeof(struct pacto_entry) == PACTO_LINE_BYTES, "an entry is a cache line");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "rest_of() puts fields where they are in memory");

INLINE __u64 rest_of(__u32 netns, __u16 port, __u8 family)
{
	return netns | (__u64)port << 32 | (__u64)family << 48;
}

/*
 * Multiply and add by secret odd numbers, whose upper bits are then as good as random whatever peers
 * a pod connects to. The products do not wait for each other.
 */
INLINE __u64 hash_of(const struct pacto_reader *reader, const struct pacto_peer_key *key)
{
	const __u64 *secret = reader->secret;

	return key->cgroup_id * secret[0] + key->net_cookie * secret[1] + key->address[0] * secret[2] +
	       key->address[1] * secret[3] + key->rest * secret[4];
}

INLINE int is_same(const struct pacto_peer_key *one, const struct pacto_peer_key *other)
{
	return !((one->cgroup_id ^ other->cgroup_id) | (one->net_cookie ^ other->net_cookie) |
		 (one->address[0] ^ other->address[0]) | (one->address[1] ^ other->address[1]) |
		 (one->rest ^ other->rest));
}

/* Asked for peers that are new in this moment alone. NULL: all are in use by others. */
static struct pacto_origin *origin_of(struct pacto_reader *reader, const struct pacto_peer_key *key)
{
	struct pacto_buffer *buffer = reader->filling;
	struct pacto_peer_key alone = { .cgroup_id = key->cgroup_id,
					.net_cookie = key->net_cookie,
					.netns = key->netns };
	__u64 slot = hash_of(reader, &alone) >> (64 - PACTO_ORIGIN_BITS);
	__u16 *number;

	/* half the slots at most are used here, too */
	for (;; slot++) {
		struct pacto_origin *origin;

		number = &buffer->origin_index[slot & (PACTO_ORIGIN_SLOTS - 1)];
		if (!*number)
			break;
		origin = &buffer->origins[*number - 1];
		if (origin->cgroup_id == key->cgroup_id && origin->net_cookie == key->net_cookie &&
		    origin->netns == key->netns)
			return origin;
	}
	if (buffer->known == PACTO_ORIGINS)
		return NULL;
	*number = ++buffer->known;
	buffer->origins[*number - 1] = (struct pacto_origin){ .cgroup_id = key->cgroup_id,
							      .net_cookie = key->net_cookie,
							      .netns = key->netns };
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

/* NULL: no room, which is counted. `number` is the place in the index. */
static struct pacto_entry *new_entry(struct pacto_reader *reader, __u16 *number,
				     const struct pacto_peer_key *key, const struct outcome *outcome)
{
	struct pacto_buffer *buffer = reader->filling;
	struct pacto_origin *origin = origin_of(reader, key);

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
	buffer->entries[*number - 1] = (struct pacto_entry){ .key = *key };
	return &buffer->entries[*number - 1];
}

/* NULL: a peer that is new in this moment, whose place in the index is then `number`. */
INLINE struct pacto_entry *look_up(const struct pacto_reader *reader, const struct pacto_peer_key *key,
				   __u16 **number)
{
	struct pacto_buffer *buffer = reader->filling;

	/* half the slots at most are used, so there is a free one */
	for (__u64 slot = hash_of(reader, key) >> (64 - PACTO_TABLE_BITS);; slot++) {
		*number = &buffer->index[slot & (PACTO_TABLE_SLOTS - 1)];
		if (!**number)
			return NULL;
		if (is_same(key, &buffer->entries[**number - 1].key))
			return &buffer->entries[**number - 1];
	}
}

INLINE __u32 sum_of(__u32 count, __u64 more)
{
	return more > UINT32_MAX - count ? UINT32_MAX : count + (__u32)more;
}

INLINE void count_in(struct pacto_entry *entry, struct outcome outcome)
{
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

static void add(struct pacto_reader *reader, const struct pacto_peer_key *key, const struct outcome *outcome)
{
	__u16 *number;
	struct pacto_entry *entry = look_up(reader, key, &number);

	if (!entry)
		entry = new_entry(reader, number, key, outcome);
	if (entry)
		count_in(entry, *outcome);
}

/* The kernel's share for this origin: past it, events were cut there. */
static void read_head(struct pacto_reader *reader, const struct pacto_peer_key *key,
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

INLINE struct pacto_peer_key key_of(const unaligned_flow *flow)
{
	struct pacto_peer_key key = { .cgroup_id = flow->cgroup_id,
				      .net_cookie = flow->net_cookie,
				      .rest = rest_of(flow->netns, flow->port, flow->family) };

	memcpy(key.address, flow->address, sizeof(key.address));
	return key;
}

INLINE struct outcome outcome_of(const unaligned_flow *flow)
{
	return (struct outcome){ flow->kind, flow->reason, flow->stamp, 1 };
}

static __attribute__((noinline)) void new_connection(struct pacto_reader *reader, const unaligned_flow *flow)
{
	struct pacto_peer_key key = key_of(flow);
	struct outcome outcome = outcome_of(flow);

	add(reader, &key, &outcome);
}

/*
 * Nearly always of a peer that has an entry: its key and outcome never leave the registers, for nobody
 * is given their address. That, and a key of five words, is a quarter of what a record costs.
 */
INLINE void connection(struct pacto_reader *reader, const unaligned_flow *flow)
{
	struct pacto_peer_key key = key_of(flow);
	__u16 *number;
	struct pacto_entry *entry = look_up(reader, &key, &number);

	if (entry)
		count_in(entry, outcome_of(flow));
	else
		new_connection(reader, flow);
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
		connection(reader, flow);
	}
	return 0;
}

void pacto_reader_feed_spilled(struct pacto_reader *reader, const struct pacto_spill_key *spilled,
			       const struct pacto_spill *value)
{
	struct pacto_peer_key key = { .cgroup_id = spilled->cgroup_id,
				      .net_cookie = spilled->net_cookie,
				      .rest = rest_of(spilled->netns, spilled->port, spilled->family) };
	int kind = spilled->kind == PACTO_CONNECTED ? PACTO_CONNECTED : PACTO_FAILED;
	struct outcome outcome = { kind, value->reason, value->stamp, value->count };

	memcpy(key.address, spilled->address, sizeof(key.address));
	if (spilled->kind == PACTO_SPILL_HEAD)
		read_head(reader, &key, value);
	else
		add(reader, &key, &outcome);
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
