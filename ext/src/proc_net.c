// SPDX-License-Identifier: MIT
#include "proc_net.h"

#include <string.h>

/* Every byte goes through here: the one bounds check. -1 at the end. */
static int take(struct pacto_cursor *cursor)
{
	if (!cursor->left)
		return -1;
	cursor->left--;
	return *cursor->at++;
}

static int peek(const struct pacto_cursor *cursor)
{
	return cursor->left ? *cursor->at : -1;
}

static int digit_of(int byte)
{
	if (byte >= '0' && byte <= '9')
		return byte - '0';
	if (byte >= 'A' && byte <= 'F')
		return byte - 'A' + 10;
	if (byte >= 'a' && byte <= 'f')
		return byte - 'a' + 10;
	return -1;
}

/* Exactly `digits` hexadecimal digits. */
static int take_hex(struct pacto_cursor *cursor, int digits, uint32_t *out)
{
	uint32_t value = 0;

	while (digits--) {
		int digit = digit_of(take(cursor));

		if (digit < 0)
			return -1;
		value = value << 4 | (uint32_t)digit;
	}
	*out = value;
	return 0;
}

static int take_decimal(struct pacto_cursor *cursor, uint64_t *out)
{
	uint64_t value = 0;
	int digits = 0;

	for (; peek(cursor) >= '0' && peek(cursor) <= '9'; digits++) {
		if (digits == 19) /* the next digit might not fit */
			return -1;
		value = value * 10 + (uint64_t)(take(cursor) - '0');
	}
	*out = value;
	return digits ? 0 : -1;
}

static void skip_spaces(struct pacto_cursor *cursor)
{
	while (peek(cursor) == ' ')
		take(cursor);
}

static int skip_field(struct pacto_cursor *cursor)
{
	skip_spaces(cursor);
	if (peek(cursor) < 0)
		return -1;
	while (peek(cursor) >= 0 && peek(cursor) != ' ')
		take(cursor);
	return 0;
}

/* ADDRESS:PORT; the kernel prints each 32-bit word of an address in the machine's byte order. */
static int take_address(struct pacto_cursor *cursor, uint8_t address[16], int *words, uint16_t *port)
{
	uint32_t word, number;

	memset(address, 0, 16);
	for (*words = 0; *words < 4 && peek(cursor) != ':'; (*words)++) {
		if (take_hex(cursor, 8, &word))
			return -1;
		memcpy(address + 4 * *words, &word, 4);
	}
	if ((*words != 1 && *words != 4) || take(cursor) != ':' || take_hex(cursor, 4, &number))
		return -1;
	*port = (uint16_t)number;
	return 0;
}

static int is_mapped(const uint8_t address[16])
{
	static const uint8_t prefix[12] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(address, prefix, sizeof(prefix));
}

static void unmap(uint8_t address[16])
{
	memcpy(address, address + 12, 4);
	memset(address + 4, 0, 12);
}

static int is_unspecified(const uint8_t address[16])
{
	static const uint8_t nothing[16];

	return !memcmp(address, nothing, sizeof(nothing));
}

static void settle_family(struct pacto_socket *socket, int words)
{
	socket->family = words == 1 ? 4 : 6;
	/* a listener's remote address is unspecified, whatever its own is */
	if (socket->family == 6 && is_mapped(socket->local) &&
	    (is_mapped(socket->remote) || is_unspecified(socket->remote))) {
		unmap(socket->local);
		if (!is_unspecified(socket->remote))
			unmap(socket->remote);
		socket->family = 4;
	}
}

/* "  0: LOCAL REMOTE ST TX:RX TR:WHEN RETRANSMITS UID TIMEOUT INODE ..." */
static enum pacto_line parse(struct pacto_cursor line, struct pacto_socket *socket)
{
	uint32_t state, retransmits;
	int local_words, remote_words;

	skip_spaces(&line);
	if (peek(&line) == 's') /* the header */
		return PACTO_LINE_OTHER;
	if (skip_field(&line))
		return PACTO_LINE_MALFORMED;
	skip_spaces(&line);
	if (take_address(&line, socket->local, &local_words, &socket->local_port))
		return PACTO_LINE_MALFORMED;
	skip_spaces(&line);
	if (take_address(&line, socket->remote, &remote_words, &socket->remote_port) ||
	    remote_words != local_words)
		return PACTO_LINE_MALFORMED;
	skip_spaces(&line);
	if (take_hex(&line, 2, &state))
		return PACTO_LINE_MALFORMED;
	if (state != PACTO_TCP_LISTEN && state != PACTO_TCP_ESTABLISHED && state != PACTO_TCP_SYN_SENT)
		return PACTO_LINE_OTHER;
	if (skip_field(&line) || skip_field(&line))
		return PACTO_LINE_MALFORMED;
	skip_spaces(&line);
	if (take_hex(&line, 8, &retransmits) || skip_field(&line) || skip_field(&line))
		return PACTO_LINE_MALFORMED;
	skip_spaces(&line);
	if (take_decimal(&line, &socket->inode))
		return PACTO_LINE_MALFORMED;
	socket->state = (uint8_t)state;
	socket->retransmits = retransmits;
	settle_family(socket, local_words);
	return PACTO_LINE_SOCKET;
}

enum pacto_line pacto_next_line(struct pacto_cursor *cursor, struct pacto_socket *socket)
{
	const uint8_t *end = cursor->left ? memchr(cursor->at, '\n', cursor->left) : NULL;
	struct pacto_cursor line = { cursor->at, 0 };

	if (!end)
		return PACTO_LINE_END;
	line.left = (size_t)(end - cursor->at);
	cursor->left -= line.left + 1;
	cursor->at = end + 1;
	return parse(line, socket);
}
