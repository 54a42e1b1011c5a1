/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What Linux promises of a connection that several processes have: they read and write in turn and
 * at once, by whatever numbers. As calls.c, for the kernel's TCP and for Warpsock; what they sleep
 * for is in calls_share.c.
 */
#include "tests/e2e/programs/calls_octets.h"

/* --- in turn --- */

static bool echo_some(const struct share *s)
{
	char buf[16];

	for (int i = 0; i < 50; i++) {
		need(recv(s->fd, buf, 16, MSG_WAITALL) == 16);
		need(write(s->fd, buf, 16) == 16);
	}
	return true;
}

static bool in_turn(void)
{
	char buf[16];
	int fd[2];

	need(crew_pair(fd));
	for (int child = 0; child < 4; child++) {
		need(crew_start(fd, echo_some));
		if (child == 3)
			close(fd[1]);
		for (int i = 0; i < 50; i++) {
			need(write(fd[0], "0123456789abcdef", 16) == 16);
			need(recv(fd[0], buf, 16, MSG_WAITALL) == 16 && buf[15] == 'f');
		}
		need(crew_ended());
		if (child == 3)
			break;
		/* And this one in between */
		need(write(fd[1], "parent", 6) == 6 && recv(fd[0], buf, 6, MSG_WAITALL) == 6);
	}
	need(read(fd[0], buf, 1) == 0);
	close(fd[0]);
	return true;
}

/* --- at once --- */

static bool reads_all(const struct share *s)
{
	return take_up_to(s->fd, 3001, STREAM) == STREAM;
}

/* One reads while another one writes, at both ends */
static bool both_ways(void)
{
	int fd[2];

	need(crew_pair(fd));
	crew_clear();
	need(crew_start(fd, writes_all) && crew_start(fd, reads_all));
	need(crew_start((int[2]){ fd[1], fd[0] }, writes_all));
	close(fd[1]);
	need(drain_stream(fd[0]) && crew_ended() && all_seen());
	close(fd[0]);
	return true;
}

static bool both_read(void)
{
	int fd[2];

	need(crew_pair(fd));
	crew_clear();
	for (int i = 0; i < 3; i++)
		need(crew_start(fd, takes_some));
	close(fd[1]);
	need(put_part(fd[0], 0, STREAM) && !shutdown(fd[0], SHUT_WR));
	need(crew_ended() && all_seen());
	close(fd[0]);
	return true;
}

/* Records of two writers; those of each come in their order */
static bool writes_records(const struct share *s)
{
	struct record r = { .writer = (uint32_t)s->number };

	for (r.index = 0; r.index < RECORDS; r.index++)
		need(write(s->fd, &r, sizeof(r)) == sizeof(r));
	return true;
}

static bool both_write(void)
{
	uint32_t next[2] = { 0 };
	struct record r;
	int fd[2];

	need(crew_pair(fd));
	need(crew_start(fd, writes_records) && crew_start(fd, writes_records));
	close(fd[1]);
	for (int i = 0; i < 2 * RECORDS; i++) {
		need(recv(fd[0], &r, sizeof(r), MSG_WAITALL) == sizeof(r));
		need(r.writer < 2 && r.index == next[r.writer]++);
	}
	need(read(fd[0], &r, 1) == 0);
	close(fd[0]);
	return crew_ended();
}

/* --- numbers --- */

static bool by_other_numbers(const struct share *s)
{
	int a = dup(s->fd), b = fcntl(s->fd, F_DUPFD, 100), c;
	char buf[4];

	c = dup2(a, 90);
	need(a >= 0 && b >= 100 && c == 90 && !close(s->fd) && !close(a));
	need(recv(b, buf, 4, MSG_WAITALL) == 4 && write(c, buf, 4) == 4 && !close(b));
	need(recv(c, buf, 4, MSG_WAITALL) == 4 && write(c, buf, 4) == 4);
	need(dup3(c, 91, O_CLOEXEC) == 91 && dup2(0, c) == c);
	need(recv(91, buf, 4, MSG_WAITALL) == 4 && write(91, buf, 4) == 4);
	return true;
}

static bool numbers(void)
{
	int fd[2], more;
	char buf[4];

	need(crew_pair(fd));
	more = dup(fd[1]);
	need(crew_start(fd, by_other_numbers) && !close(fd[1]));
	for (int i = 0; i < 3; i++)
		need(write(fd[0], "ping", 4) == 4 && recv(fd[0], buf, 4, MSG_WAITALL) == 4);
	need(crew_ended());
	/* Numbers of the child's are nothing to its parent's */
	need(write(fd[0], "ping", 4) == 4 && recv(more, buf, 4, MSG_WAITALL) == 4);
	need(crew_start((int[2]){ fd[0], more }, by_other_numbers) && !close(more));
	for (int i = 0; i < 3; i++)
		need(write(fd[0], "ping", 4) == 4 && recv(fd[0], buf, 4, MSG_WAITALL) == 4);
	need(read(fd[0], buf, 1) == 0 && crew_ended());
	close(fd[0]);
	return true;
}

int main(void)
{
	static const struct call_case cases[] = {
		{ "processes use a connection in turn", in_turn },
		{ "one reads while another one writes", both_ways },
		{ "all of them read", both_read },
		{ "all of them write", both_write },
		{ "dup in all forms", numbers },
	};

	return cases_run(cases, sizeof(cases) / sizeof(cases[0]));
}
