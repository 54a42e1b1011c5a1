/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The protocol between a job's console and its workers, over TCP: docs/amudp.md, section 6. */
#ifndef AM_JOB_WIRE_H
#define AM_JOB_WIRE_H

#include <stddef.h>
#include <stdint.h>

#define AM_JOB_MAGIC 0x414D4A31u /* "AMJ1" */
#define AM_JOB_ENV_ARGS "AMUDP_SLAVE_ARGS"
#define AM_JOB_ENV_SECRET "AMUDP_SLAVE_SECRET"
#define AM_JOB_ENV_RANK "AMUDP_SLAVE_RANK"
#define AM_JOB_ENV_JOINED "AMUDP_SLAVE_JOINED" /* a rank's process number, once it is one */
/* Instead of the secret: the first line of standard input is it; or, with '/', of that file */
#define AM_JOB_BY_INPUT "-"
#define AM_JOB_SECRET_MAX 32
#define AM_JOB_LENGTH_MAX (1u << 30)

enum am_job_channel {
	AM_JOB_CONTROL, /* boot, and the end */
	AM_JOB_COLLECTIVE,
	AM_JOB_STDOUT,
	AM_JOB_STDERR,
	AM_JOB_CHANNELS,
};

/* Opens each connection; integers are big-endian. */
struct am_job_hello {
	uint32_t magic;
	uint32_t channel;
	uint64_t secret;
	uint32_t rank; /* UINT32_MAX: any; not so on channels after the first */
	uint32_t pid;
} __attribute__((packed));

enum am_job_kind {
	AM_JOB_BOOT = 'O',
	AM_JOB_BARRIER = 'B',
	AM_JOB_GATHER = 'G',
	AM_JOB_EXIT = 'E', /* the value is the code */
};

struct am_job_message {
	uint32_t kind;
	uint32_t value;
	uint32_t length; /* bytes that follow */
} __attribute__((packed));

/* BOOT carries this, and the console's environment behind it. */
struct am_job_boot {
	uint32_t rank;
	uint32_t size;
	uint32_t depth;
	uint32_t route; /* send stdout and stderr to the console */
	uint64_t id;
	uint64_t nonce;
} __attribute__((packed));

/* All or nothing; 0, -errno, or -ECONNRESET at the end of the stream. */
int am_job_read(int fd, void *p, size_t n);
int am_job_write(int fd, const void *p, size_t n);
int am_job_send(int fd, uint32_t kind, uint32_t value, const void *p, uint32_t n);
int am_job_receive(int fd, struct am_job_message *out);

#endif
