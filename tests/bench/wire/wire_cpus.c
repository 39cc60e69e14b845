/* SPDX-License-Identifier: BSD-3-Clause */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>

#include <rte_common.h>

#include "wire/wire_cpus.h"

/* Returns the core's lowest CPU, which stands for it; a CPU without topology counts as a core. */
static unsigned int core_of(unsigned int cpu)
{
	unsigned int core = cpu;
	char path[96];
	FILE *file;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/topology/thread_siblings_list",
		 cpu);
	file = fopen(path, "r");
	if (file == NULL)
		return cpu;
	if (fscanf(file, "%u", &core) != 1)
		core = cpu;
	fclose(file);
	return core;
}

static cpu_set_t allowed(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	sched_getaffinity(0, sizeof(set), &set);
	return set;
}

unsigned int wire_cpus_count(void)
{
	cpu_set_t set = allowed();

	return CPU_COUNT(&set);
}

void wire_cpus_machine(char *to, size_t size)
{
	FILE *file = fopen("/proc/cpuinfo", "r");
	char line[256], model[128] = "";
	struct utsname kernel = {0};

	while (file != NULL && model[0] == '\0' && fgets(line, sizeof(line), file) != NULL)
		if (sscanf(line, "model name : %127[^\n]", model) != 1)
			model[0] = '\0';
	if (file != NULL)
		fclose(file);
	uname(&kernel);
	snprintf(to, size, "%s, %u CPUs, Linux %s", model[0] != '\0' ? model : kernel.machine,
		 wire_cpus_count(), kernel.release);
}

/* Sorts the CPUs of <set>: first threads of all cores, then second ones, and so on. Returns how
 * many. */
static unsigned int in_order(const cpu_set_t *set, uint16_t cpus[CPU_SETSIZE])
{
	uint8_t threads[CPU_SETSIZE] = {0}, nth[CPU_SETSIZE] = {0};
	unsigned int n = 0;

	for (unsigned int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, set))
			nth[i] = threads[core_of(i)]++;
	for (unsigned int k = 0; k < UINT8_MAX && n < (unsigned int)CPU_COUNT(set); k++)
		for (unsigned int i = 0; i < CPU_SETSIZE; i++)
			if (CPU_ISSET(i, set) && nth[i] == k)
				cpus[n++] = i;
	return n;
}

/* True for two threads of one core; one CPU for both is another case. */
static bool share_core(uint16_t a, uint16_t b)
{
	return a != b && core_of(a) == core_of(b);
}

/* Counts the queues whose lcore shares a core with their clients or their worker. */
static unsigned int pairs_sharing(const struct wire_options *o)
{
	unsigned int sharing = 0;

	for (unsigned int q = 0; q < o->lcores; q++)
		sharing += share_core(o->lb_cpu[q], o->gen_cpu[wire_clients_thread(o, q)]) ||
			   share_core(o->lb_cpu[q], o->gen_cpu[wire_worker_thread(o, q)]);
	return sharing;
}

static void rotate(uint16_t *cpu, unsigned int n)
{
	uint16_t first = cpu[0];

	for (unsigned int i = 1; i < n; i++)
		cpu[i - 1] = cpu[i];
	cpu[n - 1] = first;
}

/* Separates such pairs: two threads of a core share its caches, and a packet's lines would be there
 * already. */
static void part_pairs(struct wire_options *o)
{
	unsigned int best = 0, least = UINT_MAX;

	for (unsigned int i = 0; i < o->threads; i++) {
		unsigned int sharing = pairs_sharing(o);

		if (sharing < least) {
			least = sharing;
			best = i;
		}
		rotate(o->gen_cpu, o->threads);
	}
	for (unsigned int i = 0; i < best; i++)
		rotate(o->gen_cpu, o->threads);
}

bool wire_cpus_choose(struct wire_options *o)
{
	unsigned int wanted = o->lcores + o->threads, n, next = 0;
	bool free_generator = true;
	uint16_t *cpu[WIRE_QUEUES_MAX + WIRE_THREADS_MAX], left[CPU_SETSIZE];
	cpu_set_t set = allowed();

	for (unsigned int i = 0; i < wanted; i++) {
		cpu[i] = i < o->lcores ? &o->lb_cpu[i] : &o->gen_cpu[i - o->lcores];
		if (i >= o->lcores)
			free_generator &= *cpu[i] == UINT16_MAX;
		if (*cpu[i] < CPU_SETSIZE && CPU_COUNT(&set) > 1)
			CPU_CLR(*cpu[i], &set);
	}
	n = in_order(&set, left);
	for (unsigned int i = 0; i < wanted; i++)
		if (*cpu[i] == UINT16_MAX)
			*cpu[i] = left[next++ % n];
	if (free_generator)
		part_pairs(o);
	return wire_cpus_count() >= wanted;
}

unsigned int wire_cpus_shared(const struct wire_options *o)
{
	unsigned int sharing = 0;

	for (unsigned int i = 0; i < o->lcores; i++) {
		bool shares = false;

		for (unsigned int k = 0; k < o->lcores; k++)
			shares |= k != i && core_of(o->lb_cpu[i]) == core_of(o->lb_cpu[k]);
		for (unsigned int k = 0; k < o->threads; k++)
			shares |= core_of(o->lb_cpu[i]) == core_of(o->gen_cpu[k]);
		sharing += shares;
	}
	return sharing;
}
