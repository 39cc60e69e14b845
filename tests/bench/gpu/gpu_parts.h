/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parts of bench-gpu, each in a file of its own: a repetition adds its figures to <report>. 0, or
 * -1 after an error was printed. A part that this machine cannot measure says so once, and adds
 * nothing. <models>: the folder of plug-ins.
 */
#ifndef BENCH_GPU_PARTS_H
#define BENCH_GPU_PARTS_H

#include "common/report.h"

/* gpu_rings.c: rings in a GPU's memory that a second GPU writes, beside rings in the host's. */
int gpu_rings_measure(struct report *report, const char *models);
/* gpu_posted.c: what a GPU can post when the NIC takes WQEs and leaves payloads alone. */
int gpu_posted_measure(struct report *report);
/* gpu_bell.c: doorbells by st.mmio, and 16 KiB in the ring, again and again. */
int gpu_bell_measure(struct report *report, const char *models);
/* gpu_rnic.c: the CPU time of an agent's threads with the engine `verbs`. */
int gpu_rnic_measure(struct report *report, const char *models);
/* gpu_joules.c: the energy of a request. */
int gpu_joules_measure(struct report *report, const char *models);

#endif
