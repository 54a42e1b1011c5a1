/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * POSIX asynchronous I/O on a connection.
 */
#include <aio.h>
#include <sys/time.h>

#include "tests/e2e/programs/same.h"

static char bufs[8][16];
static struct aiocb cbs[8];
static volatile sig_atomic_t noted, code, value;

static struct aiocb *request(int i, int fd, size_t len)
{
	memset(&cbs[i], 0, sizeof(cbs[i]));
	memset(bufs[i], 0, sizeof(bufs[i]));
	cbs[i].aio_fildes = fd;
	cbs[i].aio_buf = bufs[i];
	cbs[i].aio_nbytes = len;
	return &cbs[i];
}

static struct aiocb *sending(int i, int fd, const char *text)
{
	struct aiocb *cb = request(i, fd, strlen(text));

	strcpy(bufs[i], text);
	return cb;
}

static void put(int fd, const char *text)
{
	if (write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		same_say("put: %s", strerror(errno));
}

static void finished(struct aiocb *cb)
{
	const struct aiocb *list[1] = { cb };

	while (aio_error(cb) == EINPROGRESS)
		aio_suspend(list, 1, NULL);
	same_say("error %d", aio_error(cb));
	R(aio_return(cb));
}

static void read_write(int fd[2])
{
	struct aiocb *in = request(0, fd[1], 8), *out = sending(1, fd[0], "hello");

	R(aio_read(in));
	same_sleep(20);
	R(aio_error(in) == EINPROGRESS);
	R(aio_write(out));
	finished(out);
	finished(in);
	SHOW(bufs[0], 5);
	R(aio_read(request(0, fd[1], 8)));
	shutdown(fd[0], SHUT_WR);
	finished(in);
	R(aio_write(sending(1, fd[0], "x")));
	finished(out);
	same_say("signals %d", same_signals);
}

static void in_order(int fd[2])
{
	for (int i = 0; i < 4; i++)
		R(aio_read(request(i, fd[1], 2)));
	put(fd[0], "abcdefgh");
	for (int i = 0; i < 4; i++) {
		finished(&cbs[i]);
		SHOW(bufs[i], 2);
	}
	for (int i = 0; i < 4; i++)
		R(aio_write(sending(i, fd[0], &"0\0001\0002\0003"[2 * i])));
	R(recv(fd[1], bufs[5], 4, MSG_WAITALL));
	SHOW(bufs[5], 4);
}

static void wrong(int fd[2])
{
	struct aiocb *cb = request(0, fd[1], 8);

	cb->aio_reqprio = -1;
	R(aio_read(cb));
	cb->aio_reqprio = 0;
	same_nonblock(fd[1]);
	R(aio_read(cb));
	finished(cb);
	cb->aio_fildes = -1;
	R(aio_read(cb));
	finished(cb);
}

static void put_later(void *arg)
{
	put(*(int *)arg, "later");
}

static void suspended(int fd[2])
{
	struct timespec tenth = { .tv_nsec = 50000000 };
	struct itimerval once = { .it_value.tv_usec = 50000 };
	const struct aiocb *list[3] = { NULL, &cbs[0], &cbs[1] };
	double begin = same_now();

	R(aio_read(request(0, fd[1], 8)));
	R(aio_read(request(1, fd[0], 8)));
	R(aio_suspend(list, 3, &tenth));
	same_took(begin, 50);
	setitimer(ITIMER_REAL, &once, NULL);
	R(aio_suspend(list, 3, NULL));
	same_say("signals %d", same_signals);
	same_later(20, put_later, &fd[0]);
	R(aio_suspend(list, 3, NULL));
	finished(&cbs[0]);
	R(aio_suspend(list, 3, NULL));
	list[1] = NULL;
	R(aio_suspend(list, 3, &tenth));
}

static void cancelled(int fd[2])
{
	for (int i = 0; i < 3; i++)
		R(aio_read(request(i, fd[1], 2)));
	same_sleep(50);
	R(aio_cancel(fd[1], &cbs[0]));
	R(aio_cancel(fd[1], &cbs[1]));
	finished(&cbs[1]);
	R(aio_cancel(fd[0], NULL));
	put(fd[0], "abcd");
	finished(&cbs[0]);
	finished(&cbs[2]);
	SHOW(bufs[2], 2);
	R(aio_cancel(fd[1], &cbs[2]));
	R(aio_cancel(fd[0], &cbs[2]));
	R(aio_cancel(-1, NULL));
}

static void on_note(int number, siginfo_t *info, void *context)
{
	code = info->si_code;
	value = info->si_value.sival_int;
	noted++;
}

static void on_thread(union sigval v)
{
	value = v.sival_int;
	noted++;
}

static void until_noted(int n)
{
	for (int i = 0; i < 1000 && noted < n; i++)
		same_sleep(10);
	same_say("noted %d, value %d", noted, value);
}

/* What is not to be found any more is over */
static void cancelled_late(int fd[2])
{
	int wrong = 0;

	for (int i = 0; i < 3000; i++) {
		aio_write(sending(0, fd[0], "x"));
		while (aio_cancel(fd[0], &cbs[0]) == AIO_NOTCANCELED)
			;
		wrong += aio_error(&cbs[0]) == EINPROGRESS;
		while (aio_error(&cbs[0]) == EINPROGRESS)
			same_sleep(1);
		if (aio_return(&cbs[0]) == 1)
			wrong += read(fd[1], bufs[1], 1) != 1;
	}
	R(wrong);
}

static void notified(int fd[2])
{
	struct sigaction action = { .sa_sigaction = on_note, .sa_flags = SA_SIGINFO | SA_RESTART };
	struct aiocb *cb = request(0, fd[1], 8);

	sigaction(SIGUSR1, &action, NULL);
	cb->aio_sigevent = (struct sigevent){ .sigev_notify = SIGEV_SIGNAL,
					      .sigev_signo = SIGUSR1,
					      .sigev_value.sival_int = 42 };
	R(aio_read(cb));
	put(fd[0], "abc");
	until_noted(1);
	same_say(code == SI_ASYNCIO ? "SI_ASYNCIO" : "another code");
	finished(cb);
	cb = request(0, fd[1], 8);
	cb->aio_sigevent.sigev_notify = SIGEV_THREAD;
	cb->aio_sigevent.sigev_notify_function = on_thread;
	cb->aio_sigevent.sigev_value.sival_int = 43;
	R(aio_read(cb));
	put(fd[0], "abc");
	until_noted(2);
}

static void lists(int fd[2])
{
	struct sigaction action = { .sa_sigaction = on_note, .sa_flags = SA_SIGINFO | SA_RESTART };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL,
				  .sigev_signo = SIGUSR1,
				  .sigev_value.sival_int = 44 };
	struct aiocb *list[4];
	int p[2];

	sigaction(SIGUSR1, &action, NULL);
	R(pipe(p));
	list[0] = request(0, fd[1], 8);
	list[1] = sending(1, fd[0], "hello");
	list[2] = NULL;
	list[3] = sending(3, p[1], "pipe");
	list[0]->aio_lio_opcode = LIO_READ;
	list[1]->aio_lio_opcode = list[3]->aio_lio_opcode = LIO_WRITE;
	R(lio_listio(LIO_WAIT, list, 4, NULL));
	R(aio_return(list[0]));
	R(aio_return(list[1]));
	R(aio_return(list[3]));
	SHOW(bufs[0], 5);
	R(lio_listio(7, list, 4, NULL));
	list[0] = request(0, fd[1], 8);
	list[0]->aio_lio_opcode = LIO_READ;
	list[1] = request(1, p[0], 8);
	list[1]->aio_lio_opcode = LIO_NOP;
	R(lio_listio(LIO_NOWAIT, list, 2, &event));
	same_sleep(20);
	same_say("noted %d", noted);
	put(fd[0], "abc");
	until_noted(1);
	finished(list[0]);
	shutdown(fd[0], SHUT_WR);
	list[0] = sending(0, fd[0], "x");
	list[0]->aio_lio_opcode = LIO_WRITE;
	R(lio_listio(LIO_WAIT, list, 1, NULL));
	finished(list[0]);
}

int main(int argc, char **argv)
{
	static const struct same_case cases[] = {
		SAME("aio_read and aio_write", read_write),
		SAME("requests of a descriptor are done in order", in_order),
		SAME("requests that are wrong", wrong),
		SAME("aio_suspend", suspended),
		SAME("aio_cancel", cancelled),
		SAME("aio_cancel of what is ending", cancelled_late),
		SAME("requests that notify", notified),
		SAME("lio_listio", lists),
	};

	return same_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
