#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# The end of meson install: the loader's cache, and what to set where the system does not look.
#
#   after-install.sh LIBRARY-FOLDER PYTHON-FOLDER
#
# With DESTDIR, a package is being made: its own scripts do that.
set -eu

[ -z "${DESTDIR:-}" ] || exit 0
PATH=$PATH:/usr/sbin:/sbin
libraries=$1 modules=$2

if [ "$(id -u)" -eq 0 ]; then
    ldconfig
fi
if ! ldconfig -p | grep -qF "$libraries/libdoorbell-agent.so"; then
    echo "The loader does not look into $libraries, where libdoorbell-agent.so is. Programs that are linked"
    echo "with it need: echo $libraries >/etc/ld.so.conf.d/doorbell.conf && ldconfig"
fi
python3=/usr/bin/python3
[ -x $python3 ] || python3=python3
if ! $python3 -c 'import sys; sys.exit(sys.argv[1] not in sys.path)' "$modules" 2>/dev/null; then
    echo "Python does not look into $modules, where doorbell_agent.py is. It needs:"
    echo "export PYTHONPATH=$modules"
fi
