/* SPDX-License-Identifier: BSD-3-Clause */
#include "runtime/joined.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>

static bool joined_ask(int fd, const char *interface, void *question)
{
	struct ifreq request = {.ifr_data = question};

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%.*s", IF_NAMESIZE - 1, interface);
	return ioctl(fd, SIOCETHTOOL, &request) == 0;
}

bool joined_segments(const char *interface, char *fix, size_t size)
{
	struct ethtool_value gro = {.cmd = ETHTOOL_GGRO}, flags = {.cmd = ETHTOOL_GFLAGS};
	struct ethtool_drvinfo driver = {.cmd = ETHTOOL_GDRVINFO};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool joins, veth;

	if (fd < 0)
		return false;
	joins = (joined_ask(fd, interface, &gro) && gro.data != 0) ||
		(joined_ask(fd, interface, &flags) && flags.data & ETH_FLAG_LRO);
	veth = joined_ask(fd, interface, &driver) && strcmp(driver.driver, "veth") == 0;
	close(fd);
	if (joins)
		snprintf(fix, size, "ethtool -K %s gro off lro off", interface);
	else if (veth)
		snprintf(fix, size,
			 "ethtool -K PEER tso off gso off, where PEER is the other end of %s",
			 interface);
	return joins || veth;
}
