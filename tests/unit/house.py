#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks of the source tree itself: which folder may include which, sizes, names and words.

    tests/unit/house.py ROOT [CHECK ...]

Prints one line per violation with the file, and exits with 1 if there is one.
"""
import collections
import pathlib
import re
import sys

PRODUCT = ['conntrack', 'workers', 'lb', 'control', 'gpu-agent']

# From the bottom up. A file may include headers of its own folder and of folders in lines above it;
# "a b" on one line know nothing of each other.
LAYERS = [
    'conntrack',
    'workers/runtime workers/gpu',
    'workers/rdma',
    'workers',
    'workers/schedule',
    'lb/packet lb/http lb/json',
    'lb/kserve',
    'lb/grpc',
    'lb/config lb/framing lb/tcp lb/tls',
    'lb/lcore',
    'lb/observe lb/ports',
    'lb/edge',
    'lb/walk',
    'lb/membership',
    'lb/reload',
    'lb',
    'control/protocol control/secure control/client',
    'control/server',
    'control/view',
    'control',
    'control/cli/bench control/cli/doctor',
    'control/cli/size',
    'control/cli',
    'gpu-agent/models gpu-agent/rnic gpu-agent/turns',
    'gpu-agent/loop/cuda',
    'gpu-agent/loop',
    'gpu-agent',
]
# Arrows that are meant to go the other way, with the reason.
EXCEPTIONS = {
    ('lb', 'control/server.h'): 'lb/main.c puts the daemon together',
    ('lb', 'control/server/handshake.h'): 'the same: its --check looks at certificates',
    ('gpu-agent/loop', 'gpu-agent/doorbell_agent.h'): 'the public header says what a graph is',
}
FILES_MAX = 40
SOURCE = ('.c', '.h', '.cu', '.cuh')


def sources(root, folders):
    for folder in folders:
        for path in sorted((root / folder).rglob('*')):
            if path.suffix in SOURCE:
                yield path


def without_comments(text):
    return re.sub(r'/\*.*?\*/|//[^\n]*', '', text, flags=re.S)


def check_layers(root):
    """A folder includes only folders below it."""
    rank = {folder: n for n, line in enumerate(LAYERS) for folder in line.split()}
    for path in sources(root, PRODUCT):
        folder = str(path.parent.relative_to(root))
        if folder not in rank:
            yield f'{path.relative_to(root)}: its folder has no place in LAYERS'
            continue
        for name in re.findall(r'^#\s*include "([^"]+)"', path.read_text(), flags=re.M):
            for top in PRODUCT:
                header = root / top / name
                if header.is_file():
                    break
            else:
                continue  # beside it, or made by the build
            other = str(header.parent.relative_to(root))
            if other == folder or rank[other] < rank[folder]:
                continue
            if (folder, str(header.relative_to(root))) not in EXCEPTIONS:
                yield f'{path.relative_to(root)}: includes {header.relative_to(root)}, which is above it'


def check_sizes(root):
    """No folder is too large to look through."""
    count = collections.Counter(path.parent for path in sources(root, PRODUCT))
    for folder, n in sorted(count.items()):
        if n > FILES_MAX:
            yield f'{folder.relative_to(root)}: {n} source files, {FILES_MAX} at most'


def check_statics(root):
    """A name of a static function leads to one place, or to two at most."""
    files = collections.defaultdict(set)
    for path in sources(root, PRODUCT):
        for name in re.findall(r'^static (?:inline )?[^;={}()]*?\b(?!__)(\w+)\(', without_comments(path.read_text()),
                               flags=re.M):
            files[name].add(str(path.relative_to(root)))
    for name, where in sorted(files.items()):
        if len(where) > 2:
            yield f'{name}(): static in {len(where)} files: {", ".join(sorted(where))}'


def check_voice(root):
    """Comments begin with a subject or a verb; "checksum" is one word."""
    for path in sources(root, PRODUCT + ['tests']):
        text = path.read_text()
        for match in re.finditer(r'/\*\s*\*?\s*(Who|What|Whose)\b', text):
            line = text.count('\n', 0, match.start()) + 1
            yield f'{path.relative_to(root)}:{line}: a comment opens with {match.group(1)}'
    for path in sorted(root.rglob('*')):
        if path.suffix in SOURCE + ('.md', '.py', '.sh', '.yaml', '.1', '.5', '.8') and path.is_file() and \
                not str(path.relative_to(root)).startswith(('build', '.git')) and path.name != 'house.py':
            for match in re.finditer(r'check sums?\b', path.read_text(errors='replace'), flags=re.I):
                yield f'{path.relative_to(root)}: "{match.group(0)}"'


def check_headers(root):
    """A header declares the functions of the .c file of its name, or says that it fronts several."""
    defined = {}
    for path in sources(root, PRODUCT):
        if path.suffix in ('.c', '.cu'):
            for name in re.findall(r'^(?!static)\w[^;={}()\n]*?\b(\w+)\([^;]*?\)\n\{', without_comments(path.read_text()),
                                   flags=re.M):
                defined.setdefault(name, []).append(path)
    for path in sources(root, PRODUCT):
        if path.suffix != '.h':
            continue
        text = path.read_text()
        # One that fronts several files says so in its first comment.
        if re.search(r'facade|(public|private) header', text.split('#ifndef')[0], flags=re.I):
            continue
        others = collections.defaultdict(list)
        for name in re.findall(r'^(?!static|typedef|#)\w[^;={}()\n]*?\b(\w+)\([^;{]*\)[^;{]*;', without_comments(text),
                               flags=re.M):
            where = defined.get(name)
            if where and not any(w.stem == path.stem or w.stem in (path.stem + '_none',) for w in where):
                others[str(where[0].relative_to(root))].append(name)
        for where, names in others.items():
            yield f'{path.relative_to(root)}: declares {", ".join(names)} of {where}'


def check_scripts(root):
    """A file that names its interpreter can be run by its name, as pages say."""
    for path in sorted(root.rglob('*')):
        name = str(path.relative_to(root))
        if path.suffix in ('.py', '.sh') and path.is_file() and not name.startswith(('build', '.git')) and \
                path.read_bytes().startswith(b'#!') and not path.stat().st_mode & 0o100:
            yield f'{name}: begins with #! and is not executable'


CHECKS = {'layers': check_layers, 'sizes': check_sizes, 'statics': check_statics, 'voice': check_voice,
          'headers': check_headers, 'scripts': check_scripts}


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else __file__ + '/../../..').resolve()
    found = 0
    for name in sys.argv[2:] or CHECKS:
        for violation in CHECKS[name](root):
            print(f'{name}: {violation}')
            found += 1
    return found > 0


if __name__ == '__main__':
    sys.exit(main())
