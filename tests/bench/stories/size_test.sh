#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Runs beside another: it measures no time.
#
# The bench size in small: one load for some seconds. Its figures mean nothing here.
set -euo pipefail

build=${DOORBELL_BUILD:-$(realpath "$(dirname "$0")/../../../build")}
BUILD=$build "$(dirname "$0")/size.sh" --only batch --loads 50 --rounds 1 --seconds 3
