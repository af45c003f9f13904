// The sizes that determine the layout of caches, passes and scratch memory, for any architecture.
#pragma once

namespace toto {

struct ModelShape {
  int patch = 0;            // time steps per position
  int input_width = 0;      // floats the network reads per position
  int num_time_layers = 0;  // layers with keys and values
  int num_heads = 0;        // heads of keys and values
  int head_dim = 0;
  int position_floats = 0;  // factors per position, see Network::position_factors
  int leading_rows = 0;     // constant rows before the first patch of every variate
  int num_components = 0;   // of a step's Student-T mixture; 0: it is not one
  bool skips_gaps = false;  // patches without a value have no row, see ModelFacts::reads_gaps
};

}  // namespace toto
