/* SPDX-License-Identifier: BSD-3-Clause */
/* The model words: a reply in pieces, which are joined to the text of the request. */
#include "models/model.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static struct agent_model_shape shape;
static void *state;

static void words_open(const char *arguments)
{
	char error[256];

	cr_assert_eq(agent_model.open(arguments, 4, &shape, &state, error, sizeof(error)), 0, "%s",
		     error);
}

/* Steps until the reply of <text> ends. Returns how many pieces it had; their text is in <said>. */
static unsigned int say(const char *text, char *said, struct agent_model_turn *t)
{
	static _Alignas(64) uint8_t request[256], reply[256];
	uint32_t length = (uint32_t)strlen(text);
	unsigned int pieces = 0;

	memcpy(request, &length, 4);
	memcpy(request + 4, text, length);
	*t = (struct agent_model_turn){
		.request = request, .request_length = length + 4, .reply = reply};
	*said = '\0';
	do {
		t->more = 0;
		t->reply_length = 0;
		agent_model.step(state, t, 1);
		if (t->status != 0)
			break;
		memcpy(&length, reply, 4);
		cr_assert_eq(length + 4, t->reply_length);
		cr_assert_leq(t->reply_length, shape.max_reply);
		strncat(said, (char *)reply + 4, length);
		pieces++;
	} while (t->more);
	cr_assert_null(t->own, "it keeps nothing");
	return pieces;
}

Test(agent_words, pieces_are_the_text)
{
	static const struct {
		const char *text;
		unsigned int pieces;
	} rows[] = {{"to be or not", 4}, {"one", 1}, {"", 1}, {"  ", 1}, {" a  b ", 3}};
	struct agent_model_turn t;
	char said[256];

	words_open("delay_us=7");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		cr_expect_eq(say(rows[i].text, said, &t), rows[i].pieces, "'%s'", rows[i].text);
		cr_expect_str_eq(said, rows[i].text);
		cr_expect_eq(t.wait_us, 7);
	}
	agent_model.close(state);
}

Test(agent_words, long_words_are_cut_and_some_fail)
{
	struct agent_model_turn t;
	char said[256];

	words_open("max_reply=7,fail_after=3");
	cr_expect_eq(say("abcdefgh", said, &t), 3);
	cr_expect_str_eq(said, "abcdefgh");
	cr_expect_eq(t.status, 0);
	cr_expect_eq(say("abcdefghij", said, &t), 3);
	cr_expect_neq(t.status, 0);
	agent_model.close(state);
}

Test(agent_words, a_request_that_is_gone_or_none)
{
	static _Alignas(64) uint8_t request[] = "\5\0\0\0a b c", reply[256];
	struct agent_model_turn t = {.request = request, .request_length = 9, .reply = reply};

	words_open("");
	agent_model.step(state, &t, 1);
	cr_assert(t.more && t.own != NULL);
	t.more = 0;
	t.gone = 1;
	agent_model.step(state, &t, 1);
	cr_expect(!t.more);
	cr_expect_null(t.own);
	t = (struct agent_model_turn){.request = request, .request_length = 8, .reply = reply};
	agent_model.step(state, &t, 1);
	cr_expect_neq(t.status, 0);
	cr_expect_null(t.own);
	agent_model.close(state);
}
