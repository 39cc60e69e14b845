/* SPDX-License-Identifier: BSD-3-Clause */
/* Places from a file system and a libnvidia-ml that the rows describe. */
#include "fake_nvml.h"
#include "gpu/places.h"

#include <criterion/criterion.h>
#include <ftw.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[] = "/tmp/doorbell-places.XXXXXX";
static struct places places;

static void make_folders(const char *path)
{
	char part[512];

	snprintf(part, sizeof(part), "%s", path);
	for (char *at = part + strlen(root) + 1; (at = strchr(at, '/')) != NULL; at++) {
		*at = '\0';
		mkdir(part, 0700);
		*at = '/';
	}
	mkdir(part, 0700);
}

static void folder(const char *path)
{
	char full[512];

	snprintf(full, sizeof(full), "%s%s", root, path);
	make_folders(full);
}

/* A GPU at <bus> below <parent>, on <node>. */
static void gpu(const char *parent, const char *bus, int node)
{
	char real[256], link[512], target[512], file[600];
	FILE *f;

	snprintf(real, sizeof(real), "/sys/devices/%s/%s", parent, bus);
	folder(real);
	folder("/sys/bus/pci/devices");
	snprintf(target, sizeof(target), "%s%s", root, real);
	snprintf(link, sizeof(link), "%s/sys/bus/pci/devices/%s", root, bus);
	cr_assert_eq(symlink(target, link), 0);
	snprintf(file, sizeof(file), "%s/numa_node", target);
	f = fopen(file, "w");
	cr_assert_not_null(f);
	fprintf(f, "%d\n", node);
	fclose(f);
}

static int remove_one(const char *path, const struct stat *s, int type, struct FTW *at)
{
	return remove(path);
}

static void begin(void)
{
	cr_assert_not_null(mkdtemp(root));
}

static void end(void)
{
	fake_nvml_remove();
	nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

TestSuite(gpu_places, .init = begin, .fini = end);

static void look(const struct nvml *nvml, const char *bus)
{
	places_of_process(&places, root, "gpu7");
	places_of_gpu(&places, root, nvml, bus);
}

static void expect(enum place place, const char *text)
{
	cr_expect_str_eq(places.text[place], text, "%s", place_name(place));
}

Test(gpu_places, a_gpu_has_the_kernel_s_node_and_root)
{
	gpu("pci0000:3a/0000:3a:00.0/0000:3b:00.0", "0000:3c:00.0", 1);
	look(NULL, "0000:3C:00.0");
	expect(PLACE_HOST, "gpu7");
	expect(PLACE_NUMA, "gpu7/1");
	expect(PLACE_PCIE, "gpu7/pci0000:3a");
	expect(PLACE_NVLINK, "");
	/* NVML's form of the address */
	look(NULL, "00000000:3C:00.0");
	expect(PLACE_NUMA, "gpu7/1");
}

Test(gpu_places, what_the_kernel_does_not_say_is_left_empty)
{
	gpu("virtual", "0000:01:00.0", -1);
	look(NULL, "0000:01:00.0");
	expect(PLACE_HOST, "gpu7");
	expect(PLACE_NUMA, "");
	expect(PLACE_PCIE, "");
	look(NULL, "0000:99:00.0");
	expect(PLACE_NUMA, "");
	look(NULL, "no address");
	expect(PLACE_HOST, "gpu7");
	expect(PLACE_PCIE, "");
	cr_expect_eq(places_gpu_node(root, "0000:01:00.0"), -1);
}

Test(gpu_places, a_value_that_does_not_fit_is_no_label)
{
	char host[80];

	memset(host, 'h', 63);
	host[63] = '\0';
	gpu("pci0000:3a", "0000:3c:00.0", 1);
	places_of_process(&places, root, host);
	places_of_gpu(&places, root, NULL, "0000:3c:00.0");
	expect(PLACE_HOST, host);
	expect(PLACE_NUMA, "");
	expect(PLACE_PCIE, "");
}

Test(gpu_places, a_process_is_on_a_node_when_all_its_cpus_are)
{
	cpu_set_t cpus;
	char path[128];

	folder("/sys/devices/system/node/node0");
	places_of_process(&places, root, "gpu7");
	expect(PLACE_NUMA, "");
	folder("/sys/devices/system/node/node1");
	places_of_process(&places, root, "gpu7");
	expect(PLACE_NUMA, "");
	cr_assert_eq(sched_getaffinity(0, sizeof(cpus), &cpus), 0);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &cpus))
			continue;
		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/node1", cpu);
		folder(path);
	}
	places_of_process(&places, root, "gpu7");
	expect(PLACE_NUMA, "gpu7/1");
}

static const struct {
	const char *machine, *bus, *island;
} islands[] = {
	/* a GPU without NVLink */
	{"0000:17:00.0 1000 400 - - -\n", "0000:17:00.0", ""},
	/* all links are down */
	{"0000:17:00.0 1000 400 - off,off -\n", "0000:17:00.0", ""},
	/* NVSwitch: all GPUs of the host */
	{"0000:17:00.0 1000 400 0 switch,switch -\n0000:2a:00.0 1000 400 0 off,switch -\n",
	 "0000:2a:00.0", "gpu7/switch"},
	/* two bridges, of two GPUs each */
	{"0000:17:00.0 1 1 - 0000:2a:00.0 -\n0000:2a:00.0 1 1 - 0000:17:00.0 -\n"
	 "0000:3d:00.0 1 1 - 0000:5e:00.0 -\n0000:5e:00.0 1 1 - 0000:3d:00.0 -\n",
	 "0000:5e:00.0", "gpu7/0000:3d:00.0"},
	/* a chain: the far end is reached by the middle */
	{"0000:17:00.0 1 1 - 0000:2a:00.0 -\n0000:2a:00.0 1 1 - 0000:17:00.0,0000:3d:00.0 -\n"
	 "0000:3d:00.0 1 1 - 0000:2a:00.0 -\n",
	 "0000:3d:00.0", "gpu7/0000:17:00.0"},
	/* its peer belongs to another container: it counts all the same */
	{"0000:2a:00.0 1 1 - 0000:17:00.0 -\n", "0000:2a:00.0", "gpu7/0000:17:00.0"},
	/* a rack: the same on each of its hosts */
	{"0000:17:00.0 1 1 - switch 171/3\n", "0000:17:00.0", "ab000000000000000000000000000000/3"},
	/* a host of its own: the fabric has no UUID */
	{"0000:17:00.0 1 1 - switch 0/0\n", "0000:17:00.0", "gpu7/switch"},
	/* NVML does not know it */
	{"0000:17:00.0 1 1 - switch -\n", "0000:99:00.0", ""},
};

Test(gpu_places, links_make_islands)
{
	for (size_t i = 0; i < sizeof(islands) / sizeof(islands[0]); i++) {
		struct nvml nvml = fake_nvml_open(islands[i].machine);

		look(&nvml, islands[i].bus);
		cr_expect_str_eq(places.text[PLACE_NVLINK], islands[i].island, "row %zu: %s", i,
				 places.text[PLACE_NVLINK]);
	}
}

Test(gpu_places, an_old_library_leaves_islands_out)
{
	struct nvml nvml = fake_nvml_open("0000:17:00.0 1 1 - switch 171/3\n");

	nvml.fabric = NULL;
	nvml.link_type = NULL;
	nvml.link_state = NULL;
	look(&nvml, "0000:17:00.0");
	expect(PLACE_NVLINK, "");
}
