// SPDX-License-Identifier: MIT
/* The text of /proc/PID/stat and of the ns/net link. */
#include "../../ext/src/proc_scan.c"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct pacto_process process = { 0 };

	parse_stat((const char *)data, size, &process);
	parse_link((const char *)data, size);
	number_of((const char *)data, size);
	return 0;
}
