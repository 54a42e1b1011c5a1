/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef KMOD_COMPAT_ENDIAN_H
#define KMOD_COMPAT_ENDIAN_H

#include <asm/byteorder.h>

#define be16toh(x) be16_to_cpu((__force __be16)(x))
#define be32toh(x) be32_to_cpu((__force __be32)(x))
#define be64toh(x) be64_to_cpu((__force __be64)(x))
#define htobe16(x) cpu_to_be16(x)
#define htobe32(x) cpu_to_be32(x)
#define htobe64(x) cpu_to_be64(x)
#define le32toh(x) le32_to_cpu((__force __le32)(x))
#define le64toh(x) le64_to_cpu((__force __le64)(x))
#define htole32(x) cpu_to_le32(x)
#define htole64(x) cpu_to_le64(x)

#endif
