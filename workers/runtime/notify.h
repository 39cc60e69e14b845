/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Notifies the service manager by the protocol of sd_notify(3): datagrams of "KEY=value" lines to
 * the socket in $NOTIFY_SOCKET. Without that variable the calls do nothing.
 */
#ifndef RUNTIME_NOTIFY_H
#define RUNTIME_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

struct notify {
	int fd;               /* -1: no service manager */
	uint64_t watchdog_us; /* longest time between two WATCHDOG=1; 0: no watchdog */
};

/*
 * Connect to $NOTIFY_SOCKET and read $WATCHDOG_USEC (if $WATCHDOG_PID is unset or this process),
 * and remove them from the environment, so that children do not use them. 0 or -errno; <notify> is
 * usable either way.
 */
int notify_open(struct notify *notify);
void notify_close(struct notify *notify);

/* Send lines such as "READY=1\nSTATUS=serving 3 services". 0 or -errno. */
int notify_send(const struct notify *notify, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Send RELOADING=1 with the time, as Type=notify-reload requires; READY=1 ends the reload. */
int notify_reloading(const struct notify *notify);

#endif
