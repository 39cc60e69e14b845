# SPDX-License-Identifier: BSD-3-Clause
"""Where this Python looks for modules below a prefix; an empty line if nowhere.

usage: install_folder.py PREFIX
"""
import os
import site
import sys


def below(folder, prefix):
    return os.path.commonpath([folder, prefix]) == prefix


def install_folder(folders, prefix):
    """Of Debian's folders below /usr, those below /usr/local are not for packages."""
    for folder in folders:
        if below(folder, prefix) and not (prefix == "/usr" and below(folder, "/usr/local")):
            return folder
    return ""


if __name__ == "__main__":
    print(install_folder(site.getsitepackages(), os.path.normpath(sys.argv[1])))
