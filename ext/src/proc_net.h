/* SPDX-License-Identifier: MIT */
/* The text of /proc/net/tcp and tcp6, line by line; see procnet.pyx. */
#ifndef PACTO_PROC_NET_H
#define PACTO_PROC_NET_H

#include <stddef.h>
#include <stdint.h>

enum { PACTO_TCP_ESTABLISHED = 1, PACTO_TCP_SYN_SENT = 2, PACTO_TCP_LISTEN = 10 };

struct pacto_socket {
	uint8_t local[16]; /* network order, IPv4 in the first four bytes */
	uint8_t remote[16];
	uint64_t inode;
	uint32_t retransmits;
	uint16_t local_port;
	uint16_t remote_port;
	uint8_t state;
	uint8_t family; /* 4 or 6; IPv4-mapped is 4 */
};

struct pacto_cursor {
	const uint8_t *at;
	size_t left;
};

enum pacto_line {
	PACTO_LINE_END, /* no whole line is left */
	PACTO_LINE_SOCKET, /* filled in */
	PACTO_LINE_OTHER, /* a header, or a state that nobody asks for */
	PACTO_LINE_MALFORMED,
};

/* Moves past one line that ends in a newline. */
enum pacto_line pacto_next_line(struct pacto_cursor *cursor, struct pacto_socket *socket);

#endif
