/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A rank as its console has it, and which rank a worker gets.
 */
#include "am/job_rank.h"

#include <stdlib.h>

void am_rank_init(struct am_rank *r, int fd, const struct am_job_hello *hello)
{
	int i;

	*r = (struct am_rank){ .pid = hello->pid, .wanted = hello->rank };
	for (i = 0; i < AM_CONSOLE_TARGETS; i++)
		am_console_open(&r->console[i], -1, (enum am_console_target)i, false);
	am_channel_init(&r->channel[AM_JOB_COLLECTIVE], -1);
	am_channel_init(&r->channel[AM_JOB_CONTROL], fd);
	r->came = 1u << AM_JOB_CONTROL;
}

bool am_rank_may_join(const struct am_rank *r, uint32_t channel)
{
	return channel < AM_JOB_CHANNELS && !(r->came & 1u << channel);
}

static enum am_console_target target_of(uint32_t channel)
{
	return channel == AM_JOB_STDOUT ? AM_CONSOLE_STDOUT : AM_CONSOLE_STDERR;
}

void am_rank_join(struct am_rank *r, uint32_t channel, int fd, bool parts)
{
	enum am_console_target target = target_of(channel);

	r->came |= 1u << channel;
	if (channel < AM_JOB_STDOUT)
		am_channel_init(&r->channel[channel], fd);
	else
		am_console_open(&r->console[target], fd, target, parts);
}

bool am_rank_is_open(const struct am_rank *r, uint32_t channel)
{
	return channel < AM_JOB_STDOUT ? r->channel[channel].fd >= 0
				       : am_console_left(&r->console[target_of(channel)]);
}

struct pollfd am_rank_poll(const struct am_rank *r, uint32_t channel)
{
	const struct am_console *out = &r->console[target_of(channel)];
	short events = channel < AM_JOB_STDOUT ? am_channel_events(&r->channel[channel])
		       : am_console_takes(out) ? POLLIN
					       : 0;
	int fd = channel < AM_JOB_STDOUT ? r->channel[channel].fd : out->in;

	return (struct pollfd){ events ? fd : -1, events, 0 };
}

/* Workers that ask for a rank get it; the others get the rest in the order they came. */
void am_ranks_assign(struct am_rank **ranks, int size)
{
	struct am_rank *sorted = calloc((size_t)size, sizeof(*sorted)), *came = *ranks;
	bool *taken = calloc((size_t)size, sizeof(*taken));
	int i, next = 0;

	if (!sorted || !taken)
		abort();
	for (i = 0; i < size; i++) {
		uint32_t wanted = came[i].wanted;

		if (wanted >= (uint32_t)size || taken[wanted])
			continue;
		taken[wanted] = true;
		sorted[wanted] = came[i];
		came[i].pid = 0;
	}
	for (i = 0; i < size; i++) {
		if (!came[i].pid)
			continue;
		while (taken[next])
			next++;
		taken[next] = true;
		sorted[next] = came[i];
	}
	free(came);
	free(taken);
	*ranks = sorted;
}
