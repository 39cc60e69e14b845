/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A model of text whose replies come in pieces: it answers with the words of the request, one by
 * one, each with the spaces in front of it. So a client that joins the pieces has its own text.
 * Arguments: max_request, bytes of the longest request; max_reply, bytes of a
 * piece, beyond which a word is cut, inside of a character if need be; delay_us, us between two
 * pieces; max_pieces, of a reply, its end included; fail_after=N, an error in place of the N + 1st
 * piece. On a GPU a word at a time of every row (words_cuda.cu).
 */
#include "models/arguments.h"
#include "models/model.h"
#include "models/words_cuda.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS_REQUEST_DEFAULT 65536
#define WORDS_REQUEST_MAX     (64u << 20)
#define WORDS_REPLY_DEFAULT   16384
#define WORDS_DELAY_MAX_US    60000000

struct words {
	struct words_options options;
	struct words_cuda *cuda; /* NULL until captured */
};

/* Where a reply is: what the model keeps of a request. */
struct words_place {
	uint32_t at; /* byte of the text */
	uint32_t words;
};

static int words_open(const char *arguments, uint32_t max_batch, struct agent_model_shape *shape,
		      void **state, char *error, size_t error_size)
{
	uint32_t max_request = WORDS_REQUEST_DEFAULT, delay_us = 0, fail_after = UINT32_MAX;
	uint32_t max_pieces = AGENT_MODEL_PIECES_MAX, max_reply = WORDS_REPLY_DEFAULT;
	const struct argument table[] = {
		{.key = "max_request",
		 .number = &max_request,
		 .min = WORDS_LENGTH,
		 .max = WORDS_REQUEST_MAX},
		{.key = "max_reply",
		 .number = &max_reply,
		 .min = WORDS_LENGTH + 1,
		 .max = WORDS_REQUEST_MAX},
		{.key = "delay_us", .number = &delay_us, .max = WORDS_DELAY_MAX_US},
		{.key = "max_pieces",
		 .number = &max_pieces,
		 .min = 1,
		 .max = AGENT_MODEL_PIECES_MAX},
		{.key = "fail_after", .number = &fail_after, .max = UINT32_MAX},
	};
	struct words *words;
	int ret;

	ret = arguments_parse(arguments, table, sizeof(table) / sizeof(table[0]), error,
			      error_size);
	if (ret != 0)
		return ret;
	words = malloc(sizeof(*words));
	if (words == NULL) {
		snprintf(error, error_size, "out of memory");
		return -ENOMEM;
	}
	*words = (struct words){.options = {.delay_us = delay_us,
					    .fail_after = fail_after,
					    .most = max_reply - WORDS_LENGTH}};
	*shape = (struct agent_model_shape){
		.min_request = WORDS_LENGTH,
		.max_request = max_request,
		.max_reply = max_reply,
		.max_batch = max_batch,
		.max_pieces = max_pieces,
	};
	*state = words;
	return 0;
}

/* Behind the next word of <text>, from <at> on. */
static uint32_t words_next(const char *text, uint32_t at, uint32_t length)
{
	while (at < length && text[at] == ' ')
		at++;
	while (at < length && text[at] != ' ')
		at++;
	return at;
}

/* The text of a request; false: it is none. */
static int words_text(const struct agent_model_turn *t, const char **text, uint32_t *length)
{
	memcpy(length, t->request, WORDS_LENGTH);
	*text = (const char *)t->request + WORDS_LENGTH;
	return *length == t->request_length - WORDS_LENGTH;
}

static void words_say(const struct words_options *options, struct agent_model_turn *t,
		      struct words_place *place, const char *text, uint32_t length)
{
	uint32_t end = words_next(text, place->at, length), n = end - place->at;

	if (n > options->most) {
		n = options->most;
		end = place->at + n;
	}
	if (place->words++ == options->fail_after) {
		t->status = -EIO;
		return;
	}
	memcpy(t->reply, &n, WORDS_LENGTH);
	memcpy((char *)t->reply + WORDS_LENGTH, text + place->at, n);
	t->reply_length = WORDS_LENGTH + n;
	t->more = end < length;
	t->wait_us = options->delay_us;
	place->at = end;
}

static void words_turn(const struct words_options *options, struct agent_model_turn *t)
{
	struct words_place *place = t->own;
	const char *text;
	uint32_t length;

	if (place == NULL)
		t->own = place = calloc(1, sizeof(*place));
	if (place == NULL)
		t->status = -ENOMEM;
	else if (!words_text(t, &text, &length))
		t->status = -EINVAL;
	else if (!t->gone)
		words_say(options, t, place, text, length);
	if (t->more)
		return;
	free(t->own);
	t->own = NULL;
}

static void words_step(void *state, struct agent_model_turn *turns, uint32_t n)
{
	const struct words *words = state;

	for (uint32_t i = 0; i < n; i++)
		words_turn(&words->options, &turns[i]);
}

static void words_describe(const void *state, struct agent_model_description *description)
{
	description->platform = "doorbell_words";
	description->n_inputs = description->n_outputs = 1;
	description->input[0] = (struct agent_model_tensor){"text_input", "BYTES", 1, {1}};
	description->output[0] = (struct agent_model_tensor){"text_output", "BYTES", 1, {1}};
}

/* Rows keep from one loop to the next what they have: a loop that stops tells which are gone. */
static int words_capture(void *state, struct agent_model_gpu *gpu, char *error, size_t error_size)
{
	struct words *words = state;

	if (words->cuda == NULL)
		words->cuda = words_cuda_create(&words->options, gpu->max_batch, error, error_size);
	return words->cuda == NULL ? -EIO : words_cuda_capture(words->cuda, gpu, error, error_size);
}

static void words_close(void *state)
{
	struct words *words = state;

	words_cuda_destroy(words->cuda);
	free(words);
}

const struct agent_model agent_model = {
	.abi = AGENT_MODEL_ABI,
	.name = "words",
	.open = words_open,
	.close = words_close,
	.capture = words_capture,
	.describe = words_describe,
	.step = words_step,
};
