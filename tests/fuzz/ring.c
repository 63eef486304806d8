// SPDX-License-Identifier: MIT
/* Ring bytes: records of any size and content, and spilled entries, into the tables. */
#include "flow_reader.h"

#include <stdlib.h>
#include <string.h>

static void check(const struct pacto_buffer *buffer)
{
	if (buffer->used > PACTO_TABLE_ENTRIES || buffer->logged > PACTO_LOG_ENTRIES ||
	    buffer->known > PACTO_ORIGINS)
		abort();
	for (unsigned int i = 0; i < buffer->used; i++) {
		const struct pacto_entry *entry = &buffer->entries[i];

		if (entry->key.zero || (!entry->succeeded && !entry->failed && !entry->aborted))
			abort();
	}
	for (unsigned int i = 0, peers = 0; i < buffer->known; i++) {
		peers += buffer->origins[i].peers;
		if (buffer->origins[i].peers > PACTO_ORIGIN_PEERS || peers > buffer->used)
			abort();
	}
	for (unsigned int i = 0; i < buffer->logged; i++)
		if (buffer->log[i].kind > PACTO_UNLISTEN)
			abort();
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	static struct pacto_reader *reader;
	unsigned char record[64];

	if (!reader)
		reader = pacto_reader_new();
	while (size) {
		/* the first byte says how long the record is */
		size_t length = data[0] % (sizeof(record) + 1);

		data++;
		size--;
		if (length > size)
			length = size;
		memcpy(record, data, length);
		pacto_reader_feed(reader, record, length);
		data += length;
		size -= length;
	}
	check(pacto_reader_take(reader));
	return 0;
}
