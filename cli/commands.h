// Every command registers itself; main.cc calls these in the order of the help text.
#pragma once

#include "cli/arguments.h"

namespace toto::cli {

void add_forecast(Arguments& arguments);
void add_eval(Arguments& arguments);
void add_backtest(Arguments& arguments);
void add_signal(Arguments& arguments);
void add_serve(Arguments& arguments);
void add_verify(Arguments& arguments);
void add_compare_modes(Arguments& arguments);
void add_stress(Arguments& arguments);
void add_analyze_log(Arguments& arguments);
void add_bench(Arguments& arguments);
void add_inspect(Arguments& arguments);
void add_make_model(Arguments& arguments);
void add_config(Arguments& arguments);
void add_doctor(Arguments& arguments);

}  // namespace toto::cli
