/* SPDX-License-Identifier: BSD-3-Clause */
/* The budget of a GPU whose memory is the test's own. */
#include "gpu_budget.h"

#include <criterion/criterion.h>

#include "loop/cuda/gpu_list.h"

static uint64_t now_free = 10000;
static bool silent;

bool agent_gpu_memory(int gpu, uint64_t *free_mb, uint64_t *total_mb)
{
	*free_mb = now_free;
	*total_mb = 141000;
	return !silent && gpu == 3;
}

static struct gpu_budget budget;
static char why[256];

static bool begin(uint32_t mb)
{
	return gpu_budget_begin(&budget, mb, 3, why, sizeof(why));
}

static bool keeps(void)
{
	return gpu_budget_keeps(&budget, why, sizeof(why));
}

Test(agent_gpu_budget, none_is_never_exceeded)
{
	silent = true;
	cr_assert(begin(0));
	cr_assert(keeps());
}

Test(agent_gpu_budget, what_is_not_free_is_refused_at_once)
{
	cr_assert(begin(10000));
	cr_assert_not(begin(10001));
	cr_assert_str_eq(why, "GPU 3 has 10000 MB of its 141000 free; stop other programs on it "
			      "(nvidia-smi lists them), or give less");
}

Test(agent_gpu_budget, a_model_may_take_all_of_it_and_no_more)
{
	cr_assert(begin(4000));
	now_free = 6000;
	cr_assert(keeps());
	now_free = 5999;
	cr_assert_not(keeps());
	cr_assert_str_eq(why, "the model and its loop have taken 4001 MB of GPU 3; give more, a "
			      "smaller --max-batch, or another model");
}

Test(agent_gpu_budget, memory_that_others_give_back_is_no_fault)
{
	cr_assert(begin(4000));
	now_free = 20000;
	cr_assert(keeps());
}

Test(agent_gpu_budget, a_gpu_that_does_not_say_is_refused)
{
	silent = true;
	cr_assert_not(begin(1));
	cr_assert_str_eq(why, "CUDA does not say how much memory of GPU 3 is free");
	silent = false;
	cr_assert(begin(1));
	silent = true;
	cr_assert_not(keeps());
}
