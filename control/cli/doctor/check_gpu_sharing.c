/* SPDX-License-Identifier: BSD-3-Clause */
/* GPUs that are divided among programs (MIG, MPS, memory), and what is near them (NUMA). */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/doctor/check.h"
#include "cli/doctor/check_gpu.h"
#include "gpu/nvml.h"
#include "gpu/places.h"

#define NODES      "/sys/devices/system/node"
#define MPS_DAEMON "nvidia-cuda-mps" /* as /proc/PID/comm has it: 15 characters */
#define MPS_FOLDER "/tmp/nvidia-mps"
#define NO_GPU     "no NVIDIA GPU on the bus"

/* --- NVML --------------------------------------------------------------------------------------
 */

/* Load NVML. False after a finding that says why it tells nothing. */
static bool open_nvml(struct doctor *d, struct nvml *nvml)
{
	const char *library = d->nvml != NULL ? d->nvml : NVML_LIBRARY;
	char error[160];
	int ret;

	if (d->root[0] != '\0' && d->nvml == NULL) {
		doctor_report(d, DOCTOR_NA, "NVML tells of this machine, not of %s", d->root);
		return false;
	}
	ret = nvml_open(nvml, library, error, sizeof(error));
	if (ret == 0)
		return true;
	if (ret == -ENOENT) {
		doctor_report(d, DOCTOR_NA, "no " NVML_LIBRARY);
		return false;
	}
	doctor_report(d, DOCTOR_WARNING, "%s", error);
	doctor_fix(d, "nvidia-smi shows whether driver and library fit each other; reboot after an "
		      "update of the driver");
	return false;
}

/* Judge each GPU that NVML shows. */
static void each_of_nvml(struct doctor *d, void (*judge)(struct doctor *d, const struct nvml *nvml,
							 nvml_device device, const char *bus))
{
	struct nvml_pci pci;
	nvml_device device;
	struct nvml nvml;
	unsigned int n = 0;

	if (!open_nvml(d, &nvml))
		return;
	nvml.count(&n);
	for (unsigned int i = 0; i < n; i++)
		if (nvml.by_index(i, &device) == NVML_OK && nvml.pci(device, &pci) == NVML_OK)
			judge(d, &nvml, device, pci.bus_id);
	if (d->n == 0)
		doctor_report(d, DOCTOR_NA, "NVML shows no GPU");
}

static void judge_mig(struct doctor *d, const struct nvml *nvml, nvml_device device,
		      const char *bus)
{
	unsigned int now = 0, later = 0;

	if (nvml->mig_mode == NULL || nvml->mig_mode(device, &now, &later) != NVML_OK) {
		doctor_report(d, DOCTOR_OK, "GPU %s has no MIG", bus);
	} else if (now == 0) {
		doctor_report(d, DOCTOR_OK, "GPU %s: MIG is off%s", bus,
			      later != 0 ? ", and on after the next reset" : "");
	} else {
		doctor_report(d, DOCTOR_WARNING,
			      "GPU %s: MIG is on, and the agent has never run on an instance", bus);
		doctor_fix(d, "name one instance per agent: CUDA_VISIBLE_DEVICES=MIG-... of "
			      "nvidia-smi -L, and --gpu 0; or turn MIG off (nvidia-smi -mig 0)");
	}
}

void check_gpu_mig(struct doctor *d)
{
	each_of_nvml(d, judge_mig);
}

static void judge_memory(struct doctor *d, const struct nvml *nvml, nvml_device device,
			 const char *bus)
{
	unsigned long long free_mb, total_mb;
	struct nvml_memory memory;

	if (nvml->memory == NULL || nvml->memory(device, &memory) != NVML_OK) {
		doctor_report(d, DOCTOR_NA, "NVML does not tell the memory of GPU %s", bus);
		return;
	}
	free_mb = memory.free >> 20;
	total_mb = memory.total >> 20;
	if (free_mb >= d->plan.gpu_memory_mb) {
		doctor_report(d, DOCTOR_OK, "GPU %s: %llu of %llu MB free", bus, free_mb, total_mb);
	} else if (doctor_is_running(d)) {
		doctor_report(d, DOCTOR_OK, "GPU %s: %llu of %llu MB free, the agent runs", bus,
			      free_mb, total_mb);
	} else {
		doctor_report(d, DOCTOR_PROBLEM, "GPU %s: %llu of %llu MB free, %u wanted", bus,
			      free_mb, total_mb, d->plan.gpu_memory_mb);
		doctor_fix(d, "stop other programs on it (nvidia-smi), use another GPU (--gpu), or "
			      "lower --gpu-memory-mb");
	}
}

void check_gpu_budget(struct doctor *d)
{
	each_of_nvml(d, judge_memory);
}

/* --- MPS ---------------------------------------------------------------------------------------
 */

/* The value of a variable of this process's environment; empty: not set. */
static void environment(const struct doctor *d, const char *name, char *value, size_t size)
{
	size_t length = strlen(name);
	char text[16384];

	value[0] = '\0';
	doctor_read(d, text, sizeof(text), "/proc/self/environ");
	for (const char *at = text; *at != '\0'; at += strcspn(at, " "), at += *at == ' ')
		if (strncmp(at, name, length) == 0 && at[length] == '=')
			snprintf(value, size, "%.*s", (int)strcspn(at + length + 1, " "),
				 at + length + 1);
}

static bool mps_runs(const struct doctor *d)
{
	struct doctor_names processes;
	char name[32];

	doctor_list(d, &processes, "/proc");
	for (unsigned int i = 0; i < processes.n; i++)
		if (processes.name[i][0] >= '0' && processes.name[i][0] <= '9' &&
		    doctor_read(d, name, sizeof(name), "/proc/%s/comm", processes.name[i]) >= 0 &&
		    strcmp(name, MPS_DAEMON) == 0)
			return true;
	return false;
}

void check_gpu_mps(struct doctor *d)
{
	char folder[160], threads[16], memory[64];
	bool runs = mps_runs(d), given, reached;

	environment(d, "CUDA_MPS_PIPE_DIRECTORY", folder, sizeof(folder));
	environment(d, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", threads, sizeof(threads));
	environment(d, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", memory, sizeof(memory));
	given = folder[0] != '\0';
	if (!given)
		snprintf(folder, sizeof(folder), MPS_FOLDER);
	reached = doctor_exists(d, "%s/control", folder);
	if (runs && reached) {
		doctor_report(d, DOCTOR_OK, "MPS runs at %s; threads %s, memory %s", folder,
			      threads[0] != '\0' ? threads : "not limited",
			      memory[0] != '\0' ? memory : "not limited");
	} else if (runs) {
		doctor_report(d, DOCTOR_WARNING,
			      "MPS runs, but not at %s: a program that starts here runs beside it, "
			      "in turns with all its clients",
			      folder);
		doctor_fix(d, "set CUDA_MPS_PIPE_DIRECTORY for the agent as for "
			      "nvidia-cuda-mps-control (systemd: Environment=)");
	} else if (given || threads[0] != '\0' || memory[0] != '\0') {
		doctor_report(d, DOCTOR_WARNING,
			      "CUDA_MPS_... is set and MPS does not run: nothing limits anybody");
		doctor_fix(d,
			   "nvidia-cuda-mps-control -d; or unset CUDA_MPS_PIPE_DIRECTORY, "
			   "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE, CUDA_MPS_PINNED_DEVICE_MEM_LIMIT");
	} else {
		doctor_report(d, DOCTOR_OK, "no MPS: programs on one GPU take turns");
	}
}

/* --- NUMA --------------------------------------------------------------------------------------
 */

static int rdma_node(const struct doctor *d, const struct plan_rdma *rdma)
{
	long long node = -1;

	return doctor_read_number(d, &node, "/sys/class/infiniband/%s/device/numa_node",
				  rdma->name) == 0
		       ? (int)node
		       : -1;
}

static void judge_nic(struct doctor *d, const char *bus, int gpu, const char *name, int node)
{
	if (node < 0 || node == gpu)
		return;
	doctor_report(d, DOCTOR_WARNING, "GPU %s is on node %d, %s on node %d", bus, gpu, name,
		      node);
	doctor_fix(d, "use a NIC of the GPU's node (nvidia-smi topo -m), or another GPU (--gpu)");
}

/* How many CPUs this process may use on the node, and elsewhere. False: nobody tells. */
static bool count_cpus(const struct doctor *d, int node, unsigned int *there, unsigned int *else_)
{
	char status[8192], list[4096];
	struct doctor_cpus allowed, on_node;
	const char *line;

	*there = *else_ = 0;
	doctor_read(d, status, sizeof(status), "/proc/self/status");
	line = doctor_line(status, "Cpus_allowed_list:");
	if (line == NULL || !doctor_cpus_parse(&allowed, line) ||
	    doctor_read(d, list, sizeof(list), NODES "/node%d/cpulist", node) < 0 ||
	    !doctor_cpus_parse(&on_node, list))
		return false;
	for (unsigned int cpu = 0; cpu < DOCTOR_CPUS; cpu++) {
		*there += allowed.has[cpu] && on_node.has[cpu];
		*else_ += allowed.has[cpu] && !on_node.has[cpu];
	}
	return true;
}

static void judge_cpus(struct doctor *d, const char *bus, int node)
{
	unsigned int there, elsewhere;

	if (!count_cpus(d, node, &there, &elsewhere) || elsewhere == 0)
		return;
	doctor_report(d, DOCTOR_WARNING, "GPU %s is on node %d, and the agent may run on %s", bus,
		      node, there == 0 ? "other nodes only" : "others, too");
	doctor_fix(
		d,
		"numactl --cpunodebind=%d --membind=%d doorbell-agent ...; in a unit NUMAMask=%d, "
		"NUMAPolicy=bind, CPUAffinity=numa",
		node, node, node);
}

static void judge_hugepages(struct doctor *d, const char *bus, int node)
{
	long long small = 0, large = 0;
	unsigned long long mb;

	if (d->plan.n_rdma > 0 || !d->plan.known || !d->plan.hugepages || doctor_is_running(d))
		return;
	doctor_read_number(d, &small, NODES "/node%d/hugepages/hugepages-2048kB/free_hugepages",
			   node);
	doctor_read_number(d, &large, NODES "/node%d/hugepages/hugepages-1048576kB/free_hugepages",
			   node);
	mb = (unsigned long long)(small * 2 + large * 1024);
	if (mb >= d->plan.memory_mb)
		return;
	doctor_report(d, DOCTOR_WARNING,
		      "GPU %s is on node %d, which has %llu MiB of hugepages free, %u needed", bus,
		      node, mb, d->plan.memory_mb);
	doctor_fix(d, "echo %u > " NODES "/node%d/hugepages/hugepages-2048kB/nr_hugepages",
		   d->plan.memory_mb / 2 + 1, node);
}

static void judge_gpu_node(struct doctor *d, const char *bus)
{
	int node = places_gpu_node(d->root, bus);
	unsigned int before = d->n;

	if (node < 0)
		return;
	for (unsigned int i = 0; i < d->plan.n_ports; i++)
		judge_nic(d, bus, node, d->plan.port[i].name,
			  doctor_port_node(d, &d->plan.port[i]));
	for (unsigned int i = 0; i < d->plan.n_rdma; i++)
		judge_nic(d, bus, node, d->plan.rdma[i].name, rdma_node(d, &d->plan.rdma[i]));
	judge_cpus(d, bus, node);
	judge_hugepages(d, bus, node);
	if (d->n == before)
		doctor_report(d, DOCTOR_OK, "GPU %s: node %d, as CPUs and NIC", bus, node);
}

void check_gpu_node(struct doctor *d)
{
	struct doctor_names names;
	unsigned int gpus = 0;

	if (!doctor_exists(d, NODES "/node1")) {
		doctor_report(d, DOCTOR_NA, "one NUMA node");
		return;
	}
	doctor_list(d, &names, "/sys/bus/pci/devices");
	for (unsigned int i = 0; i < names.n; i++) {
		if (!check_gpu_is(d, names.name[i]))
			continue;
		gpus++;
		judge_gpu_node(d, names.name[i]);
	}
	if (d->n == 0)
		doctor_report(d, DOCTOR_NA, "%s",
			      gpus == 0 ? NO_GPU : "the kernel does not tell a GPU's node");
}
