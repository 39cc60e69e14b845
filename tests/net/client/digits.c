/* SPDX-License-Identifier: BSD-3-Clause */
#include "command.h"
#include "digit_work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS_DRAWN_WIDE 4

struct digits_options {
	struct run_options run; /* first: run_rows */
	const char *data;
	const char *weights;
	const char *model;
	uint64_t draw;
};

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

		if (answer == DIGITS_NO_ANSWER)
			snprintf(text, sizeof(text), "no answer, is %u", label);
		else if (answer == label)
			snprintf(text, sizeof(text), "answer %u, right", answer);
		else
			snprintf(text, sizeof(text), "answer %u, is %u", answer, label);
		printf("%-*s", 2 * DIGIT_SIDE + 4, text);
	}
	printf("\n\n");
}

/* Draws the first <n> pictures that were not in the training. */
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
	const struct load_work work = digits_work(digits);
	uint32_t right, answered;
	struct tally tally;
	double accuracy;

	if (options->weights != NULL &&
	    digits_expect(digits, options->model, options->weights) != 0)
		return COMMAND_ERROR;
	options->run.load.requests = digits->file.n;
	if (load_run(&options->run.load, &work, load_tag(), &tally) != 0)
		return COMMAND_ERROR;
	accuracy = digits_accuracy(digits, &right, &answered);
	if (options->run.json == NULL || strcmp(options->run.json, "-") != 0) {
		digits_draw(digits, options->draw);
		printf("held out    %u of %u answers right, accuracy %.4f\n", right, answered,
		       accuracy);
	}
	return run_report(&options->run, &tally, json_pack("{s:f}", "accuracy", accuracy));
}

static const struct option_row digits_rows[] = {
	{"data", OPTION_TEXT, OPTION_AT(struct digits_options, data), "FILE",
	 "the images, digits.bin", .required = true},
	{"weights", OPTION_TEXT, OPTION_AT(struct digits_options, weights), "FILE",
	 "the served safetensors file"},
	{"model", OPTION_TEXT, OPTION_AT(struct digits_options, model), "FILE",
	 "the served plug-in, mlp.so"},
	{"draw", OPTION_NUMBER, OPTION_AT(struct digits_options, draw), NULL,
	 "draw so many held-out images", 0, 1000},
	{0},
};

static const struct option_table digits_table = {
	.program = "doorbell-client digits",
	.usage = "doorbell-client digits --to ADDR:PORT --data digits.bin [option ...]\n"
		 "With --model and --weights every reply is compared to the byte with what the\n"
		 "model says here; without, only its form is. Exits 1 if a reply was lost or\n"
		 "wrong, 2 if the run could not be made.",
	.rows = digits_rows,
	.shared = run_rows,
};

int command_digits(int argc, char **argv)
{
	struct digits_options options = {
		.run.load = {.sockets = 16, .window = 4, .timeout_ms = 2000},
	};
	struct digits digits = {0};
	int status = options_parse(&digits_table, argc, argv, &options, NULL);

	if (status != 0)
		return status > 0 ? COMMAND_OK : COMMAND_ERROR;
	if ((options.weights == NULL) != (options.model == NULL)) {
		fprintf(stderr, "--weights and --model need each other\n");
		return COMMAND_ERROR;
	}
	if (digits_open(&digits, options.data) != 0)
		return COMMAND_ERROR;
	status = digits_run(&digits, &options);
	digits_close(&digits);
	return status;
}
