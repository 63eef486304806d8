// SPDX-License-Identifier: MIT
#include "proc_scan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct pacto_scan {
	DIR *directory;
};

struct pacto_scan *pacto_scan_open(const char *proc)
{
	struct pacto_scan *scan = calloc(1, sizeof(*scan));

	if (!scan)
		return NULL;
	scan->directory = opendir(proc);
	if (scan->directory)
		return scan;
	free(scan);
	return NULL;
}

void pacto_scan_close(struct pacto_scan *scan)
{
	if (!scan)
		return;
	closedir(scan->directory);
	free(scan);
}

/* Digits alone, no sign, no zero in front; 0 where it is no number that fits. */
static int64_t number_of(const char *text, size_t length)
{
	int64_t value = 0;

	if (!length || length > 18 || (text[0] == '0' && length > 1))
		return 0;
	for (size_t i = 0; i < length; i++) {
		if (text[i] < '0' || text[i] > '9')
			return 0;
		value = value * 10 + (text[i] - '0');
	}
	return value;
}

/* The whole file, cut at `size`; -1 and errno. */
static ssize_t read_file(int directory, const char *name, void *buffer, size_t size)
{
	int fd = openat(directory, name, O_RDONLY | O_CLOEXEC);
	ssize_t got, total = 0;

	if (fd < 0)
		return -1;
	while ((size_t)total < size) {
		got = read(fd, (char *)buffer + total, size - (size_t)total);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		total += got;
	}
	if (got < 0)
		total = -1;
	close(fd);
	return total;
}

/* "PID (NAME) STATE PPID ... STARTTIME": the name may hold anything, a closing bracket too. */
static int parse_stat(const char *text, size_t length, struct pacto_process *process)
{
	const char *end = text + length, *at = end, *field;
	int64_t value;

	while (at > text && at[-1] != ')')
		at--;
	if (at == text)
		return -1;
	for (int number = 3; at < end; number++) { /* fields count from 1: the state is the third */
		while (at < end && *at == ' ')
			at++;
		for (field = at; at < end && *at != ' ' && *at != '\n'; at++)
			;
		if (number != 4 && number != 22)
			continue;
		value = number_of(field, (size_t)(at - field));
		if (!value && (at - field != 1 || *field != '0'))
			return -1;
		if (number == 22) {
			process->started = (uint64_t)value;
			return 0;
		}
		if (value > INT32_MAX)
			return -1;
		process->parent = (int32_t)value;
	}
	return -1;
}

/* "net:[4026531840]" */
static uint32_t parse_link(const char *text, size_t length)
{
	int64_t value;

	if (length < 7 || memcmp(text, "net:[", 5) || text[length - 1] != ']')
		return 0;
	value = number_of(text + 5, length - 6);
	return value > UINT32_MAX ? 0 : (uint32_t)value;
}

static enum pacto_found failed(void)
{
	return errno == EACCES || errno == EPERM ? PACTO_FOUND_DENIED : PACTO_FOUND_GONE;
}

/* One directory descriptor is held throughout, so that a pid used again cannot mix two processes. */
static enum pacto_found read_process(int directory, struct pacto_process *process)
{
	char text[2048];
	ssize_t length = read_file(directory, "stat", text, sizeof(text));

	if (length < 0)
		return failed();
	if (parse_stat(text, (size_t)length, process))
		return length ? PACTO_FOUND_MALFORMED : PACTO_FOUND_GONE;
	length = read_file(directory, "cgroup", process->cgroup, sizeof(process->cgroup));
	if (length < 0)
		return failed();
	if (length == sizeof(process->cgroup))
		return PACTO_FOUND_MALFORMED;
	process->cgroup_bytes = (uint32_t)length;
	length = readlinkat(directory, "ns/net", text, sizeof(text));
	if (length < 0)
		return failed();
	process->netns = parse_link(text, (size_t)length);
	return process->netns ? PACTO_FOUND_PROCESS : PACTO_FOUND_MALFORMED;
}

enum pacto_found pacto_scan_next(struct pacto_scan *scan, struct pacto_process *process)
{
	struct dirent *entry;
	enum pacto_found found;
	int64_t pid;
	int fd;

	do {
		entry = readdir(scan->directory);
		if (!entry)
			return PACTO_FOUND_END;
		pid = number_of(entry->d_name, strlen(entry->d_name));
	} while (!pid || pid > INT32_MAX);
	process->pid = (int32_t)pid;
	fd = openat(dirfd(scan->directory), entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return failed();
	found = read_process(fd, process);
	close(fd);
	return found;
}
