/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The client of an example program of Active RDMA.
 */
#include "active_end.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "endpoint.h"

int active_end_open(struct active_end *e, const struct sockaddr_storage *addr, unsigned int spin_us,
		    const char *region, const void *elf, size_t len)
{
	const struct warp_active_client_attr attr = { .spin_us = spin_us };
	int ret;

	e->spin_us = spin_us;
	ret = warp_active_connect((const struct sockaddr *)addr, endpoint_addr_len(addr), &attr,
				  &e->client);
	if (!ret)
		ret = warp_active_region_find(e->client, region, &e->region);
	return ret ? ret : warp_active_object_create(elf, len, &e->object);
}

void active_end_close(struct active_end *e)
{
	for (int i = 0; i < ACTIVE_END_PLACES; i++)
		warp_active_place_close(e->places[i].place);
	warp_active_disconnect(e->client);
	warp_active_object_destroy(e->object);
}

int active_end_access(struct active_end *e, const struct warp_active_access *access,
		      struct warp_active_result *result)
{
	struct warp_active_request *r;
	int ret = warp_active_access(e->client, access, &r);

	return ret ? ret : warp_active_wait(r, -1, result);
}

/* The place of the function, or NULL: it cannot be in the kernel, and standard error says why */
static int place_find(struct active_end *e, const struct warp_active_run *run,
		      struct warp_active_place **out)
{
	struct warp_active_result result;
	int i = 0, ret;

	while (i < ACTIVE_END_PLACES - 1 && e->places[i].function &&
	       strcmp(e->places[i].function, run->function))
		i++;
	*out = e->places[i].place;
	if (e->places[i].function)
		return 0;
	ret = warp_active_install(e->client, run, &e->places[i].place, &result);
	if (ret)
		return ret;
	e->places[i].function = run->function;
	*out = e->places[i].place;
	if (result.code != WARP_ACTIVE_OK)
		fprintf(stderr, "%s, not in the kernel: %s\n", run->function, result.text);
	return 0;
}

static int kernel_run(struct active_end *e, const struct warp_active_run *run,
		      struct warp_active_result *result)
{
	struct warp_active_place *place;
	int ret;

	if (run->args_len > WARP_ACTIVE_PLACE_MAX || run->output_room > WARP_ACTIVE_PLACE_MAX)
		return warp_active_run(e->client, run, result);
	ret = place_find(e, run, &place);
	if (ret)
		return ret;
	if (!place)
		return warp_active_run(e->client, run, result);
	warp_active_place_spin(place, e->spin_us);
	return warp_active_place_run(place, run->args, run->args_len, run->output, run->output_room,
				     1000, result);
}

int active_end_run(struct active_end *e, const char *function, unsigned int rights,
		   const void *args, size_t args_len, void *output, size_t room,
		   struct warp_active_result *result)
{
	const struct warp_active_grant grant = { e->region.number, rights };
	const struct warp_active_run run = {
		.object = e->object,
		.function = function,
		.args = args,
		.args_len = args_len,
		.grants = &grant,
		.grant_count = 1,
		.output = output,
		.output_room = room,
	};
	int ret = e->in_kernel ? kernel_run(e, &run, result)
			       : warp_active_run(e->client, &run, result);

	if (ret || result->code == WARP_ACTIVE_OK)
		return ret;
	fprintf(stderr, "%s: %s\n", warp_active_code_text(result->code), result->text);
	return -EPROTO;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

int active_end_time(int (*what)(void *arg), void *arg, unsigned long times, double *median)
{
	double *took = calloc(times + 1, sizeof(*took));
	int ret = took ? what(arg) : -ENOMEM;

	for (unsigned long i = 0; i < times && !ret; i++) {
		double begin = now_us();

		ret = what(arg);
		took[i] = now_us() - begin;
	}
	if (!ret && times) {
		qsort(took, times, sizeof(*took), by_size);
		*median = took[times / 2];
	}
	free(took);
	return ret;
}
