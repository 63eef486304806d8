// SPDX-License-Identifier: MIT
/*
 * Short TCP connections on loopback as fast as one client can make them: the load of the kernel
 * cost benchmark. Prints the seconds of CPU and of wall time that COUNT connections took.
 *
 *   connections COUNT normal|refused [RATE]     RATE a second at most
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static int listener;

static void *serve(void *unused)
{
	(void)unused;
	for (;;) {
		int one = accept(listener, NULL, NULL);

		if (one < 0)
			return NULL;
		close(one);
	}
}

static double seconds(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(address);
	struct linger reset = { .l_onoff = 1, .l_linger = 0 };
	double cpu, wall;
	pthread_t server;
	int count, rate, refused, failed = 0;

	if (argc != 3 && argc != 4)
		return 2;
	rate = argc == 4 ? atoi(argv[3]) : 0;
	count = atoi(argv[1]);
	refused = !strcmp(argv[2], "refused");
	listener = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(listener, (struct sockaddr *)&address, length) ||
	    getsockname(listener, (struct sockaddr *)&address, &length))
		return 1;
	if (refused) {
		close(listener);
	} else {
		if (listen(listener, 4096) || pthread_create(&server, NULL, serve, NULL))
			return 1;
	}
	cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
	wall = seconds(CLOCK_MONOTONIC);
	for (int i = 0; i < count; i++) {
		/* in slices of a hundredth: a sleep for each would cost more than what is measured */
		while (rate && i % (rate / 100 + 1) == 0 &&
		       seconds(CLOCK_MONOTONIC) - wall < (double)i / rate)
			usleep(1000);
		int one = socket(AF_INET, SOCK_STREAM, 0);

		if (connect(one, (struct sockaddr *)&address, sizeof(address)))
			failed++;
		/* no TIME_WAIT: it would run out of ports */
		setsockopt(one, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
		close(one);
	}
	printf("%.6f %.6f %d\n", seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu, seconds(CLOCK_MONOTONIC) - wall,
	       failed);
	return failed == (refused ? count : 0) ? 0 : 1;
}
