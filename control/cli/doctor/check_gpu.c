/* SPDX-License-Identifier: BSD-3-Clause */
/* The GPU: its driver, how a NIC reaches its memory, how it reaches a NIC's doorbell. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/doctor/check.h"
#include "cli/doctor/check_gpu.h"

#define NVIDIA       0x10de
#define CLASS_VGA    0x0300
#define CLASS_3D     0x0302
#define PARAMS       "/proc/driver/nvidia/params"
#define VERSION      "/proc/driver/nvidia/version"
#define NO_DRIVER    "no NVIDIA driver here"
#define DMABUF_MAJOR 5 /* Linux 5.12: dma-buf memory regions */
#define DMABUF_MINOR 12
#define CUDA_LIBRARY "libcuda.so.1"
#define OWNER        100 /* CU_GPU_DIRECT_RDMA_WRITES_ORDERING_OWNER */
#define SM_ACQUIRE   7   /* compute capability that has ld.acquire.sys */

bool check_gpu_is(const struct doctor *d, const char *bus)
{
	long long vendor, class;

	return doctor_read_number(d, &vendor, "/sys/bus/pci/devices/%s/vendor", bus) == 0 &&
	       vendor == NVIDIA &&
	       doctor_read_number(d, &class, "/sys/bus/pci/devices/%s/class", bus) == 0 &&
	       (class >> 8 == CLASS_VGA || class >> 8 == CLASS_3D);
}

/* True when the PCI bus has a GPU, with any driver or none. */
static bool has_gpu(const struct doctor *d)
{
	struct doctor_names names;

	doctor_list(d, &names, "/sys/bus/pci/devices");
	for (unsigned int i = 0; i < names.n; i++)
		if (check_gpu_is(d, names.name[i]))
			return true;
	return false;
}

/* Copy the first word that looks like a version into <version>. */
static void find_version(const char *text, char *version, size_t size)
{
	unsigned int major, minor;

	version[0] = '\0';
	while (*text && *text != '\n') {
		size_t n = strcspn(text, " \n");

		if (n > 0 && n < size && sscanf(text, "%u.%u", &major, &minor) == 2) {
			snprintf(version, size, "%.*s", (int)n, text);
			return;
		}
		text += n + (text[n] == ' ');
	}
}

void check_gpu_driver(struct doctor *d)
{
	char text[1024], version[32];
	const char *line;

	if (doctor_read(d, text, sizeof(text), VERSION) < 0) {
		if (!has_gpu(d)) {
			doctor_report(d, DOCTOR_NA, NO_DRIVER ", and no NVIDIA GPU on the bus");
			return;
		}
		doctor_report(d, DOCTOR_WARNING, "an NVIDIA GPU, but " NO_DRIVER);
		doctor_fix(d, "install the driver (Debian: apt-get install "
			      "nvidia-open-kernel-dkms), then modprobe nvidia");
		return;
	}
	line = doctor_line(text, "NVRM version:");
	find_version(line != NULL ? line : "", version, sizeof(version));
	if (version[0] == '\0') {
		doctor_report(d, DOCTOR_WARNING, VERSION " has no version");
		doctor_fix(d, "look yourself: nvidia-smi");
	} else {
		doctor_report(d, DOCTOR_OK, "%s%s", version,
			      strstr(text, "Open Kernel Module") != NULL ? ", open kernel modules"
									 : "");
	}
}

/* True when this Linux can make a memory region of a dma-buf. */
static bool kernel_takes_dma_buf(const struct doctor *d, char *release, size_t size)
{
	unsigned int major = 0, minor = 0;

	doctor_read(d, release, size, "/proc/sys/kernel/osrelease");
	sscanf(release, "%u.%u", &major, &minor);
	return major > DMABUF_MAJOR || (major == DMABUF_MAJOR && minor >= DMABUF_MINOR);
}

void check_gpu_memory(struct doctor *d)
{
	char text[1024], release[64];
	bool kernel = kernel_takes_dma_buf(d, release, sizeof(release)), open;

	if (doctor_read(d, text, sizeof(text), VERSION) < 0) {
		doctor_report(d, DOCTOR_NA, NO_DRIVER);
		return;
	}
	open = strstr(text, "Open Kernel Module") != NULL;
	if (kernel && open) {
		doctor_report(d, DOCTOR_OK, "dma-buf: Linux %.40s, open kernel modules", release);
	} else if (doctor_exists(d, "/sys/module/nvidia_peermem")) {
		doctor_report(d, DOCTOR_OK, "nvidia-peermem");
	} else {
		doctor_report(d, d->plan.n_rdma ? DOCTOR_PROBLEM : DOCTOR_WARNING,
			      "a NIC cannot reach GPU memory: no nvidia-peermem, and no dma-buf "
			      "(%s)",
			      kernel ? "it needs the open kernel modules" : "it needs Linux 5.12");
		doctor_fix(d,
			   "modprobe nvidia-peermem, and echo nvidia-peermem > "
			   "/etc/modules-load.d/nvidia-peermem.conf to keep it%s",
			   kernel ? "; or install nvidia-open-kernel-dkms" : "");
	}
}

void check_gpu_doorbell(struct doctor *d)
{
	char text[16384];
	const char *line;
	size_t n;

	if (doctor_read(d, text, sizeof(text), PARAMS) < 0) {
		doctor_report(d, DOCTOR_NA, "%s",
			      doctor_exists(d, VERSION) ? PARAMS " cannot be read" : NO_DRIVER);
		return;
	}
	line = doctor_line(text, "RegistryDwords:");
	n = line != NULL ? strcspn(line, "\n") : 0;
	if (n > 0 && memmem(line, n, "PeerMappingOverride=1", 21) != NULL) {
		doctor_report(d, DOCTOR_OK,
			      "PeerMappingOverride=1: a GPU may ring a NIC's doorbell");
		return;
	}
	doctor_report(d, d->plan.n_rdma ? DOCTOR_PROBLEM : DOCTOR_WARNING,
		      "without PeerMappingOverride a GPU cannot ring a NIC's doorbell "
		      "(cudaHostRegister: error 800); the agent then posts by a thread, which "
		      "takes a core");
	doctor_fix(d, "echo 'options nvidia NVreg_RegistryDwords=\"PeerMappingOverride=1;\"' > "
		      "/etc/modprobe.d/doorbell.conf, update-initramfs -u, reboot");
}

void check_gpu_judge(struct doctor *d, unsigned int index, const struct cuda_gpu *gpu)
{
	if (gpu->major < SM_ACQUIRE) {
		doctor_report(d, DOCTOR_PROBLEM, "GPU %u %s: compute capability %d.%d", index,
			      gpu->name, gpu->major, gpu->minor);
		doctor_fix(d, "use a GPU of 7.0 or later (CUDA_VISIBLE_DEVICES chooses)");
	} else if (gpu->writes_ordering < OWNER) {
		doctor_report(d, DOCTOR_PROBLEM,
			      "GPU %u %s: what a NIC writes may be seen out of order (ordering %d, "
			      "flush options %d)",
			      index, gpu->name, gpu->writes_ordering, gpu->flush_options);
		doctor_fix(d, "requests stay in host memory (--memory host, or auto); or use a GPU "
			      "with write ordering (CUDA_VISIBLE_DEVICES chooses)");
	} else if (gpu->direct_rdma != 1 && gpu->dma_buf != 1) {
		doctor_report(d, DOCTOR_WARNING,
			      "GPU %u %s: neither GPUDirect RDMA nor dma-buf; NICs cannot write to "
			      "its memory",
			      index, gpu->name);
		doctor_fix(d, "keep requests in host memory, or use a data-center GPU; in a VM "
			      "pass the whole GPU through");
	} else {
		doctor_report(d, DOCTOR_OK,
			      "GPU %u %s: %d.%d, GPUDirect RDMA %s, dma-buf %s, write ordering %d",
			      index, gpu->name, gpu->major, gpu->minor,
			      gpu->direct_rdma == 1 ? "yes" : "no",
			      gpu->dma_buf == 1 ? "yes" : "no", gpu->writes_ordering);
	}
}

void check_gpus(struct doctor *d)
{
	struct cuda_gpu gpu[CUDA_GPUS_MAX];
	char error[128] = "";
	int n;

	if (d->root[0] != '\0') {
		doctor_report(d, DOCTOR_NA, "the CUDA driver tells of this machine, not of %s",
			      d->root);
		return;
	}
	n = cuda_gpus(CUDA_LIBRARY, gpu, error, sizeof(error));
	if (n == -ENOENT && !doctor_exists(d, VERSION)) {
		doctor_report(d, DOCTOR_NA, NO_DRIVER);
	} else if (n == -ENOENT) {
		doctor_report(d, DOCTOR_PROBLEM, "the NVIDIA driver, but no " CUDA_LIBRARY);
		doctor_fix(d, "apt-get install libcuda1; in a container --gpus all");
	} else if (n < 0) {
		doctor_report(d, DOCTOR_PROBLEM, "%s", error);
		doctor_fix(d, "nvidia-smi shows whether driver and library fit each other; "
			      "reboot after an update of the driver");
	} else if (n == 0) {
		doctor_report(d, DOCTOR_WARNING, "the CUDA driver sees no GPU");
		doctor_fix(d, "unset CUDA_VISIBLE_DEVICES; in a container --gpus all");
	}
	for (int i = 0; i < n; i++)
		check_gpu_judge(d, (unsigned int)i, &gpu[i]);
}
