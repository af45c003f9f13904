#!/usr/bin/env python3
"""deploy/ fits the program: deploy_test.py TOTO

Every metric and label in the dashboard and the alert rules exists in /metrics of a running server; the unit, the
image and the proxies use flags, variables, routes and limits that exist.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request
from pathlib import Path

from service import Service

ROOT = Path(__file__).resolve().parent.parent.parent
DEPLOY = ROOT / "deploy"
TOTO = os.path.abspath(sys.argv.pop(1))

FUNCTIONS = {"sum", "min", "max", "rate", "increase", "histogram_quantile", "min_over_time", "label_values"}
WORDS = {"by", "and", "or", "unless", "on", "ignoring", "offset", "le"}
FROM_PROMETHEUS = {"up": {"job", "instance"}}  # not ours
ADDED_LABELS = {"job", "instance", "le"}  # by Prometheus; by histograms


def read_yaml(text):
    """The subset of YAML in the rules: mappings, lists of mappings, plain and quoted scalars, blocks after `|`."""
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    indent = lambda line: len(line) - len(line.lstrip())

    def scalar(text):
        if text.startswith('"'):
            return json.loads(text)
        if not re.fullmatch(r"[^\"'#&*!|>%@`\[\]{}][^#]*", text) or (": " in text and "{" not in text):
            raise ValueError(f"not a plain scalar: {text}")
        return text

    def block(at, depth):
        if lines[at].lstrip().startswith("- "):
            items = []
            while at < len(lines) and indent(lines[at]) == depth and lines[at].lstrip().startswith("- "):
                lines[at] = " " * (depth + 2) + lines[at].lstrip()[2:]
                item, at = block(at, depth + 2)
                items.append(item)
            return items, at
        mapping = {}
        while at < len(lines) and indent(lines[at]) == depth:
            found = re.fullmatch(r"(\w+):(?: (.*))?", lines[at].strip())
            if not found or found[1] in mapping:
                raise ValueError(f"not a field, or a second one: {lines[at]}")
            name, rest = found.groups()
            at += 1
            if rest == "|":
                parts = []
                while at < len(lines) and indent(lines[at]) > depth:
                    parts.append(lines[at].strip())
                    at += 1
                mapping[name] = "\n".join(parts)
            elif rest:
                mapping[name] = scalar(rest)
            else:
                mapping[name], at = block(at, indent(lines[at]))
        if at < len(lines) and indent(lines[at]) > depth:
            raise ValueError(f"too far to the right: {lines[at]}")
        return mapping, at

    tree, end = block(0, 0)
    assert end == len(lines), lines[end]
    return tree


def metrics_of(text):
    """{name of a sample: its labels}"""
    found = {}
    for line in text.splitlines():
        if sample := re.match(r"(\w+)(?:\{(.*)\})? \S+$", line):
            found.setdefault(sample[1], set()).update(re.findall(r'(\w+)="', sample[2] or ""))
    return found


def metrics_page(service):
    return urllib.request.urlopen(service.address + "/metrics").read().decode()


class Deploy(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        service = Service(TOTO)
        body = json.dumps({"series": [{"values": list(range(40))}], "horizon": 2}).encode()
        urllib.request.urlopen(service.address + "/v1/forecast", body).read()
        # A request is counted once its answer is sent, so the first page may not have it yet.
        until = time.monotonic() + 60
        while 'toto_requests_total{route="/v1/forecast"' not in (page := metrics_page(service)):
            assert time.monotonic() < until, page
            time.sleep(0.01)
        cls.metrics = metrics_of(page)
        assert service.close() == 0
        cls.help = subprocess.run([TOTO, "serve", "--help"], capture_output=True, text=True, check=True).stdout

    def default(self, flag):
        return re.search(rf"^  {flag} .*\(default ([^);]+)", self.help, re.MULTILINE)[1]

    def check_expression(self, text):
        for opening, closing in ("()", "[]", "{}"):
            self.assertEqual(text.count(opening), text.count(closing), text)
        bare = re.sub(r"\[[^\]]*\]", "", text)
        names = []
        for name, labels in re.findall(r"([a-zA-Z_]\w*)\s*\{([^}]*)\}", bare):
            known = {**self.metrics, **FROM_PROMETHEUS}.get(name)
            self.assertIsNotNone(known, f"{name} is not in /metrics: {text}")
            used = set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", re.sub(r'"[^"]*"', '""', labels)))
            self.assertLessEqual(used, known | ADDED_LABELS, f"{name}: {text}")
            names.append(name)
        bare = re.sub(r'"[^"]*"', "", re.sub(r"\{[^}]*\}", "", bare))
        grouped = re.findall(r"\bby\s*\(([^)]*)\)", bare)
        labels = {label for item in self.metrics.values() for label in item} | ADDED_LABELS
        for label in ",".join(grouped).replace(" ", "").split(",") if grouped else []:
            self.assertIn(label, labels, text)
        bare = re.sub(r"\bby\s*\([^)]*\)", "", bare)
        for name, call in re.findall(r"(?<![\w.])([a-zA-Z_]\w*)\s*(\()?", bare):
            if re.fullmatch(r"e\d*|\d+[smhd]", name) or name in WORDS:
                continue
            if call:
                self.assertIn(name, FUNCTIONS, text)
            else:
                self.assertIn(name, {**self.metrics, **FROM_PROMETHEUS}, text)
                names.append(name)
        return set(names)

    def test_alert_rules_use_existing_metrics(self):
        text = (DEPLOY / "alerts.yml").read_text(encoding="utf-8")
        tree = read_yaml(text)
        try:
            import yaml
        except ImportError:
            yaml = None
        if yaml:
            whole = yaml.safe_load(text)
            self.assertEqual(
                [rule["alert"] for rule in whole["groups"][0]["rules"]],
                [rule["alert"] for rule in tree["groups"][0]["rules"]],
            )
        used = {}
        for rule in tree["groups"][0]["rules"]:
            self.assertLessEqual({"alert", "expr", "labels", "annotations"}, set(rule), rule)
            self.assertIn(rule["labels"]["severity"], ("critical", "warning"))
            self.assertTrue(rule["annotations"]["summary"])
            used[rule["alert"]] = self.check_expression(rule["expr"].replace("offset 6h", ""))
        shadow = next(rule["expr"] for rule in tree["groups"][0]["rules"] if rule["alert"] == "TotoShadowDeviation")
        self.assertIn("toto_shadow_deviation > toto_shadow_deviation_bound", shadow)
        # The deviation of the engine in use: not after a rollback.
        self.assertRegex(shadow, r"\)\s+and toto_shadow_enabled == 1$")
        self.assertNotIn("increase", shadow)
        self.assertIn("toto_shadow_enabled", used["TotoShadowNotChecking"])
        self.assertEqual(used["TotoQueueFull"], {"toto_queue_full_total"})
        errors = next(rule["expr"] for rule in tree["groups"][0]["rules"] if rule["alert"] == "TotoErrors")
        self.assertNotIn("client_left", errors)
        self.assertNotRegex(shadow, r"[0-9]e-[0-9]", "the bound is the server's: --shadow-bound")
        for alert, metric in (
            ("TotoShadowDeviation", "toto_shadow_deviation"), ("TotoReplansAfterWarmUp", "toto_replans_total"),
            ("TotoLatencyHigh", "toto_request_duration_seconds_bucket"), ("TotoErrors", "toto_errors_total"),
            ("TotoMemoryGrowth", "process_resident_memory_bytes"),
        ):  # fmt: skip
            self.assertIn(metric, used[alert])
        document = (ROOT / "docs/serving.md").read_text(encoding="utf-8")
        self.assertEqual(set(re.findall(r"\bToto[A-Z]\w+", document)), set(used))
        for name in self.metrics:  # histograms by their own name, families by their first
            base = re.sub(r"_(bucket|sum|count)$", "", name)
            family = re.sub(r"^(toto_shadow)(?:_deviation|_checks)?(_\w+)$", r"\2", base)
            self.assertTrue(f"`{base}`" in document or f"`{family}`" in document, base)

    def test_forecasting_routes_are_timed_as_forecasts(self):
        route = re.search(r'route=~"([^"]*)"', (DEPLOY / "alerts.yml").read_text(encoding="utf-8"))[1]
        board = (DEPLOY / "grafana-dashboard.json").read_text(encoding="utf-8")
        self.assertEqual(set(re.findall(r'route=~\\"([^"\\]*)\\"', board)), {route})
        source = (ROOT / "server/router.cc").read_text(encoding="utf-8")
        routes = re.findall(r'\{"POST", "([^"]+)", true, [\w<>]+(, true)?\}', source)
        self.assertGreater(len(routes), 10)
        for pattern, forecasts in routes:
            self.assertEqual(bool(re.fullmatch(route, pattern)), bool(forecasts), pattern)

    def test_the_dashboard_uses_existing_metrics(self):
        board = json.loads((DEPLOY / "grafana-dashboard.json").read_text(encoding="utf-8"))
        panels = [panel for panel in board["panels"] if panel["type"] != "row"]
        self.assertEqual(len({panel["id"] for panel in board["panels"]}), len(board["panels"]))
        used = set()
        for panel in panels:
            self.assertLessEqual(panel["gridPos"]["x"] + panel["gridPos"]["w"], 24, panel["title"])
            for target in panel["targets"]:
                used |= self.check_expression(target["expr"])
        for variable in board["templating"]["list"][1:]:
            used |= self.check_expression(re.sub(r", (job|instance)\)", ")", variable["query"]))
        for name in (
            "toto_request_duration_seconds_bucket", "toto_requests_total", "toto_errors_total", "toto_queue_depth",
            "toto_batch_size_bucket", "toto_forecasts_total", "toto_replans_total", "toto_shadow_deviation",
            "toto_rolled_back", "toto_model_info", "process_resident_memory_bytes",
        ):  # fmt: skip
            self.assertIn(name, used)

    def test_the_unit_uses_existing_flags_and_variables(self):
        unit = (DEPLOY / "toto.service").read_text(encoding="utf-8")
        settings = [line for line in unit.splitlines() if not line.startswith("#")]
        for flag in re.findall(r"(--[a-z-]+)", next(line for line in settings if line.startswith("ExecStart="))):
            self.assertIn(f"  {flag} ", self.help)
        self.check_variables(unit)
        for hardening in (
            "DynamicUser=yes",
            "ProtectSystem=strict",
            "NoNewPrivileges=yes",
            "MemoryDenyWriteExecute=yes",
            "CapabilityBoundingSet=",
        ):
            self.assertIn(hardening, settings)
        self.assertGreaterEqual(int(re.search(r"^TimeoutStopSec=(\d+)$", unit, re.MULTILINE)[1]), 10)
        named = re.search(r"^Documentation=file:/usr/local/(\S+)$", unit, re.MULTILINE)[1]
        with tempfile.TemporaryDirectory() as folder:
            install = ["cmake", "--install", Path(TOTO).parent, "--component", "documents", "--prefix", folder]
            subprocess.run(install, check=True, capture_output=True)
            self.assertTrue((Path(folder) / named).is_file(), named)
        if not shutil.which("systemd-analyze"):
            return
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "toto.service"
            path.write_text(unit.replace("/usr/local/bin/toto", TOTO), encoding="utf-8")
            done = subprocess.run(["systemd-analyze", "verify", "--man=no", path], capture_output=True, text=True)
            self.assertEqual([line for line in done.stderr.splitlines() if "toto" in line], [])

    def check_variables(self, text):
        for name in re.findall(r"TOTO_SERVE_(\w+)=", text):
            self.assertIn("--" + name.lower().replace("_", "-") + " ", self.help)

    def test_the_image_is_built_from_existing_files(self):
        text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory() as folder:
            for line in re.findall(r"^COPY (?!--)(.+)$", text, re.MULTILINE):
                *sources, target = line.split()
                for source in sources:
                    copy = shutil.copytree if (ROOT / source).is_dir() else shutil.copy
                    place = Path(folder) / target / Path(source).name if target.endswith("/") else Path(folder) / target
                    place.parent.mkdir(exist_ok=True)
                    copy(ROOT / source, place)
            # Configures, and a dry run of the build finds every file it needs.
            configure = ["cmake", "-S", folder, "-B", f"{folder}/build", "-G", "Ninja", "-DTOTO_BUILD_TESTS=OFF"]
            for command in (configure, ["ninja", "-C", f"{folder}/build", "-n", "toto", "toto_cli"]):
                done = subprocess.run(command, capture_output=True, text=True, timeout=300)
                self.assertEqual(done.returncode, 0, done.stdout[-2000:] + done.stderr)
        rules = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
        for folder, rest in re.findall(r"^install\(DIRECTORY (\w+)/(.*)\)$", rules, re.MULTILINE):
            self.assertTrue("OPTIONAL" in rest or f"\nCOPY {folder} " in text, f"{folder} is installed from nowhere")
        self.check_variables(text)
        setup = (ROOT / "tools/setup.sh").read_text(encoding="utf-8")
        needed = set(re.search(r"^build=\((.*)\)$", setup, re.MULTILINE)[1].split())
        installed = set(re.search(r"--no-install-recommends \\\n(.*?)\\\n", text, re.DOTALL)[1].split())
        self.assertEqual(needed - installed, {"make", "python3", "libgtest-dev"})  # needed by tests only
        self.assertRegex(text, r"(?m)^USER 10001$")
        self.assertIn("/health", re.search(r"^HEALTHCHECK (.*?)\n[A-Z]", text, re.MULTILINE | re.DOTALL)[1])
        if shutil.which("hadolint"):
            subprocess.run(["hadolint", DEPLOY / "Dockerfile"], check=True)

    def test_proxies_agree_with_the_server(self):
        nginx = (DEPLOY / "nginx.conf").read_text(encoding="utf-8")
        caddy = (DEPLOY / "Caddyfile").read_text(encoding="utf-8")
        body, port = self.default("--max-body SIZE"), self.default("--port N")
        self.assertRegex(nginx, rf"client_max_body_size +{body.lower()};")
        self.assertIn(f"max_size {body}B", caddy)
        for text in (nginx, caddy):
            self.assertIn(f"127.0.0.1:{port}", text)
            self.assertEqual(text.count("{"), text.count("}"))
        deadline = int(self.default("--deadline S"))
        self.assertGreater(int(re.search(r"proxy_read_timeout +(\d+)s", nginx)[1]), deadline)
        for line in nginx.splitlines():
            bare = line.split("#")[0].strip()
            self.assertTrue(not bare or bare[-1] in ";{}", line)


if __name__ == "__main__":
    unittest.main(verbosity=2)
