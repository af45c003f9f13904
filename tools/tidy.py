#!/usr/bin/env python3
"""clang-tidy over many files in little time: tidy.py BUILD_FOLDER FILE.cc...

Most of clang-tidy's time goes into the headers that all files share, so files of one folder are checked
together, as one translation unit, as far as their names do not collide. If there is a finding, the files
are checked again one by one: the report is the same as that of runs over single files. Builds compile
several files together, too, so each file is also compiled separately here, without making code: one that
forgets an include is reported. Files of tests are only compiled. Exit code 0: clean; 1: findings, printed.
"""
import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys

GROUP = 8
SOURCE = pathlib.Path(__file__).resolve().parent.parent
CHECKS = SOURCE / ".clang-tidy"
NOISE = ("warnings generated", "warning generated", "Suppressed", "Use -header-filter")


def flags_of(entry):
    """The compiler's arguments without the file, its object and the compiler itself."""
    words = shlex.split(entry["command"])[1:]
    kept, skip = [], False
    for word in words:
        if skip or word in ("-c", "-o", entry["file"]):
            skip = word == "-o"
            continue
        kept.append(word)
    return kept


def unit_of(build, group):
    if len(group) == 1:
        return group[0]
    unit = build / "tidy" / ("_".join(path.stem for path in group)[:120] + ".cc")
    unit.write_text("".join(f'#include "{path}"  // NOLINT\n' for path in group))
    return unit


def compile_errors(flags, path):
    """What the compiler says of a file that is compiled without making code."""
    done = subprocess.run(["clang++-19", *flags, "-w", "-fsyntax-only", "-ferror-limit=0", str(path)],
                          capture_output=True, text=True, check=False)
    errors = [line for line in done.stderr.splitlines() if ": error:" in line or ": fatal error:" in line]
    return errors or ([] if done.returncode == 0 else [f"error: clang++ failed on {path}"])


def in_the_way(build, group, flags):
    """Files of the group that do not compile together with those before them."""
    errors = compile_errors(flags, unit_of(build, group))
    if not errors:
        return set()
    blamed = {pathlib.Path(line.split(":")[0]) for line in errors}
    return blamed & set(group[1:]) or {group[-1]}


def next_group(build, files, flags):
    """The files that compile together, and the others."""
    group = files[:GROUP]
    while len(group) > 1 and (blamed := in_the_way(build, group, flags)):
        group = [path for path in group if path not in blamed]
    return group, [path for path in files if path not in group]


def findings_in(build, group, flags):
    """The findings of clang-tidy in these files, each checked alone if there are any."""
    unit = unit_of(build, group)
    done = subprocess.run(["clang-tidy-19", "--quiet", f"--config-file={CHECKS}", str(unit), "--", *flags, "-Wno-shadow"],
                          capture_output=True, text=True, check=False)
    lines = [line for line in (done.stdout + done.stderr).splitlines()
             if line.strip() and not any(noise in line for noise in NOISE)]
    if len(group) > 1 and (lines or done.returncode != 0):
        return [line for path in group for line in findings_in(build, [path], flags)]
    return lines if lines or done.returncode == 0 else [f"error: clang-tidy failed on {unit}"]


def check(build, files, flags):
    """Of files that are compiled alike and lie together."""
    findings = [line for path in files for line in compile_errors(flags, path)]
    if findings or files[0].is_relative_to(SOURCE / "tests"):
        return findings
    while files:
        group, files = next_group(build, files, flags)
        findings += findings_in(build, group, flags)
    return findings


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    wanted = {pathlib.Path(name).resolve() for name in sys.argv[2:]}
    rooms = {}  # files that are compiled alike and lie together
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["file"])
        if path in wanted:
            rooms.setdefault((path.parent, tuple(flags_of(entry))), set()).add(path)
    missing = wanted - set().union(*rooms.values())
    if missing:
        sys.exit("error: not compiled in " + sys.argv[1] + ": " + ", ".join(sorted(map(str, missing))))
    (build / "tidy").mkdir(exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [pool.submit(check, build, sorted(paths), flags) for (_, flags), paths in rooms.items()]
        found = [line for job in jobs for line in job.result()]
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
