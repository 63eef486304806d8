/* SPDX-License-Identifier: MIT */
/*
 * The few kernel types that the program touches, relocated by CO-RE against the running kernel.
 * A name with three underscores is another version's variant of the type before them.
 */
#ifndef PACTO_KERNEL_H
#define PACTO_KERNEL_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;

enum { false = 0, true = 1 };

enum {
	BPF_ANY = 0,
	BPF_NOEXIST = 1,
};

/* asked for by name: whether the kernel has the helper (5.9) is known only when it loads */
enum bpf_func_id {
	BPF_FUNC_skc_to_tcp_sock = 137,
};

enum {
	BPF_RB_NO_WAKEUP = 1,
	BPF_RB_FORCE_WAKEUP = 2,
	BPF_RB_AVAIL_DATA = 0,
};

enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_RINGBUF = 27,
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct ns_common {
	unsigned int inum;
};

struct net {
	struct ns_common ns;
	__u64 net_cookie;
};

typedef struct {
	struct net *net;
} possible_net_t;

struct in6_addr {
	union {
		__u8 u6_addr8[16];
		__be32 u6_addr32[4];
	} in6_u;
};

struct sock_common {
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	__u16 skc_num;
	unsigned short skc_family;
	volatile unsigned char skc_state;
	unsigned char skc_ipv6only : 1;
	possible_net_t skc_net;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
};

struct kernfs_node {
	__u64 id;
};

struct cgroup {
	struct kernfs_node *kn;
};

struct sock_cgroup_data {
	struct cgroup *cgroup;
};

/* before 5.15: a pointer whose two low bits say that it is none (v1 data, no reference) */
struct sock_cgroup_data___val {
	__u64 val;
};

struct inode {
	unsigned long i_ino;
};

struct file {
	struct inode *f_inode;
};

typedef enum {
	SS_FREE = 0,
	SS_UNCONNECTED = 1,
	SS_CONNECTING = 2,
} socket_state;

struct sock;

struct socket {
	socket_state state;
	struct file *file;
	struct sock *sk;
};

struct sk_buff {
	struct sk_buff *next;
	char cb[48];
};

struct sk_buff_head {
	struct sk_buff *next;
	__u32 qlen;
};

struct sock_extended_err {
	__u32 ee_errno;
};

/* lies in sk_buff.cb of what the error queue holds */
struct sock_exterr_skb {
	struct sock_extended_err ee;
};

struct sock {
	struct sock_common __sk_common;
	struct sk_buff_head sk_error_queue;
	struct socket *sk_socket;
	int sk_err;
	int sk_err_soft;
	__u16 sk_protocol;
	struct sock_cgroup_data sk_cgrp_data;
};

struct sock___val {
	struct sock_cgroup_data___val sk_cgrp_data;
};

struct inet_connection_sock {
	__u8 icsk_retransmits;
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
};

struct nsproxy {
	struct net *net_ns;
};

enum cgroup_subsys_id {
	pids_cgrp_id = 1, /* whatever it is here: CO-RE asks the kernel */
};

struct cgroup_subsys_state {
	struct cgroup *cgroup;
};

struct css_set {
	struct cgroup_subsys_state *subsys[32];
	struct cgroup *dfl_cgrp;
};

struct task_struct {
	int pid;
	int tgid;
	struct task_struct *real_parent;
	__u64 start_boottime;
	struct css_set *cgroups;
	struct nsproxy *nsproxy;
};

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

struct bpf_iter__task_file {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	struct file *file;
};

#pragma clang attribute pop

#endif
