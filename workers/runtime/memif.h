/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sockets of DPDK's memif, by which its two ends find each other: the one with role=server
 * listens. Pure but for files and sockets; any thread.
 *
 * DPDK 22.11's driver has gaps, which show when two processes start or end at about the same time.
 *
 * A client connects when its port starts, and only then. If nobody listens yet, the start fails; if
 * the server is not started yet, or has not noticed that the client before has gone, it refuses
 * ("ID not found", "Already connected"), and the client has no link from then on. Nor has it after
 * the server was restarted. So port_attend() starts such a port again until it has a link.
 *
 * On hearing that the other end has gone, the EAL's interrupt thread unmaps the rings that lcores
 * are reading: a worker that was killed under load ended its load balancer. So that thread is held
 * (eal_interrupt_hold()) while a memif has something for it, and goes on when no lcore uses the
 * port.
 *
 * A client that has gone between its connect() and the server's accept() ended the server's
 * process, and one that reads nothing halted the thread: sendmsg() in eal_end.c.
 *
 * A server that was killed leaves the socket's file, and the next one cannot listen. So one at
 * which nobody listens is removed first (memif_remove_left()).
 */
#ifndef RUNTIME_MEMIF_H
#define RUNTIME_MEMIF_H

#include <stdbool.h>

/* True when <device> is a memif that connects; false for one that listens, and for other devices.
 */
bool memif_connects(const char *device);
/* True for a socket of a memif. Nothing else in our processes has sockets of this kind. */
bool memif_is_socket(int fd);
/*
 * The sockets of this process' memifs, as one descriptor to poll, into <epoll>, which is made if it
 * is 0. Again when some may have been opened. False when that is not possible.
 */
bool memif_watch(int *epoll);
/* True when something has come by one of them. */
bool memif_has_news(int epoll);
#define MEMIF_SOCKET_MAX 108
/* The value of socket= in <device>: a path, or the beginning of an abstract name. */
void memif_socket(const char *device, char socket[MEMIF_SOCKET_MAX]);
/*
 * True while a memif of this process that connects has a connection to <socket>: the other end has
 * not refused it and has not gone, whether it has got to it yet or not.
 */
bool memif_has_connection(const char *socket);
/* Before a memif that listens is opened: remove the file of a socket at which nobody does. */
void memif_remove_left(const char *device);

#endif
