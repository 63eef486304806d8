// SPDX-License-Identifier: MIT
/*
 * Feeds frames (length, bytes) from the standard input to the readers of ext/src, each in a block of
 * exactly its size, so that a read past its end is seen. Prints what the reader counted.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "flow_reader.h"
#include "proc_net.h"
#include "proc_scan.h"

struct frame {
	unsigned int size;
	unsigned char *bytes;
};

static int next_frame(struct frame *frame)
{
	if (fread(&frame->size, sizeof(frame->size), 1, stdin) != 1)
		return 0;
	frame->bytes = malloc(frame->size ? frame->size : 1);
	if (!frame->bytes || fread(frame->bytes, 1, frame->size, stdin) != frame->size)
		abort();
	return 1;
}

static void feed(struct pacto_reader *reader, const struct frame *frame, int spilled)
{
	struct pacto_spill_key key;
	struct pacto_spill value;

	if (!spilled) {
		pacto_reader_feed(reader, frame->bytes, frame->size);
	} else if (frame->size == sizeof(key) + sizeof(value)) {
		memcpy(&key, frame->bytes, sizeof(key));
		memcpy(&value, frame->bytes + sizeof(key), sizeof(value));
		pacto_reader_feed_spilled(reader, &key, &value);
	}
}

static void run_reader(int spilled)
{
	struct pacto_reader *reader = pacto_reader_new();
	struct pacto_buffer *buffer;
	struct frame frame;
	unsigned long long lost = 0;

	if (!reader)
		abort();
	while (next_frame(&frame)) {
		feed(reader, &frame, spilled);
		free(frame.bytes);
	}
	for (int kind = 0; kind < PACTO_KINDS; kind++)
		lost += reader->overflowed[kind];
	buffer = pacto_reader_take(reader);
	printf("%llu %llu %llu %u %u %llu %u\n", reader->records, reader->malformed, lost, buffer->used,
	       buffer->logged, reader->cut, buffer->known);
	pacto_reader_free(reader);
}

static void run_net(void)
{
	unsigned long sockets = 0, malformed = 0;
	struct pacto_socket socket;
	struct frame frame;

	while (next_frame(&frame)) {
		struct pacto_cursor cursor = { frame.bytes, frame.size };
		enum pacto_line line;

		while ((line = pacto_next_line(&cursor, &socket)) != PACTO_LINE_END) {
			sockets += line == PACTO_LINE_SOCKET;
			malformed += line == PACTO_LINE_MALFORMED;
		}
		free(frame.bytes);
	}
	printf("%lu %lu\n", sockets, malformed);
}

static void run_proc(void)
{
	struct pacto_process *process = malloc(sizeof(*process));
	unsigned long found[PACTO_FOUND_MALFORMED + 1] = { 0 };
	struct pacto_scan *scan;
	struct frame frame;
	enum pacto_found one;
	char *path;

	if (!process || !next_frame(&frame))
		abort();
	path = strndup((char *)frame.bytes, frame.size);
	scan = path ? pacto_scan_open(path) : NULL;
	if (!scan)
		abort();
	while ((one = pacto_scan_next(scan, process)) != PACTO_FOUND_END)
		found[one]++;
	pacto_scan_close(scan);
	free(path);
	free(frame.bytes);
	free(process);
	printf("%lu %lu %lu %lu\n", found[PACTO_FOUND_PROCESS], found[PACTO_FOUND_GONE],
	       found[PACTO_FOUND_DENIED], found[PACTO_FOUND_MALFORMED]);
}

/* Proof that the sanitizers are on. */
static void overrun(void)
{
	volatile unsigned char *block = malloc(4);

	if (block)
		printf("%d\n", block[4]);
	free((void *)block);
}

int main(int count, char **words)
{
	const char *what = count > 1 ? words[1] : "";

	if (!strcmp(what, "ring") || !strcmp(what, "spill"))
		run_reader(!strcmp(what, "spill"));
	else if (!strcmp(what, "net"))
		run_net();
	else if (!strcmp(what, "proc"))
		run_proc();
	else
		overrun();
	return 0;
}
