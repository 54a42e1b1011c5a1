/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Objects of an assembler from anybody: their line programs are read, or are not.
 */
#include <stdlib.h>

#include "apps/activecc/dwarf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dwarf_lines lines;
	char name[64];

	if (!dwarf_lines_read(&lines, data, size))
		return 0;
	for (size_t i = 0; i < lines.count; i++)
		dwarf_section_name(data, size, lines.rows[i].section, name, sizeof(name));
	dwarf_lines_free(&lines);
	return 0;
}
