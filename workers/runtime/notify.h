/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a daemon tells who started it, by the protocol of sd_notify(3): datagrams of "KEY=value"
 * lines to the socket in $NOTIFY_SOCKET. Without that variable nothing happens.
 */
#ifndef NOTIFY_H
#define NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

struct notify {
	int fd;               /* -1: nobody wants to know */
	uint64_t watchdog_us; /* how often WATCHDOG=1 must come; 0: it need not */
};

/*
 * Takes $NOTIFY_SOCKET and $WATCHDOG_USEC (if $WATCHDOG_PID is us or not there) out of the
 * environment, so that children do not speak for us. 0 or -errno; <notify> is usable either way.
 */
int notify_open(struct notify *notify);
void notify_close(struct notify *notify);

/* Lines such as "READY=1\nSTATUS=serving 3 services". 0 or -errno. */
int notify_send(const struct notify *notify, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* RELOADING=1 with the time, as Type=notify-reload wants it; READY=1 ends it. */
int notify_reloading(const struct notify *notify);

#endif
