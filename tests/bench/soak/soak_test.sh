#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The bench soak in small: 10 seconds of its load, with an event every two. It fails when a packet buffer, a slot, a
# connection or a descriptor is left after it, or a reply is wrong or missing.
#
# Runs beside another: it waits between its events.
set -euo pipefail

build=${DOORBELL_BUILD:-$(realpath "$(dirname "$0")/../../../build")}
BUILD=$build "$(dirname "$0")/soak.sh" --seconds 10 --warm 4 --every 2
