/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "config/address.h"
#include "server/stream.h"

static int listen_fail(int fd, char *error, size_t error_size, const char *doing, const char *what)
{
	int err = errno;

	snprintf(error, error_size, "%s %s: %s", doing, what, strerror(err));
	if (fd >= 0)
		close(fd);
	return -err;
}

static int make_parent(const char *path, char *error, size_t error_size)
{
	char parent[sizeof(((struct sockaddr_un *)0)->sun_path)];
	char *slash;

	snprintf(parent, sizeof(parent), "%s", path);
	slash = strrchr(parent, '/');
	if (slash == NULL || slash == parent)
		return 0;
	*slash = '\0';
	if (mkdir(parent, 0755) != 0 && errno != EEXIST)
		return listen_fail(-1, error, error_size, "cannot make the directory", parent);
	return 0;
}

/* Remove a socket that a crash left behind, unless a process still answers on it. */
static int clear_stale(const struct sockaddr_un *address, char *error, size_t error_size)
{
	const char *path = address->sun_path;
	struct stat st;
	int fd, err;

	if (lstat(path, &st) != 0)
		return errno == ENOENT ? 0
				       : listen_fail(-1, error, error_size, "cannot look at", path);
	if (!S_ISSOCK(st.st_mode)) {
		snprintf(error, error_size,
			 "%s exists and is not a socket; remove it or set another control socket",
			 path);
		return -EEXIST;
	}
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return listen_fail(-1, error, error_size, "cannot make a socket for", path);
	/* EAGAIN means a listener with a full backlog, so the process exists */
	err = connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 ? 0 : errno;
	close(fd);
	if (err != ECONNREFUSED && err != ENOENT) {
		snprintf(error, error_size,
			 "another doorbell-lb runs: it answers on %s; stop it or set another "
			 "control socket",
			 path);
		return -EADDRINUSE;
	}
	if (unlink(path) != 0 && errno != ENOENT)
		return listen_fail(-1, error, error_size, "cannot remove the stale socket", path);
	return 0;
}

/* Find a group by name or by number; false when there is none. */
static bool find_group(const char *name, gid_t *gid)
{
	const struct group *group = getgrnam(name);
	char *end;
	unsigned long number = strtoul(name, &end, 10);

	*gid = group != NULL ? group->gr_gid : (gid_t)number;
	return group != NULL || (*end == '\0' && end != name && number < UINT32_MAX);
}

static int give_to_group(const char *path, const char *name, char *error, size_t error_size)
{
	gid_t gid;

	if (!find_group(name, &gid)) {
		snprintf(error, error_size,
			 "%s: there is no group '%s' here; make it (groupadd --system %s), or name "
			 "another in control.socket_group or control.read_only_group",
			 path, name, name);
		return -ENOENT;
	}
	if (chown(path, (uid_t)-1, gid) == 0)
		return 0;
	snprintf(error, error_size,
		 "cannot give %s to the group '%s': %s; run as root with CAP_CHOWN, or as a member",
		 path, name, strerror(errno));
	return -errno;
}

int control_listen_unix(const char *path, const char *group, char *error, size_t error_size)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd, rc;

	if (*path == '\0' || strlen(path) >= sizeof(address.sun_path)) {
		snprintf(error, error_size, "control socket '%s': give a path of 1 to %zu bytes",
			 path, sizeof(address.sun_path) - 1);
		return -EINVAL;
	}
	memcpy(address.sun_path, path, strlen(path));
	rc = make_parent(path, error, error_size);
	if (rc == 0)
		rc = clear_stale(&address, error, error_size);
	if (rc != 0)
		return rc;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)) != 0)
		return listen_fail(fd, error, error_size, "cannot listen on", path);
	/* no client can connect before listen(), so this leaves no gap */
	rc = *group ? give_to_group(address.sun_path, group, error, error_size) : 0;
	if (rc != 0) {
		close(fd);
		unlink(path);
		return rc;
	}
	if (chmod(path, 0660) != 0)
		return listen_fail(fd, error, error_size, "cannot set the mode of", path);
	return fd;
}

static socklen_t fill_sockaddr(const struct lb_address *address, uint16_t port,
			       struct sockaddr_storage *out)
{
	struct sockaddr_in *in4 = (struct sockaddr_in *)out;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)out;

	memset(out, 0, sizeof(*out));
	if (address->family == 6) {
		in6->sin6_family = AF_INET6;
		in6->sin6_addr = address->addr;
		in6->sin6_port = htons(port);
		return sizeof(*in6);
	}
	in4->sin_family = AF_INET;
	memcpy(&in4->sin_addr, &address->addr.s6_addr[12], 4);
	in4->sin_port = htons(port);
	return sizeof(*in4);
}

int control_listen_tcp(const struct lb_address *address, uint16_t port, char *error,
		       size_t error_size)
{
	char text[LB_ADDRESS_TEXT], what[LB_ADDRESS_TEXT + 32];
	struct sockaddr_storage storage;
	socklen_t length = fill_sockaddr(address, port, &storage);
	int fd, on = 1;

	lb_address_format(address, text, sizeof(text));
	snprintf(what, sizeof(what), "for agents on %s port %u", text, port);
	fd = socket(storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return listen_fail(fd, error, error_size, "cannot listen", what);
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
	    bind(fd, (const struct sockaddr *)&storage, length) != 0)
		return listen_fail(fd, error, error_size, "cannot listen", what);
	return fd;
}
