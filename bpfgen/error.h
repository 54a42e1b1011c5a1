/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPFGEN_ERROR_H
#define BPFGEN_ERROR_H

#include <stddef.h>

/* Why a text was refused, or code could not be made */
struct bpfgen_error {
	size_t at; /* the offset in the text that was being read, or BPFGEN_NOWHERE */
	char text[160];
};

#define BPFGEN_NOWHERE ((size_t)-1)

/* Fills @err in unless it is NULL, and returns @error */
int bpfgen_refuse(struct bpfgen_error *err, int error, size_t at, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

#endif
