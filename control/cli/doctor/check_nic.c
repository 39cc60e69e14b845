/* SPDX-License-Identifier: BSD-3-Clause */
/* The ports' devices: present, with the right driver, with a link. */
#include <stdio.h>
#include <string.h>

#include "cli/doctor/check.h"

#define PCI_DEVICES "/sys/bus/pci/devices"
#define NET         "/sys/class/net"
#define NOIOMMU     "/sys/module/vfio/parameters/enable_unsafe_noiommu_mode"
#define MELLANOX    0x15b3

/* The device's folder in /sys; an empty text for ports without one. */
static const char *folder(const struct plan_port *port, char *text, size_t size)
{
	text[0] = '\0';
	if (port->kind == PLAN_PCI)
		snprintf(text, size, PCI_DEVICES "/%s", port->pci);
	else if (port->kind != PLAN_VIRTUAL)
		snprintf(text, size, NET "/%s", port->interface);
	return text;
}

static void judge_device(struct doctor *d, const struct plan_port *port)
{
	struct doctor_names names;
	char path[128], others[200];

	folder(port, path, sizeof(path));
	if (port->kind == PLAN_VIRTUAL) {
		doctor_report(d, DOCTOR_NA, "%s: %.100s has no hardware", port->name, port->device);
	} else if (port->kind != PLAN_PCI && port->interface[0] == '\0') {
		doctor_report(d, DOCTOR_PROBLEM, "%s: %.100s names no interface", port->name,
			      port->device);
		doctor_fix(d, "%s: add ,iface=NAME", port->key);
	} else if (doctor_exists(d, "%s", path)) {
		doctor_report(d, DOCTOR_OK, "%s: %s is there", port->name, strrchr(path, '/') + 1);
	} else if (port->kind == PLAN_PCI) {
		doctor_report(d, DOCTOR_PROBLEM, "%s: no PCI device %s", port->name, port->pci);
		doctor_fix(d, "%s: the address that lspci -D | grep -i ethernet shows", port->key);
	} else {
		doctor_list(d, &names, NET);
		doctor_report(d, DOCTOR_PROBLEM, "%s: no interface %s", port->name,
			      port->interface);
		doctor_fix(d, "%s: iface= one of %s", port->key,
			   doctor_names_text(&names, others, sizeof(others)));
	}
}

void check_port_device(struct doctor *d)
{
	doctor_each_port(d, judge_device);
}

/* True for drivers that must stay bound: the DPDK driver works through the kernel's. */
static bool is_bifurcated(const char *driver)
{
	return strcmp(driver, "mlx5_core") == 0 || strcmp(driver, "mlx4_core") == 0 ||
	       strcmp(driver, "mana") == 0;
}

/* True for drivers that hide a device from the kernel so that DPDK can take it. */
static bool is_for_dpdk(const char *driver)
{
	return strcmp(driver, "vfio-pci") == 0 || strcmp(driver, "igb_uio") == 0 ||
	       strcmp(driver, "uio_pci_generic") == 0;
}

static void judge_driver(struct doctor *d, const struct plan_port *port)
{
	char driver[64];
	long long vendor = 0;

	doctor_read_link(d, driver, sizeof(driver), PCI_DEVICES "/%s/driver", port->pci);
	doctor_read_number(d, &vendor, PCI_DEVICES "/%s/vendor", port->pci);
	if (is_bifurcated(driver)) {
		doctor_report(d, DOCTOR_OK, "%s: %s, which the kernel and DPDK share", port->name,
			      driver);
	} else if (vendor == MELLANOX) {
		doctor_report(d, DOCTOR_PROBLEM, "%s: %s is bound to '%s'; DPDK needs mlx5_core",
			      port->name, port->pci, driver[0] ? driver : "nothing");
		doctor_fix(d, "dpdk-devbind.py -b mlx5_core %s", port->pci);
	} else if (strcmp(driver, "vfio-pci") == 0) {
		doctor_report(d, DOCTOR_OK, "%s: vfio-pci", port->name);
	} else if (is_for_dpdk(driver)) {
		doctor_report(d, DOCTOR_WARNING, "%s: %s, which protects no memory", port->name,
			      driver);
		doctor_fix(d, "modprobe vfio-pci && dpdk-devbind.py -b vfio-pci %s", port->pci);
	} else {
		doctor_report(d, DOCTOR_PROBLEM, "%s: %s is bound to '%s'; DPDK needs vfio-pci",
			      port->name, port->pci, driver[0] ? driver : "nothing");
		doctor_fix(d,
			   "modprobe vfio-pci && dpdk-devbind.py -b vfio-pci %s (the kernel loses "
			   "the interface; to keep it: net_af_xdp0,iface=...)",
			   port->pci);
	}
}

static void judge_port_driver(struct doctor *d, const struct plan_port *port)
{
	if (port->kind != PLAN_PCI)
		doctor_report(d, DOCTOR_NA, "%s: no PCI device; the kernel's driver stays",
			      port->name);
	else if (!doctor_exists(d, PCI_DEVICES "/%s", port->pci))
		doctor_report(d, DOCTOR_NA, "%s: no such device", port->name);
	else
		judge_driver(d, port);
}

void check_port_driver(struct doctor *d)
{
	doctor_each_port(d, judge_port_driver);
}

/* True when a port needs vfio-pci. */
static bool wants_vfio(const struct doctor *d)
{
	for (unsigned int i = 0; i < d->plan.n_ports; i++) {
		long long vendor = 0;

		if (d->plan.port[i].kind != PLAN_PCI)
			continue;
		doctor_read_number(d, &vendor, PCI_DEVICES "/%s/vendor", d->plan.port[i].pci);
		if (vendor != MELLANOX)
			return true;
	}
	return false;
}

void check_iommu(struct doctor *d)
{
	struct doctor_names units;
	char unsafe[8];

	doctor_list(d, &units, "/sys/class/iommu");
	doctor_read(d, unsafe, sizeof(unsafe), NOIOMMU);
	if (d->plan.known && !wants_vfio(d)) {
		doctor_report(d, DOCTOR_NA, "no port needs vfio-pci");
	} else if (units.n == 0 && strcmp(unsafe, "Y") == 0) {
		doctor_report(d, DOCTOR_WARNING,
			      "vfio works without an IOMMU: NICs may write to "
			      "any memory");
		doctor_fix(d, "boot with intel_iommu=on iommu=pt (AMD: iommu=pt) if the machine "
			      "has one");
	} else if (units.n == 0) {
		doctor_report(d, d->plan.known ? DOCTOR_PROBLEM : DOCTOR_WARNING,
			      "no IOMMU, which vfio-pci needs");
		doctor_fix(d, "boot with intel_iommu=on iommu=pt (AMD: iommu=pt); a VM without "
			      "one: modprobe vfio enable_unsafe_noiommu_mode=1");
	} else if (!doctor_exists(d, "/sys/bus/pci/drivers/vfio-pci")) {
		doctor_report(d, d->plan.known ? DOCTOR_PROBLEM : DOCTOR_WARNING,
			      "an IOMMU, but vfio-pci is not loaded");
		doctor_fix(d, "modprobe vfio-pci, and echo vfio-pci > "
			      "/etc/modules-load.d/vfio-pci.conf to keep it");
	} else {
		doctor_report(d, DOCTOR_OK, "IOMMU and vfio-pci");
	}
}

static void judge_link(struct doctor *d, const struct plan_port *port)
{
	char name[DOCTOR_NAME_MAX];
	long long interface_flags = 0, carrier = 0;

	doctor_port_interface(d, port, name, sizeof(name));
	if (name[0] == '\0') {
		doctor_report(d, DOCTOR_NA, "%s: no kernel interface that would tell", port->name);
		return;
	}
	/* not operstate, which lags behind by up to a second */
	doctor_read_number(d, &carrier, NET "/%s/carrier", name);
	doctor_read_number(d, &interface_flags, NET "/%s/flags", name);
	if (!(interface_flags & IFF_UP)) {
		doctor_report(d, DOCTOR_PROBLEM, "%s: %s is down", port->name, name);
		doctor_fix(d, "ip link set dev %s up", name);
	} else if (carrier != 1) {
		doctor_report(d, DOCTOR_PROBLEM, "%s: %s has no link", port->name, name);
		doctor_fix(d, "plug in the cable, or bring up the other end; ethtool %s", name);
	} else {
		doctor_report(d, DOCTOR_OK, "%s: %s is up", port->name, name);
	}
}

void check_port_link(struct doctor *d)
{
	doctor_each_port(d, judge_link);
}
