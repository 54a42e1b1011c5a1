/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The object that the build made of walk.bpf.c, inside of the tools that send it */
	.section .rodata
	.globl walk_object, walk_object_end
walk_object:
	.incbin OBJECT
walk_object_end:
	.byte 0
	.section .note.GNU-stack,"",@progbits
