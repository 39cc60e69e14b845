/* SPDX-License-Identifier: BSD-3-Clause */
/* A model's capture() is refused when the loop on a GPU could not run what it left. */
#include "loop/gpu_model.h"

#include <criterion/criterion.h>
#include <errno.h>

static void step(void *state, struct agent_model_turn *turns, uint32_t n)
{
}

static const struct agent_model whole = {.abi = AGENT_MODEL_ABI, .name = "whole"},
				in_pieces = {
					.abi = AGENT_MODEL_ABI, .name = "pieces", .step = step};
static uint32_t words[8];
static struct agent_model_gpu given, left;
static char why[256];

/* As the loop gives it: the words of rows only to a model whose replies come in pieces. */
static int check(const struct agent_model *model, size_t nodes)
{
	why[0] = '\0';
	return gpu_model_check(model, &given, &left, nodes, why, sizeof(why));
}

static void give(const struct agent_model *model)
{
	given = (struct agent_model_gpu){.rows = &words[0], .lengths = &words[1]};
	if (model == &in_pieces) {
		given.row_states = &words[2];
		given.row_more = &words[3];
	}
	left = given;
}

Test(agent_gpu_model, what_was_given_may_stay_or_be_its_own)
{
	give(&whole);
	cr_expect_eq(check(&whole, 0), 0);
	left.reply_lengths = left.lengths;
	cr_expect_eq(check(&whole, 3), 0);
	give(&in_pieces);
	cr_expect_eq(check(&in_pieces, 1), 0);
	left.row_more = &words[4];
	cr_expect_eq(check(&in_pieces, 1), 0);
}

Test(agent_gpu_model, the_loops_own_words_cannot_be_replaced)
{
	give(&whole);
	left.rows = &words[5];
	cr_expect_eq(check(&whole, 1), -EINVAL);
	give(&whole);
	left.lengths = &words[5];
	cr_expect_eq(check(&whole, 1), -EINVAL);
	give(&in_pieces);
	left.row_states = &words[5];
	cr_expect_eq(check(&in_pieces, 1), -EINVAL);
	cr_expect_str_eq(why,
			 "rows, lengths, row_states, requests, replies and post are the loop's; "
			 "they cannot be replaced");
	left.row_states = NULL;
	cr_expect_eq(check(&in_pieces, 1), -EINVAL);
	give(&whole);
	left.post = (struct agent_model_post *)words;
	cr_expect_eq(check(&whole, 1), -EINVAL);
}

Test(agent_gpu_model, pieces_need_words_of_rows_and_work)
{
	give(&in_pieces);
	left.row_more = NULL;
	cr_expect_eq(check(&in_pieces, 1), -EINVAL);
	cr_expect_not_null(strstr(why, "capture() has left no row_more"), "%s", why);
	left.row_more = &words[3];
	cr_expect_eq(check(&in_pieces, 0), -EINVAL);
	cr_expect_not_null(strstr(why, "capture() has recorded nothing"), "%s", why);
}

Test(agent_gpu_model, sizes_of_batches_share_all_but_the_output)
{
	struct agent_model_gpu first;

	give(&whole);
	first = left;
	left.max_batch = 2;
	left.output = &words[6];
	left.output_stride = 8;
	cr_expect_eq(gpu_model_same(&first, &left, why, sizeof(why)), 0, "%s", why);
	left.input_stride++;
	cr_expect_eq(gpu_model_same(&first, &left, why, sizeof(why)), -EINVAL);
	cr_expect_not_null(strstr(why, "another input for batches of 2"), "%s", why);
	left = first;
	left.reply_length++;
	cr_expect_eq(gpu_model_same(&first, &left, why, sizeof(why)), -EINVAL);
	left = first;
	left.statuses = (int32_t *)&words[7];
	cr_expect_eq(gpu_model_same(&first, &left, why, sizeof(why)), -EINVAL);
	left = first;
	left.in_place = 1;
	cr_expect_eq(gpu_model_same(&first, &left, why, sizeof(why)), -EINVAL);
	cr_expect_not_null(strstr(why, "only output and output_stride may differ"), "%s", why);
}
