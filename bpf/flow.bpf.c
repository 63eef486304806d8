// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/*
 * Four TCP events from the tracepoint inet_sock_set_state, for the node agent.
 *
 * Everything is read from the socket, nothing from the current task: results of a handshake run
 * in whatever task was interrupted. Since 5.15 all reads are direct walks of BTF pointers, so the
 * program also loads under lockdown=confidentiality, where probe-read helpers are refused.
 */
#define PACTO_BPF
#include "flow.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#define AF_INET6 10
#define IPPROTO_TCP 6
#define IPPROTO_MPTCP 262

enum { ESTABLISHED = 1, SYN_SENT = 2, CLOSE = 7, LISTEN = 10 };

enum {
	EACCES = 13,
	ENETUNREACH = 101,
	ECONNRESET = 104,
	ETIMEDOUT = 110,
	ECONNREFUSED = 111,
	EHOSTUNREACH = 113
};

/* Off only where lockdown forbids the probe read that the cgroup needs before 5.15. */
const volatile bool read_cgroup = true;

/* Keeps the record in the object's BTF, where a reader checks its layout before the load. */
const struct pacto_flow *const flow_layout = 0;

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, PACTO_RING_BYTES);
} flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct pacto_lost);
} flows_lost SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, PACTO_SPILL_ENTRIES);
	__type(key, struct pacto_spill_key);
	__type(value, struct pacto_spill);
} flows_spilled SEC(".maps");

static __always_inline int kind_of(int from, int to)
{
	if (to == LISTEN && from != LISTEN)
		return PACTO_LISTEN;
	/* the socket of an accepted connection is a copy of the listener: LISTEN -> SYN_RECV is its */
	if (from == LISTEN && to == CLOSE)
		return PACTO_UNLISTEN;
	if (from == SYN_SENT && to == ESTABLISHED)
		return PACTO_CONNECTED;
	if (from == SYN_SENT && to == CLOSE)
		return PACTO_FAILED;
	return -1;
}

static __always_inline __u64 cgroup_of(const struct sock *sk)
{
	const struct sock___val *before_5_15 = (const void *)sk;
	const struct cgroup *group;
	__u64 val;

	if (!read_cgroup)
		return 0;
	if (bpf_core_field_exists(sk->sk_cgrp_data.cgroup)) {
		group = sk->sk_cgrp_data.cgroup;
		return group ? group->kn->id : 0;
	}
	val = before_5_15->sk_cgrp_data.val;
	if (!val || (val & 3)) /* net_cls or net_prio data in the pointer's place */
		return 0;
	group = (const struct cgroup *)val;
	return BPF_CORE_READ(group, kn, id);
}

static __always_inline __u64 cookie_of(const struct net *net)
{
	return bpf_core_field_exists(net->net_cookie) ? net->net_cookie : 0;
}

static __always_inline __u32 inode_of(const struct sock *sk)
{
	const struct socket *socket = sk->sk_socket;
	const struct file *file = socket ? socket->file : 0;
	const struct inode *inode = file ? file->f_inode : 0;

	return inode ? inode->i_ino : 0;
}

static __always_inline int retransmits_of(const struct sock *sk)
{
	struct tcp_sock *tcp;

	if (!bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_skc_to_tcp_sock))
		return 0;
	tcp = bpf_skc_to_tcp_sock((void *)sk);
	return tcp ? tcp->inet_conn.icsk_retransmits : 0;
}

/*
 * An ICMP error that a non-blocking caller has read already: that clears sk_err_soft, but the error
 * is queued as well (since 5.9), which is what woke the caller. One byte, since a direct walk
 * reads an array of bytes element by element; all errors here are below 256.
 */
static __always_inline int queued_error_of(const struct sock *sk)
{
	__u64 at;

	if (!sk->sk_error_queue.qlen || !bpf_core_field_exists(struct sock_exterr_skb, ee))
		return 0;
	at = bpf_core_field_offset(struct sock_exterr_skb, ee);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	at += 3;
#endif
	barrier_var(at); /* else clang folds the offset into the load, whose size then fails to match */
	return *((const __u8 *)&sk->sk_error_queue.next->cb + at);
}

/* The reason of SYN_SENT -> CLOSE; NONE: it failed on this machine, before any packet. */
static __always_inline int reason_of(const struct sock *sk)
{
	const struct socket *socket = sk->sk_socket;
	int error = sk->sk_err;

	if (!error)
		error = sk->sk_err_soft; /* the first ICMP error of a handshake is only soft */
	if (!error)
		error = queued_error_of(sk);
	switch (error) {
	case 0:
		if (retransmits_of(sk) > 0)
			return PACTO_REASON_TIMEOUT;
		if (socket && socket->state == SS_UNCONNECTED)
			return PACTO_REASON_NONE;
		return PACTO_REASON_ABORTED;
	case ECONNREFUSED:
		return PACTO_REASON_REFUSED;
	case ETIMEDOUT:
		return PACTO_REASON_TIMEOUT;
	case EHOSTUNREACH:
	case ENETUNREACH:
	case EACCES:
		return PACTO_REASON_UNREACHABLE;
	case ECONNRESET:
		return PACTO_REASON_RESET;
	default:
		return PACTO_REASON_OTHER;
	}
}

static __always_inline void put_ipv4(struct pacto_flow *flow, __be32 address)
{
	flow->family = 4;
	__builtin_memcpy(flow->address, &address, sizeof(address));
}

static __always_inline void put_address(struct pacto_flow *flow, const struct sock *sk, bool local)
{
	const struct sock_common *common = &sk->__sk_common;
	__be32 words[4];

	if (common->skc_family != AF_INET6 || !bpf_core_field_exists(common->skc_v6_daddr)) {
		put_ipv4(flow, local ? common->skc_rcv_saddr : common->skc_daddr);
		return;
	}
#pragma unroll
	for (int i = 0; i < 4; i++)
		words[i] = local ? common->skc_v6_rcv_saddr.in6_u.u6_addr32[i]
				 : common->skc_v6_daddr.in6_u.u6_addr32[i];
	if (!words[0] && !words[1] && words[2] == __builtin_bswap32(0xffff)) {
		put_ipv4(flow, words[3]);
		return;
	}
	flow->family = 6;
	__builtin_memcpy(flow->address, words, sizeof(words));
}

/* Fills the record; false where the event is not ours. */
static __always_inline bool describe(struct pacto_flow *flow, const struct sock *sk, int kind)
{
	const struct net *net = sk->__sk_common.skc_net.net;
	bool listening = kind == PACTO_LISTEN || kind == PACTO_UNLISTEN;

	if (kind == PACTO_FAILED) {
		flow->reason = reason_of(sk);
		if (flow->reason == PACTO_REASON_NONE)
			return false;
	}
	if (listening) {
		flow->stamp = inode_of(sk);
		if (!flow->stamp) /* a listener without a file is the kernel's own */
			return false;
		flow->port = sk->__sk_common.skc_num;
		if (sk->sk_protocol == IPPROTO_MPTCP)
			flow->flags |= PACTO_MPTCP;
	} else {
		flow->stamp = bpf_ktime_get_ns() / 1000000;
		flow->port = __builtin_bswap16(sk->__sk_common.skc_dport);
	}
	flow->kind = kind;
	flow->cgroup_id = cgroup_of(sk);
	flow->netns = net->ns.inum;
	flow->net_cookie = cookie_of(net);
	put_address(flow, sk, listening);
	if (listening && flow->family == 6 && BPF_CORE_READ_BITFIELD(&sk->__sk_common, skc_ipv6only))
		flow->flags |= PACTO_V6ONLY;
	return true;
}

static __always_inline void count_lost(int kind, bool spilled)
{
	__u32 zero = 0;
	struct pacto_lost *lost = bpf_map_lookup_elem(&flows_lost, &zero);

	if (!lost)
		return;
	if (spilled)
		__sync_fetch_and_add(&lost->spilled, 1);
	else
		__sync_fetch_and_add(&lost->lost[kind & (PACTO_KINDS - 1)], 1);
}

/* The head of a new entry's origin; null where the map is full. */
static __always_inline struct pacto_spill *head_of(const struct pacto_flow *flow)
{
	struct pacto_spill none = { .stamp = flow->stamp };
	struct pacto_spill_key key = {
		.cgroup_id = flow->cgroup_id,
		.net_cookie = flow->net_cookie,
		.netns = flow->netns,
		.kind = PACTO_SPILL_HEAD,
	};
	struct pacto_spill *head = bpf_map_lookup_elem(&flows_spilled, &key);

	if (head)
		return head;
	bpf_map_update_elem(&flows_spilled, &key, &none, BPF_NOEXIST);
	return bpf_map_lookup_elem(&flows_spilled, &key);
}

/* A new entry; false where the map is full, or another CPU was first. */
static __always_inline bool spill_first(const struct pacto_flow *flow, const struct pacto_spill_key *key)
{
	struct pacto_spill first = { .count = 1, .stamp = flow->stamp, .reason = flow->reason };
	struct pacto_spill *head = head_of(flow);

	if (!head)
		return false;
	if (head->count >= PACTO_ORIGIN_SPILLED) { /* who goes through all ports leaves room for others */
		head->stamp = flow->stamp;
	} else if (bpf_map_update_elem(&flows_spilled, key, &first, BPF_NOEXIST)) {
		return false;
	}
	__sync_fetch_and_add(&head->count, 1);
	return true;
}

/* Keeps a connection event that found no room, by its key: its time and outcome survive. */
static __always_inline void spill(const struct pacto_flow *flow)
{
	struct pacto_spill_key key = {
		.cgroup_id = flow->cgroup_id,
		.net_cookie = flow->net_cookie,
		.netns = flow->netns,
		.port = flow->port,
		.kind = flow->reason == PACTO_REASON_ABORTED ? PACTO_SPILL_ABORTED : flow->kind,
		.family = flow->family,
	};
	struct pacto_spill *known;

	__builtin_memcpy(key.address, flow->address, sizeof(key.address));
	known = bpf_map_lookup_elem(&flows_spilled, &key);
	if (!known && spill_first(flow, &key)) {
		count_lost(flow->kind, true);
		return;
	}
	if (!known) /* another CPU was first, or the map is full */
		known = bpf_map_lookup_elem(&flows_spilled, &key);
	if (!known) {
		count_lost(flow->kind, false);
		return;
	}
	known->stamp = flow->stamp;
	known->reason = flow->reason;
	__sync_fetch_and_add(&known->count, 1);
	count_lost(flow->kind, true);
}

SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(on_state, const struct sock *sk, int from, int to)
{
	struct pacto_flow flow = {};
	int kind = kind_of(from, to);
	bool connection = kind == PACTO_CONNECTED || kind == PACTO_FAILED;
	__u64 waiting;

	if (kind < 0)
		return 0;
	/* MPTCP's own socket tells each connection a second time, and every failure without its error */
	if (sk->sk_protocol != IPPROTO_TCP && (connection || sk->sk_protocol != IPPROTO_MPTCP))
		return 0;
	if (!describe(&flow, sk, kind))
		return 0;
	waiting = bpf_ringbuf_query(&flows, BPF_RB_AVAIL_DATA);
	/* connections give way first: the last quarter of the ring is for listen events */
	if ((!connection || waiting <= PACTO_RING_BYTES / 4 * 3) &&
	    !bpf_ringbuf_output(&flows, &flow, sizeof(flow),
				waiting >= PACTO_WAKE_BYTES ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP))
		return 0;
	if (connection)
		spill(&flow);
	else
		count_lost(kind, false);
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
