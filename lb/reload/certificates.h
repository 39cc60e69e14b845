/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Certificates of services, read again with each reload: connections that are open go on, new ones
 * get what the files have now. Control thread.
 */
#ifndef LB_CERTIFICATES_H
#define LB_CERTIFICATES_H

#include "config/config.h"
#include "tls/helper.h"

/*
 * Read the files of all services that serve. NULL with a sentence in <error> that names service,
 * file and reason. <strict>: a certificate that has ended, or is not valid yet, is refused; else
 * that is logged.
 */
struct tls_certificates *certificates_load(const struct lb_config *config, bool strict, char *error,
					   size_t size);

#endif
