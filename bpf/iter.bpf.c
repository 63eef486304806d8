// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/*
 * All processes and all TCP sockets of the node at once, for the agent's mapper and baseline.
 *
 * Both iterators cross network namespaces and see the opener's pid namespace and below. Sockets
 * are found through the descriptor tables that hold them: one that no table holds (in flight in
 * a unix socket, a direct descriptor of io_uring) is missed. Direct BTF walks only.
 */
#define PACTO_BPF
#include "iter.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#define AF_INET 2
#define AF_INET6 10
#define IPPROTO_TCP 6
#define IPPROTO_MPTCP 262

/* The reader checks the rows' sizes by the object's BTF, which describes only what a global names. */
const struct pacto_process_row *process_row __attribute__((unused));
const struct pacto_socket_row *socket_row __attribute__((unused));

static __always_inline __u64 cookie_of(const struct net *net)
{
	return bpf_core_field_exists(net->net_cookie) ? net->net_cookie : 0;
}

/* The cgroup of a v1 hierarchy that every kubelet uses; on a pure v2 host it says nothing. */
static __always_inline __u64 v1_cgroup_of(const struct css_set *sets)
{
	const struct cgroup_subsys_state *state;

	if (!bpf_core_enum_value_exists(enum cgroup_subsys_id, pids_cgrp_id))
		return 0;
	state = sets->subsys[bpf_core_enum_value(enum cgroup_subsys_id, pids_cgrp_id)];
	return state ? state->cgroup->kn->id : 0;
}

SEC("iter/task")
int list_processes(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct pacto_process_row row = {};
	struct nsproxy *spaces;
	struct css_set *sets;

	if (!task || task->pid != task->tgid)
		return 0;
	spaces = task->nsproxy;
	sets = task->cgroups;
	if (!spaces || !sets) /* a zombie */
		return 0;
	row.pid = task->tgid;
	row.parent = task->real_parent ? task->real_parent->tgid : 0;
	row.started_ns = task->start_boottime;
	row.netns = spaces->net_ns->ns.inum;
	row.net_cookie = cookie_of(spaces->net_ns);
	row.cgroup_id = sets->dfl_cgrp->kn->id;
	row.v1_cgroup_id = v1_cgroup_of(sets);
	bpf_seq_write(ctx->meta->seq, &row, sizeof(row));
	return 0;
}

static __always_inline void put_address(struct pacto_socket_row *row, const struct sock_common *common,
					bool local)
{
	__u8 *to = local ? row->local : row->remote;
	__be32 words[4];

	if (common->skc_family != AF_INET6) {
		words[0] = local ? common->skc_rcv_saddr : common->skc_daddr;
		__builtin_memcpy(to, words, 4);
		return;
	}
#pragma unroll
	for (int i = 0; i < 4; i++)
		words[i] = local ? common->skc_v6_rcv_saddr.in6_u.u6_addr32[i]
				 : common->skc_v6_daddr.in6_u.u6_addr32[i];
	__builtin_memcpy(to, words, 16);
}

static __always_inline __u8 retransmits_of(struct sock *sk)
{
	struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);

	return tcp ? tcp->inet_conn.icsk_retransmits : 0;
}

SEC("iter/task_file")
int list_sockets(struct bpf_iter__task_file *ctx)
{
	struct pacto_socket_row row = {};
	struct file *file = ctx->file;
	struct task_struct *task = ctx->task;
	struct socket *socket;
	struct sock *sk;

	if (!file || !task)
		return 0;
	socket = bpf_sock_from_file(file);
	if (!socket)
		return 0;
	sk = socket->sk;
	if (!sk || (sk->__sk_common.skc_family != AF_INET && sk->__sk_common.skc_family != AF_INET6))
		return 0;
	if (sk->sk_protocol != IPPROTO_TCP && sk->sk_protocol != IPPROTO_MPTCP)
		return 0;
	row.state = sk->__sk_common.skc_state;
	if (row.state != PACTO_ROW_LISTEN && row.state != PACTO_ROW_ESTABLISHED &&
	    row.state != PACTO_ROW_SYN_SENT)
		return 0;
	row.family = sk->__sk_common.skc_family == AF_INET6 ? 6 : 4;
	row.inode = file->f_inode->i_ino;
	row.netns = sk->__sk_common.skc_net.net->ns.inum;
	row.net_cookie = cookie_of(sk->__sk_common.skc_net.net);
	if (bpf_core_field_exists(sk->sk_cgrp_data.cgroup) && sk->sk_cgrp_data.cgroup) /* 5.15 */
		row.cgroup_id = sk->sk_cgrp_data.cgroup->kn->id;
	row.local_port = sk->__sk_common.skc_num;
	row.remote_port = __builtin_bswap16(sk->__sk_common.skc_dport);
	row.v6only = row.family == 6 && BPF_CORE_READ_BITFIELD(&sk->__sk_common, skc_ipv6only);
	row.retransmits = retransmits_of(sk);
	put_address(&row, &sk->__sk_common, true);
	put_address(&row, &sk->__sk_common, false);
	bpf_seq_write(ctx->meta->seq, &row, sizeof(row));
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
