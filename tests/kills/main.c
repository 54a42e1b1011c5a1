/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 *	kills LEDGER side|connect|listen|shared SEED FLAGS CONNECTS LISTENS [FD PARENT]
 *
 * One process of a case; the numbers are the octets that each end has to send. kills.py starts
 * three of them, kills one and reads in the ledger what became of the others. More flags: s the
 * kernel has little room, n it has little for what goes out, u the server accepts late, o it has
 * accepted and looks late, p a process executes a program behind its end:
 *
 *	kills LEDGER after SEED FLAGS CONNECTS LISTENS FD ROLE
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ledger.h"

/* us: a client holds its octets meanwhile, and the worker thread answers */
#define ACCEPTS_AFTER 150000
#define LOOKS_AFTER 30000

static struct ledger *ledger_map(const char *path)
{
	int fd = open(path, O_RDWR);
	void *p = mmap(NULL, sizeof(struct ledger), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (fd < 0 || p == MAP_FAILED)
		abort();
	close(fd);
	return p;
}

static int socket_make(const struct plan *plan)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0), little = 4096;

	if (fd < 0)
		abort();
	if (plan_has(plan, 's') || plan_has(plan, 'n'))
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &little, sizeof(little));
	if (plan_has(plan, 's'))
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &little, sizeof(little));
	return fd;
}

/* False when who has it was killed before */
static bool port_wait(struct ledger *l, const uint32_t *port)
{
	while (!ledger_load(port)) {
		if (ledger_load(&l->killed))
			return false;
		usleep(200);
	}
	return true;
}

/* Of a connect() that did not wait: is there a connection? */
static bool connect_end(int fd)
{
	struct pollfd p = { fd, POLLOUT, 0 };
	socklen_t len = sizeof(int);
	int err = errno;

	if (err != EINPROGRESS)
		return false;
	while (poll(&p, 1, -1) < 0)
		;
	return !getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len) && !err;
}

/* -1: there is nobody any more */
static int connect_main(struct ledger *l, const struct plan *plan)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int fd = socket_make(plan);
	bool waits = !plan_has(plan, 'w');

	if (!port_wait(l, &l->port))
		return -1;
	a.sin_port = htons((uint16_t)l->port);
	if (!waits)
		fcntl(fd, F_SETFL, O_NONBLOCK);
	if (!connect(fd, (struct sockaddr *)&a, sizeof(a)) || (!waits && connect_end(fd)))
		return fd;
	close(fd);
	/* The kill may be noted after its effect was felt */
	for (int i = 0; i < 1000 && !ledger_load(&l->killed); i++)
		usleep(10000);
	if (!ledger_load(&l->killed))
		abort();
	return -1;
}

/* What a server that has no DDP makes of a Request: nothing, an answer, its end */
static void request_answer(const struct plan *plan, int fd)
{
	if (plan->seed % 3 == 1)
		send(fd, "what?\r\n", 7, MSG_NOSIGNAL);
	else if (plan->seed % 3 == 2)
		shutdown(fd, SHUT_RDWR);
}

/* Is it one over which the program of who connects speaks? Others are closed when they end */
static bool is_program(struct ledger *l, const struct plan *plan, int fd, int side)
{
	struct pollfd p = { fd, POLLIN, 0 };
	char octets[512];

	while (!poll(&p, 1, 20))
		side_step(l, BY_LISTEN, side);
	if (recv(fd, octets, 3, MSG_PEEK) != 3 || memcmp(octets, "MPA", 3)) {
		ledger_store(&l->fallen, ledger_load(&l->asked));
		return true;
	}
	ledger_store(&l->asked, 1);
	request_answer(plan, fd);
	do {
		while (!poll(&p, 1, 20))
			side_step(l, BY_LISTEN, side);
	} while (recv(fd, octets, sizeof(octets), 0) > 0);
	close(fd);
	return false;
}

static int accept_main(struct ledger *l, const struct plan *plan, int side)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof(a);
	int fd = socket_make(plan), got = -1, late = 0;
	struct pollfd p = { fd, POLLIN, 0 };

	if (bind(fd, (struct sockaddr *)&a, sizeof(a)) || listen(fd, 8) ||
	    getsockname(fd, (struct sockaddr *)&a, &len))
		abort();
	ledger_store(&l->port, (uint32_t)ntohs(a.sin_port));
	if (plan_has(plan, 'u'))
		usleep(ACCEPTS_AFTER);
	while (got < 0 && late < 5) {
		late += ledger_load(&l->killed);
		if (poll(&p, 1, 20) > 0)
			got = accept(fd, NULL, NULL);
		if (got >= 0 && plan_has(plan, 'g') && !is_program(l, plan, got, side))
			got = -1;
		side_step(l, BY_LISTEN, side);
	}
	close(fd);
	if (plan_has(plan, 'o'))
		usleep(LOOKS_AFTER);
	return got;
}

static _Noreturn void end_elsewhere(struct ledger *l, const struct plan *plan, int role, int side)
{
	char fd[16], number[16], **a = plan->argv;

	side_rest(l, role, side);
	snprintf(fd, sizeof(fd), "%d", side);
	snprintf(number, sizeof(number), "%d", role);
	execl("/proc/self/exe", a[0], a[1], "after", a[3], a[4], a[5], a[6], fd, number, NULL);
	abort();
}

static int end_resume(struct ledger *l, int side, int role)
{
	ledger_store(&l->after, 1);
	side_resume(l, role);
	side_finish(l, role, side);
	ledger_store(&l->done[role], 1);
	return 0;
}

static void end_run(struct ledger *l, struct plan *plan, int role)
{
	int side, fd;

	l->way[role].total = plan->total[role];
	l->way[!role].total = plan->total[!role];
	if (!port_wait(l, &l->side_port))
		exit(0);
	side = side_connect(l, role);
	if (role == BY_LISTEN && plan_has(plan, 'm'))
		talk_child(l, plan);
	fd = role == BY_CONNECT ? connect_main(l, plan) : accept_main(l, plan, side);
	if (fd >= 0)
		talk(l, plan, role, fd, side);
	if (plan_has(plan, 'p'))
		end_elsewhere(l, plan, role, side);
	side_finish(l, role, side);
	ledger_store(&l->done[role], 1);
}

int main(int argc, char **argv)
{
	struct plan plan = { .argv = argv };
	struct ledger *l;

	if (argc != 7 && argc != 9)
		return 2;
	l = ledger_map(argv[1]);
	plan.seed = strtoull(argv[3], NULL, 10);
	plan.flags = argv[4];
	plan.total[BY_CONNECT] = strtoull(argv[5], NULL, 10);
	plan.total[BY_LISTEN] = strtoull(argv[6], NULL, 10);
	if (!strcmp(argv[2], "after"))
		return end_resume(l, atoi(argv[7]), atoi(argv[8]));
	if (argc == 9)
		talk_on(l, &plan, atoi(argv[7]), atoi(argv[8]));
	if (plan_has(&plan, 'k'))
		point_hide(true);
	if (!strcmp(argv[2], "side"))
		side_serve(l);
	else
		end_run(l, &plan, strcmp(argv[2], "connect") ? BY_LISTEN : BY_CONNECT);
	return 0;
}
