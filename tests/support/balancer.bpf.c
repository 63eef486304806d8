// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/*
 * A socket load balancer as small as can be: connect() to a service goes to its backend instead, before
 * the kernel has made a connection of it. balancer.py fills in the services and attaches it.
 */
#include "kernel.h"

#define SERVICES 8
#define SECTION(name) __attribute__((section(name), used))

/* the beginning of the kernel's context of this kind of program: a stable interface, not relocated */
struct bpf_sock_addr {
	__u32 user_family;
	__u32 user_ip4;
	__u32 user_ip6[4];
	__u32 user_port;
};

/* all in network order; a port of 0 ends the list */
struct service {
	__u32 address;
	__u32 port;
	__u32 backend_address;
	__u32 backend_port;
};

const volatile struct service services[SERVICES] = {};

SECTION("cgroup/connect4") int balance(struct bpf_sock_addr *to)
{
	for (int i = 0; i < SERVICES && services[i].port; i++) {
		if (services[i].address == to->user_ip4 && services[i].port == to->user_port) {
			to->user_ip4 = services[i].backend_address;
			to->user_port = services[i].backend_port;
			break;
		}
	}
	return 1;
}

char LICENSE[] SECTION("license") = "Dual MIT/GPL";
