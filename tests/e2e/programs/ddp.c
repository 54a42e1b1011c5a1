/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The extended contract, through libc's calls: what works between two sockets in DDP mode, and
 * what it is on plain ones, where nothing may happen. Run under the launcher, and with "plain"
 * without it.
 */
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <warp/ddp.h>

#include "tests/e2e/programs/calls.h"

static char mine[4096] __attribute__((aligned(8))), theirs[4096] __attribute__((aligned(8)));
static uint32_t stag;

static int option(int fd, int name, int value)
{
	return setsockopt(fd, SOL_DDP, name, &value, sizeof(value)) ? errno : 0;
}

static int option_get(int fd, int name)
{
	socklen_t len = sizeof(int);
	int value;

	return getsockopt(fd, SOL_DDP, name, &value, &len) ? -errno : value;
}

static struct ddp_info info_of(int fd)
{
	struct ddp_info info = { .mode = 99 };
	socklen_t len = sizeof(info);

	getsockopt(fd, SOL_DDP, DDP_INFO, &info, &len);
	return info;
}

/* Both ends, made by @mode; options of the listener and the client set before */
static bool open_pair(int fd[2], int mode)
{
	char c;

	lfd = socket(AF_INET, SOCK_STREAM, 0);
	laddr.sin_port = 0;
	need(bind(lfd, (struct sockaddr *)&laddr, sizeof(laddr)) == 0);
	need(mode < 0 || option(lfd, DDP_MODE, mode) == 0);
	need(listen(lfd, 4) == 0);
	need(getsockname(lfd, (struct sockaddr *)&laddr, &(socklen_t){ sizeof(laddr) }) == 0);
	fd[0] = socket(AF_INET, SOCK_STREAM, 0);
	need(mode < 0 || option(fd[0], DDP_MODE, mode) == 0);
	need(connect(fd[0], (struct sockaddr *)&laddr, sizeof(laddr)) == 0);
	fd[1] = accept(lfd, NULL, NULL);
	need(fd[1] >= 0);
	/* Nobody waits for the start-up of a connection with oneself but its first octets */
	need(write(fd[0], "x", 1) == 1 && read(fd[1], &c, 1) == 1);
	need(write(fd[1], "x", 1) == 1 && read(fd[0], &c, 1) == 1);
	close(lfd);
	return true;
}

static void close_pair(const int fd[2])
{
	close(fd[0]);
	close(fd[1]);
}

/* sendmsg() with one control message: its result, or -errno */
static int control(int fd, int type, const void *what, size_t len, const char *octets)
{
	union {
		struct cmsghdr align;
		char room[256];
	} buf = { .room = { 0 } };
	struct iovec iov = { (void *)(uintptr_t)octets, octets ? strlen(octets) : 0 };
	struct msghdr msg = { .msg_control = &buf,
			      .msg_controllen = CMSG_SPACE(len),
			      .msg_iov = &iov,
			      .msg_iovlen = 1 };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	ssize_t got;

	c->cmsg_level = SOL_DDP;
	c->cmsg_type = type;
	c->cmsg_len = CMSG_LEN(len);
	memcpy(CMSG_DATA(c), what, len);
	got = sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	return got < 0 ? -errno : (int)got;
}

static int message(int fd, const char *text)
{
	struct ddp_send m = { .addr = (uintptr_t)text, .length = strlen(text) };

	return control(fd, DDP_CMSG_SEND, &m, sizeof(m), NULL);
}

static struct ddp_rdma rdma(uint64_t cookie, void *p, size_t len)
{
	return (struct ddp_rdma){
		.cookie = cookie,
		.addr = (uintptr_t)p,
		.length = len,
		.remote_to = (uintptr_t)theirs,
		.remote_stag = stag,
	};
}

/* recvmsg() with room for a control message: its result, or -errno; *@msg as it is then */
static char control_room[CMSG_SPACE(64)];

static int receive(int fd, char *p, size_t room, int flags, struct msghdr *msg)
{
	static struct iovec iov;
	ssize_t got;

	iov = (struct iovec){ p, room };
	*msg = (struct msghdr){ .msg_iov = &iov,
				.msg_iovlen = 1,
				.msg_control = control_room,
				.msg_controllen = sizeof(control_room) };
	got = recvmsg(fd, msg, flags);
	return got < 0 ? -errno : (int)got;
}

static const void *control_of(struct msghdr *msg, int type)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(msg);

	return c && c->cmsg_level == SOL_DDP && c->cmsg_type == type ? CMSG_DATA(c) : NULL;
}

static int reg(int fd, unsigned int access)
{
	struct ddp_reg_mr mr = { .addr = (uintptr_t)theirs,
				 .length = sizeof(theirs),
				 .stag = (uintptr_t)&stag,
				 .access = access };

	return setsockopt(fd, SOL_DDP, DDP_REG_MR, &mr, sizeof(mr)) ? errno : 0;
}

static bool completed(int fd, uint64_t cookie, unsigned int status)
{
	struct pollfd p = { .fd = fd };
	struct msghdr msg;
	const struct ddp_completion *c;

	need(poll(&p, 1, 20000) == 1);
	need(p.revents & POLLERR);
	need(receive(fd, NULL, 0, MSG_ERRQUEUE, &msg) == 0);
	c = control_of(&msg, DDP_CMSG_COMPLETION);
	need(c && msg.msg_flags & MSG_ERRQUEUE);
	need(c->cookie == cookie && c->status == status);
	return true;
}

/* --- in DDP mode --- */

static bool options_before(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0), udp = socket(AF_INET, SOCK_DGRAM, 0);

	need(option(udp, DDP_MODE, DDP_MODE_ON) == ENOPROTOOPT);
	need(option(fd, DDP_MODE, 3) == EINVAL);
	need(setsockopt(fd, SOL_DDP, DDP_MODE, "x", 1) && errno == EINVAL);
	need(option(fd, DDP_MODE, DDP_MODE_ON) == 0);
	need(option_get(fd, DDP_MODE) == DDP_MODE_ON);
	need(option(fd, DDP_MODE, DDP_MODE_AUTO) == 0 && option_get(fd, DDP_MODE) == 2);
	need(option(fd, DDP_CRC, 2) == EINVAL && option(fd, DDP_RING, 100) == EINVAL);
	need(option(fd, DDP_CRC, 0) == 0 && option_get(fd, DDP_CRC) == 0);
	need(option(fd, DDP_CRC, 2) == EINVAL && option_get(fd, DDP_CRC) == 0);
	need(option(fd, DDP_RING, 1 << 20) == 0 && option_get(fd, DDP_RING) == 1 << 20);
	need(setsockopt(fd, SOL_DDP, DDP_PROVIDER, "none", 4) && errno == ENODEV);
	need(setsockopt(fd, SOL_DDP, DDP_PROVIDER, "soft", 4) == 0);
	need(option(fd, 99, 1) == ENOPROTOOPT && option_get(fd, 99) == -ENOPROTOOPT);
	need(reg(fd, DDP_ACCESS_REMOTE_READ) == ENOTCONN);
	close(fd);
	close(udp);
	return true;
}

/* What an epoll set has to say of a socket, once */
static uint32_t told(int set, uint64_t data, int ms)
{
	struct epoll_event event = { .data.u64 = 0 };

	if (epoll_wait(set, &event, 1, ms) != 1 || event.data.u64 != data)
		return 0;
	return event.events;
}

/* The registration was the kernel's, and speaks of the program's octets from then on */
static bool mode_of_a_member(void)
{
	const uint64_t data = 0x123456789abcdef0;
	struct epoll_event event = { .events = EPOLLIN | EPOLLRDHUP, .data.u64 = data };
	int fd[2], set = epoll_create1(0), other = epoll_create1(0);
	char c;

	lfd = socket(AF_INET, SOCK_STREAM, 0);
	laddr.sin_port = 0;
	need(bind(lfd, (struct sockaddr *)&laddr, sizeof(laddr)) == 0);
	need(option(lfd, DDP_MODE, DDP_MODE_ON) == 0 && listen(lfd, 4) == 0);
	need(getsockname(lfd, (struct sockaddr *)&laddr, &(socklen_t){ sizeof(laddr) }) == 0);
	fd[0] = socket(AF_INET, SOCK_STREAM, 0);
	need(epoll_ctl(set, EPOLL_CTL_ADD, fd[0], &event) == 0);
	need(epoll_ctl(other, EPOLL_CTL_ADD, lfd, &event) == 0);
	need(option(fd[0], DDP_MODE, DDP_MODE_ON) == 0);
	need(epoll_ctl(set, EPOLL_CTL_ADD, fd[0], &event) && errno == EEXIST);
	need(connect(fd[0], (struct sockaddr *)&laddr, sizeof(laddr)) == 0);
	fd[1] = accept(lfd, NULL, NULL);
	need(write(fd[0], "x", 1) == 1 && read(fd[1], &c, 1) == 1);
	need(told(set, data, 50) == 0); /* the Reply, and grants, are no octets */
	need(write(fd[1], "x", 1) == 1 && told(set, data, 5000) == EPOLLIN);
	need(read(fd[0], &c, 1) == 1 && told(set, data, 50) == 0);
	event.events = EPOLLOUT | EPOLLET;
	need(epoll_ctl(set, EPOLL_CTL_MOD, fd[0], &event) == 0);
	need(told(set, data, 5000) == EPOLLOUT && told(set, data, 50) == 0);
	need(epoll_ctl(set, EPOLL_CTL_DEL, fd[0], NULL) == 0);
	need(epoll_ctl(set, EPOLL_CTL_DEL, fd[0], NULL) && errno == ENOENT);
	close(set);
	close(other);
	close(lfd);
	close_pair(fd);
	return true;
}

static bool options_are_kept(void)
{
	struct ddp_info info;
	int fd[2], mode = DDP_MODE_ON;
	char c;

	lfd = socket(AF_INET, SOCK_STREAM, 0);
	laddr.sin_port = 0;
	need(option(lfd, DDP_MODE, mode) == 0 && option(lfd, DDP_MARKERS, 1) == 0);
	need(option(lfd, DDP_RING, 30000) == 0);
	need(bind(lfd, (struct sockaddr *)&laddr, sizeof(laddr)) == 0 && listen(lfd, 1) == 0);
	need(option(lfd, DDP_CRC, 0) == EISCONN && option(lfd, DDP_MODE, 0) == EISCONN);
	need(getsockname(lfd, (struct sockaddr *)&laddr, &(socklen_t){ sizeof(laddr) }) == 0);
	fd[0] = socket(AF_INET, SOCK_STREAM, 0);
	need(option(fd[0], DDP_MODE, mode) == 0 && option(fd[0], DDP_CRC, 0) == 0);
	need(connect(fd[0], (struct sockaddr *)&laddr, sizeof(laddr)) == 0);
	fd[1] = accept(lfd, NULL, NULL);
	need(write(fd[0], "x", 1) == 1 && read(fd[1], &c, 1) == 1);
	need(write(fd[1], "x", 1) == 1 && read(fd[0], &c, 1) == 1);
	info = info_of(fd[1]);
	need(info.connected && info.rx_markers && !info.tx_markers && info.ring == 32768);
	need(info.crc); /* the listener's end asks for it */
	need(!strcmp(info.provider, "soft") && info.mpa_rev == 2 && !info.reason);
	need(info.tx_octets == 1 && info.rx_octets == 1 && info.mode == DDP_MODE_ON);
	info = info_of(fd[0]);
	need(info.tx_markers && !info.rx_markers);
	close(lfd);
	close_pair(fd);
	return true;
}

static bool messages(void)
{
	const struct ddp_send *m;
	struct msghdr msg;
	char in[64];
	int fd[2], n;

	need(open_pair(fd, DDP_MODE_ON));
	need(send(fd[0], "ab", 2, 0) == 2 && message(fd[0], "first") == 5);
	need(message(fd[0], "") == 0 && send(fd[0], "cd", 2, 0) == 2);
	need(message(fd[0], "longer than the room") == 20);
	need(receive(fd[1], in, sizeof(in), 0, &msg) == 2 && !control_of(&msg, DDP_CMSG_SEND));
	need(read(fd[1], in, 1) < 0 && errno == EBADMSG);
	need(recv(fd[1], in, 1, MSG_PEEK) < 0 && errno == EBADMSG);
	need(ioctl(fd[1], FIONREAD, &n) == 0 && n == 5);
	need(receive(fd[1], in, sizeof(in), MSG_PEEK, &msg) == 5);
	need(receive(fd[1], in, sizeof(in), 0, &msg) == 5 && !memcmp(in, "first", 5));
	m = control_of(&msg, DDP_CMSG_SEND);
	need(m && m->length == 5 && msg.msg_flags == MSG_EOR);
	need(receive(fd[1], in, sizeof(in), 0, &msg) == 0);
	m = control_of(&msg, DDP_CMSG_SEND);
	need(m && m->length == 0 && msg.msg_flags == MSG_EOR);
	need(read(fd[1], in, sizeof(in)) == 2 && !memcmp(in, "cd", 2));
	need(receive(fd[1], in, 6, 0, &msg) == 6 && !memcmp(in, "longer", 6));
	m = control_of(&msg, DDP_CMSG_SEND);
	need(m && m->length == 20 && msg.msg_flags == (MSG_EOR | MSG_TRUNC));
	need(receive(fd[1], in, 6, MSG_DONTWAIT, &msg) == -EAGAIN);
	/* Calls that would wait for more end at a message, and say nothing of it afterwards */
	need(send(fd[0], "ab", 2, 0) == 2 && message(fd[0], "last") == 4);
	need(recv(fd[1], in, 3, MSG_PEEK | MSG_WAITALL) == 2);
	need(recv(fd[1], in, 3, MSG_WAITALL) == 2);
	need(receive(fd[1], in, 6, 0, &msg) == 4);
	need(receive(fd[1], in, 6, MSG_DONTWAIT, &msg) == -EAGAIN);
	need(getsockopt(fd[1], SOL_SOCKET, SO_ERROR, &n, &(socklen_t){ sizeof(n) }) == 0 && !n);
	close_pair(fd);
	return true;
}

static bool one_sided(void)
{
	int fd[2], ep = epoll_create1(0);
	struct epoll_event e = { .events = EPOLLIN | EPOLLET };
	struct ddp_rdma m;
	struct msghdr msg;

	need(open_pair(fd, DDP_MODE_ON));
	need(epoll_ctl(ep, EPOLL_CTL_ADD, fd[0], &e) == 0 && epoll_wait(ep, &e, 1, 0) == 0);
	need(reg(fd[1], DDP_ACCESS_REMOTE_WRITE | DDP_ACCESS_REMOTE_READ) == 0);
	strcpy(mine, "written");
	m = rdma(7, mine, 8);
	need(control(fd[0], DDP_CMSG_WRITE, &m, sizeof(m), NULL) == 0);
	need(epoll_wait(ep, &e, 1, 20000) == 1 && e.events & EPOLLERR);
	need(completed(fd[0], 7, DDP_STATUS_OK));
	need(receive(fd[0], NULL, 0, MSG_ERRQUEUE, &msg) == -EAGAIN);
	memset(mine, 0, 8);
	m = rdma(8, mine, 8);
	need(control(fd[0], DDP_CMSG_READ, &m, sizeof(m), NULL) == 0);
	need(completed(fd[0], 8, DDP_STATUS_OK));
	need(!strcmp(mine, "written") && !strcmp(theirs, "written"));
	need(setsockopt(fd[1], SOL_DDP, DDP_DEREG_MR, &stag, sizeof(stag)) == 0);
	need(setsockopt(fd[1], SOL_DDP, DDP_DEREG_MR, &stag, sizeof(stag)) && errno == EINVAL);
	m = rdma(9, mine, 8);
	need(control(fd[0], DDP_CMSG_READ, &m, sizeof(m), NULL) == 0);
	need(read(fd[1], mine, 1) < 0); /* which serves it: the connection ends */
	need(completed(fd[0], 9, DDP_STATUS_REMOTE));
	need(info_of(fd[0]).reason == DDP_REASON_PEER_TERMINATED);
	need(info_of(fd[0]).peer.present && info_of(fd[0]).peer.layer == 0);
	need(info_of(fd[1]).reason == DDP_REASON_FAULT && info_of(fd[1]).local.present);
	close_pair(fd);
	close(ep);
	return true;
}

static bool atomics(void)
{
	uint64_t *counter = (uint64_t *)(void *)theirs, *got = (uint64_t *)(void *)mine;
	struct ddp_atomic a = { .cookie = 1, .op = DDP_FETCH_ADD, .operand = 2 };
	struct ddp_rdma m;
	int fd[2];

	need(open_pair(fd, DDP_MODE_ON));
	need(reg(fd[1], DDP_ACCESS_REMOTE_ATOMIC) == 0);
	*counter = 40;
	a.addr = (uintptr_t)got;
	a.remote_to = (uintptr_t)counter;
	a.remote_stag = stag;
	need(control(fd[0], DDP_CMSG_ATOMIC, &a, sizeof(a), NULL) == 0);
	need(completed(fd[0], 1, DDP_STATUS_OK) && *got == 40 && *counter == 42);
	/* Bits outside of the masks are neither compared nor swapped */
	*counter = 0x1234;
	a = (struct ddp_atomic){ 2,	 a.addr, a.remote_to, stag,  DDP_CMP_SWAP,
				 0x5656, 0xff00, 0x9934,      0x00ff };
	need(control(fd[0], DDP_CMSG_ATOMIC, &a, sizeof(a), NULL) == 0);
	need(completed(fd[0], 2, DDP_STATUS_OK) && *got == 0x1234 && *counter == 0x5634);
	a.op = 2;
	need(control(fd[0], DDP_CMSG_ATOMIC, &a, sizeof(a), NULL) == -EINVAL);
	need(info_of(fd[0]).operations == 2);
	/* Rights are for each kind */
	m = rdma(3, mine, 8);
	need(control(fd[0], DDP_CMSG_WRITE, &m, sizeof(m), NULL) == 0);
	need(control(fd[0], DDP_CMSG_READ, &m, sizeof(m), NULL) <= 0);
	need(read(fd[1], mine, 1) < 0 && info_of(fd[1]).reason == DDP_REASON_FAULT);
	need(*counter == 0x5634);
	close_pair(fd);
	return true;
}

/* Completions from @fd, all of them, in their order; how many of each status */
static bool all_completed(int fd, uint64_t number, uint64_t count[3])
{
	const struct ddp_completion *c;
	struct msghdr msg;
	struct pollfd p = { .fd = fd };
	unsigned int last = DDP_STATUS_OK;

	for (uint64_t i = 0; i < number; i++) {
		need(poll(&p, 1, 20000) == 1);
		need(receive(fd, NULL, 0, MSG_ERRQUEUE, &msg) == 0);
		c = control_of(&msg, DDP_CMSG_COMPLETION);
		need(c && c->cookie == i && c->status >= last && c->status <= DDP_STATUS_REMOTE);
		need(c->type == DDP_CMSG_READ && !c->length == (c->status != DDP_STATUS_OK));
		last = c->status;
		count[last]++;
	}
	need(receive(fd, NULL, 0, MSG_ERRQUEUE, &msg) == -EAGAIN);
	return true;
}

/* A process that has memory for its peer, and does nothing any more */
static pid_t stopped(int fd)
{
	struct ddp_reg_mr mr = { .addr = (uintptr_t)theirs,
				 .length = sizeof(theirs),
				 .access = DDP_ACCESS_REMOTE_READ };
	uint32_t *told = mmap(NULL, sizeof(*told), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status;
	pid_t pid = fork();

	mr.stag = (uintptr_t)told;
	if (!pid) {
		if (!setsockopt(fd, SOL_DDP, DDP_REG_MR, &mr, sizeof(mr)))
			raise(SIGSTOP);
		_exit(1);
	}
	waitpid(pid, &status, WUNTRACED);
	stag = *told;
	munmap(told, sizeof(*told));
	return WIFSTOPPED(status) ? pid : -1;
}

/* As many as there may be, and the peer goes with all of them under way */
static bool flushed(void)
{
	uint64_t number = 0, count[3] = { 0 };
	struct ddp_rdma m;
	int fd[2], err;
	pid_t pid;

	need(open_pair(fd, DDP_MODE_ON));
	pid = stopped(fd[1]);
	need(pid > 0);
	close(fd[1]);
	m = rdma(0, mine, sizeof(mine));
	while (!(err = control(fd[0], DDP_CMSG_READ, &m, sizeof(m), NULL)) && number < 100000)
		m.cookie = ++number;
	need(err == -ENOBUFS);
	need(!kill(pid, SIGKILL) && waitpid(pid, NULL, 0) == pid);
	need(all_completed(fd[0], number, count) && count[DDP_STATUS_FLUSHED] == number);
	need(control(fd[0], DDP_CMSG_READ, &m, sizeof(m), NULL) < 0);
	close(fd[0]);
	return true;
}

static int map(int fd, int name, uint64_t offset)
{
	struct ddp_map m = { .addr = (uintptr_t)theirs, .length = 100, .offset = offset };

	return setsockopt(fd, SOL_DDP, name, &m, sizeof(m)) ? errno : 0;
}

/* The client has what the server offers, which was told so when it listened already */
static bool mappings(void)
{
	struct ddp_rdma m = rdma(5, mine, 10);
	int fd[2];
	char c;

	m.remote_stag = 0;
	m.remote_to = 7090;
	lfd = socket(AF_INET, SOCK_STREAM, 0);
	laddr.sin_port = 0;
	need(option(lfd, DDP_MODE, DDP_MODE_ON) == 0);
	need(bind(lfd, (struct sockaddr *)&laddr, sizeof(laddr)) == 0 && listen(lfd, 1) == 0);
	need(option(lfd, DDP_MAPS, 129) == EINVAL && option(lfd, DDP_MAPS, -1) == EINVAL);
	need(option(lfd, DDP_MAPS, 2) == 0 && option_get(lfd, DDP_MAPS) == 2);
	need(getsockname(lfd, (struct sockaddr *)&laddr, &(socklen_t){ sizeof(laddr) }) == 0);
	fd[0] = socket(AF_INET, SOCK_STREAM, 0);
	need(option(fd[0], DDP_MODE, DDP_MODE_ON) == 0 && map(fd[0], DDP_MAP, 0) == ENOTCONN);
	need(connect(fd[0], (struct sockaddr *)&laddr, sizeof(laddr)) == 0);
	fd[1] = accept(lfd, NULL, NULL);
	need(write(fd[0], "x", 1) == 1 && read(fd[1], &c, 1) == 1);
	need(option(fd[0], DDP_MAPS, 1) == EISCONN && map(fd[1], DDP_MAP, 0) == EOPNOTSUPP);
	need(!map(fd[0], DDP_MAP, 7000) && !map(fd[0], DDP_MAP, 0));
	need(write(fd[0], "x", 1) == 1 && read(fd[1], &c, 1) == 1);
	memset(mine, 'm', 10);
	need(control(fd[1], DDP_CMSG_WRITE_MAPPED, &m, sizeof(m), NULL) == 0);
	need(completed(fd[1], 5, DDP_STATUS_OK));
	need(write(fd[1], "x", 1) == 1 && read(fd[0], &c, 1) == 1);
	need(!memcmp(theirs + 90, mine, 10));
	m.remote_to++;
	need(control(fd[1], DDP_CMSG_WRITE_MAPPED, &m, sizeof(m), NULL) == -ENXIO);
	m.reserved = 1;
	need(control(fd[1], DDP_CMSG_WRITE_MAPPED, &m, sizeof(m), NULL) == -EINVAL);
	need(!map(fd[0], DDP_UNMAP, 0) && !map(fd[0], DDP_UNMAP, 0));
	close(lfd);
	close_pair(fd);
	return true;
}

static bool operations_too_late(void)
{
	struct ddp_rdma m = rdma(1, mine, 8);
	int fd[2];
	char c;

	need(open_pair(fd, DDP_MODE_ON));
	need(shutdown(fd[0], SHUT_WR) == 0);
	need(control(fd[0], DDP_CMSG_WRITE, &m, sizeof(m), NULL) == -EPIPE);
	need(control(fd[0], DDP_CMSG_READ, &m, sizeof(m), NULL) == -EPIPE);
	need(message(fd[0], "late") == -EPIPE);
	need(read(fd[1], &c, 1) == 0 && message(fd[1], "in time") == 7);
	close_pair(fd);
	return true;
}

/* Each number of DDP_INFO that the program can know of */
static bool info_counts(void)
{
	struct ddp_info info, other;
	struct ddp_rdma m;
	struct msghdr msg;
	struct {
		uint32_t mode, connected, not_ours;
	} begin = { 99, 99, 99 };
	socklen_t len = 8;
	char in[16], name[16];
	int fd[2];

	need(open_pair(fd, DDP_MODE_ON));
	need(reg(fd[1], DDP_ACCESS_REMOTE_WRITE) == 0);
	need(send(fd[0], "abc", 3, 0) == 3 && message(fd[0], "first") == 5);
	m = rdma(1, mine, 8);
	need(control(fd[0], DDP_CMSG_WRITE, &m, sizeof(m), NULL) == 0);
	need(completed(fd[0], 1, DDP_STATUS_OK));
	need(receive(fd[1], in, 3, 0, &msg) == 3 && receive(fd[1], in, 16, 0, &msg) == 5);
	info = info_of(fd[0]);
	other = info_of(fd[1]);
	need(info.tx_octets == 9 && other.rx_octets == 9 && info.rx_octets == 1);
	need(info.tx_messages == 1 && !info.rx_messages && other.rx_messages == 1);
	need(info.operations == 1 && !other.operations);
	need(info.tx_fpdus && info.tx_fpdus == other.rx_fpdus && other.tx_fpdus && info.rx_fpdus);
	need(info.ord && info.ird && info.mulpdu && info.crc);
	need(!info.local.present && !info.peer.present && !info.reason);
	need((info.features & (DDP_FEATURE_MESSAGES | DDP_FEATURE_ONESIDED)) ==
	     (DDP_FEATURE_MESSAGES | DDP_FEATURE_ONESIDED));
	need(!getsockopt(fd[0], SOL_DDP, DDP_INFO, &begin, &len) && len == 8);
	need(begin.mode == DDP_MODE_ON && begin.connected == 1 && begin.not_ours == 99);
	len = sizeof(name);
	need(!getsockopt(fd[0], SOL_DDP, DDP_PROVIDER, name, &len) && !strcmp(name, "soft"));
	close_pair(fd);
	return true;
}

/* As long as may be, by the peer's ring; and as many as it takes */
static bool messages_fill(void)
{
	static char big[8192];
	struct ddp_send m = { .addr = (uintptr_t)big };
	struct msghdr msg;
	int fd[2], most, n = 0, got;

	need(open_pair(fd, DDP_MODE_ON));
	most = (int)info_of(fd[1]).ring / 2 - 16;
	need(most > DDP_MESSAGE_MAX);
	close_pair(fd);
	lfd = socket(AF_INET, SOCK_STREAM, 0);
	laddr.sin_port = 0;
	need(option(lfd, DDP_MODE, DDP_MODE_ON) == 0 && option(lfd, DDP_RING, 8192) == 0);
	need(bind(lfd, (struct sockaddr *)&laddr, sizeof(laddr)) == 0 && listen(lfd, 1) == 0);
	need(getsockname(lfd, (struct sockaddr *)&laddr, &(socklen_t){ sizeof(laddr) }) == 0);
	fd[0] = socket(AF_INET, SOCK_STREAM, 0);
	need(option(fd[0], DDP_MODE, DDP_MODE_ON) == 0);
	need(connect(fd[0], (struct sockaddr *)&laddr, sizeof(laddr)) == 0);
	fd[1] = accept(lfd, NULL, NULL);
	need(write(fd[0], "x", 1) == 1 && read(fd[1], big, 1) == 1);
	need(write(fd[1], "x", 1) == 1 && read(fd[0], big, 1) == 1);
	m.length = 4096 - 15;
	need(control(fd[0], DDP_CMSG_SEND, &m, sizeof(m), NULL) == -EMSGSIZE);
	m.length = 4096 - 16;
	while ((got = control(fd[0], DDP_CMSG_SEND, &m, sizeof(m), NULL)) == (int)m.length)
		n++;
	need(n > 0 && got == -EAGAIN);
	for (int i = 0; i < n; i++)
		need(receive(fd[1], big, sizeof(big), 0, &msg) == (int)m.length);
	need(poll(&(struct pollfd){ .fd = fd[0], .events = POLLOUT }, 1, 20000) == 1);
	need(message(fd[0], "room") == 4 && receive(fd[1], big, 8, 0, &msg) == 4);
	close(lfd);
	close_pair(fd);
	return true;
}

/* A Write from @fd[0], which another process may not make */
static bool other_process(void)
{
	struct ddp_rdma m;
	int fd[2], status;
	pid_t pid;

	need(open_pair(fd, DDP_MODE_ON));
	need(reg(fd[1], DDP_ACCESS_REMOTE_WRITE) == 0);
	pid = fork();
	if (!pid)
		_exit(reg(fd[1], DDP_ACCESS_REMOTE_WRITE) != EXDEV);
	need(waitpid(pid, &status, 0) == pid && status == 0);
	m = rdma(1, mine, 8);
	need(control(fd[0], DDP_CMSG_WRITE, &m, sizeof(m), NULL) == 0);
	need(completed(fd[0], 1, DDP_STATUS_OK));
	close_pair(fd);
	return true;
}

static bool wrong_regions(int fd)
{
	struct ddp_reg_mr mr = { .addr = (uintptr_t)theirs,
				 .length = sizeof(theirs),
				 .stag = 16,
				 .access = DDP_ACCESS_REMOTE_WRITE };

	need(setsockopt(fd, SOL_DDP, DDP_REG_MR, &mr, sizeof(mr)) && errno == EFAULT);
	mr.stag = (uintptr_t)&stag;
	need(setsockopt(fd, SOL_DDP, DDP_REG_MR, &mr, sizeof(mr) - 1) && errno == EINVAL);
	mr.reserved = 1;
	need(setsockopt(fd, SOL_DDP, DDP_REG_MR, &mr, sizeof(mr)) && errno == EINVAL);
	mr.reserved = 0;
	mr.access = 0x100;
	need(setsockopt(fd, SOL_DDP, DDP_REG_MR, &mr, sizeof(mr)) && errno == EINVAL);
	need(setsockopt(fd, SOL_DDP, DDP_DEREG_MR, &stag, 3) && errno == EINVAL);
	return true;
}

static bool wrong_controls(void)
{
	struct ddp_rdma m = rdma(1, mine, 8);
	struct ddp_send s = { .addr = (uintptr_t)mine, .length = DDP_MESSAGE_MAX + 1 };
	int fd[2];
	char c;

	need(open_pair(fd, DDP_MODE_ON));
	need(control(fd[0], DDP_CMSG_WRITE, &m, sizeof(m), "octets") == -EINVAL);
	need(control(fd[0], DDP_CMSG_WRITE, &m, sizeof(m) - 1, NULL) == -EINVAL);
	need(control(fd[0], DDP_CMSG_COMPLETION, &m, sizeof(m), NULL) == -EINVAL);
	need(control(fd[0], 77, &m, sizeof(m), NULL) == -EINVAL);
	need(control(fd[0], DDP_CMSG_SEND, &s, sizeof(s), NULL) == -EMSGSIZE);
	s = (struct ddp_send){ .addr = 16, .length = 5 };
	need(control(fd[0], DDP_CMSG_SEND, &s, sizeof(s), NULL) == -EFAULT);
	m.reserved = 1;
	need(control(fd[0], DDP_CMSG_READ, &m, sizeof(m), NULL) == -EINVAL);
	m.reserved = 0;
	m.addr = 16;
	need(control(fd[0], DDP_CMSG_READ, &m, sizeof(m), NULL) == -EFAULT);
	need(wrong_regions(fd[0]));
	m.length = (1ull << 30) + 1;
	need(control(fd[0], DDP_CMSG_WRITE, &m, sizeof(m), NULL) == -EINVAL);
	need(recv(fd[1], &c, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN);
	close_pair(fd);
	return true;
}

/* --- on plain sockets --- */

static bool nothing_happens(void)
{
	struct ddp_rdma m = rdma(1, mine, 8);
	struct ddp_info info;
	socklen_t len = sizeof(info);
	struct msghdr msg;
	int fd[2];
	char c;

	need(open_pair(fd, -1));
	need(reg(fd[0], DDP_ACCESS_REMOTE_READ) == ENOPROTOOPT);
	need(option(fd[0], DDP_CRC, 0) == ENOPROTOOPT);
	need(option(fd[0], DDP_MODE, DDP_MODE_ON) != 0);
	need(getsockopt(fd[0], SOL_DDP, DDP_MODE, &info, &len)); /* Linux: EOPNOTSUPP */
	need(message(fd[0], "no octet goes out") <= 0);
	need(control(fd[0], DDP_CMSG_WRITE, &m, sizeof(m), NULL) <= 0);
	need(receive(fd[0], NULL, 0, MSG_ERRQUEUE, &msg) == -EAGAIN);
	need(recv(fd[1], &c, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN);
	close_pair(fd);
	return true;
}

static bool mode_off_says_why(void)
{
	int fd[2];

	need(open_pair(fd, DDP_MODE_OFF));
	need(info_of(fd[0]).reason == DDP_REASON_MODE_OFF && !info_of(fd[0]).connected);
	need(info_of(fd[1]).reason == DDP_REASON_MODE_OFF);
	close_pair(fd);
	return true;
}

int main(int argc, char **argv)
{
	setup();
	close(lfd);
	tap_case(nothing_happens(), "plain sockets");
	if (argc > 1)
		return tap_finish();
	tap_case(mode_off_says_why(), "mode off");
	tap_case(options_before(), "options before the connection");
	tap_case(mode_of_a_member(), "the mode of a socket that is in an epoll set");
	tap_case(options_are_kept(), "options of listener and client");
	tap_case(messages(), "user messages");
	tap_case(messages_fill(), "user messages, until there is no room");
	tap_case(one_sided(), "one-sided operations");
	tap_case(atomics(), "atomics");
	tap_case(flushed(), "operations that the peer leaves undone");
	tap_case(mappings(), "mappings");
	tap_case(operations_too_late(), "operations behind one's own end");
	tap_case(info_counts(), "what DDP_INFO counts");
	tap_case(other_process(), "another process");
	tap_case(wrong_controls(), "control messages that make no sense");
	return tap_finish();
}
