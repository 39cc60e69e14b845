/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DOCTOR_CHECK_GPU_H
#define DOCTOR_CHECK_GPU_H

#include "cli/doctor/check.h"
#include "cli/doctor/cuda.h"

/* Judge these attributes of a GPU for an agent. Separate from reading them, for tests. */
void check_gpu_judge(struct doctor *d, unsigned int index, const struct cuda_gpu *gpu);

#endif
