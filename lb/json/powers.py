#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Prints powers.c: python3 powers.py > powers.c; tests/unit/lb_json_number_test.c recomputes what is in it."""
FIRST, LAST = -342, 324


def row(exponent):
    """The first 128 bits of 5 to the power of <exponent>."""
    power = 5 ** abs(exponent)
    if exponent < 0:
        power = (1 << (power.bit_length() + 128)) // power
    shift = power.bit_length() - 128
    return power >> shift if shift > 0 else power << -shift


print("""/* SPDX-License-Identifier: BSD-3-Clause */
/* Written by powers.py. */
#include "json/powers.h"

const uint64_t json_powers[JSON_POWER_LAST - JSON_POWER_FIRST + 1][2] = {""")
for exponent in range(FIRST, LAST + 1):
    value = row(exponent)
    print(f"\t{{0x{value >> 64:016x}, 0x{value & (2 ** 64 - 1):016x}}},")
print("};")
