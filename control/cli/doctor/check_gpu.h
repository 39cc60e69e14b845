/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DOCTOR_CHECK_GPU_H
#define DOCTOR_CHECK_GPU_H

#include "cli/doctor/check.h"
#include "cli/doctor/cuda.h"

/* True for the PCI address of an NVIDIA GPU, with any driver or none. */
bool check_gpu_is(const struct doctor *d, const char *bus);

/* Judge these attributes of a GPU for an agent. Separate from reading them, for tests. */
void check_gpu_judge(struct doctor *d, unsigned int index, const struct cuda_gpu *gpu);

#endif
