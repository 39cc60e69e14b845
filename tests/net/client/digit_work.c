/* SPDX-License-Identifier: BSD-3-Clause */
#include "digit_work.h"
#include "plugin.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS_ID         8 /* bytes in front of a request, which its reply repeats */
#define DIGITS_CLASSES    10
#define DIGITS_REPLY_SIZE (12 + 4 * DIGITS_CLASSES)
#define DIGITS_CLASS      8 /* where the class is in a reply */
#define DIGITS_BATCH      32
#define DIGITS_STRIDE     128 /* keeps requests of a batch aligned as in an agent */

/* An expected reply; its size keeps an array of them aligned. */
struct digit_reply {
	_Alignas(8) uint8_t bytes[DIGITS_REPLY_SIZE];
};

static size_t digits_length(void *context, uint32_t index)
{
	return DIGITS_REQUEST_SIZE;
}

static void digits_build(void *context, uint64_t id, uint8_t *request)
{
	const struct digits *digits = context;
	const struct digit *digit = &digits->file.digits[(uint32_t)id % digits->file.n];

	memset(request, 0, DIGITS_ID);
	memcpy(request + DIGITS_ID, digit->pixels, DIGIT_PIXELS);
}

/* Checks without the weights: the class must be the one with the best score. */
static bool form_is_right(const uint8_t *reply)
{
	float scores[DIGITS_CLASSES];
	uint8_t class = reply[DIGITS_CLASS];

	memcpy(scores, reply + 12, sizeof(scores));
	if (class >= DIGITS_CLASSES || memcmp(reply + 9, "\0\0\0", 3) != 0)
		return false;
	for (uint32_t i = 0; i < DIGITS_CLASSES; i++)
		if (!(scores[i] <= scores[class]))
			return false;
	return true;
}

/* The id was compared to find the request. */
static bool digits_check(void *context, uint64_t id, const uint8_t *reply, size_t length)
{
	struct digits *digits = context;
	uint32_t image = (uint32_t)id % digits->file.n;

	if (length != DIGITS_REPLY_SIZE)
		return false;
	if (digits->expected != NULL
		    ? memcmp(reply + DIGITS_ID, digits->expected[image].bytes + DIGITS_ID,
			     length - DIGITS_ID) != 0
		    : !form_is_right(reply))
		return false;
	digits->answers[image] = reply[DIGITS_CLASS];
	return true;
}

/* The model's answers to images <first> .. <first> + <n> - 1. */
static int batch_expect(struct digits *digits, const struct plugin *plugin, uint32_t first,
			uint32_t n)
{
	static _Alignas(64) uint8_t requests[DIGITS_BATCH][DIGITS_STRIDE];
	struct agent_model_item items[DIGITS_BATCH];

	for (uint32_t i = 0; i < n; i++) {
		digits_build(digits, first + i, requests[i]);
		items[i] = (struct agent_model_item){
			.request = requests[i],
			.request_length = DIGITS_REQUEST_SIZE,
			.reply = digits->expected[first + i].bytes,
		};
	}
	plugin->model->run(plugin->state, items, n);
	for (uint32_t i = 0; i < n; i++)
		if (items[i].status != 0 || items[i].reply_length != DIGITS_REPLY_SIZE)
			return -EINVAL;
	return 0;
}

int digits_expect(struct digits *digits, const char *model, const char *weights)
{
	struct plugin plugin;
	char arguments[4096];
	int ret;

	snprintf(arguments, sizeof(arguments), "weights=%s", weights);
	ret = plugin_open(&plugin, model, arguments, DIGITS_BATCH);
	if (ret != 0)
		return ret;
	if (plugin.shape.max_request != DIGITS_REQUEST_SIZE ||
	    plugin.shape.max_reply != DIGITS_REPLY_SIZE)
		ret = -EINVAL;
	else if ((digits->expected = calloc(digits->file.n, sizeof(*digits->expected))) == NULL)
		ret = -ENOMEM;
	for (uint32_t first = 0; ret == 0 && first < digits->file.n; first += DIGITS_BATCH) {
		uint32_t rest = digits->file.n - first;

		ret = batch_expect(digits, &plugin, first,
				   rest < DIGITS_BATCH ? rest : DIGITS_BATCH);
	}
	if (ret != 0)
		fprintf(stderr, "%s with %s does not answer 8x8 pixels with 10 scores\n", model,
			weights);
	plugin_close(&plugin);
	return ret;
}

int digits_open(struct digits *digits, const char *data)
{
	int ret;

	memset(digits, 0, sizeof(*digits));
	ret = digit_file_read(&digits->file, data);
	if (ret != 0)
		return ret;
	digits->answers = malloc(digits->file.n);
	if (digits->answers == NULL) {
		digit_file_fini(&digits->file);
		return -ENOMEM;
	}
	memset(digits->answers, DIGITS_NO_ANSWER, digits->file.n);
	return 0;
}

void digits_close(struct digits *digits)
{
	free(digits->answers);
	free(digits->expected);
	digit_file_fini(&digits->file);
}

struct load_work digits_work(struct digits *digits)
{
	return (struct load_work){digits, digits_length, digits_build, digits_check};
}

double digits_accuracy(const struct digits *digits, uint32_t *right, uint32_t *answered)
{
	*right = *answered = 0;
	for (uint32_t i = 0; i < digits->file.n; i++) {
		const struct digit *digit = &digits->file.digits[i];

		if (digit->held_out && digits->answers[i] != DIGITS_NO_ANSWER) {
			(*answered)++;
			*right += digits->answers[i] == digit->label;
		}
	}
	return *answered != 0 ? (double)*right / *answered : 0;
}
