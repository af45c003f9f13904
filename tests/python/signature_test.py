"""The public arguments: names, positions, defaults."""

from __future__ import annotations

import inspect
import unittest
from typing import Any

import totocpp


def described(function: Any) -> str:
    """The signature without types and without self or cls."""
    parameters = [p.replace(annotation=p.empty) for p in inspect.signature(function).parameters.values()]
    if parameters and parameters[0].name in ("self", "cls"):
        del parameters[0]
    return str(inspect.Signature(parameters))


QUANTILES = "quantiles=(0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)"
LOADING = (
    "mode=None, dtype=None, threads=None, isa=None, use_kv_cache=True, cache=None, plan_cache_size=None, "
    "revision=None, hub_cache_dir=None, local_files_only=False, force_download=False, token=None"
)


class Signatures(unittest.TestCase):
    def check(self, function: Any, wanted: str) -> None:
        self.assertEqual(described(function), wanted)

    def test_engine(self) -> None:
        self.check(totocpp.Engine.from_pretrained, f"(model=None, *, {LOADING})")
        self.check(
            totocpp.Engine.forecast,
            f"(series, horizon=64, *, {QUANTILES}, samples=None, paths=None, seed=None, context=None, multivariate=False, "
            "known_future=None, decode='sample', missing='ffill', scale='auto', point='mean', ids=None, independent_streams=False, "
            "keep_samples=None)",
        )
        self.check(
            totocpp.Engine.session, "(history, *, multivariate=False, max_bytes=134217728, max_length=1048576)"
        )
        self.check(totocpp.Engine.backtest, "(data, **settings)")
        self.check(totocpp.Engine.verify, "(*, golden=(), golden_only=False, modes=None, seed=None)")
        for name in ("info", "mode", "dtype", "isa", "threads", "name", "patch_size", "trained", "timings", "plans",
                     "replans", "kv_cache_name"):  # fmt: skip
            self.assertIsInstance(inspect.getattr_static(totocpp.Engine, name), property, name)

    def test_session(self) -> None:
        self.check(totocpp.Session.append, "(values)")
        self.check(
            totocpp.Session.forecast,
            f"(horizon=64, *, {QUANTILES}, samples=None, paths=None, seed=None, context=None, decode='sample', missing='ffill', "
            "scale='auto', point='mean', independent_streams=False, keep_samples=None)",
        )

    def test_pipeline(self) -> None:
        self.check(
            totocpp.TotoPipeline.from_pretrained,
            "(model_id=None, device_map=None, torch_dtype=None, *, compile_model=None, compile_mode=None, "
            "torch_compile=None, compile_backend=None, cache_policy=None, warmup_sequence=None, max_oom_retries=None, "
            "min_samples_per_batch=None, min_num_samples=None, threads=None, isa=None, revision=None, "
            "local_files_only=False, force_download=False, token=None, **others)",
        )
        self.check(
            totocpp.TotoPipeline.predict,
            "(context, prediction_length, num_samples=4096, samples_per_batch=512, *, seed=None, multivariate=False, "
            "missing='ffill', max_context=None, ids=None, independent_streams=False, max_oom_retries=None, "
            "min_samples_per_batch=None, min_num_samples=None, **others)",
        )
        self.check(
            totocpp.TotoPipeline.warm_up,
            "(length, prediction_lengths=1, num_samples=(4096, 2048, 1024, 512, 256, 128), *, batch_size=1)",
        )
        self.check(totocpp.TotoForecastSamples.numpy, "()")

    def test_toto_ts(self) -> None:
        self.check(
            totocpp.Toto.from_pretrained,
            "(pretrained_model_name_or_path=None, *, model_id=None, map_location='cpu', strict=True, cache_dir=None, "
            "proxies=None, resume_download=None, **arguments)",
        )
        self.check(totocpp.Toto.load_from_checkpoint, "(checkpoint_path, map_location='cpu', strict=True, **arguments)")
        self.check(
            totocpp.MaskedTimeseries,
            "(series, padding_mask, id_mask, timestamp_seconds=None, time_interval_seconds=None, "
            "num_exogenous_variables=0)",
        )
        self.check(totocpp.TotoForecaster, "(model)")
        self.check(
            totocpp.TotoForecaster.forecast,
            "(inputs, prediction_length, num_samples=None, samples_per_batch=10, use_kv_cache=True, "
            "future_exogenous_variables=None, *, seed=None, independent_streams=False)",
        )
        self.check(totocpp.Forecast, "(mean, samples=None)")
        self.check(totocpp.Forecast.quantile, "(q)")
        for name in ("median", "std"):
            self.assertIsInstance(inspect.getattr_static(totocpp.Forecast, name), property, name)

    def test_types_of_options(self) -> None:
        """Type hints match the signatures."""
        from totocpp._options import BacktestSettings, ForecastOptions, SignalSettings
        from totocpp.backtest import KEYWORDS, SIGNAL_KEYWORDS

        options = set(inspect.signature(totocpp.Engine.forecast).parameters) - {"self", "series", "horizon", "multivariate"}
        self.assertEqual(set(ForecastOptions.__annotations__), options)
        self.assertEqual(sorted(BacktestSettings.__annotations__), sorted(KEYWORDS))
        self.assertEqual(sorted(SignalSettings.__annotations__), sorted(SIGNAL_KEYWORDS))

    def test_keywords_are_the_rows_of_the_table(self) -> None:
        """The library's tables of settings name the keywords and hold their defaults."""
        from totocpp._rows import ENGINE, FORECAST

        keywords = {name for name, row in FORECAST.items() if row.is_keyword}
        for function in (totocpp.Engine.forecast, totocpp.Session.forecast):
            parameters = inspect.signature(function).parameters
            others = {"self", "series", "known_future", "ids", "keep_samples"}
            self.assertEqual(keywords - {"multivariate"}, set(parameters) - others - {"multivariate"})
            for name in keywords & set(parameters):
                if parameters[name].default is not None:  # None: of the engine, or the library's
                    self.assertEqual(parameters[name].default, FORECAST[name].default, name)
        loading = inspect.signature(totocpp.Engine.from_pretrained).parameters
        for name, row in ENGINE.items():
            if row.is_keyword and name != "seed":  # which forecast() has
                self.assertIn(name, loading)

    def test_exports(self) -> None:
        self.assertEqual(
            sorted(totocpp.__all__),
            ["Backtest", "Engine", "Forecast", "MaskedTimeseries", "SeriesForecast", "Session", "Signal", "Toto",
             "TotoForecastSamples", "TotoForecaster", "TotoPipeline",
             "TotoWarning"],
        )  # fmt: skip


if __name__ == "__main__":
    unittest.main()
