#!/usr/bin/env python3
"""The page of `toto serve` in a real browser: user actions, and that it sends requests to no other server.

    page_test.py TOTO [--screenshots FOLDER] [unittest arguments]

Exit code 77 (skipped) where there is no chromium.
"""

import csv
import datetime
import io
import json
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "serving"))
import devtools  # noqa: E402, next to this file
from service import Service  # noqa: E402

KEY = "a-key-for-tests"
FORECAST_SHOWN = (
    "document.querySelector('#plot .t-median')?.getAttribute('d')?.length > 20 &&"
    "!document.querySelector('#plot').classList.contains('busy')"
)
VIEW = "Number(plot.dataset.to) - Number(plot.dataset.from)"
TOTO = ""
SCREENSHOTS = None


def small_table(rows=80):
    first = datetime.date(2024, 1, 1)
    lines = [f"{first + datetime.timedelta(day)},{100 + (day * 7) % 13},{day}" for day in range(rows)]
    return "date,price,<b>count</b>\n" + "\n".join(lines) + "\n"


class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.open_service = Service(TOTO, "--shadow-rate", "1")
        cls.locked_service = Service(TOTO, "--api-key", KEY)
        cls.browser = devtools.Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        codes = [cls.open_service.close(), cls.locked_service.close()]
        assert codes == [0, 0], codes

    def open(self, service=None, **how):
        where = (service or self.open_service).address
        page = self.browser.open(where + how.pop("path", "/"), **how)
        self.addCleanup(page.close)
        return page

    def open_with_forecast(self, **how):
        page = self.open(**how)
        page.wait(FORECAST_SHOWN)
        return page

    def keep(self, page, name, whole=False):
        if SCREENSHOTS:
            page.run("new Promise(resolve => setTimeout(resolve, 400))")
            page.screenshot(Path(SCREENSHOTS) / f"{name}.png", whole)

    def check_clean(self, page):
        """No error on the console, no request to another server."""
        self.assertEqual(page.problems, [])
        own = (self.open_service.address, self.locked_service.address, "data:", "blob:", "about:")
        self.assertEqual([url for url in page.requests if not url.startswith(own)], [])
        self.assertGreater(len(page.requests), 5)

    def test_a_sample_is_forecast_and_read(self):
        page = self.open_with_forecast(dark=False)
        self.assertEqual(page.text("#title"), "AAPL close")
        self.assertIn("24 steps", page.text("#subtitle"))
        self.assertIn("toto-mini", page.text("#engine"))
        self.assertEqual(page.run("document.querySelectorAll('#plot .t-band').length"), 2)
        self.assertEqual(page.run("document.querySelectorAll('#values tbody tr').length"), 24)
        # Bars continue after holidays: the first step is the first weekday after the last bar.
        self.assertEqual(page.text("#values tbody tr td"), "2026-08-06")
        # The pointer reads values and bands, with their dates.
        box = page.place("#plot")
        page.mouse("mouseMoved", box["x"] + box["width"] * 0.97, box["y"] + 100)
        page.wait("!document.querySelector('.tip').hidden")
        tip = page.run("document.querySelector('.tip').innerText")
        for part in ("2026", "Median", "80 %", "50 %", " to "):
            self.assertIn(part, tip)
        self.keep(page, "forecast")
        page.mouse("mouseMoved", box["x"] + box["width"] * 0.4, box["y"] + 100)
        page.wait("document.querySelector('.tip').innerText.includes('History')")
        # The wheel zooms, a drag moves, Shift and drag selects.
        before = page.run(VIEW)
        page.mouse("mouseWheel", box["x"] + box["width"] / 2, box["y"] + 100, deltaX=0, deltaY=-240)
        page.wait(f"{VIEW} < {before} * 0.8")
        start = page.run("Number(plot.dataset.from)")
        self.drag(page, 0.3, 0.6)
        page.wait(f"Number(plot.dataset.from) < {start} - 5")
        before = page.run(VIEW)
        self.drag(page, 0.4, 0.7, modifiers=8)
        page.wait(f"{VIEW} < {before} * 0.5")
        page.click("#zoom-all")
        page.wait(f"{VIEW} > 1200")
        self.keep(page, "forecast-all")
        page.choose("#column", "volume")
        page.wait("document.querySelector('#title').textContent === 'AAPL volume'")
        page.choose("#sample", "m4_monthly")
        page.wait("!document.querySelector('#series-row').hidden")
        page.choose("#series", "2")
        page.wait(
            "document.querySelector('#title').textContent === document.querySelector('#series').selectedOptions[0].text &&"
            + FORECAST_SHOWN
        )
        self.check_clean(page)

    def drag(self, page, start, end, modifiers=0):
        box = page.place("#plot")
        at = lambda share: (box["x"] + box["width"] * share, box["y"] + 150)
        page.mouse("mousePressed", *at(start), button="left", clickCount=1, modifiers=modifiers)
        for share in (0.3, 0.7, 1):
            page.mouse("mouseMoved", *at(start + (end - start) * share), button="left", buttons=1, modifiers=modifiers)
        page.mouse("mouseReleased", *at(end), button="left", clickCount=1, modifiers=modifiers)

    def test_a_file_is_forecast_and_its_errors_are_shown(self):
        page = self.open_with_forecast()
        page.drop("#drop", "prices.csv", small_table())
        page.wait("document.querySelector('#subtitle').textContent.includes('prices.csv')")
        # Markup in names stays text.
        self.assertEqual(
            page.run("[...document.querySelectorAll('#series option')].map(o => o.text)"), ["price", "<b>count</b>"]
        )
        page.choose("#series", "1")
        page.wait("document.querySelector('#title').textContent === '<b>count</b>'")
        page.choose("#horizon", "200000")
        page.wait("document.querySelector('#forecast-error').textContent.includes('horizon is 200000')")
        self.assertIn("100000", page.text("#forecast-error"))
        page.choose("#horizon", "12")
        page.wait(
            "document.querySelector('#forecast-error').hidden && document.querySelectorAll('#values tbody tr').length === 12"
        )
        page.drop("#drop", "bad.csv", "date,price\n2024-01-01,1\n2024-01-02,abc\n")
        page.wait("!document.querySelector('#forecast-error').hidden")
        sentence = page.text("#forecast-error")
        for part in ("bad.csv: line 3", "abc", "expected a number"):
            self.assertIn(part, sentence)
        self.keep(page, "error")
        page.drop("#drop", "empty.csv", "")
        page.wait("document.querySelector('#forecast-error').textContent.includes('empty.csv')")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "chosen.csv"
            path.write_text(small_table(60), encoding="utf-8")
            page.upload("#file", path)
            page.wait("document.querySelector('#subtitle').textContent.includes('chosen.csv')")
        # Refusals are shown to the user and, as failed requests, on the console; nothing else is.
        self.assertTrue(all("400" in problem for problem in page.problems), page.problems)

    def test_sliders_request_quantiles_and_files_can_be_saved(self):
        page = self.open_with_forecast()
        with tempfile.TemporaryDirectory() as folder:
            self.browser.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=folder)
            page.choose("#outer", "90")
            page.wait("document.querySelector('#values').textContent.includes('q0.95')")
            self.assertIn("q0.05 to q0.95", page.text("#outer-label"))
            page.choose("#inner", "98")  # bands stay nested
            page.wait("document.querySelector('#values').textContent.includes('q0.99')")
            self.assertEqual(page.run("[Number(outer.value), Number(inner.value)]"), [99, 98])
            self.assertIn("99 %", page.text("#legend"))
            self.assertEqual(page.run("document.querySelectorAll('#plot .t-band').length"), 2)
            saved = {}
            for kind in ("csv", "svg", "png"):
                page.click(f"#save-{kind}")
                until = time.monotonic() + devtools.PATIENCE
                while not (path := Path(folder) / f"AAPL_close_forecast.{kind}").exists() and time.monotonic() < until:
                    self.browser.pump(0.03)
                saved[kind] = path.read_bytes()
        rows = list(csv.reader(io.StringIO(saved["csv"].decode())))
        self.assertEqual(rows[0], ["unique_id", "ds", "mean", "0.005", "0.01", "0.99", "0.995"])
        self.assertEqual(len(rows), 25)
        self.assertLess(float(rows[1][3]), float(rows[1][6]))
        self.assertTrue(saved["svg"].startswith(b"<svg"))
        self.assertIn(b"AAPL close, next 24 steps", saved["svg"])
        self.assertTrue(saved["png"].startswith(b"\x89PNG"))
        self.check_clean(page)

    def test_a_file_has_the_numbers_and_warnings_of_the_command(self):
        # 4300 days, and a gap where the context of 4096 begins: an earlier value fills it.
        first = datetime.date(2010, 1, 1)
        cells = ["" if 190 <= day < 230 else f"{100 + day % 17 + day / 100:.2f}" for day in range(4300)]
        lines = [f"{first + datetime.timedelta(day)},{cell}" for day, cell in enumerate(cells)]
        page = self.open_with_forecast()
        with tempfile.TemporaryDirectory() as folder:
            path, answer = Path(folder) / "gap.csv", Path(folder) / "answer.json"
            path.write_text("date,a\n" + "\n".join(lines) + "\n", encoding="utf-8")
            words = ["forecast", str(path), "--horizon", "30", "--quantiles", "0.1,0.25,0.75,0.9", "--json", str(answer)]
            subprocess.run([TOTO, *words], check=True, capture_output=True)
            command = json.loads(answer.read_text(encoding="utf-8"))
            self.browser.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=folder)
            page.choose("#horizon", "30")
            page.upload("#file", path)
            page.wait("document.querySelector('#subtitle').textContent.includes('gap.csv') &&" + FORECAST_SHOWN)
            page.click("#save-csv")
            until = time.monotonic() + devtools.PATIENCE
            while not (saved := Path(folder) / "a_forecast.csv").exists() and time.monotonic() < until:
                self.browser.pump(0.03)
            rows = list(csv.DictReader(io.StringIO(saved.read_text(encoding="utf-8"))))
        series = command["series"][0]
        self.assertEqual([float(row["mean"]) for row in rows], series["mean"])
        for level, values in series["quantiles"].items():
            self.assertEqual([float(row[level]) for row in rows], values, level)
        shown = page.run("[...document.querySelectorAll('#warnings li')].map(item => item.textContent)")
        self.assertEqual(shown, [sentence.removeprefix(f"{path}: ") for sentence in command["warnings"]])
        self.assertEqual(len(shown), 2, "cut and filled")

    def test_a_backtest_runs_and_its_report_is_shown(self):
        page = self.open_with_forecast()
        page.click("#tab-backtest")
        page.choose("#windows", "60" if SCREENSHOTS else "5")
        page.click("#backtest-run")
        page.wait("document.querySelector('#backtest-state').textContent.startsWith('Done')")
        self.assertIn("AAPL", page.text("#backtest-state"))
        until = time.monotonic() + devtools.PATIENCE
        while "Strategies against buy-hold" not in (text := page.frame_text()) and time.monotonic() < until:
            self.browser.pump(0.05)
        self.assertIn("Strategies against buy-hold", text)
        self.assertIn("No lookahead", text)
        self.keep(page, "backtest")
        self.check_clean(page)  # the report's own style and script are allowed too
        page.choose("#windows", "0")
        page.click("#backtest-run")
        page.wait("!document.querySelector('#backtest-error').hidden")
        self.assertIn("windows", page.text("#backtest-error"))
        page.drop("#bars-drop", "ODD.csv", "date,open\n2024-01-01,1\n")
        page.wait("document.querySelector('#bars-chosen').textContent.includes('ODD')")
        page.choose("#windows", "5")
        page.click("#backtest-run")
        page.wait("document.querySelector('#backtest-error').textContent.includes('ODD')")

    def test_the_next_bar_is_shown_as_tables(self):
        page = self.open_with_forecast()
        page.click("#tab-backtest")
        page.choose("#windows", "5")
        page.click("#signal-run")
        page.wait("document.querySelector('#backtest-state').textContent.startsWith('Done')")
        text = page.text("#signal")
        for part in ("AAPL: 2026-08-06", "Probability of a higher close", "maxdiff-alwayson", "market at the open"):
            self.assertIn(part, text)
        rows = page.run("document.querySelectorAll('#signal tbody tr').length")
        self.assertGreaterEqual(rows, 3 + 9)  # three prices, nine strategies
        self.keep(page, "signal")
        self.check_clean(page)
        page.click("#backtest-run")
        page.wait("!document.querySelector('#report').hidden && document.querySelector('#signal').hidden")

    def test_status_shows_the_state_of_the_service(self):
        page = self.open_with_forecast(dark=True)
        page.click("#tab-status")
        page.wait("document.querySelector('#cards').textContent.includes('within bound')")  # shadow rate 1
        text = page.run("document.querySelector('#cards').innerText")
        for part in (
            "p50",
            "p95",
            "p99",
            "Queue",
            "0 of 256",
            "Replans",
            "default",
            "Memory",
            "Bound",
            "1.000e−5",
            "Errors",
        ):
            self.assertIn(part, text)
        asked = "performance.getEntriesByType('resource').filter(e => e.name.endsWith('/v1/status')).length"
        page.wait(f"{asked} > {page.run(asked)}")  # it keeps asking
        self.check_clean(page)
        page.click("#mode-switch")  # no key was given to this server
        page.wait("document.querySelector('#mode-state').textContent.includes('--api-key')")
        self.keep(page, "status-refused")
        if SCREENSHOTS:  # some load for the charts
            page.run("document.querySelector('#mode-state').textContent = ''")
            page.resize(1280, 590)
            for number in range(20):
                page.run(
                    "Promise.all([...Array(8)].map((_, i) => fetch('/v1/forecast', {method: 'POST', body: JSON.stringify("
                    f"{{series: [{{values: [...Array(300 + {number}).keys()].map(k => Math.sin(k / (3 + i)))}}],"
                    "horizon: 24})})))"
                )
                time.sleep(1.5)
            self.keep(page, "status")

    def test_the_status_is_requested_only_while_it_is_shown(self):
        page = self.open_with_forecast()
        # Requests are counted when they begin, so that a slow machine counts no more of them.
        page.run(
            "const send = window.fetch; window.begun = 0; window.fetch = (path, options) => {"
            " window.begun += path === '/v1/status' ? 1 : 0; return send(path, options); }"
        )
        # Left before the answer arrives, several times.
        for _ in range(4):
            page.run("document.querySelector('#tab-status').click(); document.querySelector('#tab-forecast').click()")
        before = page.run("begun")
        page.run("new Promise(resolve => setTimeout(resolve, 5000))")
        self.assertEqual(page.run("begun"), before)
        # Opened as often, it asks once every two seconds.
        for _ in range(4):
            page.run("document.querySelector('#tab-forecast').click(); document.querySelector('#tab-status').click()")
        before = page.run("begun")
        page.run("new Promise(resolve => setTimeout(resolve, 5000))")
        self.assertLessEqual(page.run("begun") - before, 3)
        page.wait(f"begun > {before}")

    def test_a_declined_key_is_not_requested_again(self):
        page = self.open(self.locked_service, path="/#status")
        page.wait("document.querySelector('#key-dialog').open")
        page.click("#key-cancel")
        page.run("new Promise(resolve => setTimeout(resolve, 5000))")
        self.assertFalse(page.run("document.querySelector('#key-dialog').open"))
        self.assertIn("API key", page.text("#status-error"))
        # A key entered later is used.
        page.click("#key-button")
        page.wait("document.querySelector('#key-dialog').open")
        page.type(KEY)
        page.key("Enter")
        page.wait("document.querySelector('#cards').textContent.includes('p99')")
        requests = "performance.getEntriesByType('resource').filter(e => e.name.endsWith('/v1/status')).length"
        page.wait(f"{requests} > {page.run(requests)}")

    def test_the_last_choice_is_shown_in_any_order_of_answers(self):
        page = self.open_with_forecast()
        # The answer with the next table is held back until release() is called.
        page.run(
            "const send = window.fetch; window.hold = true; window.fetch = async (path, options) => {"
            " const answer = await send(path, options); if (path !== '/v1/series' || !window.hold) return answer;"
            " window.hold = false; await new Promise(resolve => { window.release = resolve; }); return answer; }"
        )
        page.choose("#sample", "electricity")
        page.wait("!window.hold")
        page.choose("#sample", "AirPassengers")
        page.wait("document.querySelector('#subtitle').textContent.includes('AirPassengers')")
        page.run("window.release(); new Promise(resolve => setTimeout(resolve, 1000))")
        page.wait(FORECAST_SHOWN)
        self.assertIn("AirPassengers", page.text("#subtitle"))
        self.assertIn("36 steps", page.text("#subtitle"))
        # Moving a slider now neither stops the reading nor restores the old table.
        page.run("window.hold = true")
        page.choose("#sample", "BTCUSD")
        page.wait("!window.hold")
        page.choose("#outer", "90")
        page.run("new Promise(resolve => setTimeout(() => { window.release(); resolve(); }, 500))")
        page.wait("document.querySelector('#subtitle').textContent.includes('BTCUSD') &&" + FORECAST_SHOWN)
        self.assertIn("q0.95", page.text("#values"))
        self.check_clean(page)

    def test_in_a_narrow_window_the_order_on_screen_is_that_of_the_keyboard(self):
        page = self.open_with_forecast(width=360, height=740)
        top = "document.querySelector(name).getBoundingClientRect().top"
        tops = page.run(f"['#sample', '#run', '#plot'].map(name => {top})")
        self.assertEqual(tops, sorted(tops))

    def test_a_key_is_asked_for_and_an_operator_switches_modes(self):
        page = self.open(self.locked_service, dark=True)
        page.wait("document.querySelector('#key-dialog').open")
        page.type("wrong-key")
        page.key("Enter")
        page.wait("document.querySelector('#key-error').textContent.includes('the API key is wrong')")
        self.keep(page, "key")
        page.run("document.querySelector('#key').value = ''")
        page.run("document.querySelector('#key').focus()")
        page.type(KEY)
        page.key("Enter")
        page.wait(FORECAST_SHOWN)
        self.assertFalse(any(KEY in url for url in page.requests))
        page.click("#tab-backtest")
        page.choose("#windows", "3")
        page.click("#backtest-run")
        page.wait("document.querySelector('#backtest-state').textContent.startsWith('Done')")
        page.click("#tab-status")
        page.wait("document.querySelector('#cards').textContent.includes('p99')")
        page.choose("#mode", "reference")
        page.click("#mode-switch")
        page.wait("document.querySelector('#engine').textContent.includes('reference')")
        self.assertIn("reference", page.text("#mode-state"))
        page.choose("#mode", "default")
        page.click("#mode-switch")
        page.wait("document.querySelector('#engine').textContent.includes('default')")
        self.assertTrue(all("401" in problem for problem in page.problems), page.problems)

    def test_the_page_works_with_the_keyboard_alone(self):
        page = self.open_with_forecast()
        order = []
        for _ in range(40):
            page.key("Tab")
            order.append(page.run("document.activeElement.id"))
            if order[-1] == "plot":
                break
        for name in (
            "tab-forecast",
            "theme",
            "file",
            "sample",
            "column",
            "horizon",
            "context",
            "outer",
            "inner",
            "run",
            "save-csv",
            "zoom-in",
            "plot",
        ):
            self.assertIn(name, order)
        # Focus is visible, the chart announces values.
        self.assertIn("solid", page.run("getComputedStyle(document.activeElement).outlineStyle"))
        self.assertIn("6 Aug 2026: Median", page.run("plot.getAttribute('aria-valuetext')"))
        page.key("ArrowRight")
        self.assertIn("7 Aug 2026: Median", page.run("plot.getAttribute('aria-valuetext')"))
        page.key("ArrowLeft")
        page.key("ArrowLeft")
        self.assertIn("5 Aug 2026: History", page.run("plot.getAttribute('aria-valuetext')"))
        before = page.run(VIEW)
        page.key("+", "+")
        page.wait(f"{VIEW} < {before} * 0.8")
        start = page.run("Number(plot.dataset.from)")
        page.key("ArrowLeft", shift=True)
        page.wait(f"Number(plot.dataset.from) < {start}")
        page.key("Home")
        page.wait("Number(plot.dataset.from) < 1")
        page.key("0", "0")
        page.wait(f"Math.abs({VIEW} - {before}) < 1")
        page.key("Escape")
        page.wait("document.querySelector('.tip').hidden")
        # Enter in a field forecasts; arrows change tabs.
        page.run("horizon.focus(); horizon.select()")
        page.type("7")
        page.key("Enter")
        page.wait("document.querySelectorAll('#values tbody tr').length === 7")
        page.run("document.querySelector('#tab-forecast').focus()")
        page.key("ArrowRight")
        self.assertTrue(
            page.run("!document.querySelector('#backtest').hidden && document.activeElement.id === 'tab-backtest'")
        )
        page.key("End")
        page.wait(
            "!document.querySelector('#status').hidden && document.querySelector('#cards').textContent.includes('p99')"
        )
        # Every control has a name.
        nameless = page.run(
            "[...document.querySelectorAll('button, input, select, iframe, [tabindex]')].filter(item =>"
            "!(item.textContent.trim() || item.labels?.length || item.ariaLabel || item.title)).map(item => item.outerHTML)"
        )
        self.assertEqual(nameless, [])
        self.check_clean(page)

    def test_light_dark_and_a_phone(self):
        background = "getComputedStyle(document.body).backgroundColor"
        page = self.open_with_forecast(dark=True)
        self.assertEqual(page.run(background), "rgb(20, 23, 28)")
        self.keep(page, "forecast-dark")
        page.click("#theme")
        self.assertEqual(page.text("#theme"), "Theme: light")
        self.assertEqual(page.run(background), "rgb(255, 255, 255)")
        page.visit(self.open_service.address + "/")  # kept over a reload
        page.wait(FORECAST_SHOWN)
        self.assertEqual(page.run(background), "rgb(255, 255, 255)")
        page.click("#theme")
        self.assertEqual(page.run(background), "rgb(20, 23, 28)")
        page.click("#theme")
        self.assertEqual(page.text("#theme"), "Theme: auto")
        page.resize(390, 844, touch=True)
        page.wait("innerWidth === 390")
        self.keep(page, "phone", whole=False)
        for tab in ("forecast", "backtest", "status"):
            page.click(f"#tab-{tab}")
            page.wait(f"!document.querySelector('#{tab}').hidden && document.documentElement.scrollWidth <= innerWidth")
        self.assertEqual(page.problems, [])

    def test_the_policy_allows_only_the_servers_files(self):
        page = self.open_with_forecast()
        self.assertEqual(page.run("[...document.scripts].filter(script => !script.src).length"), 0)
        refused = page.run(
            "new Promise(resolve => { addEventListener('securitypolicyviolation', event => resolve(event.effectiveDirective));"
            "const script = document.createElement('script'); script.textContent = 'window.inside = 1';"
            "document.body.append(script); })"
        )
        self.assertEqual(refused, "script-src-elem")
        self.assertIsNone(page.run("window.inside ?? null"))
        self.assertEqual(page.run("fetch('https://example.org/').then(() => 'reached', () => 'refused')"), "refused")

    def test_a_missing_server_is_reported(self):
        service = Service(TOTO)
        page = self.open(service)
        page.wait(FORECAST_SHOWN)
        self.assertEqual(service.close(), 0)
        page.click("#run")
        page.wait("document.querySelector('#forecast-error').textContent.includes('cannot be reached')")


def main():
    global TOTO, SCREENSHOTS
    arguments = sys.argv[1:]
    TOTO = arguments.pop(0)
    if arguments[:1] == ["--screenshots"]:
        SCREENSHOTS = arguments[1]
        Path(SCREENSHOTS).mkdir(parents=True, exist_ok=True)
        del arguments[:2]
    if not devtools.command():
        print("skipped: needs the command chromium")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *arguments], verbosity=2)


if __name__ == "__main__":
    main()
