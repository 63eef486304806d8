// SPDX-License-Identifier: MIT
/* The reader's passes over the ring and the maps, and the loop that makes them. */
#include "flow_reader.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>

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
