/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The calls that copy between descriptors, those with offsets, and those of many messages.
 */
#include <pthread.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/time.h>

#include "tests/e2e/programs/same.h"

#ifndef RWF_NOWAIT
#define RWF_NOWAIT 8
#endif

static char big[1 << 20];
static void *volatile none;
static volatile int minus = -1, beyond = 1025;

static void put(int fd, const char *text)
{
	if (write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		same_say("put: %s", strerror(errno));
	same_sleep(5);
}

static int file(const char *text)
{
	char path[] = "/tmp/warpsock-same-XXXXXX";
	int fd = mkstemp(path);

	unlink(path);
	if (write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		same_say("file: %s", strerror(errno));
	lseek(fd, 0, SEEK_SET);
	return fd;
}

/* --- two threads and one pipe --- */

#define SPLICERS 2

static int pipes[2];
static volatile sig_atomic_t heard, over;

static void on_user(int number)
{
	__atomic_add_fetch(&heard, 1, __ATOMIC_RELAXED);
}

static void *splicer(void *arg)
{
	while (!over && (splice(*(int *)arg, NULL, pipes[1], NULL, 65536, 0) > 0 || errno == EINTR))
		;
	return NULL;
}

/* They are asleep, or about to be */
static bool all_hear(const pthread_t *threads)
{
	for (int i = 0; i < SPLICERS; i++)
		pthread_kill(threads[i], SIGUSR1);
	for (int i = 0; i < 500 && heard < SPLICERS; i++)
		same_sleep(i ? 10 : 1);
	return heard >= SPLICERS;
}

/* A thread that found room, which another took, sleeps as one that found none: a signal wakes it */
static void splice_signal(int fd[2])
{
	struct sigaction action = { .sa_handler = on_user };
	int a[SPLICERS] = { fd[0] }, b[SPLICERS] = { fd[1] };
	pthread_t threads[SPLICERS];
	static char some[4096];
	bool well = true;

	sigaction(SIGUSR1, &action, NULL);
	same_pair(fd);
	a[1] = fd[0];
	b[1] = fd[1];
	R(pipe(pipes));
	fcntl(pipes[1], F_SETPIPE_SZ, (int)sizeof(some));
	for (int i = 0; i < SPLICERS; i++)
		pthread_create(&threads[i], NULL, splicer, &b[i]);
	for (int k = 0; k < 1000 && well; k++) {
		for (int i = 0; i < SPLICERS; i++)
			send(a[i], some, sizeof(some), MSG_DONTWAIT);
		if (read(pipes[0], some, sizeof(some)) <= 0)
			same_say("read: %s", strerror(errno));
		heard = 0;
		if (k % 4 == 0)
			well = all_hear(threads);
	}
	R(well);
	over = 1;
	close(pipes[0]);
	for (int i = 0; i < SPLICERS; i++) {
		shutdown(b[i], SHUT_RD);
		pthread_join(threads[i], NULL);
	}
}

/* --- sendfile --- */

static void sendfile_out(int fd[2])
{
	int in = file("0123456789"), p[2];
	char buf[32] = "";
	off_t off = 2;

	R(sendfile(fd[0], in, &off, 4));
	same_say("offset %ld", (long)off);
	R(recv(fd[1], buf, 32, 0));
	SHOW(buf, 4);
	R(lseek(in, 7, SEEK_SET));
	R(sendfile(fd[0], in, NULL, 100));
	R(lseek(in, 0, SEEK_CUR));
	R(recv(fd[1], buf, 32, 0));
	SHOW(buf, 3);
	R(sendfile(fd[0], in, NULL, 100));
	R(sendfile(fd[0], in, NULL, 0));
	off = -1;
	R(sendfile(fd[0], in, &off, 4));
	off = 100;
	R(sendfile(fd[0], in, &off, 4));
	R(sendfile(fd[0], in, (off_t *)none, 4));
	R(sendfile(fd[0], -1, NULL, 4));
	R(pipe(p));
	R(sendfile(fd[0], p[0], NULL, 4));
	R(sendfile(fd[0], p[1], NULL, 4));
	R(sendfile(fd[0], fd[1], NULL, 4));
	R(sendfile(fd[0], same_listener, NULL, 4));
	R(recv(fd[1], buf, 32, MSG_DONTWAIT));
	shutdown(fd[0], SHUT_WR);
	lseek(in, 0, SEEK_SET);
	R(sendfile(fd[0], in, NULL, 4));
	R(lseek(in, 0, SEEK_CUR));
	same_say("signals %d", same_signals);
}

static void sendfile_in(int fd[2])
{
	int out = file(""), p[2];
	char buf[8] = "";
	off_t off = 0;

	put(fd[0], "abcdef");
	R(sendfile(out, fd[1], NULL, 3));
	R(sendfile(out, fd[1], &off, 3));
	R(sendfile(same_listener, fd[1], NULL, 3));
	R(pipe(p));
	R(sendfile(p[1], fd[1], &off, 3));
	R(recv(fd[1], buf, 8, MSG_PEEK));
	SHOW(buf, 3);
}

static void drain_all(void *arg)
{
	long n, sum = 0;
	static char buf[1 << 16];

	while ((n = read(*(int *)arg, buf, sizeof(buf))) > 0)
		sum += n;
	same_say("read %ld and then %ld", sum, n);
}

static void sendfile_large(int fd[2])
{
	int in = memfd_create("large", 0);
	off_t off = 5;

	R(ftruncate(in, 3 << 20));
	same_later(10, drain_all, &fd[1]);
	R(sendfile(fd[0], in, &off, 10 << 20));
	same_say("offset %ld", (long)off);
	R(lseek(in, 0, SEEK_CUR));
	shutdown(fd[0], SHUT_WR);
	same_join();
}

static void sendfile_full(int fd[2])
{
	int in = memfd_create("large", 0);
	off_t off = 0;
	long sent;

	ftruncate(in, 64 << 20) ? same_say("no file") : (void)0;
	same_nonblock(fd[0]);
	sent = sendfile(fd[0], in, &off, 64 << 20);
	same_say(sent > 0 && sent == off ? "some went" : "none went");
	while (sendfile(fd[0], in, &off, 64 << 20) > 0)
		;
	R(sendfile(fd[0], in, NULL, 64 << 20));
	R(lseek(in, 0, SEEK_CUR));
}

/* --- splice, tee, copy_file_range --- */

static void splice_in(int fd[2])
{
	char buf[32] = "";
	loff_t off = 0;
	int p[2], q[2];

	R(pipe(p));
	R(pipe(q));
	put(fd[0], "0123456789");
	R(splice(fd[1], NULL, p[1], NULL, 4, 0));
	R(splice(fd[1], NULL, p[1], NULL, 100, SPLICE_F_MOVE | SPLICE_F_MORE));
	R(read(p[0], buf, 32));
	SHOW(buf, 10);
	R(splice(fd[1], NULL, p[1], NULL, 0, 0));
	R(splice(fd[1], &off, p[1], NULL, 4, 0));
	R(splice(fd[1], NULL, p[1], &off, 4, 0));
	R(splice(fd[1], NULL, p[0], NULL, 4, 0));
	R(splice(fd[1], NULL, fd[0], NULL, 4, 0));
	R(splice(fd[1], NULL, file(""), NULL, 4, 0));
	R(splice(fd[1], NULL, -1, NULL, 4, 0));
	R(splice(fd[1], NULL, p[1], NULL, 4, 0x1000));
	same_nonblock(fd[1]);
	R(splice(fd[1], NULL, p[1], NULL, 4, 0));
	R(splice(fd[1], NULL, p[1], NULL, 4, SPLICE_F_NONBLOCK));
	R(tee(fd[1], p[1], 4, 0));
	R(tee(p[0], fd[1], 4, 0));
	R(copy_file_range(fd[1], NULL, file(""), NULL, 4, 0));
	R(copy_file_range(file("abc"), NULL, fd[1], NULL, 4, 0));
	R(copy_file_range(fd[1], NULL, p[1], NULL, 4, 0));
	R(copy_file_range(p[0], NULL, fd[1], NULL, 4, 0));
	shutdown(fd[0], SHUT_WR);
	same_sleep(5);
	R(splice(fd[1], NULL, p[1], NULL, 4, 0));
}

static void put_abc(void *arg)
{
	put(*(int *)arg, "abc");
}

static void splice_waits(int fd[2])
{
	struct timeval tv = { .tv_usec = 50000 };
	double begin = same_now();
	int p[2];

	R(pipe(p));
	same_later(50, put_abc, &fd[0]);
	R(splice(fd[1], NULL, p[1], NULL, 100, SPLICE_F_NONBLOCK));
	same_took(begin, 50);
	setsockopt(fd[1], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	begin = same_now();
	R(splice(fd[1], NULL, p[1], NULL, 100, SPLICE_F_NONBLOCK));
	same_took(begin, 50);
}

/* What the pipe does not take stays in the stream, and comes in its place */
static void splice_in_full(int fd[2])
{
	char buf[32] = "", *all = malloc(300000);
	long sum = 0, n;
	int p[2], tries = 0;

	R(pipe2(p, O_NONBLOCK));
	while (write(p[1], big, 1000) > 0)
		;
	for (int i = 0; i < 200000; i++)
		all[i] = (char)('a' + i % 23);
	R(send(fd[0], all, 200000, MSG_DONTWAIT));
	same_sleep(20);
	R(splice(fd[1], NULL, p[1], NULL, 100000, 0));
	R(splice(fd[1], NULL, p[1], NULL, 100000, SPLICE_F_NONBLOCK));
	while (read(p[0], big, sizeof(big)) > 0)
		;
	while (sum < 200000 && tries++ < 1000) {
		n = splice(fd[1], NULL, p[1], NULL, 200000, SPLICE_F_NONBLOCK);
		if (n > 0)
			n = read(p[0], big + sum, (size_t)n);
		if (n > 0)
			sum += n;
	}
	same_say("%ld octets, %s", sum, memcmp(all, big, 200000) ? "other ones" : "the same");
	R(recv(fd[1], buf, 1, MSG_DONTWAIT));
	R(close(p[0]));
	put(fd[0], "xyz");
	R(splice(fd[1], NULL, p[1], NULL, 10, 0));
	same_say("signals %d", same_signals);
	R(recv(fd[1], buf, 32, MSG_DONTWAIT));
}

static void splice_out(int fd[2])
{
	char buf[32] = "";
	loff_t off = 0;
	int p[2];

	R(pipe(p));
	put(p[1], "0123456789");
	R(splice(p[0], NULL, fd[0], NULL, 4, 0));
	R(splice(p[0], NULL, fd[0], NULL, 100, SPLICE_F_MORE));
	R(send(fd[0], "a", 1, 0));
	same_sleep(5);
	R(recv(fd[1], buf, 11, MSG_WAITALL));
	SHOW(buf, 11);
	R(splice(p[0], NULL, fd[0], NULL, 4, SPLICE_F_NONBLOCK));
	R(splice(p[0], NULL, fd[0], &off, 4, 0));
	R(splice(p[0], &off, fd[0], NULL, 4, 0));
	R(splice(p[1], NULL, fd[0], NULL, 4, 0));
	R(splice(fd[1], NULL, fd[0], NULL, 4, 0));
	put(p[1], "abc");
	shutdown(fd[0], SHUT_WR);
	R(splice(p[0], NULL, fd[0], NULL, 100, 0));
	same_say("signals %d", same_signals);
	R(read(p[0], buf, 32));
	R(close(p[1]));
	R(splice(p[0], NULL, fd[1], NULL, 4, 0));
}

/* What the stream does not take stays in the pipe */
static void splice_out_full(int fd[2])
{
	char *all = malloc(1 << 20), *got = malloc(64 << 20);
	long before = 0, sum = 0, n;
	int p[2];

	for (int i = 0; i < 1 << 20; i++)
		all[i] = (char)('a' + i % 23);
	R(pipe2(p, O_NONBLOCK));
	same_nonblock(fd[0]);
	same_nonblock(fd[1]);
	while ((n = send(fd[0], all, 65536, 0)) > 0)
		before += n;
	R(write(p[1], all, 60000));
	same_say(splice(p[0], NULL, fd[0], NULL, 60000, 0) < 60000 ? "not all went" : "all went");
	for (int i = 0; i < 20000 && sum < before + 60000; i++) {
		while ((n = read(fd[1], got + sum, 1 << 20)) > 0)
			sum += n;
		if (splice(p[0], NULL, fd[0], NULL, 60000, 0) < 0)
			same_sleep(1);
	}
	same_say(sum == before + 60000 ? "all came" : "not all came");
	same_say(memcmp(got + before, all, 60000) ? "other octets" : "the same octets");
}

/* --- offsets --- */

static void offsets(int fd[2])
{
	char a[4] = "", b[8] = "";
	struct iovec in[2] = { { a, 2 }, { b, 8 } };
	struct iovec out[2] = { { "ab", 2 }, { "cdef", 4 } };

	R(pwritev2(fd[0], out, 2, -1, 0));
	same_sleep(5);
	R(preadv2(fd[1], in, 2, -1, 0));
	SHOW(a, 2);
	SHOW(b, 4);
	R(preadv2(fd[1], in, 2, -1, RWF_NOWAIT));
	R(pwritev2(fd[0], out, 2, -1, RWF_NOWAIT));
	R(preadv2(fd[1], in, 2, -1, 0x40000000));
	R(pwritev2(fd[0], out, 2, -1, 0x40000000));
	R(preadv2(fd[1], in, 0, -1, 0));
	R(pwritev2(fd[0], out, beyond, -1, 0));
	R(preadv2(fd[1], in, 2, 0, 0));
	R(pwritev2(fd[0], out, 2, 0, 0));
	R(preadv2(fd[1], in, 2, -2, 0));
	R(preadv(fd[1], in, 2, 0));
	R(pwritev(fd[0], out, 2, 0));
	R(preadv(fd[1], in, 2, minus));
	R(pread(fd[1], b, 4, 0));
	R(pwrite(fd[0], b, 4, 0));
	R(pread(fd[1], b, 4, minus));
	R(pread(fd[1], b, 0, 0));
	R(lseek(fd[0], 0, SEEK_CUR));
	R(recv(fd[1], b, 6, MSG_WAITALL));
	R(recv(fd[1], b, 8, MSG_DONTWAIT));
}

/* --- many messages --- */

static struct iovec pieces[8];
static char bufs[8][4];
static struct mmsghdr msgs[8];

static struct mmsghdr *many(void)
{
	memset(bufs, '.', sizeof(bufs));
	for (int i = 0; i < 8; i++) {
		pieces[i] = (struct iovec){ bufs[i], 3 };
		msgs[i] = (struct mmsghdr){ .msg_hdr = { .msg_iov = &pieces[i], .msg_iovlen = 1 } };
	}
	return msgs;
}

static void show_many(int n)
{
	for (int i = 0; i < n; i++) {
		same_say("message %d: %u", i, msgs[i].msg_len);
		SHOW(bufs[i], (int)msgs[i].msg_len);
	}
}

static void recv_many(int fd[2])
{
	struct timespec zero = { 0 }, bad = { 0, -1 }, tenth = { 0, 100000000 };
	double begin;

	R(recvmmsg(fd[1], many(), 4, MSG_DONTWAIT, NULL));
	put(fd[0], "0123456");
	R(recvmmsg(fd[1], many(), 4, MSG_DONTWAIT, NULL));
	show_many(3);
	put(fd[0], "abcdefg");
	R(recvmmsg(fd[1], many(), 8, MSG_WAITFORONE, NULL));
	show_many(3);
	put(fd[0], "abcdefghi");
	R(recvmmsg(fd[1], many(), 2, 0, NULL));
	R(recvmmsg(fd[1], many(), 1, 0, &zero));
	R(recvmmsg(fd[1], many(), 0, 0, NULL));
	R(recvmmsg(fd[1], many(), 1, 0, &bad));
	put(fd[0], "abc");
	R(recvmmsg(fd[1], many(), 2, MSG_DONTWAIT, &zero));
	same_say("left %ld.%ld", (long)zero.tv_sec, zero.tv_nsec);
	put(fd[0], "abcdef");
	begin = same_now();
	R(recvmmsg(fd[1], many(), 2, 0, &tenth));
	same_say(same_now() - begin < 5 && tenth.tv_nsec < 100000000 ? "some is left" : "late");
	msgs[1].msg_hdr.msg_iovlen = 2000;
	put(fd[0], "abcdef");
	R(recvmmsg(fd[1], msgs, 2, MSG_DONTWAIT, NULL));
	R(recv(fd[1], bufs, 3, MSG_DONTWAIT));
	R(recv(fd[1], bufs, 3, MSG_DONTWAIT));
	shutdown(fd[0], SHUT_WR);
	same_sleep(5);
	R(recvmmsg(fd[1], many(), 3, 0, NULL));
	show_many(3);
}

static void recv_many_reset(int fd[2])
{
	struct linger hard = { 1, 0 };

	put(fd[0], "abc");
	R(recv(fd[1], bufs, 3, MSG_PEEK));
	setsockopt(fd[0], SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
	close(fd[0]);
	same_sleep(5);
	R(recvmmsg(fd[1], many(), 3, 0, NULL));
	R(recvmmsg(fd[1], many(), 3, 0, NULL));
	R(recvmmsg(fd[1], many(), 1, 0, NULL));
}

static void send_many(int fd[2])
{
	struct mmsghdr *m = many();
	char buf[64] = "";

	memcpy(bufs, "abc.def.ghi.jkl.", 16);
	R(sendmmsg(fd[0], m, 4, 0));
	same_say("%u %u %u %u", m[0].msg_len, m[1].msg_len, m[2].msg_len, m[3].msg_len);
	R(recv(fd[1], buf, 12, MSG_WAITALL));
	SHOW(buf, 12);
	R(sendmmsg(fd[0], m, 0, 0));
	m[1].msg_hdr.msg_iovlen = 2000;
	R(sendmmsg(fd[0], m, 4, 0));
	R(sendmmsg(fd[0], m + 1, 3, 0));
	m[1].msg_hdr.msg_iovlen = 0;
	R(sendmmsg(fd[0], m, 3, 0));
	same_say("%u %u %u", m[0].msg_len, m[1].msg_len, m[2].msg_len);
	R(recv(fd[1], buf, 9, MSG_WAITALL));
	SHOW(buf, 9);
	shutdown(fd[0], SHUT_WR);
	R(sendmmsg(fd[0], m, 3, 0));
	R(sendmmsg(fd[0], m, 3, MSG_NOSIGNAL));
	same_say("signals %d", same_signals);
}

static void send_many_full(int fd[2])
{
	struct mmsghdr *m = many();
	long n;

	for (int i = 0; i < 8; i++)
		pieces[i] = (struct iovec){ big, sizeof(big) };
	while ((n = sendmmsg(fd[0], m, 8, MSG_DONTWAIT)) == 8)
		;
	while (n > 0)
		n = sendmmsg(fd[0], m, 8, MSG_DONTWAIT);
	same_say("%ld %s", n, strerrorname_np(errno));
}

static void control(int fd[2])
{
	static const struct {
		int level, type;
		size_t len;
	} kinds[] = { { SOL_SOCKET, SCM_RIGHTS, 20 },
		      { SOL_SOCKET, 999, 20 },
		      { IPPROTO_IP, 999, 20 },
		      { SOL_SOCKET, SCM_RIGHTS, 3 },
		      { SOL_SOCKET, SCM_RIGHTS, 2000 } };
	union {
		struct cmsghdr header;
		char octets[64];
	} c;
	struct iovec iov = { "x", 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = CMSG_SPACE(4)
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		memset(&c, 0, sizeof(c));
		c.header = (struct cmsghdr){ kinds[i].len, kinds[i].level, kinds[i].type };
		R(sendmsg(fd[0], &msg, 0));
	}
	msg.msg_controllen = 5;
	R(sendmsg(fd[0], &msg, 0));
	msg.msg_control = none;
	R(sendmsg(fd[0], &msg, 0));
	msg.msg_controllen = (size_t)1 << 33;
	R(sendmsg(fd[0], &msg, 0));
}

int main(int argc, char **argv)
{
	static const struct same_case cases[] = {
		SAME("sendfile to a stream", sendfile_out),
		SAME("sendfile from a stream", sendfile_in),
		SAME("sendfile of a large file", sendfile_large),
		SAME("sendfile to a full stream", sendfile_full),
		SAME("splice from a stream, tee and copy_file_range", splice_in),
		SAME("splice waits for the stream", splice_waits),
		SAME("splice to a full pipe", splice_in_full),
		SAME("splice to a stream", splice_out),
		SAME("splice to a full stream", splice_out_full),
		SAME("splices to one pipe, and a signal", splice_signal),
		SAME("preadv2, pwritev2 and offsets", offsets),
		SAME("recvmmsg", recv_many),
		SAME("recvmmsg and a reset", recv_many_reset),
		SAME("sendmmsg", send_many),
		SAME("sendmmsg to a full stream", send_many_full),
		SAME("control messages of a sender", control),
	};

	return same_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
