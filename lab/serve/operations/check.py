#!/usr/bin/env python3
"""Holds the rules, the dashboard and the container file against each other, against what a service
tells, and against what a real Prometheus makes of it. `test` calls it:

    check.py files SCRATCH [PROGRAM]     the files; writes what they ask as rules, for promtool
    check.py told FILE|URL               prints what a service tells
    check.py against FILE|URL            every name, label and value that is asked is told
    check.py scraped PROMETHEUS SERVICE  what Prometheus has of the service (HOST:PORT each)

The standard library has no YAML: promtool reads the rules wholly, this only finds expressions in
them.
Exit codes: 0 all is well, 1 something is not, which is printed.
"""

import json
import pathlib
import re
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
# Labels that Prometheus adds.
OF_TARGETS = {"instance", "job"}
# What a host may not tell: by the source that cannot be read then; without one, what did not happen.
ABSENT = {
    "kpageflags": {
        "brickyard_gigantic_regions",
        "brickyard_huge_pages_forecast",
        "brickyard_memory_use_bytes",
        "brickyard_mixed_page_blocks_bytes",
        "brickyard_page_blocks",
        "brickyard_page_blocks_mixed_by_few",
        "brickyard_page_flags_pass_seconds",
        "brickyard_page_flags_timestamp_seconds",
        "brickyard_pinned_bytes",
    },
    "processes": {"brickyard_pinned_bytes"},
    "pagetypeinfo": {"brickyard_free_blocks_by_mobility", "brickyard_page_blocks_by_mobility"},
    # No request has fallen back; every order has a free block; the pool's pages have another size.
    None: {
        "brickyard_fallbacks_total",
        "brickyard_fragmentation_index",
        "brickyard_huge_pages_pool_free",
    },
}
LABELS_OF_ABSENT = set("bound from kind mobility node order process state use way zone".split())
ASKED = re.compile(r"(?<![\w:])((?:brickyard|process)_\w+|up)\b(?:\{([^}]*)\})?")
MATCHER = re.compile(r'(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"')
GROUPING = re.compile(r"\b(?:by|on|without|ignoring|group_left|group_right)\s*\(([^)]*)\)")
SAMPLE = re.compile(r"([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)")
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def wrong(what):
    """Ends with what is wrong."""
    print(f"wrong: {what}", file=sys.stderr)
    sys.exit(1)


def expect(holds, what):
    if not holds:
        wrong(what)


# What is asked.


def panels():
    return json.loads((HERE / "dashboard.json").read_text())["panels"]


def of_dashboard():
    """Returns (where, expression) of each panel, for all hosts and zones."""
    for panel in panels():
        for target in panel.get("targets", []):
            text = target["expr"].replace("$__rate_interval", "5m").replace("$__range", "1h")
            text = re.sub(r'=~"\$\w+"', '=~".*"', text)
            unknown = re.search(r"\$[a-zA-Z_{]", text)
            expect(not unknown, f"dashboard, {panel['title']}: an unknown variable: {text}")
            yield f"dashboard, {panel['title']}", text


def of_rules():
    """Returns (where, expression) of each rule."""
    lines = (HERE / "alerts.yaml").read_text().splitlines()
    name = ""
    for at, line in enumerate(lines):
        if found := re.match(r"\s*- (?:alert|record): (\S+)", line):
            name = found[1]
        if found := re.match(r"(\s*)expr: (.*)", line):
            text = found[2]
            if text == "|":
                deeper = len(found[1]) + 1
                block = []
                for more in lines[at + 1 :]:
                    if more.strip() and len(more) - len(more.lstrip()) < deeper:
                        break
                    block.append(more)
                text = "\n".join(block)
            yield f"alerts, {name}", text


def of_variables():
    """Returns (where, metric, label) of each variable of the dashboard that asks for labels."""
    board = json.loads((HERE / "dashboard.json").read_text())
    for variable in board["templating"]["list"]:
        if variable["type"] != "query":
            continue
        asked = variable["query"]["query"]
        found = re.fullmatch(r"label_values\((\w+)(?:\{.*\})?, (\w+)\)", asked)
        expect(found, f"dashboard, variable {variable['name']}: {asked}")
        yield f"dashboard, variable {variable['name']}", found[1], found[2]


# The files.


def check_dashboard():
    board = json.loads((HERE / "dashboard.json").read_text())
    expect(board["schemaVersion"] >= 38, "dashboard: schemaVersion")
    sources = [one for one in board["templating"]["list"] if one["type"] == "datasource"]
    expect(len(sources) == 1, "dashboard: one variable is the data source")
    source = {"type": "prometheus", "uid": "${" + sources[0]["name"] + "}"}
    numbers, taken = set(), {}
    for panel in board["panels"]:
        title = panel.get("title")
        expect(title, f"dashboard: panel {panel['id']} has no title")
        expect(panel["id"] not in numbers, f"dashboard, {title}: its id is another panel's")
        numbers.add(panel["id"])
        place = panel["gridPos"]
        expect(place["x"] + place["w"] <= 24, f"dashboard, {title}: too wide")
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                other = taken.setdefault((x, y), title)
                expect(other == title, f"dashboard, {title}: over {other}")
        if panel["type"] == "row":
            continue
        expect(panel.get("description"), f"dashboard, {title}: no description")
        expect(panel.get("datasource") == source, f"dashboard, {title}: the data source")
        expect(panel.get("targets"), f"dashboard, {title}: asks nothing")
        names = [target["refId"] for target in panel["targets"]]
        expect(len(names) == len(set(names)), f"dashboard, {title}: a refId twice")
        for target in panel["targets"]:
            expect(target.get("datasource", source) == source, f"dashboard, {title}: a target")
    expect(len(list(of_dashboard())) > 25, "dashboard: too few expressions")
    list(of_variables())


def check_alerts():
    text = (HERE / "alerts.yaml").read_text()
    tests = (HERE / "alerts.test.yaml").read_text()
    fires = set()
    for one in re.split(r"\n *- eval_time:", tests):
        found = re.search(r"alertname: (\w+)", one)
        if found and "exp_labels" in one:
            fires.add(found[1])
    page = ROOT / "docs/book/lab/alerts.md"
    sections = re.findall(r"^## (\w+)$", page.read_text(), re.M) if page.exists() else None
    alerts = re.split(r"\n *- alert: ", re.sub(r"\n *- record: .*", "", text))[1:]
    names = [alert.split("\n", 1)[0] for alert in alerts]
    expect(len(names) == len(set(names)), "alerts: one name twice")
    for name, alert in zip(names, alerts):
        severity = re.search(r"severity: (\w+)", alert)
        expect(severity and severity[1] in ("info", "warning", "critical"), f"{name}: severity")
        for part in ("summary", "description"):
            expect(f" {part}: " in alert, f"{name}: no {part}")
        runbook = f"runbook: docs/book/lab/alerts.md#{name.lower()}\n"
        expect(runbook in alert + "\n", f"{name}: its runbook is not {runbook.strip()}")
        expect(name in fires, f"{name}: no test in which it fires")
        expect(sections is None or name in sections, f"{name}: not in {page}")
    for name in sections or []:
        expect(name in names, f"{page}: {name} is no alert")
    # What is recorded, by whom it is asked.
    recorded = set(re.findall(r"- record: (\S+)", text))
    for where, ask in [*of_rules(), *of_dashboard()]:
        for name in re.findall(r"\bbrickyard:\w+", ask):
            expect(name in recorded, f"{where}: {name} is not recorded")


def check_container(program):
    """Parses the container file as far as ours goes; an engine is not needed."""
    text = re.sub(r"^#.*\n", "", (HERE / "Containerfile").read_text(), flags=re.M)
    known = "FROM WORKDIR COPY RUN VOLUME EXPOSE HEALTHCHECK ENTRYPOINT CMD USER ENV LABEL".split()
    stages, options = set(), []
    for line in text.replace("\\\n", " ").splitlines():
        word, _, rest = line.strip().partition(" ")
        if not word:
            continue
        expect(word in known, f"Containerfile: {word}")
        if word == "FROM":
            found = re.fullmatch(r"\S+(?: AS (\w+))?", rest)
            expect(found, f"Containerfile: {line}")
            stages.add(found[1])
        elif word == "COPY":
            words = rest.split()
            if words[0].startswith("--from="):
                expect(words[0][7:] in stages, f"Containerfile: no stage {words[0]}")
            else:
                for source in words[:-1]:
                    expect((ROOT / source).exists(), f"Containerfile: {source} does not exist")
        elif "cargo build" in rest:
            profile = re.search(r"--profile (\w+)", rest)[1]
            package = re.search(r"-p (\S+)", rest)[1]
            manifest = (ROOT / "Cargo.toml").read_text()
            expect(f"[profile.{profile}]" in manifest, f"Containerfile: no profile {profile}")
            manifests = "".join(one.read_text() for one in ROOT.glob("lab/*/Cargo.toml"))
            expect(f'name = "{package}"' in manifests, f"Containerfile: no package {package}")
        elif word in ("HEALTHCHECK", "ENTRYPOINT", "CMD"):
            words = json.loads(rest[rest.index("[") :])
            options += [one for one in words if one.startswith("--")]
    unit = (HERE / "brickyard-serve.service").read_text()
    begin = re.search(r"^ExecStart=!/usr/bin/brickyard serve (.*)$", unit, re.M)
    expect(begin, "the unit: ExecStart")
    options += [one for one in begin[1].split() if one.startswith("--")]
    if program:
        asked = subprocess.run([program, "serve", "--help"], capture_output=True, check=True)
        for option in options:
            expect(f"{option} " in asked.stdout.decode(), f"{option} is no option of serve")


def files(scratch, program=None):
    check_dashboard()
    check_alerts()
    if (ROOT / "Cargo.toml").exists():
        check_container(program)
    with open(f"{scratch}/dashboard.yaml", "w") as rules:
        rules.write("groups:\n  - name: dashboard\n    rules:\n")
        for number, (_, text) in enumerate(of_dashboard()):
            rules.write(f"      - record: dashboard:{number}\n        expr: {json.dumps(text)}\n")


# What is told.


def told(source):
    """Returns the text of a file, or of a service by its address, whose content type is checked."""
    if not source.startswith("http://"):
        return pathlib.Path(source).read_text()
    if not source.endswith("/metrics"):
        source = source.rstrip("/") + "/metrics"
    with urllib.request.urlopen(source, timeout=20) as answer:
        kind = answer.headers["content-type"]
        expect(kind == CONTENT_TYPE, f"{source}: the content type is {kind}")
        return answer.read().decode()


def parsed(text):
    """Returns families (type, unit, help), and samples: [(name, labels, value)]; checks the form."""
    families, samples, seen = {}, [], set()
    lines = text.splitlines()
    expect(lines[-1:] == ["# EOF"], "metrics: # EOF is not the last line")
    family = None
    for line in lines[:-1]:
        if line.startswith("# "):
            _, what, name, rest = (line + " ").split(" ", 3)
            if name != family:
                expect(name not in families, f"metrics: {name} in two places")
                families[name] = {"TYPE": "unknown", "UNIT": "", "HELP": ""}
                family = name
            expect(what in families[name], f"metrics: {line}")
            families[name][what] = rest.strip()
            continue
        found = SAMPLE.fullmatch(line)
        expect(found, f"metrics: {line}")
        name, labels, value = found[1], dict(LABEL.findall(found[2] or "")), float(found[3])
        kind = families.get(family, {}).get("TYPE")
        suffix = {"counter": "_total", "info": "_info"}.get(kind, "")
        expect(kind and name == family + suffix, f"metrics: {name} below {family}, a {kind}")
        key = (name, tuple(sorted(labels.items())))
        expect(key not in seen, f"metrics: {key} twice")
        seen.add(key)
        expect(kind != "counter" or value >= 0, f"metrics: {line}")
        if name.endswith("_ratio") or name == "brickyard_fragmentation_index":
            expect(0 <= value <= 1, f"metrics: {line}")
        samples.append((name, labels, value))
    for name, family in families.items():
        expect(re.fullmatch(r"(brickyard|process)(_[a-z]+)+", name), f"metrics: {name}")
        expect(family["HELP"], f"metrics: {name} has no help")
        expect(not name.endswith("_total"), f"metrics: {name} is a family, and no sample")
        expect(name.endswith(family["UNIT"]), f"metrics: {name} is not in {family['UNIT']}")
        for unit in ("bytes", "seconds", "ratio"):
            is_unit = name.endswith("_" + unit)
            expect(not is_unit or family["UNIT"] == unit, f"metrics: {name} has no unit")
    return families, samples


def missing(samples):
    """Returns names that this host may not tell, each with the reason."""
    unread = {
        labels["source"]
        for name, labels, value in samples
        if name == "brickyard_source_readable" and value == 0
    }
    return {
        name: f"{source} cannot be read" if source else "nothing to tell now"
        for source, names in ABSENT.items()
        if source is None or source in unread
        for name in names
    }


def against(source):
    _, samples = parsed(told(source))
    values = {}
    for name, labels, _ in samples:
        of_name = values.setdefault(name, {})
        for label, value in labels.items():
            of_name.setdefault(label, set()).add(value)
    absent = missing(samples)
    every_label = OF_TARGETS.union(LABELS_OF_ABSENT, *values.values())
    unseen = set()

    def holds(where, name, matchers):
        if name == "up":
            return
        if name not in values:
            expect(name in absent, f"{where}: {name} is not told")
            unseen.add(name)
            return
        for label, operator, value in matchers:
            if label in OF_TARGETS:
                continue
            expect(label in values[name], f"{where}: {name} has no label {label}")
            if operator == "=":
                has = value in values[name][label]
                expect(has, f'{where}: {name} has no {label}="{value}"')

    asked = [*of_dashboard(), *of_rules()]
    for where, text in asked:
        for name, matchers in ASKED.findall(text):
            holds(where, name, MATCHER.findall(matchers))
        for labels in GROUPING.findall(text):
            for label in filter(None, re.split(r"[,\s]+", labels)):
                expect(label in every_label, f"{where}: nothing has a label {label}")
    for where, name, label in of_variables():
        holds(where, name, [(label, "", "")])
    for name in sorted(unseen):
        print(f"no line now: {name} ({absent[name]})")
    print(f"metrics: passed, {len(samples)} lines, {len(asked)} expressions")


# What Prometheus makes of it.


def scraped(prometheus, service):
    def ask(path, **query):
        url = f"http://{prometheus}/api/v1/{path}?" + urllib.parse.urlencode(query)
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                answer = json.load(answer)
        except urllib.error.HTTPError as error:
            wrong(f"{path} {query}: {error.read().decode()}")
        expect(answer["status"] == "success", f"{path} {query}: {answer}")
        expect(not answer.get("warnings"), f"{path} {query}: {answer.get('warnings')}")
        return answer["data"]

    def value(query):
        return [float(row["value"][1]) for row in ask("query", query=query)["result"]]

    def until(what, holds):
        for _ in range(120):
            try:
                if holds():
                    return
            except OSError:
                pass
            time.sleep(0.5)
        wrong(f"not within a minute: {what}")

    families, before = parsed(told(f"http://{service}"))
    until("five scrapes", lambda: value('count_over_time(up{job="brickyard"}[1m]) > 4'))
    expect(value('min_over_time(up{job="brickyard"}[1m])') == [1], "a scrape failed")
    (target,) = ask("targets")["activeTargets"]
    expect(target["health"] == "up" and not target["lastError"], f"{target}")

    # It takes each for what it is.
    known = {row["metric"]: row for row in ask("targets/metadata")}
    everywhere = ask("metadata")
    for name, family in families.items():
        expect(name in known, f"Prometheus does not know {name}")
        row = known[name]
        for part in ("type", "unit", "help"):
            is_same = row[part] == family[part.upper()]
            expect(is_same, f"{name}: {part} {row[part]!r}, not {family[part.upper()]!r}")
        expect(everywhere[name][0]["type"] == family["TYPE"], f"{name}: {everywhere[name]}")

    # It keeps each line, and totals do not fall.
    kept = {}
    for row in ask("query", query='{job="brickyard"}')["result"]:
        labels = {name: at for name, at in row["metric"].items() if name not in OF_TARGETS}
        name = labels.pop("__name__")
        kept[name, tuple(sorted(labels.items()))] = float(row["value"][1])
    for name, labels, at in before:
        now = kept.get((name, tuple(sorted(labels.items()))))
        # An order that got a free block since then has no index.
        is_kept = now is not None or name == "brickyard_fragmentation_index"
        expect(is_kept, f"Prometheus did not keep {name} {labels}")
        if name.endswith("_total"):
            expect(now >= at, f"{name} {labels} fell from {at} to {now}")
    same = "scrape_samples_scraped == scrape_samples_post_metric_relabeling"
    expect(len(value(same)) == 1, "samples were dropped")
    (cpu,) = value('process_cpu_seconds_total{job="brickyard"}')
    expect(cpu > 0, "no CPU time")

    # Every rule has been evaluated, without an error.
    def rules():
        return [rule for group in ask("rules")["groups"] for rule in group["rules"]]

    until("every rule evaluated", lambda: all(one["health"] != "unknown" for one in rules()))
    for rule in rules():
        is_well = rule["health"] == "ok" and not rule.get("lastError")
        expect(is_well, f"{rule['name']}: {rule.get('lastError')}")
    expect(len(rules()) == len(list(of_rules())), "not all rules are loaded")

    # Every panel has something to show, unless this host does not tell it.
    absent = missing(before)
    shown = 0
    for where, text in of_dashboard():
        # The test lasts for some scrapes, seconds apart.
        rows = ask("query", query=text.replace("[5m]", "[1m]"))["result"]
        excused = any(name in absent for name, _ in ASKED.findall(text))
        expect(rows or excused, f"{where}: nothing comes of {text}")
        shown += bool(rows)
    print(
        f"Prometheus: passed, {len(before)} lines, {len(families)} metrics, "
        f"{len(rules())} rules, {shown} expressions of the dashboard with data"
    )


if __name__ == "__main__":
    commands = {
        "files": files,
        "told": lambda source: print(told(source), end=""),
        "against": against,
        "scraped": scraped,
    }
    commands[sys.argv[1]](*sys.argv[2:])
