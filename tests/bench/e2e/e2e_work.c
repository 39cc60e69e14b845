/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "digit_work.h"
#include "e2e/e2e.h"
#include "cli/bench/pattern.h"
#include "common/wire_child.h"

/* Requests are cut out of noise, each at a place of its own: a reply with another request's bytes
 * is found wrong, and the cost is one copy. */
#define NOISE_PLACES 8192
#define NOISE_STEP   8

static struct {
	size_t length;
	uint8_t noise[NOISE_PLACES * NOISE_STEP + E2E_REQUEST_MAX];
} echo;

static const uint8_t *noise_of(uint64_t id)
{
	return echo.noise + id % NOISE_PLACES * NOISE_STEP;
}

static size_t echo_length(void *context, uint32_t index)
{
	return echo.length;
}

static void echo_build(void *context, uint64_t id, uint8_t *request)
{
	memcpy(request, noise_of(id), echo.length);
}

/* The id in front was compared when the request was found. */
static bool echo_check(void *context, uint64_t id, const uint8_t *reply, size_t length)
{
	return length == echo.length &&
	       memcmp(reply + sizeof(id), noise_of(id) + sizeof(id), length - sizeof(id)) == 0;
}

static struct load_work echo_work(size_t length)
{
	echo.length = length;
	pattern_fill(0, echo.noise, sizeof(echo.noise));
	return (struct load_work){NULL, echo_length, echo_build, echo_check};
}

static struct digits digits;

struct load_work e2e_work(const struct e2e_options *o)
{
	if (o->data == NULL)
		return echo_work(o->size);
	if (digits_open(&digits, o->data) != 0 ||
	    (o->model != NULL && digits_expect(&digits, o->model, o->weights) != 0))
		wire_die("the pictures and their answers are not to be had (reason above)");
	return digits_work(&digits);
}

double e2e_work_accuracy(void)
{
	uint32_t right, answered;

	return digits_accuracy(&digits, &right, &answered);
}
