/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>

#include "loop/gpu_model.h"
#include "loop/model_load.h"

int gpu_model_check(const struct agent_model *model, const struct agent_model_gpu *given,
		    const struct agent_model_gpu *left, size_t nodes, char *why, size_t size)
{
	const char *what = NULL;

	if (left->rows != given->rows || left->lengths != given->lengths ||
	    left->row_states != given->row_states || left->requests != given->requests ||
	    left->replies != given->replies || left->post != given->post)
		what = "rows, lengths, row_states, requests, replies and post are the loop's; they "
		       "cannot be replaced";
	else if (agent_model_steps(model) && left->in_place)
		what = "its replies come in pieces; those are made in output, not in_place";
	else if (agent_model_steps(model) && left->row_more == NULL)
		what = "its replies come in pieces, but capture() has left no row_more, which says "
		       "whether others follow";
	else if (agent_model_steps(model) && nodes == 0)
		what = "its replies come in pieces, but capture() has recorded nothing that makes "
		       "them";
	if (what == NULL)
		return 0;
	snprintf(why, size, "%s", what);
	return -EINVAL;
}

int gpu_model_same(const struct agent_model_gpu *first, const struct agent_model_gpu *left,
		   char *why, size_t size)
{
	const char *what = NULL;

	if (left->input != first->input || left->input_stride != first->input_stride)
		what = "input";
	else if (left->reply_lengths != first->reply_lengths ||
		 left->reply_length != first->reply_length)
		what = "reply_lengths";
	else if (left->statuses != first->statuses)
		what = "statuses";
	else if (left->in_place != first->in_place)
		what = "in_place";
	if (what == NULL)
		return 0;
	snprintf(
		why, size,
		"capture() has left another %s for batches of %u than for those of %u; only output "
		"and output_stride may differ",
		what, left->max_batch, first->max_batch);
	return -EINVAL;
}
