/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What Linux promises of connections that are passed from process to process by messages
 * (SCM_RIGHTS). As calls.c, for the kernel's TCP and for Warpsock.
 */
#include "tests/e2e/programs/calls.h"

#include <string.h>
#include <sys/wait.h>

#define MANY 4

static int local[2]; /* messages go from 0 to 1 */

struct message {
	struct msghdr hdr;
	struct iovec iov;
	char octets[8];
	union {
		char room[CMSG_SPACE(MANY * sizeof(int))];
		size_t align;
	} control;
};

static void message_init(struct message *m, const int *fds, int n)
{
	struct cmsghdr *c = (struct cmsghdr *)(void *)m->control.room;

	memset(m, 0, sizeof(*m));
	m->iov = (struct iovec){ m->octets, 1 };
	m->hdr = (struct msghdr){ .msg_iov = &m->iov, .msg_iovlen = 1 };
	m->hdr.msg_control = m->control.room;
	m->hdr.msg_controllen = n ? CMSG_SPACE((unsigned int)n * sizeof(int)) : sizeof(m->control);
	if (!n)
		return;
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN((unsigned int)n * sizeof(int));
	memcpy(CMSG_DATA(c), fds, (unsigned int)n * sizeof(int));
}

static long pass(const int *fds, int n)
{
	struct message m;

	message_init(&m, fds, n);
	return sendmsg(local[0], &m.hdr, 0);
}

/* How many descriptors have come */
static int taken(const struct message *m, int *fds)
{
	const struct cmsghdr *c = (const struct cmsghdr *)(const void *)m->control.room;
	int n = 0;

	if (m->hdr.msg_controllen >= CMSG_LEN(sizeof(int)) && c->cmsg_type == SCM_RIGHTS)
		n = (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
	memcpy(fds, CMSG_DATA(c), (unsigned int)n * sizeof(int));
	return n;
}

static int take(int *fds, int flags)
{
	struct message m;

	message_init(&m, NULL, 0);
	return recvmsg(local[1], &m.hdr, flags) == 1 ? taken(&m, fds) : -1;
}

static bool open_local(int type)
{
	need(!socketpair(AF_UNIX, type, 0, local));
	return true;
}

/* The sender has no copy any more when somebody receives it */
static bool on_its_own(void)
{
	int fd[2], got;

	need(open_local(SOCK_STREAM) && pair(fd));
	need(write(fd[0], "held back", 9) == 9 && read(fd[1], (char[5]){ 0 }, 5) == 5);
	need(pass(&fd[1], 1) == 1 && !close(fd[1]));
	usleep(20000);
	need(take(&got, MSG_CMSG_CLOEXEC) == 1 && fcntl(got, F_GETFD) == FD_CLOEXEC);
	need(recv(got, (char[4]){ 0 }, 4, MSG_WAITALL) == 4 && talk(fd[0], got));
	close(got);
	need(at_end(fd[0]));
	close(fd[0]);
	done(local);
	return true;
}

static bool beside_others(void)
{
	int fd[2], pass_on[MANY], got[MANY];

	need(open_local(SOCK_SEQPACKET) && pair(fd));
	pass_on[0] = 0;
	pass_on[1] = fd[1];
	pass_on[2] = local[0];
	pass_on[3] = fd[1];
	need(pass(pass_on, MANY) == 1 && take(got, 0) == MANY);
	need(talk(fd[0], got[1]) && talk(fd[0], got[3]) && talk(fd[0], fd[1]));
	need(write(got[2], "x", 1) == 1 && read(local[1], (char[1]){ 0 }, 1) == 1);
	close(fd[1]);
	close(got[1]);
	need(talk(fd[0], got[3]) && !close(got[3]) && at_end(fd[0]));
	close(got[0]);
	close(got[2]);
	close(fd[0]);
	done(local);
	return true;
}

static bool looked_at(void)
{
	int fd[2], got[3];

	need(open_local(SOCK_DGRAM) && pair(fd) && pass(&fd[1], 1) == 1 && !close(fd[1]));
	need(take(&got[0], MSG_PEEK) == 1 && take(&got[1], MSG_PEEK) == 1);
	need(talk(fd[0], got[0]) && !close(got[0]) && talk(fd[0], got[1]) && !close(got[1]));
	need(take(&got[2], 0) == 1 && talk(fd[0], got[2]) && !close(got[2]));
	need(at_end(fd[0]));
	close(fd[0]);
	done(local);
	return true;
}

/* Two are sent, and there is room for one */
static bool cut_off(void)
{
	int a[2], b[2], two[2], got;
	struct message m;

	need(open_local(SOCK_STREAM) && pair(a) && pair(b));
	two[0] = a[1];
	two[1] = b[1];
	need(pass(two, 2) == 1 && !close(a[1]) && !close(b[1]));
	message_init(&m, NULL, 0);
	m.hdr.msg_controllen = CMSG_LEN(sizeof(int));
	need(recvmsg(local[1], &m.hdr, 0) == 1 && m.hdr.msg_flags & MSG_CTRUNC);
	need(taken(&m, &got) == 1 && talk(a[0], got) && at_end(b[0]));
	close(got);
	close(a[0]);
	close(b[0]);
	done(local);
	return true;
}

static bool never_received(void)
{
	int fd[2];

	need(open_local(SOCK_STREAM) && pair(fd) && pass(&fd[1], 1) == 1);
	done(local);
	need(talk(fd[0], fd[1]) && !close(fd[1]) && at_end(fd[0]));
	close(fd[0]);
	need(open_local(SOCK_STREAM) && pair(fd) && pass(&fd[1], 1) == 1 && !close(fd[1]));
	done(local);
	need(at_end(fd[0]));
	close(fd[0]);
	return true;
}

static bool many_messages(void)
{
	struct message m[3];
	struct mmsghdr msgs[3] = { 0 };
	int fd[2], got[MANY];

	need(open_local(SOCK_DGRAM) && pair(fd));
	for (int i = 0; i < 3; i++) {
		message_init(&m[i], &fd[1], i == 1 ? 0 : 1);
		if (i == 1)
			m[i].hdr.msg_controllen = 0;
		msgs[i].msg_hdr = m[i].hdr;
	}
	need(sendmmsg(local[0], msgs, 3, 0) == 3 && msgs[2].msg_len == 1 && !close(fd[1]));
	for (int i = 0; i < 3; i++) {
		message_init(&m[i], NULL, 0);
		msgs[i].msg_hdr = m[i].hdr;
	}
	need(recvmmsg(local[1], msgs, 3, 0, NULL) == 3);
	for (int i = 0; i < 3; i++) {
		m[i].hdr = msgs[i].msg_hdr;
		need(taken(&m[i], got + i) == (i != 1));
	}
	need(talk(fd[0], got[0]) && !close(got[0]) && talk(fd[0], got[2]) && !close(got[2]));
	need(at_end(fd[0]));
	close(fd[0]);
	done(local);
	return true;
}

/* The message is refused, and the connection stays whose it was */
static bool not_sent(void)
{
	struct message m;
	int fd[2], got[MANY];
	long n = 0;

	need(open_local(SOCK_DGRAM) && pair(fd) && nonblock(local[0]));
	while (n < 100000 && send(local[0], "x", 1, 0) == 1)
		n++;
	need(errno == EAGAIN && pass(&fd[1], 1) < 0 && errno == EAGAIN && talk(fd[0], fd[1]));
	message_init(&m, (int[]){ fd[1], 999 }, 2);
	need(sendmsg(local[0], &m.hdr, 0) < 0 && errno == EBADF);
	while (n--)
		need(take(got, 0) == 0);
	close(local[1]);
	need(pass(&fd[1], 1) < 0 && errno == ECONNREFUSED);
	need(talk(fd[0], fd[1]) && !close(fd[1]) && at_end(fd[0]));
	close(fd[0]);
	close(local[0]);
	return true;
}

/* --- between programs --- */

/* What another program does: what it receives it answers on, until no more comes */
static int serve(int from)
{
	char buf[64];
	int fd;

	local[1] = from;
	while (take(&fd, 0) == 1) {
		ssize_t n;

		while ((n = read(fd, buf, sizeof(buf))) > 0 && write(fd, buf, (size_t)n) == n)
			;
		if (n < 0 || close(fd))
			return 1;
	}
	return 0;
}

static pid_t server_start(void)
{
	char number[16];
	pid_t pid;

	snprintf(number, sizeof(number), "%d", local[1]);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		close(local[0]);
		execl("/proc/self/exe", "server", number, NULL);
		_exit(99);
	}
	close(local[1]);
	return pid;
}

static bool to_another_program(void)
{
	char buf[16];
	int fd[2];
	pid_t pid;

	need(open_local(SOCK_SEQPACKET));
	pid = server_start();
	for (int i = 0; i < 10; i++) {
		need(pair(fd) && write(fd[0], "one two", 7) == 7);
		need(recv(fd[1], buf, 4, MSG_WAITALL) == 4 && pass(&fd[1], 1) == 1);
		close(fd[1]);
		need(write(fd[0], "four", 4) == 4 && recv(fd[0], buf, 7, MSG_WAITALL) == 7);
		need(!memcmp(buf, "twofour", 7) && !shutdown(fd[0], SHUT_WR) && at_end(fd[0]));
		close(fd[0]);
	}
	close(local[0]);
	return in_child(pid);
}

/* Its sender is gone when it is received */
static bool from_the_dead(void)
{
	int fd[2], got;
	pid_t pid;

	need(open_local(SOCK_STREAM));
	fflush(stdout);
	pid = fork();
	if (!pid) {
		if (!pair(fd) || write(fd[0], "last words", 10) != 10 || pass(&fd[1], 1) != 1)
			_exit(1);
		_exit(0);
	}
	need(in_child(pid) && take(&got, 0) == 1);
	need(recv(got, (char[10]){ 0 }, 10, MSG_WAITALL) == 10 && at_end(got));
	close(got);
	done(local);
	return true;
}

/* There and back, with the sender as one of its users all the while */
static bool there_and_back(void)
{
	int fd[2], back;
	pid_t pid;

	need(open_local(SOCK_STREAM) && pair(fd));
	fflush(stdout);
	pid = fork();
	if (!pid) {
		close(fd[0]);
		close(fd[1]);
		if (take(&back, 0) != 1 || write(back, "child", 5) != 5)
			_exit(1);
		dup2(local[1], local[0]);
		_exit(pass(&back, 1) != 1);
	}
	need(pass(&fd[1], 1) == 1 && recv(fd[0], (char[5]){ 0 }, 5, MSG_WAITALL) == 5);
	dup2(local[0], local[1]);
	need(in_child(pid) && take(&back, 0) == 1 && talk(fd[0], back) && talk(fd[0], fd[1]));
	close(fd[1]);
	need(talk(fd[0], back) && !close(back) && at_end(fd[0]));
	close(fd[0]);
	done(local);
	return true;
}

int main(int argc, char **argv)
{
	static const struct call_case cases[] = {
		{ "sent, and closed by its sender", on_its_own },
		{ "several in one message, and others", beside_others },
		{ "MSG_PEEK", looked_at },
		{ "more than there is room for", cut_off },
		{ "never received", never_received },
		{ "sendmmsg, recvmmsg", many_messages },
		{ "messages that are not sent", not_sent },
		{ "to another program", to_another_program },
		{ "from a process that has ended", from_the_dead },
		{ "there and back", there_and_back },
	};

	if (argc > 1)
		return serve(atoi(argv[1]));
	return cases_run(cases, sizeof(cases) / sizeof(cases[0]));
}
