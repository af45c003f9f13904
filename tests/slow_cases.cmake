# Cases that take most of the time: label slow, started first. All others are fast and take half a minute together
# on two cores. One list of gtest patterns for each program.
set(slow_cases_of_allocation Allocation.* PlanTest.*)
set(slow_cases_of_cli AnalyzeLogTest.Memory* BacktestTest.* Docs.EveryCommandRuns EvalTest.* ServeProcess.* ServeTls.*
    StreamMemoryTest.* StressCommandTest.* VerifyCommandTest.*)
set(slow_cases_of_forecast PathsTest.AreTheDistributionOf* SessionTest.* TuningTest.*)
set(slow_cases_of_model Sampling.*)
set(slow_cases_of_report FanPageInBrowser.*)
set(slow_cases_of_server Hostile.* Load.*)
set(slow_cases_of_validate BrokenEngine.* ChangedWeights.* CompareModes.* Stress.* TamperedGolden.* VerifyGoldens.*
    VerifyTest.*)
