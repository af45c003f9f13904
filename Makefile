# Thin: everything real is in CMakePresets.json and tools/. `make help` lists the targets.
.PHONY: help demo build unit test scripts train-test python python-asan bench speed lint format asan tsan fuzz install clean setup
.DEFAULT_GOAL := help

PREFIX ?= /usr/local
FUZZ_SECONDS ?= 60
JOBS ?= $(shell nproc)
CONFIGURE = @test -f $(2)/build.ninja || cmake --preset $(1) >/dev/null

help: ## this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 18

setup: ## install missing Debian packages
	@tools/setup.sh build

build: setup ## build/toto
	$(call CONFIGURE,release,build)
	@cmake --build build --target toto_cli -j $(JOBS)

demo: build ## forecast real data with the bundled model and draw a chart
	@tools/demo.sh

test: setup ## build everything and run all tests
	$(call CONFIGURE,release,build)
	@cmake --build build -j $(JOBS)
	@ctest --test-dir build --output-on-failure --no-tests=error -j $(JOBS)

unit: setup ## build the tests and run the fast ones: under a minute
	$(call CONFIGURE,release,build)
	@cmake --build build -j $(JOBS)
	@ctest --test-dir build --output-on-failure --no-tests=error -j $(JOBS) -L fast

scripts: build ## tests of the scripts that make the results; quantstats reads a backtest
	@tools/check_scripts.sh build results

train-test: build ## tests of the training and of your own goldens, with PyTorch in a separate environment under build
	@tools/check_scripts.sh build train
	@tools/check_scripts.sh build train2

python: setup ## the Python package: wheel, tests in a clean environment, adapters, types
	$(call CONFIGURE,release,build)
	@cmake --build build -j $(JOBS) --target toto toto_cli
	@tools/check_python.sh build

python-asan: ## the Python package under AddressSanitizer and UndefinedBehaviorSanitizer
	@tools/setup.sh dev
	$(call CONFIGURE,asan,build-asan)
	@cmake --build build-asan -j $(JOBS) --target toto
	@tools/check_python_asan.sh build-asan

asan: ## all tests under AddressSanitizer and UndefinedBehaviorSanitizer; ASAN_TESTS='-L fast': the fast ones
	@tools/setup.sh dev
	$(call CONFIGURE,asan,build-asan)
	@cmake --build build-asan -j $(JOBS)
	@ctest --test-dir build-asan --output-on-failure --no-tests=error -j $(JOBS) $(ASAN_TESTS)

tsan: ## the threaded tests under ThreadSanitizer
	@tools/setup.sh dev
	$(call CONFIGURE,tsan,build-tsan)
	@cmake --build build-tsan -j $(JOBS) --target base_tests forecast_tests server_tests validate_tests
	@ctest --test-dir build-tsan --output-on-failure --no-tests=error -j $(JOBS) -R 'Threads|Engine|^Stress\.|Load|Http|Shadow|Routes|^ServerTest|Hostile|^Answers\.|Guard|SlowWork|Reading|Twin'

fuzz: ## every fuzz target, those that read models and tables for FUZZ_SECONDS (60)
	@tools/setup.sh dev
	$(call CONFIGURE,fuzz,build-asan)
	@tools/fuzz.sh build-asan $(FUZZ_SECONDS)

bench: ## latency of the bundled model; kernels next to OpenBLAS and oneDNN
	@tools/setup.sh bench
	@cmake --preset release -DTOTO_BUILD_BENCH=ON >/dev/null
	@cmake --build build -j $(JOBS) --target toto_cli kernels_bench
	@build/toto bench
	@build/bench/kernels_bench --benchmark_filter='^(read|stack)/.*threads:2'

speed: setup ## is it as fast as it should be, by what this machine does in the same run?
	@cmake --preset release -DTOTO_BUILD_BENCH=ON >/dev/null
	@cmake --build build -j $(JOBS) --target speed_gate time_gate
	@build/bench/speed_gate models/toto-mini
	@build/bench/time_gate models/toto-mini
	@build/bench/speed_gate models/toto-mini --self-check >/dev/null
	@build/bench/time_gate models/toto-mini --self-check >/dev/null

lint: ## formatting, clang-tidy, layers, words
	@tools/setup.sh dev
	@tools/lint.sh

format: ## format the sources in place
	@tools/setup.sh dev
	@git ls-files '*.cc' '*.h' '*.inl' | xargs clang-format-19 -i

install: build ## install command, library, header and model under PREFIX
	@cmake --build build -j $(JOBS) --target toto toto_cli
	@cmake --install build --prefix $(PREFIX)

clean: ## remove build folders
	@rm -rf build build-*
