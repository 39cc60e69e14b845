/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_log.h>

#include "config/device.h"
#include "ports/eal.h"
#include "config/memory.h"
#include "runtime/cpus.h"

#define ARGUMENTS_MAX 64

struct arguments {
	int n;
	char *text[ARGUMENTS_MAX + 1]; /* the EAL wants a NULL behind the last */
};

static void arguments_add(struct arguments *a, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void arguments_add(struct arguments *a, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	if (a->n < ARGUMENTS_MAX && vasprintf(&a->text[a->n], format, list) >= 0)
		a->n++;
	va_end(list);
}

/*
 * EAL lcore 0 is the control thread and may run on all CPUs of this process; the data-plane cores
 * are lcores 1, 2 ..., each bound to its CPU.
 */
static void add_lcores(struct arguments *a, const struct lb_config *config)
{
	char cpus[CPUS_TEXT_MAX], map[CPUS_TEXT_MAX + 1024];
	size_t n = snprintf(map, sizeof(map), "0@(%s)", cpus_allowed(cpus));

	for (unsigned int i = 0; i < config->n_lcores && n < sizeof(map) - 16; i++)
		n += snprintf(map + n, sizeof(map) - n, ",%u@%u", i + 1, config->lcore_cpu[i]);
	arguments_add(a, "--lcores=%s", map);
}

static void add_devices(struct arguments *a, const struct lb_config *config)
{
	bool any = false, shared = false;

	for (unsigned int i = 0; i < config->n_ports; i++) {
		shared |= strstr(config->port[i].device, "zero-copy=yes") != NULL;
		if (!lb_device_is_pci(config->port[i].device))
			continue;
		arguments_add(a, "--allow=%s", config->port[i].device);
		any = true;
	}
	if (!any)
		arguments_add(a, "--no-pci");
	/*
	 * A zero-copy memif port shares our packet memory with its peer, which needs it in a single
	 * file.
	 */
	if (shared)
		arguments_add(a, "--single-file-segments");
}

/* The EAL would answer a CPU that does not exist with its usage text. */
static int check_cpus(const struct lb_config *config, char *error, size_t size)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	sched_getaffinity(0, sizeof(set), &set);
	for (unsigned int i = 0; i < config->n_lcores; i++)
		if (config->lcore_cpu[i] >= CPU_SETSIZE || !CPU_ISSET(config->lcore_cpu[i], &set)) {
			snprintf(
				error, size,
				"lcores[%u]: this process may not use CPU %u; taskset -cp $$ shows "
				"those that it may",
				i, config->lcore_cpu[i]);
			return -EINVAL;
		}
	return 0;
}

/* Without hugepages the kernel grants any amount, and kills the process when it uses it. */
static int check_memory(const struct lb_config *config, char *error, size_t size)
{
	FILE *file = fopen("/proc/meminfo", "r");
	unsigned long available_kb = 0;
	char line[128];

	while (file != NULL && fgets(line, sizeof(line), file) != NULL)
		if (sscanf(line, "MemAvailable: %lu kB", &available_kb) == 1)
			break;
	if (file != NULL)
		fclose(file);
	if (config->hugepages || available_kb == 0 || lb_memory_mb(config) <= available_kb / 1024)
		return 0;
	snprintf(error, size,
		 "%u MiB of memory are needed for %u flows and the packets, %lu MiB are free; "
		 "lower %s or memory.mb",
		 lb_memory_mb(config), config->flows, available_kb / 1024, lb_memory_keys(config));
	return -ENOMEM;
}

int lb_eal_init(const struct lb_config *config, const char *program, char *error, size_t size)
{
	struct arguments a = {0};
	char *parsed[ARGUMENTS_MAX + 1];
	int ret = check_cpus(config, error, size);

	if (ret == 0)
		ret = check_memory(config, error, size);
	if (ret < 0)
		return ret;
	arguments_add(&a, "%s", program);
	arguments_add(&a, "--file-prefix=doorbell");
	if (config->hugepages) {
		arguments_add(&a, "--in-memory");
	} else {
		arguments_add(&a, "--no-huge");
		arguments_add(&a, "--no-shconf");
	}
	arguments_add(&a, "-m");
	arguments_add(&a, "%u", lb_memory_mb(config));
	add_lcores(&a, config);
	add_devices(&a, config);
	arguments_add(&a, "--log-level=lib.*:warning");
	arguments_add(&a, "--log-level=pmd.*:warning");
	arguments_add(&a, "--log-level=doorbell.*:%s", config->log_level);
	/* The EAL reorders the array that it is given; keep ours to free the texts. */
	memcpy(parsed, a.text, sizeof(parsed));
	ret = rte_eal_init(a.n, parsed);
	for (int i = 0; i < a.n; i++)
		free(a.text[i]);
	if (ret >= 0)
		return 0;
	if (config->hugepages)
		snprintf(error, size,
			 "the EAL did not start (its reason is above); are %u MiB of hugepages "
			 "free? memory.hugepages: false runs without hugepages",
			 lb_memory_mb(config));
	else
		snprintf(error, size, "the EAL did not start; its reason is above");
	return -rte_errno;
}
