/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a Terminate can say: (layer, error type, error code), RFC 5040 Figure 9, RFC 5041 section
 * 8, RFC 5044 section 8, RFC 6581 section 11, as one number. Zero means that nothing is wrong: bit
 * 16 marks a fault, because 0/0/00 is one.
 */
#ifndef WIRE_IWARP_FAULT_H
#define WIRE_IWARP_FAULT_H

#define IWARP_FAULT(layer, etype, code) (0x10000u | (layer) << 12 | (etype) << 8 | (code))
#define IWARP_FAULT_LAYER(f) (((f) >> 12) & 0xF)
#define IWARP_FAULT_ETYPE(f) (((f) >> 8) & 0xF)
#define IWARP_FAULT_CODE(f) ((f)&0xFF)

enum iwarp_layer { IWARP_L_RDMAP = 0, IWARP_L_DDP = 1, IWARP_L_LLP = 2 };

enum iwarp_fault {
	IWARP_OK = 0,
	/* RDMAP: local catastrophic, remote protection, remote operation */
	RDMAP_E_LOCAL = IWARP_FAULT(0, 0, 0x00),
	RDMAP_E_STAG = IWARP_FAULT(0, 1, 0x00),
	RDMAP_E_BOUNDS = IWARP_FAULT(0, 1, 0x01),
	RDMAP_E_ACCESS = IWARP_FAULT(0, 1, 0x02),
	RDMAP_E_STREAM = IWARP_FAULT(0, 1, 0x03),
	RDMAP_E_WRAP = IWARP_FAULT(0, 1, 0x04),
	RDMAP_E_INVALIDATE = IWARP_FAULT(0, 1, 0x09),
	RDMAP_E_PROT = IWARP_FAULT(0, 1, 0xFF),
	RDMAP_E_VERSION = IWARP_FAULT(0, 2, 0x05),
	RDMAP_E_OPCODE = IWARP_FAULT(0, 2, 0x06),
	RDMAP_E_CATASTROPHIC = IWARP_FAULT(0, 2, 0x07),
	RDMAP_E_GLOBAL = IWARP_FAULT(0, 2, 0x08),
	RDMAP_E_INVALIDATE_OP = IWARP_FAULT(0, 2, 0x09),
	RDMAP_E_OPERATION = IWARP_FAULT(0, 2, 0xFF),
	/* DDP: local catastrophic, tagged buffer, untagged buffer */
	DDP_E_LOCAL = IWARP_FAULT(1, 0, 0x00),
	DDP_E_T_STAG = IWARP_FAULT(1, 1, 0x00),
	DDP_E_T_BOUNDS = IWARP_FAULT(1, 1, 0x01),
	DDP_E_T_STREAM = IWARP_FAULT(1, 1, 0x02),
	DDP_E_T_WRAP = IWARP_FAULT(1, 1, 0x03),
	DDP_E_T_VERSION = IWARP_FAULT(1, 1, 0x04),
	DDP_E_U_QN = IWARP_FAULT(1, 2, 0x01),
	DDP_E_U_NOBUF = IWARP_FAULT(1, 2, 0x02),
	DDP_E_U_MSN = IWARP_FAULT(1, 2, 0x03),
	DDP_E_U_MO = IWARP_FAULT(1, 2, 0x04),
	DDP_E_U_LENGTH = IWARP_FAULT(1, 2, 0x05),
	DDP_E_U_VERSION = IWARP_FAULT(1, 2, 0x06),
	/* LLP: MPA */
	MPA_E_CLOSED = IWARP_FAULT(2, 0, 0x01),
	MPA_E_CRC = IWARP_FAULT(2, 0, 0x02),
	MPA_E_MARKER = IWARP_FAULT(2, 0, 0x03),
	MPA_E_START = IWARP_FAULT(2, 0, 0x04),
	MPA_E_LOCAL = IWARP_FAULT(2, 0, 0x05),
	MPA_E_IRD = IWARP_FAULT(2, 0, 0x06),
	MPA_E_RTR = IWARP_FAULT(2, 0, 0x07),
};

#endif
