#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The pages for users say what is so: programs in them are the files that tests run, links lead somewhere, every
`doorbell` command line is one that the CLI takes, and names of notices and drop reasons are the program's.

usage: pages_test.py ROOT DOORBELL AGENT LB VERSION
       pages_test.py --blocks PAGE      the runnable blocks, each ended by a line "#end"
       pages_test.py --fill PAGE        copy the files that a page includes into it
"""
import os
import re
import shlex
import subprocess
import sys
import tempfile

NOT_RUN = "# Not run by the tests of this page: "
INCLUDED = re.compile(r"(<!-- file: (\S+) -->\n```\w*\n)(.*?)(```\n)", re.DOTALL)
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
problems = []


def problem(page, text):
    problems.append(f"{page}: {text}")


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


# --- blocks ------------------------------------------------------------------------------------------------------

def blocks(text):
    """Of each fence: its language and its lines, with continued lines joined; not of files that the page includes."""
    text = INCLUDED.sub("", text)
    return [(m[1], m[2].replace("\\\n", " ").splitlines()) for m in FENCE.finditer(text)]


def reason_not_run(lines):
    return lines[0][len(NOT_RUN):] if lines and lines[0].startswith(NOT_RUN) else None


def print_blocks(page):
    for language, lines in blocks(read(page)):
        if language == "sh" and reason_not_run(lines) is None:
            print("\n".join(line for line in lines if line and not line.startswith("#")))
            print("#end")


def check_blocks(page, text):
    for language, lines in blocks(text):
        reason = reason_not_run(lines)
        if language == "sh" and reason is not None and len(reason.split()) < 3:
            problem(page, f"a block is not run and does not say why: {lines[0]}")


# --- included files ----------------------------------------------------------------------------------------------

def filled(page, text):
    def body(match):
        lines = read(os.path.join(os.path.dirname(page), match[2])).splitlines(keepends=True)
        kept = [line for line in lines if "SPDX-License-Identifier" not in line]
        return match[1] + "".join(kept) + match[4]
    return INCLUDED.sub(body, text)


def fill(page):
    text = filled(page, read(page))
    with open(page, "w", encoding="utf-8") as f:
        f.write(text)


def check_included(page, text):
    if filled(page, text) != text:
        problem(page, f"differs from a file that it includes; run {sys.argv[0]} --fill {page}")


# --- links -------------------------------------------------------------------------------------------------------

def anchors(text):
    """As GitHub makes them: lower case, no punctuation, spaces to hyphens."""
    plain = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    made = set()
    for title in re.findall(r"^#+ +(.*)$", plain, re.MULTILINE):
        title = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", title)
        made.add(re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-"))
    return made


def tracked_pages(but):
    """The other pages of the tree, beside their code: only their links are checked."""
    for folder, folders, files in os.walk("."):
        folders[:] = [f for f in folders if not f.startswith((".", "build"))]
        for name in files:
            page = os.path.normpath(os.path.join(folder, name))
            if name.endswith(".md") and page not in but:
                yield page


def check_links(page, text):
    plain = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    for link in re.findall(r"\]\(([^)\s]+)\)", plain):
        if "://" in link or link.startswith("mailto:"):
            continue
        path, _, anchor = link.partition("#")
        target = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
        if not os.path.exists(target):
            problem(page, f"links to {link}, which is not there")
        elif anchor and target.endswith(".md") and anchor not in anchors(read(target)):
            problem(page, f"links to {link}: {target} has no such title")


# --- command lines -----------------------------------------------------------------------------------------------

def command_lines(text):
    """Lines of sh fences, and code in the text that begins with one of the programs."""
    for language, lines in blocks(text):
        if language == "sh":
            yield from lines
    plain = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    yield from (" ".join(code.split()) for code in re.findall(r"`([^`]+)`", plain))


def words_of(line, program):
    """What stands behind <program> where it is called, up to the end of the command; None: it is not called."""
    try:
        words = shlex.split(line, comments=True)
    except ValueError:
        return None
    while words[:1] == ["sudo"] or words[:3] == ["ip", "netns", "exec"]:
        words = words[1:] if words[0] == "sudo" else words[4:]
    if words[:1] != [program]:
        return None
    ends = [i for i, word in enumerate(words) if word in ("&", "|", "&&", "||", ">", ";")]
    return words[1:min(ends, default=len(words))]


class Programs:
    def __init__(self, doorbell, agent, lb):
        self.doorbell = doorbell
        listed = subprocess.run([doorbell, "--commands"], check=True, text=True, stdout=subprocess.PIPE)
        # "size", and "size reads": a verb has options of its own.
        self.own = {" ".join(word for word in line.split()[:2] if word != "-"):
                    set(re.findall(r"--[\w-]+", line)) | {"--help", "--json"}
                    for line in listed.stdout.splitlines() if line.split()[0] in ("bench", "size")}
        self.options = {name: set(re.findall(r"--[\w-]+", self.help_of(program)))
                        for name, program in (("doorbell-agent", agent), ("doorbell-lb", lb))}

    @staticmethod
    def help_of(program):
        return subprocess.run([program, "--help"], check=True, text=True, stdout=subprocess.PIPE).stdout

    def check_doorbell(self, page, words):
        if words[:1] and words[0] in self.own:
            name = next(n for n in (" ".join(words[:2]), words[0]) if n in self.own)
            self.check_options(page, f"doorbell {name}", words, self.own[name])
            return
        with tempfile.TemporaryDirectory() as nobody:
            command = [self.doorbell, "--socket", f"{nobody}/socket"]
            if "doctor" in words:  # looks at an empty folder, not at this machine
                words = [w for w in words if w != "--json"] + ["--root", nobody]
            ran = subprocess.run(command + words, text=True, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=60)
        if ran.returncode == 2 or ran.returncode < 0:
            problem(page, f"doorbell {' '.join(words)}: {ran.stderr.strip()}")

    @staticmethod
    def check_options(page, program, words, known):
        for word in words:
            if word.startswith("--") and word.split("=")[0] not in known:
                problem(page, f"{program} has no {word}")

    def check(self, page, text):
        checked = 0
        for line in command_lines(text):
            if "..." in line:
                continue
            words = words_of(line, "doorbell")
            if words:
                self.check_doorbell(page, words)
                checked += 1
            for program, known in self.options.items():
                words = words_of(line, program)
                if words:
                    self.check_options(page, program, words, known)
                    checked += 1
        return checked


# --- names -------------------------------------------------------------------------------------------------------

def source(root, name):
    """A source file, in whichever folder it lies."""
    for folder, folders, files in os.walk(root):
        folders[:] = [f for f in folders if not f.startswith((".", "build"))]
        if name in files:
            return read(os.path.join(folder, name))
    raise FileNotFoundError(name)


def check_functions(page):
    """Functions that the page names, `lb_poll()`: some source file has them."""
    made = set()
    for folder, folders, files in os.walk("."):
        folders[:] = [f for f in folders if not f.startswith((".", "build"))]
        for name in files:
            if name.endswith((".c", ".h", ".cu", ".cuh")) or name == "meson.build":
                made |= set(re.findall(r"\b(\w+)\(", read(os.path.join(folder, name))))
    for name in sorted(set(re.findall(r"`(\w+)\(\)`", read(page))) - made - {"ppoll"}):
        problem(page, f"names {name}(), which is nowhere")


def check_notices(root):
    page = os.path.join(root, "deploy/docs/client.md")
    told = dict(re.findall(r"^\| (\d+) \| `(\w+)` \|", read(page), re.MULTILINE))
    made = {number: name.lower() for name, number in
            re.findall(r"LB_NOTICE_([A-Z_]+)\s*=\s*(\d+)", source(root, "notice.h"))}
    if told != made:
        problem(page, f"has the notices {told}, notice.h has {made}")


def words_of_programs(root):
    """All that is in string literals, those that go on in the next line joined; conversions are *."""
    text = []
    for folder, folders, files in os.walk(root):
        folders[:] = [f for f in folders if not f.startswith((".", "build", "tests"))]
        text += [read(os.path.join(folder, name)) for name in files if name.endswith((".c", ".h"))]
    joined = re.sub(r'"\s*\n\s*"', "", "\n".join(text)).replace('\\"', '"')
    return re.sub(r"%[-0-9.*]*(?:l|ll|z)?[a-z]|\"\s*PRI\w+\s*\"", "*", joined)


def check_symptoms(root):
    """What the first column says a program prints, a program prints."""
    page = os.path.join(root, "deploy/docs/symptoms.md")
    programs, drops, checked = words_of_programs(root), source(root, "drop.h"), 0
    for row in re.findall(r"^\| (.*?) \|", read(page), re.MULTILINE):
        for said in re.findall(r"`([^`]+)`", row):
            checked += 1
            if row.startswith("drops") or ", drops " in row and re.fullmatch(r"\w+", said):
                if f'"{said}"' not in drops and said not in source(root, "notice.h").lower():
                    problem(page, f"{said} is no reason to drop, and no notice")
                continue
            for part in said.split("*"):
                if len(part.strip()) > 3 and part.strip() not in programs:
                    problem(page, f"no program says {part.strip()!r}")
    if checked < 40:
        problem(page, f"only {checked} of its symptoms have words that can be looked up")


def check_paths(page, text):
    """Scripts and programs of the tree that commands name."""
    for line in command_lines(text):
        for path in re.findall(r"(?<![\w/.-])((?:tests|deploy)/[\w./-]+\.(?:sh|py|yaml|c))\b", line):
            if not os.path.exists(path):
                problem(page, f"names {path}, which is not there")


def check_manuals(programs):
    for name, page in (("doorbell-agent", "deploy/doorbell-agent.8"), ("doorbell-lb", "deploy/doorbell-lb.8")):
        told = set(re.findall(r"Fl -([\w-]+)", read(page)))
        made = {option.lstrip("-") for option in programs.options[name]}
        if told | {"help", "version"} != made | {"help", "version"}:
            problem(page, f"differs from {name} --help: {sorted(told ^ made)}")
    page = "deploy/doorbell-agent.8"
    for model in ("echo", "mlp", "words"):
        made = set(re.findall(r'\.key = "(\w+)"', source(".", f"{model}.c")))
        told = re.search(rf"^\.It Cm {model}\n(.*?)(?:^\.It|^\.El)", read(page), re.MULTILINE | re.DOTALL)
        missing = made - set(re.findall(r"\w+", told[1] if told else ""))
        if missing or not made:
            problem(page, f"says nothing of {sorted(missing)}, arguments of the model {model}")
    page = "deploy/doorbell.yaml.5"
    made = set(re.findall(r'^\t\{"(\w+)", &config_', source(".", "config_schema.c"), re.MULTILINE))
    made -= {"memory", "control", "workers", "tcp", "fabric", "log", "certificate", "key", "ca", "services", "zones"}
    missing = {key for key in made if not re.search(rf"^\.It Sy .*\b{key}\b", read(page), re.MULTILINE)}
    if missing:
        problem(page, f"says nothing of {sorted(missing)}")
    defaults = dict(re.findall(r'"(\w+)", &config_[^{}]*?\.fallback = "([^"]*)"', source(".", "config_schema.c")))
    for key, default in defaults.items():
        if not re.search(rf"^\.It Sy .*\b{key}\b.*Pq {re.escape(default)}$", read(page), re.MULTILINE):
            problem(page, f"{key}: the default is {default}, the page says another")
    page, text = "deploy/doorbell.yaml", read("deploy/doorbell.yaml")
    missing = {key for key in made if not re.search(rf"\b{key}\b", text)}
    if missing:
        problem(page, f"says nothing of {sorted(missing)}")
    for page in sorted(f"deploy/{name}" for name in os.listdir("deploy") if re.search(r"\.[158]$", name)):
        for name, section in re.findall(r"\.Xr ([\w.-]+) (\d)", read(page)):
            if name.startswith("doorbell") and not os.path.exists(f"deploy/{name}.{section}"):
                problem(page, f"cites {name}({section}), which is not there")


def main():
    root, version = sys.argv[1], sys.argv[5]
    doorbell, agent, lb = (os.path.abspath(program) for program in sys.argv[2:5])
    programs, checked = Programs(doorbell, agent, lb), 0
    os.chdir(root)
    docs = sorted(f"deploy/docs/{name}" for name in os.listdir("deploy/docs") if name.endswith(".md"))
    pages = [name for name in sorted(os.listdir(".")) if name.endswith(".md")] + docs + ["tests/README.md"]
    for page in pages:
        text = read(page)
        check_blocks(page, text)
        check_included(page, text)
        check_links(page, text)
        check_paths(page, text)
        checked += programs.check(page, text)
    for page in tracked_pages(pages):
        check_links(page, read(page))
    check_functions("ARCHITECTURE.md")
    check_notices(".")
    check_symptoms(".")
    check_manuals(programs)
    help_text = Programs.help_of(doorbell)
    for line in help_text[help_text.index("\nexamples:"):].splitlines():
        if line.startswith("  doorbell "):
            programs.check_doorbell("doorbell --help", shlex.split(line)[1:])
    for line in re.findall(r"^\.Dl [$#] (.*)$", read("deploy/doorbell.1"), re.MULTILINE):
        programs.check("deploy/doorbell.1", f"```sh\n{line}\n```\n")
    if f"Version {version}" not in read("README.md"):
        problem("README.md", f"does not say Version {version}, which meson.build has")
    for program in (doorbell, agent, lb):
        said = subprocess.run([program, "--version"], text=True, stdout=subprocess.PIPE, check=True).stdout
        if said != f"{os.path.basename(program)} {version}\n":
            problem(program, f"--version says {said!r}, not {version}")
    if checked < 10:
        problem("pages", f"only {checked} command lines were found")
    print("\n".join(problems) or f"{len(pages)} pages, {checked} command lines: good")
    sys.exit(1 if problems else 0)


if sys.argv[1] == "--blocks":
    print_blocks(sys.argv[2])
elif sys.argv[1] == "--fill":
    fill(sys.argv[2])
else:
    main()
