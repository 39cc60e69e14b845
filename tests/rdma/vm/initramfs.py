#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes the initramfs of a virtual machine: what every one needs, and the files that are asked for.

usage: initramfs.py OUT.cpio KERNEL-FOLDER VM-EXEC [PATH|PATH=GUEST-PATH|--module=NAME]...

A file is found in the guest at the same path as here, unless another is given; folders bring all
that they hold. Programs and shared objects bring the libraries that they are linked with. The guest
loads each NAME, and what it depends on, after the modules that every machine has.
KERNEL-FOLDER is what kernel.py made. Needs neither root nor cpio.
"""
import glob
import os
import re
import shutil
import stat
import subprocess
import sys

INIT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "init")
# Modules that the guest loads, in this order, each after those that it depends on. crc32: rxe asks for it by its
# algorithm's name, which only modprobe could turn into a module; newer kernels have it built in.
MODULES = ["virtio_pci", "virtio_net", "crc32_generic", "crc32_pclmul", "ib_uverbs", "rdma_rxe"]
# Opened by name at run time: the verbs provider, and what glibc wants when a thread ends.
OPENED = ["/usr/lib/*/libibverbs/librxe-rdmav*.so", "/etc/libibverbs.d/rxe.driver",
          "/usr/lib/*/libgcc_s.so.1", "/usr/bin/bash"]
LINKS = {"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "lib64": "usr/lib64",
         "var/run": "../run"}
FOLDERS = ["proc", "sys", "dev", "run", "tmp", "root", "etc", "var", "usr/bin", "usr/sbin",
           "usr/lib", "usr/lib64", "usr/lib/busybox"]


class Archive:
    """A cpio archive of the format that the kernel reads ("newc")."""

    def __init__(self, path):
        self.file = open(path, "wb")
        self.names = set()

    def add(self, name, mode, content=b"", device=(0, 0)):
        if name in self.names:
            return
        self.names.add(name)
        encoded = name.encode() + b"\0"
        fields = (len(self.names), mode, 0, 0, 1, 0, len(content), 0, 0, *device, len(encoded), 0)
        self.file.write(b"070701" + b"".join(b"%08x" % f for f in fields))
        self.file.write(encoded + bytes(-(110 + len(encoded)) % 4))
        self.file.write(content + bytes(-len(content) % 4))

    def folder(self, name):
        if name and name not in self.names:
            self.folder(os.path.dirname(name))
            self.add(name, stat.S_IFDIR | 0o755)

    def put(self, guest, content, mode=0o755):
        """<guest> as an absolute path; what this host may have as links to /usr is folders there."""
        guest = os.path.normpath(guest).lstrip("/")
        top = guest.split("/")[0]
        if top in LINKS:
            guest = LINKS[top] + guest[len(top):]
        self.folder(os.path.dirname(guest))
        self.add(guest, stat.S_IFREG | mode, content)

    def close(self):
        self.add("TRAILER!!!", 0)
        self.file.close()


def contents(path):
    with open(path, "rb") as f:
        return f.read()


def libraries(path):
    """What the dynamic linker would load for a program or shared object; nothing for other files."""
    with open(path, "rb") as f:
        if f.read(4) != b"\x7fELF":
            return []
    found = subprocess.run(["ldd", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                           text=True, check=False).stdout
    missing = re.findall(r"(\S+) => not found", found)
    if missing:
        sys.exit(f"initramfs.py: {path} needs {', '.join(missing)}")
    return re.findall(r"(/\S+) \(0x", found)


def put_file(archive, path, guest):
    archive.put(guest, contents(path), stat.S_IMODE(os.stat(path).st_mode))
    for library in libraries(path):
        archive.put(library, contents(library))


def put_tree(archive, path, guest):
    if not os.path.isdir(path):
        put_file(archive, path, guest)
        return
    for name in os.listdir(path):
        put_tree(archive, os.path.join(path, name), os.path.join(guest, name))


def module_name(path):
    return os.path.basename(path)[:-len(".ko")].replace("-", "_")


def lean(module):
    """Without what costs an emulated CPU more than all the rest of loading it: the signature, which
    nothing here asks for, and type information, for which the kernel would first parse its own."""
    end = b"~Module signature appended~\n"
    if module.endswith(end):
        info = module[-len(end) - 12:-len(end)] # struct module_signature: lengths at 3, 4 and 8
        module = module[:-len(end) - 12 - info[3] - info[4] - int.from_bytes(info[8:], "big")]
    return module.replace(b"\0.BTF\0", b"\0.off\0")


def put_modules(archive, folder, names):
    """Those of <names> and what they depend on; /modules/order says in which order."""
    paths = {module_name(p): p for p in glob.glob(f"{folder}/*.ko")}
    order = []

    def visit(name):
        if name not in paths or name in order: # built in, or of another kernel version
            return
        depends = re.search(rb"\0depends=([^\0]*)\0", contents(paths[name]))
        for needed in filter(None, (depends[1] if depends else b"").decode().split(",")):
            visit(needed.replace("-", "_"))
        order.append(name)

    for name in names:
        visit(name.replace("-", "_"))
    for name in order:
        archive.put(f"/modules/{name}.ko", lean(contents(paths[name])))
    archive.put("/modules/order", "".join(f"{name}\n" for name in order).encode())


def main():
    out, kernel, vm_exec, *wanted = sys.argv[1:]
    modules = [w.partition("=")[2] for w in wanted if w.startswith("--module=")]
    archive = Archive(out)
    for folder in FOLDERS:
        archive.folder(folder)
    for link, target in LINKS.items():
        archive.add(link, stat.S_IFLNK | 0o777, target.encode())
    # The first process's standard output, before there is a /dev.
    archive.add("dev/console", stat.S_IFCHR | 0o600, device=(5, 1))
    archive.put("/init", contents(INIT))
    archive.put("/usr/lib/busybox/busybox", contents(f"{kernel}/busybox"))
    put_modules(archive, f"{kernel}/modules", MODULES + modules)
    put_file(archive, vm_exec, "/usr/bin/vm-exec")
    for pattern in OPENED:
        for path in glob.glob(pattern):
            put_file(archive, path, path)
    put_file(archive, "/bin/dash", "/bin/sh")
    for program in ("ip", "rdma"):
        path = shutil.which(program, path="/usr/sbin:/sbin:/usr/bin:/bin")
        if path is None:
            sys.exit(f"initramfs.py: no {program} here (package iproute2)")
        put_file(archive, path, f"/usr/sbin/{program}")
    for item in (w for w in wanted if not w.startswith("--module=")):
        path, _, guest = item.partition("=")
        if not os.path.exists(path):
            sys.exit(f"initramfs.py: there is no {path}")
        put_tree(archive, path, guest or os.path.abspath(path))
    archive.close()


main()
