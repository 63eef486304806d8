// SPDX-License-Identifier: MIT
/* The text of /proc/net/tcp: any bytes, in a block of exactly their size. */
#include "proc_net.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct pacto_cursor cursor = { data, size };
	struct pacto_socket socket;
	enum pacto_line line;

	do {
		size_t left = cursor.left;

		line = pacto_next_line(&cursor, &socket);
		if (line == PACTO_LINE_END) {
			if (cursor.left != left)
				abort(); /* an unfinished line is left for the next piece */
			break;
		}
		if (cursor.left >= left || cursor.at != data + size - cursor.left)
			abort();
		if (line == PACTO_LINE_SOCKET && socket.family != 4 && socket.family != 6)
			abort();
	} while (1);
	return 0;
}
