/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The names that programs for AMX, of which AMUDP is one form, have for those under AMUDP_. */
#ifndef WARP_AMUDP_AMX_H
#define WARP_AMUDP_AMX_H

#include "amudp_extend.h"

#define AMX_SetTranslationTag AMUDP_SetTranslationTag
#define AMX_GetSourceId AMUDP_GetSourceId
#define AMX_GetTokenInfo AMUDP_GetTokenInfo
#define AMX_enEqual AMUDP_enEqual
#define AMX_VerboseErrors AMUDP_VerboseErrors
#define AMX_SilentMode AMUDP_SilentMode
#define AMX_ProcessLabel AMUDP_ProcessLabel
#define AMX_GetEndpointStatistics AMUDP_GetEndpointStatistics
#define AMX_ResetEndpointStatistics AMUDP_ResetEndpointStatistics
#define AMX_DumpStatistics AMUDP_DumpStatistics
#define AMX_AggregateStatistics AMUDP_AggregateStatistics
#define AMX_initial_stats AMUDP_initial_stats
#define AMX_FatalErr AMUDP_FatalErr
#define amx_Short amudp_Short
#define amx_Medium amudp_Medium
#define amx_Long amudp_Long
#define amx_NumCategories amudp_NumCategories
typedef amudp_category_t amx_category_t;
typedef amudp_stats_t amx_stats_t;
typedef amudp_handler_fn_t amx_handler_fn_t;

#endif
