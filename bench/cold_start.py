"""Cold start in Python: imports, loading the model, the first forecast. Prints its samples."""

import json
import sys
import warnings
from pathlib import Path

warnings.simplefilter("ignore")

import torch  # noqa: E402
from toto.inference.forecaster import TotoForecaster  # noqa: E402
from toto.model.toto import Toto  # noqa: E402

from reference_request import request_of  # noqa: E402
from series_data import read_series  # noqa: E402


def main() -> None:
    model, series, num_samples, threads = sys.argv[1:]
    torch.set_num_threads(int(threads))
    toto = Toto.load_from_checkpoint(model).eval()
    forecast = TotoForecaster(toto.model).forecast(
        request_of(read_series(Path(series))),
        prediction_length=1,
        num_samples=int(num_samples),
        samples_per_batch=int(num_samples),
        use_kv_cache=True,
    )
    samples = forecast.samples[:, 0].transpose(1, 2).tolist()  # [series][sample][step]
    print(json.dumps({"series": [{"samples": each} for each in samples]}))


if __name__ == "__main__":
    main()
