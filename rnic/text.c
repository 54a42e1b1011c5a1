/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Words for the values that the native API hands out. Values that it does not know get words too.
 */
#pragma GCC visibility push(default) /* as in api.c */
#include <warp/rdma.h>
#pragma GCC visibility pop

#include "base/bits.h"
#include "rdmap/rdmap.h"

static const char *const wc_status[] = {
	[WARP_WC_SUCCESS] = "success",
	[WARP_WC_FLUSHED] = "connection ended before",
	[WARP_WC_LOCAL_LENGTH] = "message longer than the receive",
	[WARP_WC_LOCAL_PROTECTION] = "local memory may not be used so",
	[WARP_WC_REMOTE_ACCESS] = "remote memory may not be used so",
	[WARP_WC_REMOTE_OPERATION] = "peer cannot do the operation",
	[WARP_WC_TRANSPORT] = "connection lost",
	[WARP_WC_GENERAL] = "failure",
};

static const char *const conn_state[] = {
	[WARP_CONN_CONNECTING] = "connecting",	   [WARP_CONN_REQUEST] = "request to be answered",
	[WARP_CONN_ESTABLISHED] = "established",   [WARP_CONN_REJECTED] = "rejected",
	[WARP_CONN_DISCONNECTED] = "disconnected", [WARP_CONN_ERROR] = "error",
};

const char *warp_wc_status_text(enum warp_wc_status status)
{
	unsigned int i = (unsigned int)status;

	return i < base_array_size(wc_status) ? wc_status[i] : "unknown status";
}

const char *warp_conn_state_text(enum warp_conn_state state)
{
	unsigned int i = (unsigned int)state;

	return i < base_array_size(conn_state) ? conn_state[i] : "unknown state";
}

const char *warp_fault_text(uint32_t fault)
{
	return rdmap_fault_text(fault);
}
