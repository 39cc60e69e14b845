# SPDX-License-Identifier: BSD-3-Clause
"""Print the folder below PREFIX in which this Python looks for modules, or an empty line.

usage: install_folder.py PREFIX
"""
import os
import site
import sys


def below(folder, prefix):
    return os.path.commonpath([folder, prefix]) == prefix


def install_folder(folders, prefix):
    """Skip /usr/local when the prefix is /usr: Debian keeps it free of packages."""
    for folder in folders:
        if below(folder, prefix) and not (prefix == "/usr" and below(folder, "/usr/local")):
            return folder
    return ""


if __name__ == "__main__":
    print(install_folder(site.getsitepackages(), os.path.normpath(sys.argv[1])))
