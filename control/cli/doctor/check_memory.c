/* SPDX-License-Identifier: BSD-3-Clause */
/* Hugepages for packets and flows, and the right to lock memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/doctor/check.h"

#define PAGES      "/sys/kernel/mm/hugepages"
#define NODES      "/sys/devices/system/node"
#define PAGE_2M_KB 2048
#define SIZES_MAX  8
#define LOCKED_MIN (64ull << 20) /* bytes; a small memory region and its queues */
#define PROGRAM(d) ((d)->plan.side == DOCTOR_AGENT ? "doorbell-agent" : "doorbell-lb")
#define NO_HUGE(d) ((d)->plan.side == DOCTOR_AGENT ? "--no-hugepages" : "memory.hugepages: false")

struct sizes {
	unsigned int n;
	unsigned long kb[SIZES_MAX];
	long long free[SIZES_MAX], total[SIZES_MAX];
	unsigned long long free_mb;
};

/* The keys or options that make a program take less memory. */
static const char *memory_fewer(const struct doctor *d, char *text, size_t size)
{
	const char *keys = d->plan.memory_keys;

	if (d->plan.side == DOCTOR_AGENT)
		return "--memory-mb";
	snprintf(text, size, "%s or memory.mb", keys != NULL ? keys : "flows");
	return text;
}

/* Read the pages of each size below <folder>. */
static void read_sizes(const struct doctor *d, const char *folder, struct sizes *s)
{
	struct doctor_names names;

	memset(s, 0, sizeof(*s));
	doctor_list(d, &names, "%s", folder);
	for (unsigned int i = 0; i < names.n && s->n < SIZES_MAX; i++) {
		unsigned long kb;
		long long reserved = 0;

		if (sscanf(names.name[i], "hugepages-%lukB", &kb) != 1 || kb == 0 ||
		    doctor_read_number(d, &s->free[s->n], "%s/%s/free_hugepages", folder,
				       names.name[i]) < 0 ||
		    doctor_read_number(d, &s->total[s->n], "%s/%s/nr_hugepages", folder,
				       names.name[i]) < 0)
			continue;
		/*
		 * subtract pages that a process has reserved and not touched yet; the counts per
		 * node leave these out
		 */
		doctor_read_number(d, &reserved, "%s/%s/resv_hugepages", folder, names.name[i]);
		if (s->free[s->n] < 0 || reserved < 0)
			continue;
		s->free[s->n] -= reserved < s->free[s->n] ? reserved : s->free[s->n];
		s->kb[s->n] = kb;
		s->free_mb += (unsigned long long)s->free[s->n] * kb / 1024;
		s->n++;
	}
}

static const char *sizes_text(const struct sizes *s, char *text, size_t size)
{
	size_t at = 0;

	text[0] = '\0';
	for (unsigned int i = 0; i < s->n && at < size; i++)
		at += snprintf(text + at, size - at, "%s%lld of %lld pages of %lu MiB",
			       at ? ", " : "", s->free[i], s->total[i], s->kb[i] / 1024);
	return text;
}

/* The total of 2-MiB pages that leaves <need> MiB free. */
static long long pages_wanted(const struct sizes *s, unsigned long long need)
{
	long long total = 0;

	for (unsigned int i = 0; i < s->n; i++)
		if (s->kb[i] == PAGE_2M_KB)
			total = s->total[i];
	return total + (long long)(need > s->free_mb ? (need - s->free_mb + 1) / 2 : 0);
}

void check_hugepages(struct doctor *d)
{
	unsigned long long need = d->plan.known ? d->plan.memory_mb : 0;
	struct sizes s;
	char text[200], fewer[80];

	read_sizes(d, PAGES, &s);
	sizes_text(&s, text, sizeof(text));
	if (!d->plan.hugepages) {
		doctor_report(d, DOCTOR_NA, "%s", NO_HUGE(d));
	} else if (s.n == 0) {
		doctor_report(d, d->plan.known ? DOCTOR_PROBLEM : DOCTOR_WARNING,
			      "this kernel has no hugepages");
		doctor_fix(d, "%s", NO_HUGE(d));
	} else if (need > s.free_mb && doctor_is_running(d)) {
		doctor_report(d, DOCTOR_OK, "%s free; the %s that runs has its own", text,
			      PROGRAM(d));
	} else if (need > s.free_mb) {
		doctor_report(d, DOCTOR_PROBLEM, "%llu MiB free (%s), %llu needed", s.free_mb, text,
			      need);
		doctor_fix(d,
			   "sysctl -w vm.nr_hugepages=%lld, and in /etc/sysctl.d to keep it; or "
			   "%s; or lower %s",
			   pages_wanted(&s, need), NO_HUGE(d),
			   memory_fewer(d, fewer, sizeof(fewer)));
	} else if (s.free_mb == 0) {
		doctor_report(d, DOCTOR_WARNING, "none free (%s)", text);
		doctor_fix(d,
			   "sysctl -w vm.nr_hugepages=%lld, and in /etc/sysctl.d to keep it; or "
			   "run with %s",
			   pages_wanted(&s, 512), NO_HUGE(d));
	} else {
		doctor_report(d, DOCTOR_OK, "%llu MiB free (%s), %llu needed", s.free_mb, text,
			      need);
	}
}

/* True when a data-plane core or a NIC is on the node. */
static bool node_matters(const struct doctor *d, unsigned int node)
{
	for (unsigned int i = 0; i < d->plan.n_cpus; i++)
		if (doctor_exists(d, NODES "/node%u/cpu%u", node, d->plan.cpu[i]))
			return true;
	for (unsigned int i = 0; i < d->plan.n_ports; i++)
		if (doctor_port_node(d, &d->plan.port[i]) == (int)node)
			return true;
	return false;
}

void check_hugepages_node(struct doctor *d)
{
	struct doctor_names names;
	unsigned int nodes = 0, node;
	struct sizes s;

	doctor_list(d, &names, NODES);
	for (unsigned int i = 0; i < names.n; i++)
		nodes += sscanf(names.name[i], "node%u", &node) == 1;
	if (!d->plan.known || !d->plan.hugepages || nodes < 2) {
		doctor_report(d, DOCTOR_NA, "%s",
			      nodes < 2           ? "one NUMA node"
			      : d->plan.hugepages ? "nothing is configured that would need them"
						  : "no hugepages are wanted");
		return;
	}
	for (unsigned int i = 0; i < names.n; i++) {
		char folder[128], text[200];

		if (sscanf(names.name[i], "node%u", &node) != 1 || !node_matters(d, node))
			continue;
		snprintf(folder, sizeof(folder), NODES "/node%u/hugepages", node);
		read_sizes(d, folder, &s);
		sizes_text(&s, text, sizeof(text));
		if (s.free_mb >= d->plan.memory_mb || doctor_is_running(d)) {
			doctor_report(d, DOCTOR_OK, "node %u: %llu MiB free (%s)", node, s.free_mb,
				      text);
			continue;
		}
		doctor_report(d, DOCTOR_WARNING,
			      "node %u, where lcores or NICs are: %llu MiB free (%s), %u needed",
			      node, s.free_mb, text, d->plan.memory_mb);
		doctor_fix(d,
			   "echo %lld > " NODES "/node%u/hugepages/hugepages-2048kB/nr_hugepages",
			   pages_wanted(&s, d->plan.memory_mb), node);
	}
	if (d->n == 0)
		doctor_report(d, DOCTOR_NA, "no node is known to have lcores or NICs");
}

void check_memory(struct doctor *d)
{
	unsigned long long available = 0;
	const char *line;
	char text[8192], fewer[80];

	doctor_read(d, text, sizeof(text), "/proc/meminfo");
	line = doctor_line(text, "MemAvailable:");
	if (line != NULL)
		available = strtoull(line, NULL, 10) / 1024;
	if (!d->plan.known || d->plan.hugepages) {
		doctor_report(d, DOCTOR_NA, "%s",
			      d->plan.hugepages ? "hugepages are used" : "nothing is configured");
	} else if (available == 0) {
		doctor_report(d, DOCTOR_WARNING, "/proc/meminfo does not say what is free");
		doctor_fix(d, "look yourself: free -m; %u MiB are needed", d->plan.memory_mb);
	} else if (available < d->plan.memory_mb && !doctor_is_running(d)) {
		doctor_report(d, DOCTOR_PROBLEM, "%llu MiB available, %u needed", available,
			      d->plan.memory_mb);
		doctor_fix(d, "lower %s", memory_fewer(d, fewer, sizeof(fewer)));
	} else {
		doctor_report(d, DOCTOR_OK, "%llu MiB available, %u needed", available,
			      d->plan.memory_mb);
	}
}

/* True when NICs write to pinned memory, as with RDMA and vfio, which counts against the limit. */
static bool locks_memory(const struct doctor *d)
{
	for (unsigned int i = 0; i < d->plan.n_ports; i++)
		if (d->plan.port[i].kind == PLAN_PCI)
			return true;
	return d->plan.n_rdma > 0;
}

void check_memlock(struct doctor *d)
{
	unsigned long long limit, need = (unsigned long long)d->plan.memory_mb << 20;
	const char *line;
	char text[4096];

	doctor_read(d, text, sizeof(text), "/proc/self/limits");
	line = doctor_line(text, "Max locked memory");
	if (line == NULL || (*line != 'u' && (*line < '0' || *line > '9'))) {
		doctor_report(d, DOCTOR_WARNING, "/proc/self/limits does not tell the limit");
		doctor_fix(d, "look yourself: ulimit -l should say unlimited");
		return;
	}
	limit = *line == 'u' ? UINT64_MAX : strtoull(line, NULL, 10);
	if (limit == UINT64_MAX) {
		doctor_report(d, DOCTOR_OK, "unlimited");
	} else if (doctor_capable(d, DOCTOR_CAP_IPC_LOCK)) {
		doctor_report(d, DOCTOR_OK, "%llu KiB, but CAP_IPC_LOCK is above it", limit / 1024);
	} else if (limit >= (need > LOCKED_MIN ? need : LOCKED_MIN)) {
		doctor_report(d, DOCTOR_OK, "%llu KiB", limit / 1024);
	} else {
		doctor_report(d, locks_memory(d) ? DOCTOR_PROBLEM : DOCTOR_WARNING,
			      "%llu KiB, too little for RDMA and vfio-pci, without CAP_IPC_LOCK",
			      limit / 1024);
		doctor_fix(d, "ulimit -l unlimited; in a systemd unit LimitMEMLOCK=infinity");
	}
}
