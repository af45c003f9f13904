"""The inputs of check_bits.py: a table, the files some of them need, and a small reader for all of them."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).resolve().parents[1]
DATA = SOURCE / "examples" / "data"
GOLDEN = SOURCE / "tests" / "golden"

# Routes of a forecast. For "http-file" the server reads the file (/v1/series); "http" sends values that read_series()
# has read. "http-session" and "python-session" send the end of the series in pieces.
THREE = ("cli", "http", "python")
FILES = ("cli", "http-file")
ALL = (
    "cli", "cli-csv", "cli-jsonl", "http", "http-file", "http-session", "oip", "oip-binary", "nixtla", "chronos",
    "python", "python-session",
)  # fmt: skip

# Engine settings that must not change a number. PLAIN is slow: for short inputs only.
MODES: tuple[Mapping[str, Any], ...] = ({}, {"mode": "reduce-overhead"}, {"mode": "max-autotune"})
PLAIN = {"isa": "reference", "threads": 1}


@dataclass(frozen=True)
class Input:
    """One input. `name` is GROUP/NAME. Every route and every engine must give the same numbers."""

    name: str
    kind: str  # forecast, tensor, request, eval or backtest
    files: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)  # named as in the JSON of /v1/forecast or results.json
    routes: tuple[str, ...] = THREE
    engines: tuple[Mapping[str, Any], ...] = ({},)  # of {"mode", "dtype", "isa", "threads", "model", "no_kv_cache"}
    columns: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()  # of the command alone: how to read the file
    future: str = ""  # file of a known future; its columns are also in the input
    path: str = ""  # of a request

    @property
    def group(self) -> str:
        return self.name.partition("/")[0]

    def runs(self) -> list[tuple[str, str, Mapping[str, Any]]]:
        """(label, route, engine) of every answer this input must give. A label names what differs from engines[0]."""
        first = self.engines[0]
        found = []
        for engine in self.engines:
            other = ",".join(f"{name}={value}" for name, value in engine.items() if first.get(name) != value)
            found += [(f"{route}/{other}" if other else route, route, engine) for route in self.routes]
        return found


def forecast(name: str, file: str, options: Mapping[str, Any], **others: Any) -> Input:
    return Input(name, "forecast", (file,), options, **others)


def tensor(name: str, file: str, options: Mapping[str, Any]) -> Input:
    """The columns of a file as [batch, variates, time] (tensor_of in bits_routes.py)."""
    return Input(name, "tensor", (file,), options, routes=("oip", "oip-binary", "python-forecaster"))


def request(name: str, path: str, file: str, options: Mapping[str, Any]) -> Input:
    return Input(name, "request", (file,), options, routes=("http",), path=path)


def evaluation(name: str, files: tuple[str, ...], options: Mapping[str, Any]) -> Input:
    return Input(name, "eval", files, options, routes=("cli",))


def backtest(name: str, files: tuple[str, ...], options: Mapping[str, Any], **others: Any) -> Input:
    return Input(name, "backtest", files, options, **others)


# ------------------------------------------------------------------------------------------------------------ the table

DECILES = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
CLOSE, BARS = ("close",), ("open", "high", "low", "close")
TOGETHER, KEPT = {"multivariate": True}, {"emit": "samples"}
POINTS = (
    "mean", "median", "quantile_0.35", "trimmed_mean_10", "lower_trimmed_mean_0.2", "upper_trimmed_mean_0.2",
    "mean_minus_std_0.5", "mean_plus_std_1.5", "mean_quantile_mix_0.4_0.7", "quantile_plus_std_0.25_0.5",
)  # fmt: skip


def _horizons() -> list[Input]:
    """Below, at and beyond one patch, which is 24 steps in the bundled model."""
    return [
        forecast("horizon/one-step", "AirPassengers.csv", {"horizon": 1}, routes=ALL),
        forecast("horizon/below-patch", "AirPassengers.csv", {"horizon": 12}, routes=ALL, engines=({}, PLAIN)),
        forecast("horizon/one-patch", "sunspots.csv", {"horizon": 24}, routes=ALL),
        forecast("horizon/one-step-beyond", "sunspots.csv", {"horizon": 25, "context": 1000}),
        forecast("horizon/two-patches", "electricity.csv", {"horizon": 48, "context": 500}, engines=MODES[:2]),
        forecast("horizon/default", "GOOGL.csv", {"context": 512}, columns=CLOSE),
        forecast("horizon/fourteen-patches", "electricity.csv", {"horizon": 336, "context": 672}),
    ]


def _files() -> list[Input]:
    written = ("cli", "cli-csv", "cli-jsonl")
    return [
        forecast("file/bars-close", "AAPL.csv", {"horizon": 20}, columns=CLOSE, routes=ALL),
        forecast(
            "file/bars-columns", "GOOGL.csv", {"horizon": 10, "context": 300}, columns=("open", "high"),
            flags=("--columns", "open,high"), routes=("cli", "cli-csv", "http", "oip", "nixtla", "chronos", "python"),
        ),
        forecast("file/bars-symbols", "symbols.csv", {"horizon": 15}, routes=(*THREE, "http-file")),
        forecast("file/close-and-volume", "AMD.csv", {"horizon": 10, "context": 600}),
        forecast(
            "file/wide", "beijing_air.csv", {"horizon": 24, "context": 500},
            routes=(*written, "http", "http-file", "python"),
        ),
        forecast(
            "file/long", "m4_monthly.csv", {"horizon": 18},
            routes=(*written, "http", "http-file", "nixtla", "chronos", "python"),
        ),
        forecast("file/long-beyond-patch", "m4_monthly.csv", {"horizon": 30}, engines=MODES),
        forecast(
            "file/json-lines", "series.jsonl", {"horizon": 14}, routes=("cli", "cli-jsonl", "http", "chronos", "python")
        ),
        forecast("file/absent-times", "holes.csv", {"horizon": 14}, routes=FILES),
        forecast("file/absent-days", "ETHUSD.csv", {"horizon": 30}, routes=FILES),
        forecast(
            "file/every-weekday", "AAPL.csv", {"horizon": 10, "context": 400}, flags=("--freq", "B"), routes=FILES
        ),
        forecast("file/folder", "folder", {"horizon": 8, "context": 256}, routes=written),
    ]  # fmt: skip


def _samples() -> list[Input]:
    pipelines = ("python-pipeline", "python-forecaster")
    return [
        forecast(
            "samples/kept", "AirPassengers.csv", {"horizon": 18, "samples": 40, **KEPT}, engines=MODES[:2],
            routes=(*THREE, "http-session", "oip", "oip-binary", "chronos", "python-session", *pipelines),
        ),
        forecast(
            "samples/beyond-patch", "AAPL.csv", {"horizon": 60, "samples": 25, "seed": 7, **KEPT}, columns=CLOSE,
            routes=(*THREE, "oip", *pipelines),
        ),
        forecast(
            "samples/not-kept", "GOOGL.csv", {"horizon": 30, "samples": 300, "seed": 3, "context": 500}, columns=CLOSE
        ),
        forecast(
            "samples/multivariate", "beijing_air.csv",
            {"horizon": 30, "samples": 12, "context": 300, **TOGETHER, **KEPT},
        ),
        forecast("samples/common-stream", "m4_monthly.csv", {"horizon": 12, "samples": 16, **KEPT}),
        forecast(
            "samples/independent-streams", "m4_monthly.csv",
            {"horizon": 30, "samples": 16, "independent_streams": True, **KEPT},
        ),
        forecast("samples/large-seed", "sunspots.csv", {"horizon": 40, "context": 300, "seed": 2**40 + 1}),
        forecast("samples/one", "sunspots.csv", {"horizon": 26, "context": 300, "samples": 1, **KEPT}),
        forecast(
            "decode/mean", "GOOGL.csv", {"horizon": 100, "decode": "mean", "context": 500}, columns=CLOSE,
            routes=(*THREE, "oip", "http-session"),
        ),
        forecast(
            "decode/mean-multivariate", "AAPL.csv", {"horizon": 50, "decode": "mean", "context": 400, **TOGETHER},
            columns=BARS,
        ),
    ]  # fmt: skip


def _variates() -> list[Input]:
    known = {"columns": ("demand",), "future": "holiday.csv", "flags": ("--columns", "demand")}
    return [
        forecast(
            "multivariate/bars", "AAPL.csv", {"horizon": 20, "context": 800, **TOGETHER}, columns=BARS, engines=MODES,
            routes=(*THREE, "oip", "chronos", "http-session", "python-session"),
        ),
        forecast(
            "multivariate/bars-short", "AAPL.csv", {"horizon": 30, "context": 100, "samples": 4, **TOGETHER, **KEPT},
            columns=BARS, engines=(*MODES, PLAIN),
        ),
        forecast("multivariate/wide", "beijing_air.csv", {"horizon": 48, "context": 480, **TOGETHER}),
        forecast("multivariate/symbols", "symbols.csv", {"horizon": 12, **TOGETHER}, routes=(*THREE, "nixtla")),
        *(
            forecast(f"missing/{rule}", "gaps.csv", {"horizon": 21, "missing": rule}, routes=(*THREE, "http-file"))
            for rule in ("ffill", "linear", "mask")
        ),
        forecast("missing/default", "gaps.csv", {"horizon": 7}, routes=(*THREE, "chronos", "nixtla")),
        *(
            forecast(
                f"missing/{rule}-multivariate", "gaps.csv", {"horizon": 30, "missing": rule, "samples": 8, **TOGETHER}
            )
            for rule in ("ffill", "mask")
        ),
        *(
            forecast(
                f"known-future/{name}", "demand.csv", {"horizon": horizon}, **known,
                routes=(*THREE, "nixtla", "chronos"),
            )
            for name, horizon in (("below-patch", 20), ("beyond-patch", 40))
        ),
        forecast(
            "known-future/multivariate", "demand.csv", {"horizon": 30, "samples": 10, **TOGETHER, **KEPT},
            columns=("demand", "price"), future="holiday.csv",
        ),
    ]  # fmt: skip


def _summaries() -> list[Input]:
    air, sun, power = "AirPassengers.csv", "sunspots.csv", "electricity.csv"
    tails = [0.0001, 0.001, 0.999, 0.9999]
    sampled = ("trimmed_mean_10", "mean_plus_std_1.5", "quantile_plus_std_0.25_0.5")
    return [
        forecast(
            "quantiles/list", power, {"horizon": 24, "quantiles": [0.025, 0.25, 0.975], "context": 1000},
            routes=("cli", "cli-csv", "http", "oip", "chronos", "python"),
        ),
        forecast("quantiles/tails", sun, {"horizon": 30, "quantiles": tails, "context": 400}),
        forecast("quantiles/one", air, {"horizon": 6, "quantiles": [0.9]}),
        forecast("quantiles/of-samples", air, {"horizon": 30, "quantiles": [0.05, 0.5, 0.95], "samples": 33}),
        *(forecast(f"point/{spec}", sun, {"horizon": 30, "point": spec, "context": 240}) for spec in POINTS),
        *(
            forecast(f"point/{spec}-of-samples", air, {"horizon": 30, "point": spec, "samples": 50})
            for spec in sampled
        ),
        *(
            forecast(f"context/{length}", power, {"horizon": 26, "context": length})
            for length in (1, 23, 24, 25, 100, 5000)
        ),
        forecast("context/default", power, {"horizon": 24}),
    ]  # fmt: skip


def _engines() -> list[Input]:
    air, mixed = "AirPassengers.csv", {"horizon": 40, "context": 600, "samples": 20, **KEPT, **TOGETHER}
    found = []
    for dtype in ("bf16", "int8"):
        engines = tuple({"dtype": dtype, **same} for same in (*MODES, PLAIN))
        found += [
            forecast(f"dtype/{dtype}", air, {"horizon": 12}, engines=engines),
            forecast(f"dtype/{dtype}-beyond-patch", "m4_monthly.csv", {"horizon": 30}, engines=engines[:2]),
            forecast(f"dtype/{dtype}-multivariate", "beijing_air.csv", mixed, engines=engines[:2]),
        ]
    reference = {"mode": "reference"}
    found += [
        forecast("mode/optimised", air, {"horizon": 30}, engines=MODES),
        forecast("mode/reference", air, {"horizon": 30}, engines=(reference,)),
        forecast("mode/reference-f64", air, {"horizon": 30}, engines=({**reference, "dtype": "f64"},)),
        forecast(
            "mode/reference-multivariate", "AAPL.csv",
            {"horizon": 26, "context": 100, "samples": 4, **KEPT, **TOGETHER}, columns=BARS, engines=(reference,),
        ),
        forecast(
            "mode/reference-uncached", air, {"horizon": 26, "samples": 3}, routes=("cli", "python"),
            engines=({**reference, "no_kv_cache": True},),
        ),
    ]  # fmt: skip
    # Shapes, scalers, outputs and ways to store weights that the bundled model does not have.
    goldens = (
        "odd_sizes", "student_t_std_mean", "causal_std_mean", "spacewise_none", "spacewise_every_3_first", "sharded",
        "f16_weights",
    )  # fmt: skip
    for model in goldens:
        options = {"horizon": 19, "context": 203, "samples": 5, **KEPT, **TOGETHER}
        found.append(forecast(f"model/{model}", "demand.csv", options, engines=({"model": model},)))
    odd = {"model": "odd_sizes"}
    found.append(forecast("model/odd_sizes-exact", "demand.csv", {"horizon": 7}, engines=(odd,)))
    found.append(forecast("model/odd_sizes-int8", "demand.csv", {"horizon": 9}, engines=({**odd, "dtype": "int8"},)))
    return found


def _protocols() -> list[Input]:
    grown = ("cli", "http-session", "python-session")
    windows, anomalies = "/v2/cross_validation", "/v2/anomaly_detection"
    return [
        # Variates with equal ids see each other.
        tensor("groups/two-groups", "beijing_air.csv", {"horizon": 30, "samples": 8, "series_ids": [[0, 0, 1, 1, 1]]}),
        tensor(
            "groups/batch", "demand.csv",
            {"horizon": 12, "samples": 8, "series_ids": [[3, 4, 3], [7, 7, 7]], "batch": 2},
        ),
        tensor("groups/mask", "gaps.csv", {"horizon": 12, "samples": 8, "missing": "mask", "mask": True}),
        tensor("groups/mean", "demand.csv", {"horizon": 30, "decode": "mean", "series_ids": [[0, 1, 1]]}),
        # Sessions give the numbers of one call with the whole series.
        forecast(
            "session/bars", "AAPL.csv", {"horizon": 30, "samples": 10, "seed": 5, **KEPT}, columns=CLOSE, routes=grown
        ),
        forecast("session/sliding-context", "electricity.csv", {"horizon": 24, "context": 480}, routes=grown),
        forecast(
            "session/missing", "gaps.csv", {"horizon": 24, "missing": "linear"}, columns=("a",),
            flags=("--columns", "a"), routes=grown,
        ),
        request(
            "nixtla/cross-validation", windows, "m4_monthly.csv",
            {"h": 6, "n_windows": 3, "step_size": 4, "level": [80, 90]},
        ),
        request(
            "nixtla/cross-validation-exogenous", windows, "demand.csv",
            {"h": 12, "n_windows": 2, "level": [50], "hist_exog": ["price"]},
        ),
        request("nixtla/full-history", windows, "AirPassengers.csv", {"h": 6, "full_history": True, "level": [80]}),
        request("nixtla/anomaly-detection", anomalies, "electricity.csv", {"h": 1, "level": 99}),
        request("nixtla/anomaly-detection-default", anomalies, "AirPassengers.csv", {"h": 1}),
    ]  # fmt: skip


def _evaluations() -> list[Input]:
    return [
        evaluation("eval/monthly", ("AirPassengers.csv", "m4_monthly.csv"), {"horizon": 18, "windows": 2}),
        evaluation(
            "eval/hourly-samples", ("electricity.csv",),
            {"horizon": 48, "windows": 4, "samples": 20, "seed": 2, "context": 600},
        ),
        evaluation("eval/bars", ("AAPL.csv",), {"horizon": 14, "windows": 5, "stride": 7}),
        evaluation("eval/gaps", ("gaps.csv",), {"horizon": 10, "windows": 3, "missing": "mask", "season": 5}),
    ]  # fmt: skip


def _backtests() -> list[Input]:
    apple, google, coins = ("AAPL.csv",), ("GOOGL.csv",), ("BTCUSD.csv", "ETHUSD.csv")
    return [
        backtest(
            "backtest/stock", apple, {"windows": 30}, engines=MODES[:2],
            routes=("cli", "cli-cached", "cli-no-prefix-reuse", "http", "python"),
        ),
        backtest("backtest/universe", (*apple, *google, *coins), {"windows": 12}),
        backtest("backtest/coins-tuned", coins, {"windows": 40, "tune_offsets": True, "fee_bps": 2, "slippage_bps": 1}),
        backtest(
            "backtest/log-lag-close", apple, {"windows": 25, "transform": "log", "decision_lag": 2, "fill": "close"}
        ),
        backtest("backtest/samples", google, {"windows": 8, "samples": 40, "seed": 11}),
        backtest(
            "backtest/price-period", google,
            {"from": "2022-11-01", "to": "2022-11-18", "transform": "price", "context": 256},
        ),
        backtest(
            "backtest/percent-strategies", ("BTCUSD.csv",),
            {"windows": 30, "scale": 100, "strategies": ["simple", "ci-guard", "maxdiff"], "ci_multiplier": 0.5,
             "point": "quantile_0.45"},
        ),
        backtest(
            "backtest/short-costs", apple,
            {"windows": 20, "borrow_apr": 0.08, "bars_per_year": 250, "asset": "stock", "fee_bps": 0,
             "prove_no_lookahead": True},
        ),
        backtest("backtest/symbol-column", ("symbols.csv",), {"windows": 10, "decision_lag": 3}),
        backtest("backtest/int8", apple, {"windows": 10}, engines=({"dtype": "int8"},)),
    ]  # fmt: skip


def all_inputs() -> list[Input]:
    inputs = [
        *_horizons(), *_files(), *_samples(), *_variates(), *_summaries(), *_engines(), *_protocols(), *_evaluations(),
        *_backtests(),
    ]  # fmt: skip
    assert len({item.name for item in inputs}) == len(inputs), "two inputs have one name"
    return inputs


# ------------------------------------------------------------------------------------------------------------ the files


class _Noise:
    """Whole numbers from a linear congruential generator: the same on every machine."""

    def __init__(self, seed: int) -> None:
        self._state = seed

    def below(self, limit: int) -> int:
        self._state = (self._state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self._state >> 33) % limit


def _hundredths(value: int) -> str:
    return f"{value // 100}.{value % 100:02d}"


def _write(path: Path, header: list[str], rows: list[list[str]]) -> None:
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])


def _write_demand(folder: Path) -> None:
    """Hourly demand, price and holidays, and the holidays of the two days that follow."""
    noise, start, length = _Noise(1), datetime(2024, 3, 1), 480
    hours = [(start + timedelta(hours=i)).isoformat() for i in range(length + 48)]
    holiday = [str(int(i // 24 % 7 in (5, 6) or i // 24 == 20)) for i in range(length + 48)]
    rows = []
    for i in range(length):
        demand = 50000 + 1500 * abs(i % 24 - 12) - 9000 * int(holiday[i]) + noise.below(4000)
        price = 4000 + 7 * i % 900 + noise.below(500)
        rows.append([hours[i], _hundredths(demand), _hundredths(price), holiday[i]])
    _write(folder / "demand.csv", ["timestamp", "demand", "price", "holiday"], rows)
    _write(
        folder / "holiday.csv",
        ["timestamp", "holiday"],
        [list(row) for row in zip(hours[length:], holiday[length:], strict=True)],
    )


def _write_gaps(folder: Path) -> None:
    """Daily values: missing cells in gaps.csv, absent rows in holes.csv."""
    noise, start, spellings = _Noise(2), date(2023, 1, 1), ("", "NA", "NaN", "null", "None")
    gaps, holes = [], []
    for i in range(400):
        day = (start + timedelta(days=i)).isoformat()
        values = [
            _hundredths(10000 + 350 * (i % 7) + 9 * i + noise.below(800)),
            _hundredths(30000 - 20 * i + noise.below(2500)),
        ]
        if i % 29 != 17 and i % 53 not in (30, 31):
            holes.append([day, values[0]])
        for column, share in enumerate((9, 14)):
            if i > 0 and noise.below(share) == 0:
                values[column] = spellings[noise.below(len(spellings))]
        if i < 5:
            values[1] = ""
        gaps.append([day, *values])
    _write(folder / "gaps.csv", ["date", "a", "b"], gaps)
    _write(folder / "holes.csv", ["date", "level"], holes)


def _write_json_lines(folder: Path) -> None:
    noise, lines = _Noise(3), []
    for number, length in enumerate((40, 7, 200, 333)):
        target = [_hundredths(2000 + 100 * number + 40 * (i % 12) + noise.below(300)) for i in range(length)]
        for i in range(3 * number, length, 19):
            target[i] = "null"
        lines.append(
            f'{{"item_id": "item {number}", "start": "2024-01-01", "freq": "D", "target": [{", ".join(target)}]}}\n'
        )
    (folder / "series.jsonl").write_text("".join(lines), encoding="utf-8")


def _write_symbols(folder: Path) -> None:
    """The last 300 bars of two symbols, on the same days."""
    names, rows = ("open", "high", "low", "close"), []
    tables = {}
    for symbol in ("AAPL", "GOOGL"):
        with open(DATA / f"{symbol}.csv", encoding="utf-8", newline="") as file:
            tables[symbol] = list(csv.DictReader(file))[-300:]
    days = [row["date"] for row in tables["AAPL"]]
    for symbol, bars in tables.items():
        rows += [[day, symbol, *(bar[name] for name in names)] for day, bar in zip(days, bars, strict=True)]
    _write(folder / "symbols.csv", ["date", "symbol", *names], rows)


def write_files(folder: Path) -> None:
    """The files that are not in examples/data."""
    _write_demand(folder)
    _write_gaps(folder)
    _write_json_lines(folder)
    _write_symbols(folder)
    (folder / "folder").mkdir()
    for name in ("AAPL.csv", "AirPassengers.csv", "m4_monthly.csv"):
        shutil.copy(DATA / name, folder / "folder" / name)


def path_of(folder: Path, name: str) -> Path:
    return folder / name if (folder / name).exists() else DATA / name


# ----------------------------------------------------------------------------------------------------------- the reader

Series = tuple[str, list["float | None"]]


def _number(cell: str) -> float | None:
    return None if cell.strip().lower() in ("", "na", "nan", "null", "none") else float(cell)


def read_series(path: Path, columns: tuple[str, ...] = ()) -> list[Series]:
    """The series of a file as (id, values), None where one is missing; leading missing values stay."""
    if path.suffix == ".jsonl":
        items = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        return [(item["item_id"], item["target"]) for item in items]
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    header = list(rows[0])
    for id_column, value_column in (("unique_id", "y"), ("symbol", "close")):
        if id_column in header:
            found: dict[str, list[float | None]] = {}
            for row in rows:
                found.setdefault(row[id_column], []).append(_number(row[value_column]))
            return list(found.items())
    return [(name, [_number(row[name]) for row in rows]) for name in columns or header[1:]]
