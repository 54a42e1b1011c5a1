/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * libibverbs and librdmacm, loaded when a device is opened for the first time.
 */
#ifndef VERBS_LIB_H
#define VERBS_LIB_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

/* Writes of no bytes that a connection may send by itself, at most (verbs_stream_write_retry.c) */
/* Goes with the work request: siw may send other bytes, or end there (docs/interop.md) */
#define VERBS_SMALL 64u

/* The calls that are used, without those that the headers have as inlines */
#define VERBS_CALLS(X)                 \
	X(ibv, ack_async_event)        \
	X(ibv, ack_cq_events)          \
	X(ibv, alloc_pd)               \
	X(ibv, close_device)           \
	X(ibv, create_comp_channel)    \
	X(ibv, create_cq)              \
	X(ibv, create_qp)              \
	X(ibv, dealloc_pd)             \
	X(ibv, dereg_mr)               \
	X(ibv, destroy_comp_channel)   \
	X(ibv, destroy_cq)             \
	X(ibv, destroy_qp)             \
	X(ibv, fork_init)              \
	X(ibv, free_device_list)       \
	X(ibv, get_async_event)        \
	X(ibv, get_cq_event)           \
	X(ibv, get_device_list)        \
	X(ibv, get_device_name)        \
	X(ibv, modify_qp)              \
	X(ibv, open_device)            \
	X(ibv, query_device)           \
	X(ibv, query_port)             \
	X(ibv, reg_mr)                 \
	X(rdma, accept)                \
	X(rdma, ack_cm_event)          \
	X(rdma, bind_addr)             \
	X(rdma, connect)               \
	X(rdma, create_event_channel)  \
	X(rdma, create_id)             \
	X(rdma, create_qp)             \
	X(rdma, destroy_event_channel) \
	X(rdma, destroy_id)            \
	X(rdma, destroy_qp)            \
	X(rdma, disconnect)            \
	X(rdma, establish)             \
	X(rdma, get_cm_event)          \
	X(rdma, init_qp_attr)          \
	X(rdma, listen)                \
	X(rdma, migrate_id)            \
	X(rdma, reject)                \
	X(rdma, resolve_addr)          \
	X(rdma, resolve_route)         \
	X(rdma, set_option)

struct verbs_lib {
#define VERBS_MEMBER(lib, name) __typeof__(lib##_##name) *lib##_##name##_call;
	VERBS_CALLS(VERBS_MEMBER)
#undef VERBS_MEMBER
};

/* Valid once verbs_lib_load() has said 0 */
extern struct verbs_lib verbs_lib;

/* verbs_call(ibv_open_device)(device): some of the names are macros, too */
#define verbs_call(name) (verbs_lib.name##_call)

/* 0; -ENODEV: the host has no RDMA device, and nothing was loaded; -ENOPKG: no library */
int verbs_lib_load(void);

#endif
