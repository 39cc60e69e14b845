/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads a loaded model's description of its tensors, and checks it against the model's sizes. Main
 * thread.
 */
#ifndef AGENT_MODEL_TENSORS_H
#define AGENT_MODEL_TENSORS_H

#include <stddef.h>

struct loaded_model;

/*
 * Fill the description of <m>, which is open. A plug-in that has none leaves the model undescribed.
 * 0, or -EINVAL with a sentence in <error> that names the field.
 */
int model_tensors_read(struct loaded_model *m, char *error, size_t size);

#endif
