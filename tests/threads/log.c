/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Several threads write to the log while one changes its level: each line arrives whole.
 */
#include "base/log.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/tap.h"

#define WRITERS 4
#define LINES 500

static char path[] = "/tmp/warpsock-threads-log-XXXXXX";

static void *lines_write(void *arg)
{
	for (int i = 0; i < LINES; i++)
		base_log_each(BASE_LOG_ERR, "writer %d line %d end", *(int *)arg, i);
	return NULL;
}

static void *level_change(void *arg)
{
	for (int i = 0; i < LINES; i++)
		__atomic_store_n(&base_log_level, i & 1 ? BASE_LOG_ERR : BASE_LOG_DEBUG,
				 __ATOMIC_RELAXED);
	return NULL;
}

/* Each writer's lines are all there, whole and in its order. */
static bool lines_whole(void)
{
	char line[BASE_LOG_LINE_MAX], rest[8];
	int next[WRITERS] = { 0 }, who, number, total = 0;
	FILE *file = fopen(path, "r");

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "warpsock[%*d] err: writer %d line %d %7s", &who, &number, rest) !=
		    3)
			break;
		if (who < 0 || who >= WRITERS || number != next[who]++ || strcmp(rest, "end"))
			break;
		total++;
	}
	if (file)
		fclose(file);
	return total == WRITERS * LINES;
}

int main(void)
{
	pthread_t threads[WRITERS + 1];
	int ids[WRITERS];

	close(mkstemp(path));
	setenv("WARPSOCK_LOG_FILE", path, 1);
	base_log_init();
	for (int i = 0; i < WRITERS; i++) {
		ids[i] = i;
		pthread_create(&threads[i], NULL, lines_write, &ids[i]);
	}
	pthread_create(&threads[WRITERS], NULL, level_change, NULL);
	for (int i = 0; i <= WRITERS; i++)
		pthread_join(threads[i], NULL);
	tap_case(lines_whole(), "lines of several threads stay whole and in order");
	unlink(path);
	return tap_finish();
}
