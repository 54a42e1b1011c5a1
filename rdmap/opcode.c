/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The opcodes (RFC 5040 Figure 4, RFC 7306 Figure 3).
 *
 * A row that can be received has take, one that a work request can ask for has build; Responses
 * and Terminates are sent by the protocol itself.
 */
#include "rdmap/opcode.h"

const struct rdmap_opcode_row rdmap_opcodes[RDMAP_OPCODES] = {
	[RDMAP_WRITE] = {
		.tagged = true,
		.build = rdmap_build_write,
		.take = rdmap_take_write,
	},
	[RDMAP_READ_REQ] = {
		.qn = RDMAP_QN_READ,
		.hdr_len = sizeof(struct rdmap_read_req),
		.answered = true,
		.build = rdmap_build_read,
		.take = rdmap_take_read,
	},
	[RDMAP_READ_RESP] = {
		.tagged = true,
		.take = rdmap_take_read_response,
	},
	[RDMAP_SEND] = {
		.qn = RDMAP_QN_SEND,
		.build = rdmap_build_send,
		.take = rdmap_take_send,
	},
	[RDMAP_SEND_INV] = {
		.qn = RDMAP_QN_SEND,
		.invalidate = true,
		.build = rdmap_build_send,
		.take = rdmap_take_send,
	},
	[RDMAP_SEND_SE] = {
		.qn = RDMAP_QN_SEND,
		.solicited = true,
		.build = rdmap_build_send,
		.take = rdmap_take_send,
	},
	[RDMAP_SEND_SE_INV] = {
		.qn = RDMAP_QN_SEND,
		.invalidate = true,
		.solicited = true,
		.build = rdmap_build_send,
		.take = rdmap_take_send,
	},
	[RDMAP_TERMINATE] = {
		.qn = RDMAP_QN_TERM,
		.take = rdmap_take_terminate,
	},
	[RDMAP_IMM] = {
		.qn = RDMAP_QN_SEND,
		.hdr_len = RDMAP_IMM_LEN,
		.build = rdmap_build_imm,
		.take = rdmap_take_imm,
	},
	[RDMAP_IMM_SE] = {
		.qn = RDMAP_QN_SEND,
		.hdr_len = RDMAP_IMM_LEN,
		.solicited = true,
		.build = rdmap_build_imm,
		.take = rdmap_take_imm,
	},
	[RDMAP_ATOMIC_REQ] = {
		.qn = RDMAP_QN_READ,
		.hdr_len = sizeof(struct rdmap_atomic_req),
		.answered = true,
		.build = rdmap_build_atomic,
		.take = rdmap_take_atomic,
	},
	[RDMAP_ATOMIC_RESP] = {
		.qn = RDMAP_QN_ATOMIC,
		.hdr_len = sizeof(struct rdmap_atomic_resp),
		.take = rdmap_take_atomic_response,
	},
};
