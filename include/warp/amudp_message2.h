/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The second half of amudp_message.h: asynchronous transfers, gets and replies. */
#ifndef WARP_AMUDP_MESSAGE2_H
#define WARP_AMUDP_MESSAGE2_H

#include "amudp_message.h"

#define AM_RequestXferAsync0(ep, d, o, h, s, n) AMUDP_QX(ep, d, o, h, s, n, 1, 0)
#define AM_RequestXferAsync1(ep, d, o, h, s, n, ...) \
	AMUDP_QX(ep, d, o, h, s, n, 1, 1, AMUDP_A1(__VA_ARGS__))
#define AM_RequestXferAsync2(ep, d, o, h, s, n, ...) \
	AMUDP_QX(ep, d, o, h, s, n, 1, 2, AMUDP_A2(__VA_ARGS__))
#define AM_RequestXferAsync3(ep, d, o, h, s, n, ...) \
	AMUDP_QX(ep, d, o, h, s, n, 1, 3, AMUDP_A3(__VA_ARGS__))
#define AM_RequestXferAsync4(ep, d, o, h, s, n, ...) \
	AMUDP_QX(ep, d, o, h, s, n, 1, 4, AMUDP_A4(__VA_ARGS__))
#define AM_RequestXferAsync5(ep, d, o, h, s, n, ...) \
	AMUDP_QX(ep, d, o, h, s, n, 1, 5, AMUDP_A5(__VA_ARGS__))
#define AM_RequestXferAsync6(ep, d, o, h, s, n, ...) \
	AMUDP_QX(ep, d, o, h, s, n, 1, 6, AMUDP_A6(__VA_ARGS__))
#define AM_RequestXferAsync7(ep, d, o, h, s, n, ...) \
	AMUDP_QX(ep, d, o, h, s, n, 1, 7, AMUDP_A7(__VA_ARGS__))
#define AM_RequestXferAsync8(ep, d, o, h, s, n, ...) \
	AMUDP_QX(ep, d, o, h, s, n, 1, 8, AMUDP_A8(__VA_ARGS__))
#define AM_RequestXferAsync9(ep, d, o, h, s, n, ...) \
	AMUDP_QX(ep, d, o, h, s, n, 1, 9, AMUDP_A9(__VA_ARGS__))
#define AM_RequestXferAsync10(ep, d, o, h, s, n, ...) \
	AMUDP_QX(ep, d, o, h, s, n, 1, 10, AMUDP_A10(__VA_ARGS__))
#define AM_RequestXferAsync11(ep, d, o, h, s, n, ...) \
	AMUDP_QX(ep, d, o, h, s, n, 1, 11, AMUDP_A11(__VA_ARGS__))
#define AM_RequestXferAsync12(ep, d, o, h, s, n, ...) \
	AMUDP_QX(ep, d, o, h, s, n, 1, 12, AMUDP_A12(__VA_ARGS__))
#define AM_RequestXferAsync13(ep, d, o, h, s, n, ...) \
	AMUDP_QX(ep, d, o, h, s, n, 1, 13, AMUDP_A13(__VA_ARGS__))
#define AM_RequestXferAsync14(ep, d, o, h, s, n, ...) \
	AMUDP_QX(ep, d, o, h, s, n, 1, 14, AMUDP_A14(__VA_ARGS__))
#define AM_RequestXferAsync15(ep, d, o, h, s, n, ...) \
	AMUDP_QX(ep, d, o, h, s, n, 1, 15, AMUDP_A15(__VA_ARGS__))
#define AM_RequestXferAsync16(ep, d, o, h, s, n, ...) \
	AMUDP_QX(ep, d, o, h, s, n, 1, 16, AMUDP_A16(__VA_ARGS__))

#define AM_GetXfer0(ep, d, so, h, o, n) AMUDP_G(ep, d, so, h, o, n, 0, 0)
#define AM_GetXfer1(ep, d, so, h, o, n, ...) \
	AMUDP_G(ep, d, so, h, o, n, 0, 1, AMUDP_A1(__VA_ARGS__))
#define AM_GetXfer2(ep, d, so, h, o, n, ...) \
	AMUDP_G(ep, d, so, h, o, n, 0, 2, AMUDP_A2(__VA_ARGS__))
#define AM_GetXfer3(ep, d, so, h, o, n, ...) \
	AMUDP_G(ep, d, so, h, o, n, 0, 3, AMUDP_A3(__VA_ARGS__))
#define AM_GetXfer4(ep, d, so, h, o, n, ...) \
	AMUDP_G(ep, d, so, h, o, n, 0, 4, AMUDP_A4(__VA_ARGS__))
#define AM_GetXfer5(ep, d, so, h, o, n, ...) \
	AMUDP_G(ep, d, so, h, o, n, 0, 5, AMUDP_A5(__VA_ARGS__))
#define AM_GetXfer6(ep, d, so, h, o, n, ...) \
	AMUDP_G(ep, d, so, h, o, n, 0, 6, AMUDP_A6(__VA_ARGS__))
#define AM_GetXfer7(ep, d, so, h, o, n, ...) \
	AMUDP_G(ep, d, so, h, o, n, 0, 7, AMUDP_A7(__VA_ARGS__))
#define AM_GetXfer8(ep, d, so, h, o, n, ...) \
	AMUDP_G(ep, d, so, h, o, n, 0, 8, AMUDP_A8(__VA_ARGS__))
#define AM_GetXfer9(ep, d, so, h, o, n, ...) \
	AMUDP_G(ep, d, so, h, o, n, 0, 9, AMUDP_A9(__VA_ARGS__))
#define AM_GetXfer10(ep, d, so, h, o, n, ...) \
	AMUDP_G(ep, d, so, h, o, n, 0, 10, AMUDP_A10(__VA_ARGS__))
#define AM_GetXfer11(ep, d, so, h, o, n, ...) \
	AMUDP_G(ep, d, so, h, o, n, 0, 11, AMUDP_A11(__VA_ARGS__))
#define AM_GetXfer12(ep, d, so, h, o, n, ...) \
	AMUDP_G(ep, d, so, h, o, n, 0, 12, AMUDP_A12(__VA_ARGS__))
#define AM_GetXfer13(ep, d, so, h, o, n, ...) \
	AMUDP_G(ep, d, so, h, o, n, 0, 13, AMUDP_A13(__VA_ARGS__))
#define AM_GetXfer14(ep, d, so, h, o, n, ...) \
	AMUDP_G(ep, d, so, h, o, n, 0, 14, AMUDP_A14(__VA_ARGS__))
#define AM_GetXfer15(ep, d, so, h, o, n, ...) \
	AMUDP_G(ep, d, so, h, o, n, 0, 15, AMUDP_A15(__VA_ARGS__))
#define AM_GetXfer16(ep, d, so, h, o, n, ...) \
	AMUDP_G(ep, d, so, h, o, n, 0, 16, AMUDP_A16(__VA_ARGS__))

#define AM_GetXferAsync0(ep, d, so, h, o, n) AMUDP_G(ep, d, so, h, o, n, 1, 0)
#define AM_GetXferAsync1(ep, d, so, h, o, n, ...) \
	AMUDP_G(ep, d, so, h, o, n, 1, 1, AMUDP_A1(__VA_ARGS__))
#define AM_GetXferAsync2(ep, d, so, h, o, n, ...) \
	AMUDP_G(ep, d, so, h, o, n, 1, 2, AMUDP_A2(__VA_ARGS__))
#define AM_GetXferAsync3(ep, d, so, h, o, n, ...) \
	AMUDP_G(ep, d, so, h, o, n, 1, 3, AMUDP_A3(__VA_ARGS__))
#define AM_GetXferAsync4(ep, d, so, h, o, n, ...) \
	AMUDP_G(ep, d, so, h, o, n, 1, 4, AMUDP_A4(__VA_ARGS__))
#define AM_GetXferAsync5(ep, d, so, h, o, n, ...) \
	AMUDP_G(ep, d, so, h, o, n, 1, 5, AMUDP_A5(__VA_ARGS__))
#define AM_GetXferAsync6(ep, d, so, h, o, n, ...) \
	AMUDP_G(ep, d, so, h, o, n, 1, 6, AMUDP_A6(__VA_ARGS__))
#define AM_GetXferAsync7(ep, d, so, h, o, n, ...) \
	AMUDP_G(ep, d, so, h, o, n, 1, 7, AMUDP_A7(__VA_ARGS__))
#define AM_GetXferAsync8(ep, d, so, h, o, n, ...) \
	AMUDP_G(ep, d, so, h, o, n, 1, 8, AMUDP_A8(__VA_ARGS__))
#define AM_GetXferAsync9(ep, d, so, h, o, n, ...) \
	AMUDP_G(ep, d, so, h, o, n, 1, 9, AMUDP_A9(__VA_ARGS__))
#define AM_GetXferAsync10(ep, d, so, h, o, n, ...) \
	AMUDP_G(ep, d, so, h, o, n, 1, 10, AMUDP_A10(__VA_ARGS__))
#define AM_GetXferAsync11(ep, d, so, h, o, n, ...) \
	AMUDP_G(ep, d, so, h, o, n, 1, 11, AMUDP_A11(__VA_ARGS__))
#define AM_GetXferAsync12(ep, d, so, h, o, n, ...) \
	AMUDP_G(ep, d, so, h, o, n, 1, 12, AMUDP_A12(__VA_ARGS__))
#define AM_GetXferAsync13(ep, d, so, h, o, n, ...) \
	AMUDP_G(ep, d, so, h, o, n, 1, 13, AMUDP_A13(__VA_ARGS__))
#define AM_GetXferAsync14(ep, d, so, h, o, n, ...) \
	AMUDP_G(ep, d, so, h, o, n, 1, 14, AMUDP_A14(__VA_ARGS__))
#define AM_GetXferAsync15(ep, d, so, h, o, n, ...) \
	AMUDP_G(ep, d, so, h, o, n, 1, 15, AMUDP_A15(__VA_ARGS__))
#define AM_GetXferAsync16(ep, d, so, h, o, n, ...) \
	AMUDP_G(ep, d, so, h, o, n, 1, 16, AMUDP_A16(__VA_ARGS__))

#define AM_Reply0(t, h) AMUDP_P(t, h, 0)
#define AM_Reply1(t, h, ...) AMUDP_P(t, h, 1, AMUDP_A1(__VA_ARGS__))
#define AM_Reply2(t, h, ...) AMUDP_P(t, h, 2, AMUDP_A2(__VA_ARGS__))
#define AM_Reply3(t, h, ...) AMUDP_P(t, h, 3, AMUDP_A3(__VA_ARGS__))
#define AM_Reply4(t, h, ...) AMUDP_P(t, h, 4, AMUDP_A4(__VA_ARGS__))
#define AM_Reply5(t, h, ...) AMUDP_P(t, h, 5, AMUDP_A5(__VA_ARGS__))
#define AM_Reply6(t, h, ...) AMUDP_P(t, h, 6, AMUDP_A6(__VA_ARGS__))
#define AM_Reply7(t, h, ...) AMUDP_P(t, h, 7, AMUDP_A7(__VA_ARGS__))
#define AM_Reply8(t, h, ...) AMUDP_P(t, h, 8, AMUDP_A8(__VA_ARGS__))
#define AM_Reply9(t, h, ...) AMUDP_P(t, h, 9, AMUDP_A9(__VA_ARGS__))
#define AM_Reply10(t, h, ...) AMUDP_P(t, h, 10, AMUDP_A10(__VA_ARGS__))
#define AM_Reply11(t, h, ...) AMUDP_P(t, h, 11, AMUDP_A11(__VA_ARGS__))
#define AM_Reply12(t, h, ...) AMUDP_P(t, h, 12, AMUDP_A12(__VA_ARGS__))
#define AM_Reply13(t, h, ...) AMUDP_P(t, h, 13, AMUDP_A13(__VA_ARGS__))
#define AM_Reply14(t, h, ...) AMUDP_P(t, h, 14, AMUDP_A14(__VA_ARGS__))
#define AM_Reply15(t, h, ...) AMUDP_P(t, h, 15, AMUDP_A15(__VA_ARGS__))
#define AM_Reply16(t, h, ...) AMUDP_P(t, h, 16, AMUDP_A16(__VA_ARGS__))

#define AM_ReplyI0(t, h, s, n) AMUDP_PI(t, h, s, n, 0)
#define AM_ReplyI1(t, h, s, n, ...) AMUDP_PI(t, h, s, n, 1, AMUDP_A1(__VA_ARGS__))
#define AM_ReplyI2(t, h, s, n, ...) AMUDP_PI(t, h, s, n, 2, AMUDP_A2(__VA_ARGS__))
#define AM_ReplyI3(t, h, s, n, ...) AMUDP_PI(t, h, s, n, 3, AMUDP_A3(__VA_ARGS__))
#define AM_ReplyI4(t, h, s, n, ...) AMUDP_PI(t, h, s, n, 4, AMUDP_A4(__VA_ARGS__))
#define AM_ReplyI5(t, h, s, n, ...) AMUDP_PI(t, h, s, n, 5, AMUDP_A5(__VA_ARGS__))
#define AM_ReplyI6(t, h, s, n, ...) AMUDP_PI(t, h, s, n, 6, AMUDP_A6(__VA_ARGS__))
#define AM_ReplyI7(t, h, s, n, ...) AMUDP_PI(t, h, s, n, 7, AMUDP_A7(__VA_ARGS__))
#define AM_ReplyI8(t, h, s, n, ...) AMUDP_PI(t, h, s, n, 8, AMUDP_A8(__VA_ARGS__))
#define AM_ReplyI9(t, h, s, n, ...) AMUDP_PI(t, h, s, n, 9, AMUDP_A9(__VA_ARGS__))
#define AM_ReplyI10(t, h, s, n, ...) AMUDP_PI(t, h, s, n, 10, AMUDP_A10(__VA_ARGS__))
#define AM_ReplyI11(t, h, s, n, ...) AMUDP_PI(t, h, s, n, 11, AMUDP_A11(__VA_ARGS__))
#define AM_ReplyI12(t, h, s, n, ...) AMUDP_PI(t, h, s, n, 12, AMUDP_A12(__VA_ARGS__))
#define AM_ReplyI13(t, h, s, n, ...) AMUDP_PI(t, h, s, n, 13, AMUDP_A13(__VA_ARGS__))
#define AM_ReplyI14(t, h, s, n, ...) AMUDP_PI(t, h, s, n, 14, AMUDP_A14(__VA_ARGS__))
#define AM_ReplyI15(t, h, s, n, ...) AMUDP_PI(t, h, s, n, 15, AMUDP_A15(__VA_ARGS__))
#define AM_ReplyI16(t, h, s, n, ...) AMUDP_PI(t, h, s, n, 16, AMUDP_A16(__VA_ARGS__))

#define AM_ReplyXfer0(t, o, h, s, n) AMUDP_PX(t, o, h, s, n, 0)
#define AM_ReplyXfer1(t, o, h, s, n, ...) AMUDP_PX(t, o, h, s, n, 1, AMUDP_A1(__VA_ARGS__))
#define AM_ReplyXfer2(t, o, h, s, n, ...) AMUDP_PX(t, o, h, s, n, 2, AMUDP_A2(__VA_ARGS__))
#define AM_ReplyXfer3(t, o, h, s, n, ...) AMUDP_PX(t, o, h, s, n, 3, AMUDP_A3(__VA_ARGS__))
#define AM_ReplyXfer4(t, o, h, s, n, ...) AMUDP_PX(t, o, h, s, n, 4, AMUDP_A4(__VA_ARGS__))
#define AM_ReplyXfer5(t, o, h, s, n, ...) AMUDP_PX(t, o, h, s, n, 5, AMUDP_A5(__VA_ARGS__))
#define AM_ReplyXfer6(t, o, h, s, n, ...) AMUDP_PX(t, o, h, s, n, 6, AMUDP_A6(__VA_ARGS__))
#define AM_ReplyXfer7(t, o, h, s, n, ...) AMUDP_PX(t, o, h, s, n, 7, AMUDP_A7(__VA_ARGS__))
#define AM_ReplyXfer8(t, o, h, s, n, ...) AMUDP_PX(t, o, h, s, n, 8, AMUDP_A8(__VA_ARGS__))
#define AM_ReplyXfer9(t, o, h, s, n, ...) AMUDP_PX(t, o, h, s, n, 9, AMUDP_A9(__VA_ARGS__))
#define AM_ReplyXfer10(t, o, h, s, n, ...) AMUDP_PX(t, o, h, s, n, 10, AMUDP_A10(__VA_ARGS__))
#define AM_ReplyXfer11(t, o, h, s, n, ...) AMUDP_PX(t, o, h, s, n, 11, AMUDP_A11(__VA_ARGS__))
#define AM_ReplyXfer12(t, o, h, s, n, ...) AMUDP_PX(t, o, h, s, n, 12, AMUDP_A12(__VA_ARGS__))
#define AM_ReplyXfer13(t, o, h, s, n, ...) AMUDP_PX(t, o, h, s, n, 13, AMUDP_A13(__VA_ARGS__))
#define AM_ReplyXfer14(t, o, h, s, n, ...) AMUDP_PX(t, o, h, s, n, 14, AMUDP_A14(__VA_ARGS__))
#define AM_ReplyXfer15(t, o, h, s, n, ...) AMUDP_PX(t, o, h, s, n, 15, AMUDP_A15(__VA_ARGS__))
#define AM_ReplyXfer16(t, o, h, s, n, ...) AMUDP_PX(t, o, h, s, n, 16, AMUDP_A16(__VA_ARGS__))

#endif
