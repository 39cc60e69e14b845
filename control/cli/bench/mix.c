/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/bench/mix.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WEIGHT_MAX   1e9
#define DEADLINE_MAX 4e6 /* ms; a request tells it in 32 bits of us */

static int mix_error(char *error, size_t size, const char *why)
{
	snprintf(error, size, "%s", why);
	return -EINVAL;
}

int mix_to(void *context, const char *text, char *error, size_t size)
{
	struct mix *mix = context;
	struct mix_target *target = &mix->target[mix->n_targets];

	if (mix->n_targets == MIX_TARGETS)
		return mix_error(error, size, "is one target too many; give at most 16");
	*target = (struct mix_target){.share = 1};
	if (endpoint_address_parse(text, &target->to) != 0)
		return mix_error(error, size, "is not " ENDPOINT_ADDRESS_FORM);
	snprintf(target->name, sizeof(target->name), "%s", text);
	mix->n_targets++;
	return 0;
}

static bool weight_parse(const char *text, char **end, double *weight)
{
	*weight = strtod(text, end);
	/* this form is false for NaN */
	return *end != text && *weight > 0 && *weight <= WEIGHT_MAX;
}

int mix_share(void *context, const char *text, char *error, size_t size)
{
	struct mix *mix = context;
	char *end;

	if (mix->n_targets == 0)
		return mix_error(error, size,
				 "has no target; give it behind the --to that it is of");
	if (!weight_parse(text, &end, &mix->target[mix->n_targets - 1].share) || *end != '\0')
		return mix_error(error, size, "is not a number above 0");
	return 0;
}

int mix_deadline(void *context, const char *text, char *error, size_t size)
{
	struct mix *mix = context;
	double ms;
	char *end;

	if (mix->n_targets == 0)
		return mix_error(error, size,
				 "has no target; give it behind the --to that it is of");
	if (!weight_parse(text, &end, &ms) || *end != '\0' || ms > DEADLINE_MAX)
		return mix_error(error, size, "is not a number of ms above 0, at most 4000000");
	mix->target[mix->n_targets - 1].deadline_ns = (uint64_t)(ms * 1e6);
	return 0;
}

/* Parse one "SIZE" or "SIZE:WEIGHT" and set <end> behind it. */
static bool size_parse(const char *text, char **end, uint32_t *bytes, double *weight)
{
	unsigned long number = strtoul(text, end, 10);

	*weight = 1;
	if (text[0] < '0' || text[0] > '9' || number < MIX_SIZE_MIN || number > MIX_SIZE_MAX)
		return false;
	*bytes = (uint32_t)number;
	return **end != ':' || weight_parse(*end + 1, end, weight);
}

int mix_sizes(void *context, const char *text, char *error, size_t size)
{
	struct mix *mix = context;
	struct mix_target *target =
		mix->n_targets != 0 ? &mix->target[mix->n_targets - 1] : &mix->rest;
	char *at = (char *)(uintptr_t)text;

	for (target->n_sizes = 0; target->n_sizes < MIX_SIZES; at++) {
		unsigned int i = target->n_sizes;

		if (!size_parse(at, &at, &target->size[i], &target->weight[i]))
			break;
		target->n_sizes++;
		if (*at == '\0')
			return 0;
		if (*at != ',')
			break;
	}
	return mix_error(error, size,
			 "is not a list of sizes from 8 bytes to 64 MiB with weights, at most 32; "
			 "write 64:9,1024:1");
}

void mix_complete(struct mix *mix)
{
	if (mix->rest.n_sizes == 0)
		mix->rest = (struct mix_target){
			.n_sizes = 1, .size = {MIX_SIZE_DEFAULT}, .weight = {1}};
	mix->shares = 0;
	for (unsigned int i = 0; i < mix->n_targets; i++) {
		struct mix_target *target = &mix->target[i];

		mix->shares += target->share;
		if (target->n_sizes != 0)
			continue;
		target->n_sizes = mix->rest.n_sizes;
		memcpy(target->size, mix->rest.size, sizeof(target->size));
		memcpy(target->weight, mix->rest.weight, sizeof(target->weight));
	}
}

unsigned int mix_draw_target(const struct mix *mix, struct draw *draw)
{
	double left;
	unsigned int i = 0;

	if (mix->n_targets == 1)
		return 0;
	left = draw_fraction(draw) * mix->shares;
	while (i < mix->n_targets - 1 && left > mix->target[i].share)
		left -= mix->target[i++].share;
	return i;
}

uint32_t mix_draw_size(const struct mix_target *target, struct draw *draw)
{
	double sum = 0, left;
	unsigned int i = 0;

	if (target->n_sizes == 1)
		return target->size[0];
	for (unsigned int s = 0; s < target->n_sizes; s++)
		sum += target->weight[s];
	left = draw_fraction(draw) * sum;
	while (i < target->n_sizes - 1 && left > target->weight[i])
		left -= target->weight[i++];
	return target->size[i];
}

uint32_t mix_largest(const struct mix *mix)
{
	uint32_t largest = 0;

	for (unsigned int t = 0; t < mix->n_targets; t++)
		for (unsigned int s = 0; s < mix->target[t].n_sizes; s++)
			if (mix->target[t].size[s] > largest)
				largest = mix->target[t].size[s];
	return largest;
}

bool mix_has_deadlines(const struct mix *mix)
{
	for (unsigned int t = 0; t < mix->n_targets; t++)
		if (mix->target[t].deadline_ns != 0)
			return true;
	return false;
}
