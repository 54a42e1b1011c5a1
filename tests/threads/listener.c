/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A listener that a device has beside the kernel (preload/device/listen.c), used by several threads
 * at once, with the interposer linked in and a device that is made up (fake_rdma.c).
 *
 *	knocker --- the device ---+
 *				  +--- gate --- 3 acceptors, poll(), 2 numbers in sets
 *	caller ----- the kernel --+
 *
 * Under all of them the process forks, and at last the listener is shut.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "rnic/rnic.h"
#include "tests/tap.h"
#include "tests/unit/verbs/fake.h"
#include "verbs/verbs_stream.h"

enum { SECONDS = 120, ACCEPTORS = 3, ASKED = 60, AHEAD = 4 };

bool fake_knock(int port);

static int listener, port;
static atomic_int asked[2], accepted[2], stop; /* of the kernel, of the device */
static time_t begin;

/* Of the provider only streams are of interest here, and there is nothing that they would open */
static const struct rnic_ops device_ops = { .name = "verbs", .stream = &verbs_stream_ops };

__attribute__((constructor)) static void provider_enter(void)
{
	rnic_register(&device_ops);
}

static bool is_over(void)
{
	return stop || time(NULL) - begin > SECONDS;
}

static void listen_open(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(at);

	listener = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(listener, (struct sockaddr *)&at, len) || listen(listener, 64) ||
	    getsockname(listener, (struct sockaddr *)&at, &len))
		exit(1);
	port = ntohs(at.sin_port);
	asked[0] = asked[1] = accepted[0] = accepted[1] = stop = 0;
}

/*
 * Which of the two it is by what it answers (preload/device/ask.c); the kernel's may have gone, and
 * then has no name
 */
static void look_at(int fd)
{
	struct sockaddr_in own, peer = { 0 };
	struct tcp_info info;
	socklen_t len = sizeof(own);

	getsockname(fd, (struct sockaddr *)&own, &len);
	len = sizeof(peer);
	getpeername(fd, (struct sockaddr *)&peer, &len);
	len = sizeof(info);
	getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len);
	accepted[peer.sin_port == htons(FAKE_PORT)]++;
}

static void *acceptor(void *arg)
{
	while (!is_over()) {
		int fd = accept(listener, NULL, NULL);

		if (fd < 0 && errno != ECONNABORTED)
			break;
		if (fd >= 0)
			look_at(fd);
		close(fd);
	}
	return NULL;
}

static void *asker(void *arg)
{
	bool device = arg;
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_port = htons((in_port_t)port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	while (!is_over() && asked[device] < ASKED) {
		int fd = -1;

		if (asked[device] - accepted[device] >= AHEAD) {
			poll(NULL, 0, 1);
			continue;
		}
		if (device && !fake_knock(port))
			break;
		if (!device) {
			fd = socket(AF_INET, SOCK_STREAM, 0);
			if (connect(fd, (struct sockaddr *)&at, sizeof(at)))
				break;
		}
		asked[device]++;
		close(fd);
	}
	return NULL;
}

/* Two numbers of it come into a set, change and go */
static void *looker(void *arg)
{
	int set = epoll_create1(0), again = dup(listener);

	while (!is_over()) {
		struct pollfd p = { .fd = again, .events = POLLIN };
		struct epoll_event event = { .events = EPOLLIN }, out[4];

		epoll_ctl(set, EPOLL_CTL_ADD, listener, &event);
		epoll_ctl(set, EPOLL_CTL_ADD, again, &event);
		epoll_wait(set, out, 4, 1);
		epoll_ctl(set, EPOLL_CTL_MOD, again, &event);
		epoll_ctl(set, EPOLL_CTL_DEL, listener, &event);
		epoll_ctl(set, EPOLL_CTL_DEL, again, &event);
		poll(&p, 1, 1);
	}
	close(again);
	close(set);
	return NULL;
}

static void fork_once(void)
{
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	waitpid(pid, &status, 0);
}

static bool all_came(int device)
{
	return accepted[0] == ASKED && accepted[1] == device;
}

/* A fork() before the device has served gives it up, and the kernel's go on; later it stays */
enum way { NO_FORK, EARLY, LATE };

static void run(enum way way, const char *name)
{
	int n = 0, forks = way != NO_FORK, device = way == EARLY ? 0 : ASKED;
	pthread_t threads[ACCEPTORS + 4];

	listen_open();
	for (int i = 0; i < ACCEPTORS; i++)
		pthread_create(&threads[n++], NULL, acceptor, NULL);
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[n++], NULL, looker, NULL);
	pthread_create(&threads[n++], NULL, asker, NULL);
	if (device)
		pthread_create(&threads[n++], NULL, asker, &listener);
	while (!is_over() && !all_came(device)) {
		poll(NULL, 0, 1);
		if (forks && accepted[0] > ASKED / 4 && (!device || accepted[1] > ASKED / 4)) {
			fork_once();
			forks = 0;
		}
	}
	tap_case(all_came(device) && fake_knock(port) == (way != EARLY), name);
	stop = 1;
	shutdown(listener, SHUT_RDWR);
	while (n)
		pthread_join(threads[--n], NULL);
	close(listener);
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	begin = time(NULL);
	run(NO_FORK, "three threads accept what comes to the kernel and to a device");
	run(EARLY, "a fork() gives the device up under them");
	run(LATE, "one that serves goes on");
	return tap_finish();
}
