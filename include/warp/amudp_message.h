/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sending: AM_RequestN, AM_ReplyN and their kin for N = 0..16 arguments, over one function each.
 * In the macros dest_offset stands before the handler, in the functions behind nbytes, as
 * programs have it. A wrong number of arguments does not compile.
 */
#ifndef WARP_AMUDP_MESSAGE_H
#define WARP_AMUDP_MESSAGE_H

#include "amudp.h"

#if defined(__cplusplus)
extern "C" {
#endif
#pragma GCC visibility push(default)

#define AMUDP_DECLARE(name, ...)                         \
	int AMUDP_##name(__VA_ARGS__, int numargs, ...); \
	int AMUDP_##name##VA(__VA_ARGS__, int numargs, va_list argptr)

AMUDP_DECLARE(Request, ep_t ep, amudp_node_t dest, handler_t handler);
AMUDP_DECLARE(RequestI, ep_t ep, amudp_node_t dest, handler_t handler, void *src, int nbytes);
AMUDP_DECLARE(RequestXfer, ep_t ep, amudp_node_t dest, handler_t handler, void *src, int nbytes,
	      uintptr_t dest_offset, int async);
AMUDP_DECLARE(GetXfer, ep_t ep, amudp_node_t dest, uintptr_t source_offset, handler_t handler,
	      uintptr_t dest_offset, int nbytes, int async);
AMUDP_DECLARE(Reply, void *token, handler_t handler);
AMUDP_DECLARE(ReplyI, void *token, handler_t handler, void *src, int nbytes);
AMUDP_DECLARE(ReplyXfer, void *token, handler_t handler, void *src, int nbytes,
	      uintptr_t dest_offset);
#undef AMUDP_DECLARE

#pragma GCC visibility pop
#if defined(__cplusplus)
}
#endif

#define AMUDP_Q(ep, d, h, ...) AMUDP_Request(ep, d, h, __VA_ARGS__)
#define AMUDP_QI(ep, d, h, s, n, ...) AMUDP_RequestI(ep, d, h, (void *)(s), n, __VA_ARGS__)
#define AMUDP_QX(ep, d, o, h, s, n, async, ...) \
	AMUDP_RequestXfer(ep, d, h, (void *)(s), n, o, async, __VA_ARGS__)
#define AMUDP_G(ep, d, so, h, o, n, async, ...) \
	AMUDP_GetXfer(ep, d, so, h, o, n, async, __VA_ARGS__)
#define AMUDP_P(t, h, ...) AMUDP_Reply(t, h, __VA_ARGS__)
#define AMUDP_PI(t, h, s, n, ...) AMUDP_ReplyI(t, h, (void *)(s), n, __VA_ARGS__)
#define AMUDP_PX(t, o, h, s, n, ...) AMUDP_ReplyXfer(t, h, (void *)(s), n, o, __VA_ARGS__)

#define AMUDP_I(a) ((int32_t)(a))
#define AMUDP_A1(a0) AMUDP_I(a0)
#define AMUDP_A2(a0, a1) AMUDP_A1(a0), AMUDP_I(a1)
#define AMUDP_A3(a0, a1, a2) AMUDP_A2(a0, a1), AMUDP_I(a2)
#define AMUDP_A4(a0, a1, a2, a3) AMUDP_A3(a0, a1, a2), AMUDP_I(a3)
#define AMUDP_A5(a0, a1, a2, a3, a4) AMUDP_A4(a0, a1, a2, a3), AMUDP_I(a4)
#define AMUDP_A6(a0, a1, a2, a3, a4, a5) AMUDP_A5(a0, a1, a2, a3, a4), AMUDP_I(a5)
#define AMUDP_A7(a0, a1, a2, a3, a4, a5, a6) AMUDP_A6(a0, a1, a2, a3, a4, a5), AMUDP_I(a6)
#define AMUDP_A8(a0, a1, a2, a3, a4, a5, a6, a7) AMUDP_A7(a0, a1, a2, a3, a4, a5, a6), AMUDP_I(a7)
#define AMUDP_A9(a0, a1, a2, a3, a4, a5, a6, a7, a8) \
	AMUDP_A8(a0, a1, a2, a3, a4, a5, a6, a7), AMUDP_I(a8)
#define AMUDP_A10(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9) \
	AMUDP_A9(a0, a1, a2, a3, a4, a5, a6, a7, a8), AMUDP_I(a9)
#define AMUDP_A11(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10) \
	AMUDP_A10(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9), AMUDP_I(a10)
#define AMUDP_A12(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11) \
	AMUDP_A11(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10), AMUDP_I(a11)
#define AMUDP_A13(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12) \
	AMUDP_A12(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11), AMUDP_I(a12)
#define AMUDP_A14(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13) \
	AMUDP_A13(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12), AMUDP_I(a13)
#define AMUDP_A15(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14) \
	AMUDP_A14(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13), AMUDP_I(a14)
#define AMUDP_A16(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15) \
	AMUDP_A15(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14), AMUDP_I(a15)

#define AM_Request0(ep, d, h) AMUDP_Q(ep, d, h, 0)
#define AM_Request1(ep, d, h, ...) AMUDP_Q(ep, d, h, 1, AMUDP_A1(__VA_ARGS__))
#define AM_Request2(ep, d, h, ...) AMUDP_Q(ep, d, h, 2, AMUDP_A2(__VA_ARGS__))
#define AM_Request3(ep, d, h, ...) AMUDP_Q(ep, d, h, 3, AMUDP_A3(__VA_ARGS__))
#define AM_Request4(ep, d, h, ...) AMUDP_Q(ep, d, h, 4, AMUDP_A4(__VA_ARGS__))
#define AM_Request5(ep, d, h, ...) AMUDP_Q(ep, d, h, 5, AMUDP_A5(__VA_ARGS__))
#define AM_Request6(ep, d, h, ...) AMUDP_Q(ep, d, h, 6, AMUDP_A6(__VA_ARGS__))
#define AM_Request7(ep, d, h, ...) AMUDP_Q(ep, d, h, 7, AMUDP_A7(__VA_ARGS__))
#define AM_Request8(ep, d, h, ...) AMUDP_Q(ep, d, h, 8, AMUDP_A8(__VA_ARGS__))
#define AM_Request9(ep, d, h, ...) AMUDP_Q(ep, d, h, 9, AMUDP_A9(__VA_ARGS__))
#define AM_Request10(ep, d, h, ...) AMUDP_Q(ep, d, h, 10, AMUDP_A10(__VA_ARGS__))
#define AM_Request11(ep, d, h, ...) AMUDP_Q(ep, d, h, 11, AMUDP_A11(__VA_ARGS__))
#define AM_Request12(ep, d, h, ...) AMUDP_Q(ep, d, h, 12, AMUDP_A12(__VA_ARGS__))
#define AM_Request13(ep, d, h, ...) AMUDP_Q(ep, d, h, 13, AMUDP_A13(__VA_ARGS__))
#define AM_Request14(ep, d, h, ...) AMUDP_Q(ep, d, h, 14, AMUDP_A14(__VA_ARGS__))
#define AM_Request15(ep, d, h, ...) AMUDP_Q(ep, d, h, 15, AMUDP_A15(__VA_ARGS__))
#define AM_Request16(ep, d, h, ...) AMUDP_Q(ep, d, h, 16, AMUDP_A16(__VA_ARGS__))

#define AM_RequestI0(ep, d, h, s, n) AMUDP_QI(ep, d, h, s, n, 0)
#define AM_RequestI1(ep, d, h, s, n, ...) AMUDP_QI(ep, d, h, s, n, 1, AMUDP_A1(__VA_ARGS__))
#define AM_RequestI2(ep, d, h, s, n, ...) AMUDP_QI(ep, d, h, s, n, 2, AMUDP_A2(__VA_ARGS__))
#define AM_RequestI3(ep, d, h, s, n, ...) AMUDP_QI(ep, d, h, s, n, 3, AMUDP_A3(__VA_ARGS__))
#define AM_RequestI4(ep, d, h, s, n, ...) AMUDP_QI(ep, d, h, s, n, 4, AMUDP_A4(__VA_ARGS__))
#define AM_RequestI5(ep, d, h, s, n, ...) AMUDP_QI(ep, d, h, s, n, 5, AMUDP_A5(__VA_ARGS__))
#define AM_RequestI6(ep, d, h, s, n, ...) AMUDP_QI(ep, d, h, s, n, 6, AMUDP_A6(__VA_ARGS__))
#define AM_RequestI7(ep, d, h, s, n, ...) AMUDP_QI(ep, d, h, s, n, 7, AMUDP_A7(__VA_ARGS__))
#define AM_RequestI8(ep, d, h, s, n, ...) AMUDP_QI(ep, d, h, s, n, 8, AMUDP_A8(__VA_ARGS__))
#define AM_RequestI9(ep, d, h, s, n, ...) AMUDP_QI(ep, d, h, s, n, 9, AMUDP_A9(__VA_ARGS__))
#define AM_RequestI10(ep, d, h, s, n, ...) AMUDP_QI(ep, d, h, s, n, 10, AMUDP_A10(__VA_ARGS__))
#define AM_RequestI11(ep, d, h, s, n, ...) AMUDP_QI(ep, d, h, s, n, 11, AMUDP_A11(__VA_ARGS__))
#define AM_RequestI12(ep, d, h, s, n, ...) AMUDP_QI(ep, d, h, s, n, 12, AMUDP_A12(__VA_ARGS__))
#define AM_RequestI13(ep, d, h, s, n, ...) AMUDP_QI(ep, d, h, s, n, 13, AMUDP_A13(__VA_ARGS__))
#define AM_RequestI14(ep, d, h, s, n, ...) AMUDP_QI(ep, d, h, s, n, 14, AMUDP_A14(__VA_ARGS__))
#define AM_RequestI15(ep, d, h, s, n, ...) AMUDP_QI(ep, d, h, s, n, 15, AMUDP_A15(__VA_ARGS__))
#define AM_RequestI16(ep, d, h, s, n, ...) AMUDP_QI(ep, d, h, s, n, 16, AMUDP_A16(__VA_ARGS__))

#define AM_RequestXfer0(ep, d, o, h, s, n) AMUDP_QX(ep, d, o, h, s, n, 0, 0)
#define AM_RequestXfer1(ep, d, o, h, s, n, ...) \
	AMUDP_QX(ep, d, o, h, s, n, 0, 1, AMUDP_A1(__VA_ARGS__))
#define AM_RequestXfer2(ep, d, o, h, s, n, ...) \
	AMUDP_QX(ep, d, o, h, s, n, 0, 2, AMUDP_A2(__VA_ARGS__))
#define AM_RequestXfer3(ep, d, o, h, s, n, ...) \
	AMUDP_QX(ep, d, o, h, s, n, 0, 3, AMUDP_A3(__VA_ARGS__))
#define AM_RequestXfer4(ep, d, o, h, s, n, ...) \
	AMUDP_QX(ep, d, o, h, s, n, 0, 4, AMUDP_A4(__VA_ARGS__))
#define AM_RequestXfer5(ep, d, o, h, s, n, ...) \
	AMUDP_QX(ep, d, o, h, s, n, 0, 5, AMUDP_A5(__VA_ARGS__))
#define AM_RequestXfer6(ep, d, o, h, s, n, ...) \
	AMUDP_QX(ep, d, o, h, s, n, 0, 6, AMUDP_A6(__VA_ARGS__))
#define AM_RequestXfer7(ep, d, o, h, s, n, ...) \
	AMUDP_QX(ep, d, o, h, s, n, 0, 7, AMUDP_A7(__VA_ARGS__))
#define AM_RequestXfer8(ep, d, o, h, s, n, ...) \
	AMUDP_QX(ep, d, o, h, s, n, 0, 8, AMUDP_A8(__VA_ARGS__))
#define AM_RequestXfer9(ep, d, o, h, s, n, ...) \
	AMUDP_QX(ep, d, o, h, s, n, 0, 9, AMUDP_A9(__VA_ARGS__))
#define AM_RequestXfer10(ep, d, o, h, s, n, ...) \
	AMUDP_QX(ep, d, o, h, s, n, 0, 10, AMUDP_A10(__VA_ARGS__))
#define AM_RequestXfer11(ep, d, o, h, s, n, ...) \
	AMUDP_QX(ep, d, o, h, s, n, 0, 11, AMUDP_A11(__VA_ARGS__))
#define AM_RequestXfer12(ep, d, o, h, s, n, ...) \
	AMUDP_QX(ep, d, o, h, s, n, 0, 12, AMUDP_A12(__VA_ARGS__))
#define AM_RequestXfer13(ep, d, o, h, s, n, ...) \
	AMUDP_QX(ep, d, o, h, s, n, 0, 13, AMUDP_A13(__VA_ARGS__))
#define AM_RequestXfer14(ep, d, o, h, s, n, ...) \
	AMUDP_QX(ep, d, o, h, s, n, 0, 14, AMUDP_A14(__VA_ARGS__))
#define AM_RequestXfer15(ep, d, o, h, s, n, ...) \
	AMUDP_QX(ep, d, o, h, s, n, 0, 15, AMUDP_A15(__VA_ARGS__))
#define AM_RequestXfer16(ep, d, o, h, s, n, ...) \
	AMUDP_QX(ep, d, o, h, s, n, 0, 16, AMUDP_A16(__VA_ARGS__))

#include "amudp_message2.h"

#endif
