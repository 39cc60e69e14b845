#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Takes out of a Debian kernel package, and busybox-static, what a virtual machine boots with.

usage: kernel.py LINUX-IMAGE.deb BUSYBOX.deb FOLDER

FOLDER gets vmlinux (which QEMU starts directly: half the boot time of a compressed kernel is its
decompression by an emulated CPU), modules/*.ko and busybox.
"""
import bz2
import gzip
import lzma
import os
import re
import shutil
import subprocess
import sys
import tarfile

MODULES = re.compile(r"/kernel/(drivers/infiniband/(core|sw/rxe)|drivers/virtio|drivers/net/[^/]*$"
                     r"|net/(core|ipv4|ipv6)/[^/]*$|crypto/crc32|arch/x86/crypto/crc32|lib/|fs/configfs"
                     r"|drivers/vfio|virt/lib)")
# How a compressed kernel may begin inside vmlinuz (linux/scripts/extract-vmlinux knows as much).
PACKINGS = [(b"\xfd7zXZ\0", lambda b: lzma.LZMADecompressor().decompress(b)),
            (b"\x1f\x8b\x08", lambda b: gzip.zlib.decompressobj(31).decompress(b)),
            (b"BZh", lambda b: bz2.BZ2Decompressor().decompress(b)),
            (b"\x28\xb5\x2f\xfd", lambda b: zstd(b))]


def zstd(packed):
    """Python has it from 3.14 on. The tool complains of what follows the kernel, and is right."""
    if not shutil.which("zstd"):
        return b""
    return subprocess.run(["zstd", "-dcq"], input=packed, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=False).stdout


def unpack_kernel(image):
    """The ELF file in a bzImage, or the bzImage itself, which boots as well, only more slowly."""
    for magic, unpack in PACKINGS:
        at = image.find(magic)
        while at >= 0:
            try:
                kernel = unpack(image[at:])
                if kernel[:4] == b"\x7fELF":
                    return kernel
            except (OSError, EOFError, lzma.LZMAError, gzip.zlib.error):
                pass
            at = image.find(magic, at + 1)
    return image


def members(deb):
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", deb], stdout=subprocess.PIPE) as unpack:
        with tarfile.open(fileobj=unpack.stdout, mode="r|") as tar:
            for member in tar:
                if member.isfile():
                    yield member.name, lambda m=member: tar.extractfile(m).read()
    if unpack.returncode != 0:
        sys.exit(f"kernel.py: cannot read {deb}")


def write(path, content, mode=0o644):
    with open(path, "wb") as f:
        f.write(content)
    os.chmod(path, mode)


def main():
    kernel, busybox, folder = sys.argv[1:]
    os.makedirs(f"{folder}/modules")
    for name, read in members(kernel):
        base = os.path.basename(name)
        if re.match(r".*/boot/vmlinuz-", name):
            write(f"{folder}/vmlinux", unpack_kernel(read()))
        elif base.endswith(".ko") and MODULES.search(name):
            write(f"{folder}/modules/{base}", read())
        elif base.endswith(".ko.xz") and MODULES.search(name):
            write(f"{folder}/modules/{base[:-3]}", lzma.decompress(read()))
    for name, read in members(busybox):
        if name.endswith("/bin/busybox"):
            write(f"{folder}/busybox", read(), 0o755)
    for needed in ("vmlinux", "modules/rdma_rxe.ko", "modules/vfio-pci.ko", "busybox"):
        if not os.path.exists(f"{folder}/{needed}"):
            sys.exit(f"kernel.py: there is no {needed} in the packages")


main()
