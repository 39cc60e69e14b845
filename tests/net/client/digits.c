/* SPDX-License-Identifier: BSD-3-Clause */
#include "command.h"
#include "digit_file.h"
#include "plugin.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS_USAGE                                                                               \
	"doorbell-client digits --to ADDR:PORT --data digits.bin [option ...]\n"                   \
	"With --model and --weights every reply is compared to the byte with what the model "      \
	"says\n"                                                                                   \
	"here; without, only its form is. Exits 1 if a reply was lost or wrong, 2 if the run "     \
	"could\n"                                                                                  \
	"not be made."

#define DIGITS_REQUEST_SIZE (8 + DIGIT_PIXELS)
#define DIGITS_CLASSES      10
#define DIGITS_REPLY_SIZE   (12 + 4 * DIGITS_CLASSES)
#define DIGITS_CLASS        8 /* where the class is in a reply */
#define DIGITS_BATCH        32
#define DIGITS_STRIDE       128 /* keeps requests of a batch aligned as in an agent */
#define DIGITS_DRAWN_WIDE   4
#define NO_ANSWER           255

/* What a reply must be, of a size that keeps an array of them aligned. */
struct expected {
	_Alignas(8) uint8_t bytes[DIGITS_REPLY_SIZE];
};

struct digits {
	struct digit_file file;
	struct expected *expected; /* NULL: not known */
	uint8_t *answers;          /* per image: the class of the right reply, or NO_ANSWER */
};

struct digits_options {
	struct run_options run;
	const char *data;
	const char *weights;
	const char *model;
	uint64_t draw;
};

static size_t digits_length(void *context, uint32_t index)
{
	return DIGITS_REQUEST_SIZE;
}

static void digits_build(void *context, uint64_t id, uint8_t *request)
{
	const struct digits *digits = context;

	memset(request, 0, 8);
	memcpy(request + 8, digits->file.digits[(uint32_t)id].pixels, DIGIT_PIXELS);
}

/* Without the weights: the class must be the one with the best score. */
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

static bool digits_check(void *context, uint64_t id, const uint8_t *reply, size_t length)
{
	struct digits *digits = context;
	uint32_t index = (uint32_t)id;

	if (length != DIGITS_REPLY_SIZE)
		return false;
	if (digits->expected != NULL ? memcmp(reply, digits->expected[index].bytes, length) != 0
				     : !form_is_right(reply))
		return false;
	digits->answers[index] = reply[DIGITS_CLASS];
	return true;
}

/* The model's answers to images <first> .. <first> + <n> - 1. */
static int batch_expect(struct digits *digits, const struct plugin *plugin, uint32_t tag,
			uint32_t first, uint32_t n)
{
	static _Alignas(64) uint8_t requests[DIGITS_BATCH][DIGITS_STRIDE];
	struct agent_model_item items[DIGITS_BATCH];

	for (uint32_t i = 0; i < n; i++) {
		uint64_t id = (uint64_t)tag << 32 | (first + i);

		digits_build(digits, id, requests[i]);
		memcpy(requests[i], &id, sizeof(id));
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

static int digits_expect(struct digits *digits, const struct digits_options *options, uint32_t tag)
{
	struct plugin plugin;
	char arguments[4096];
	int ret;

	snprintf(arguments, sizeof(arguments), "weights=%s", options->weights);
	ret = plugin_open(&plugin, options->model, arguments, DIGITS_BATCH);
	if (ret != 0)
		return ret;
	if (plugin.shape.max_request != DIGITS_REQUEST_SIZE ||
	    plugin.shape.max_reply != DIGITS_REPLY_SIZE)
		ret = -EINVAL;
	else if ((digits->expected = calloc(digits->file.n, sizeof(struct expected))) == NULL)
		ret = -ENOMEM;
	for (uint32_t first = 0; ret == 0 && first < digits->file.n; first += DIGITS_BATCH) {
		uint32_t rest = digits->file.n - first;

		ret = batch_expect(digits, &plugin, tag, first,
				   rest < DIGITS_BATCH ? rest : DIGITS_BATCH);
	}
	if (ret != 0)
		fprintf(stderr, "%s with %s does not answer 8x8 pixels with 10 scores\n",
			options->model, options->weights);
	plugin_close(&plugin);
	return ret;
}

static double digits_accuracy(const struct digits *digits, uint32_t *right, uint32_t *answered)
{
	*right = *answered = 0;
	for (uint32_t i = 0; i < digits->file.n; i++) {
		const struct digit *digit = &digits->file.digits[i];

		if (digit->held_out && digits->answers[i] != NO_ANSWER) {
			(*answered)++;
			*right += digits->answers[i] == digit->label;
		}
	}
	return *answered != 0 ? (double)*right / *answered : 0;
}

static void row_draw(const struct digits *digits, const uint32_t *images, uint32_t n)
{
	for (uint32_t line = 0; line < DIGIT_SIDE; line++) {
		for (uint32_t i = 0; i < n; i++) {
			digit_line_draw(&digits->file.digits[images[i]], line);
			printf("    ");
		}
		printf("\n");
	}
	for (uint32_t i = 0; i < n; i++) {
		uint8_t answer = digits->answers[images[i]];
		uint8_t label = digits->file.digits[images[i]].label;
		char text[32];

		if (answer == NO_ANSWER)
			snprintf(text, sizeof(text), "no answer, is %u", label);
		else if (answer == label)
			snprintf(text, sizeof(text), "answer %u, right", answer);
		else
			snprintf(text, sizeof(text), "answer %u, is %u", answer, label);
		printf("%-*s", 2 * DIGIT_SIDE + 4, text);
	}
	printf("\n\n");
}

/* Draws the first <n> that the model has not seen in training. */
static void digits_draw(const struct digits *digits, uint64_t n)
{
	uint32_t row[DIGITS_DRAWN_WIDE], wide = 0;

	for (uint32_t i = 0; i < digits->file.n && n > 0; i++) {
		if (!digits->file.digits[i].held_out)
			continue;
		row[wide++] = i;
		n--;
		if (wide == DIGITS_DRAWN_WIDE || n == 0) {
			row_draw(digits, row, wide);
			wide = 0;
		}
	}
}

static int digits_run(struct digits *digits, struct digits_options *options)
{
	const struct load_work work = {digits, digits_length, digits_build, digits_check};
	uint32_t tag = load_tag(), right, answered;
	struct tally tally;
	double accuracy;

	if (options->weights != NULL && digits_expect(digits, options, tag) != 0)
		return COMMAND_ERROR;
	options->run.load.requests = digits->file.n;
	if (load_run(&options->run.load, &work, tag, &tally) != 0)
		return COMMAND_ERROR;
	accuracy = digits_accuracy(digits, &right, &answered);
	if (options->run.json == NULL || strcmp(options->run.json, "-") != 0) {
		digits_draw(digits, options->draw);
		printf("held out    %u of %u answers right, accuracy %.4f\n", right, answered,
		       accuracy);
	}
	return run_report(&options->run, &tally, json_pack("{s:f}", "accuracy", accuracy));
}

int command_digits(int argc, char **argv)
{
	struct digits_options options = {
		.run.load = {.sockets = 16, .window = 4, .timeout_ms = 2000},
	};
	const struct client_option table[] = {
		RUN_OPTIONS(options.run),
		{"data", OPTION_TEXT, &options.data, 0, 0, "the images, digits.bin (needed)"},
		{"weights", OPTION_TEXT, &options.weights, 0, 0, "the served safetensors file"},
		{"model", OPTION_TEXT, &options.model, 0, 0, "the served plug-in, mlp.so"},
		{"draw", OPTION_NUMBER, &options.draw, 0, 1000, "draw so many held-out images"},
		{0},
	};
	struct digits digits = {0};
	int status;

	if (run_options_parse(argc, argv, DIGITS_USAGE, table, &options.run, &status) != 0)
		return status;
	if (options.data == NULL || (options.weights == NULL) != (options.model == NULL)) {
		fprintf(stderr, options.data == NULL ? "--data FILE is needed\n"
						     : "--weights and --model need each other\n");
		return COMMAND_ERROR;
	}
	if (digit_file_read(&digits.file, options.data) != 0)
		return COMMAND_ERROR;
	digits.answers = malloc(digits.file.n);
	if (digits.answers != NULL) {
		memset(digits.answers, NO_ANSWER, digits.file.n);
		status = digits_run(&digits, &options);
	}
	free(digits.answers);
	free(digits.expected);
	digit_file_fini(&digits.file);
	return status;
}
