/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The calls that copy from one descriptor to another: by a buffer, never by a mapping, which a
 * shorter file would turn into SIGBUS.
 */
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bits.h"
#include "preload/octets.h"

#define FILE_PIECE (32 * 1024u)

/* Octets of the file at *@offset, or where it stands; what is not sent is not taken */
static long file_piece(struct sock *s, int in, off_t *offset, size_t len)
{
	char buf[FILE_PIECE];
	struct iovec iov = { buf, 0 };
	long n, sent;

	if (offset)
		n = libc_try(syscall(SYS_pread64, in, buf, base_min(len, sizeof(buf)), *offset));
	else
		n = libc_try(syscall(SYS_read, in, buf, base_min(len, sizeof(buf))));
	if (n <= 0)
		return n;
	iov.iov_len = (size_t)n;
	sent = octets_out(s, &iov, 1, 0);
	if (offset && sent > 0)
		*offset += sent;
	if (!offset && sent < n)
		syscall(SYS_lseek, in, base_max(sent, 0) - n, SEEK_CUR);
	return sent;
}

static long file_send(int fd, int in, off_t *offset, size_t len)
{
	struct sock *s = octets_stream(fd);
	size_t sum = 0;
	long n = s ? 1 : OCTETS_THEIRS;

	while (n > 0 && sum < len) {
		n = file_piece(s, in, offset, len - sum);
		sum += (size_t)base_max(n, 0);
	}
	sock_put(s);
	return sum ? (long)sum : n == 1 ? 0 : n;
}

long call_sendfile(int fd, int in, off_t *offset, size_t len)
{
	return file_send(fd, in, offset, len);
}

long call_sendfile64(int fd, int in, off_t *offset, size_t len)
{
	return call_sendfile(fd, in, offset, len);
}
