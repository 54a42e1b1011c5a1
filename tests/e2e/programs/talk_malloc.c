/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connections made, used and closed while malloc itself writes to one of them
 * (talkative_malloc.c); without that, the same with nothing written.
 */
#include "tests/e2e/programs/calls.h"

#include <pthread.h>
#include <string.h>

__attribute__((weak)) extern int talkative_fd;
__attribute__((weak)) extern long talkative_said;

static long heard;

/* All that malloc says, and at the end one octet of ours */
static void *listen_to(void *arg)
{
	char buf[1000];
	ssize_t n;

	while ((n = read(*(int *)arg, buf, sizeof(buf))) > 0)
		for (ssize_t i = 0; i < n; i++)
			heard += buf[i] == 'm';
	return n ? arg : NULL;
}

static void *in_thread(void *arg)
{
	free(strdup("something"));
	return arg;
}

static bool use(int i)
{
	pthread_t thread;
	struct pollfd p;
	char *text = NULL;
	size_t room = 0;
	int fd[2];
	FILE *file;

	need(pair(fd));
	p = (struct pollfd){ .fd = fd[0], .events = POLLIN };
	need(!pthread_create(&thread, NULL, in_thread, NULL) && !pthread_join(thread, NULL));
	file = fdopen(fd[0], "r+");
	need(file && dprintf(fd[1], "line %d\n", i) > 0 && poll(&p, 1, 5000) == 1);
	need(getline(&text, &room, file) > 0 && atoi(text + 5) == i);
	free(text);
	need(!fclose(file) && read(fd[1], &room, 1) == 0);
	close(fd[1]);
	return true;
}

static bool uses(void)
{
	pthread_t thread;
	void *bad;
	int fd[2];

	need(pair(fd) && !pthread_create(&thread, NULL, listen_to, &fd[1]));
	if (&talkative_fd)
		talkative_fd = fd[0];
	for (int i = 0; i < 100; i++)
		need(use(i));
	if (&talkative_fd)
		talkative_fd = -1;
	close(fd[0]);
	need(!pthread_join(thread, &bad) && !bad);
	printf("# malloc said %ld\n", heard);
	need(heard == (&talkative_fd ? talkative_said : 0) && (!&talkative_fd || heard > 100));
	close(fd[1]);
	return true;
}

int main(void)
{
	static const struct call_case cases[] = { { "malloc at work while connections are",
						    uses } };

	return cases_run(cases, 1);
}
