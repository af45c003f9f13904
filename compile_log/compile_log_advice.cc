// The table of known causes: what a reason means, what to change, what it costs, and how this
// engine avoids it.
#include <algorithm>
#include <array>

#include "compile_log/compile_log.h"

namespace toto::compile_log {
namespace {

// Matches a group of this kind whose reason contains one of the words; without words, any reason.
struct Cause {
  LogKind kind;
  std::array<std::string_view, 10> words;
  LogAdvice advice;
};

constexpr std::string_view kNoGuards =
    "nothing is compiled at run time, so there is nothing to guard: every shape and position runs "
    "through the same kernels";
constexpr std::string_view kStaticCacheHere =
    "one static cache, allocated before the first kernel runs; the position is a plain integer "
    "next to it, and all steps run the same code: 0 replans after warm-up";
constexpr std::string_view kStaticCache =
    "use a static cache: allocate it at full length once, keep the position on the host and pass it "
    "as a tensor, write with index_copy_, mask the unfilled part";
constexpr std::string_view kCompileCost =
    "seconds to tens of seconds in the middle of a forecast for each recompilation, then memory for "
    "the compiled code";
constexpr std::string_view kEagerCost =
    "from then on this function runs uncompiled for every new case: the compile time is paid, the "
    "gain is lost, and latency varies between compiled and eager code";
constexpr std::string_view kBreakCost =
    "the graph is split in two: the interpreter runs in between, nothing is fused across the break, "
    "and each part has its own guards that can fail";
constexpr std::string_view kLaunchCost =
    "the graph runs, but each kernel is launched separately: mode reduce-overhead has no effect for "
    "this graph";

constexpr Cause kCauses[] = {
    {LogKind::limit_hit,
     {"_current_idx", "kv_cache", "cache_position", "seq_pos_offset", "seq_len", "current_len"},
     {Severity::critical,
      "the function was recompiled for every length of its key-value cache until the limit: the "
      "length is a Python number, or read from a tensor with .item(), and changes at each step",
      "use a static cache: allocate it at full length once, keep the position on the host and pass "
      "it as a tensor, write with index_copy_, mask the unfilled part; raising "
      "torch._dynamo.config.recompile_limit (cache_size_limit before 2.6) only postpones this",
      kEagerCost, kStaticCacheHere}},
    {LogKind::limit_hit,
     {"size mismatch", "stride mismatch", ".size()", ".shape", "rank mismatch"},
     {Severity::critical, "the function was recompiled for every new shape until the limit",
      "mark varying dimensions with torch._dynamo.mark_dynamic(tensor, dim) before the first call, "
      "or pad to a few fixed sizes; raising torch._dynamo.config.recompile_limit (cache_size_limit "
      "before 2.6) helps only if there are few shapes in total",
      kEagerCost,
      "shapes fall into classes with room to grow; a plan is made once per class, at most "
      "--plan-cache-size plans are kept, and evicted ones are planned again: the code never gets "
      "slower"}},
    {LogKind::limit_hit,
     {},
     {Severity::critical,
      "a value that the compiled code was specialised for keeps changing: every change compiled "
      "another version, until the limit",
      "find the changing value in the reason and move it out of the compiled function, or pass it "
      "as a tensor; TORCH_LOGS=recompiles shows all of them. Raising "
      "torch._dynamo.config.recompile_limit (cache_size_limit before 2.6) helps only if the number "
      "of versions is bounded",
      kEagerCost, kNoGuards}},

    {LogKind::recompile,
     {"_current_idx", "kv_cache", "cache_position", "seq_pos_offset", "seq_len", "current_len"},
     {Severity::high,
      "the guard includes the length of the key-value cache, which changes at every decoding step",
      kStaticCache, kCompileCost, kStaticCacheHere}},
    {LogKind::recompile,
     {"size mismatch", "stride mismatch", ".size()", ".shape", "rank mismatch", "Ne(", "Eq(",
      ".stride()"},
     {Severity::medium, "a tensor has another shape than the one the code was compiled for",
      "mark the dimension with torch._dynamo.mark_dynamic(tensor, dim) before the first call, or "
      "compile with dynamic=True, or pad to a few fixed sizes and warm up each of them",
      kCompileCost,
      "shapes fall into classes with room to grow, a plan for each is made in microseconds; mode "
      "default needs none at all"}},
    {LogKind::recompile,
     {"NoneType", " is None", " is not None"},
     {Severity::medium,
      "an argument or attribute was a tensor in one call and None in another: an optional mask, "
      "cache or extra input",
      "always pass a tensor, an empty or neutral one if there is nothing (a mask of ones), or "
      "compile the two cases as two functions",
      kCompileCost,
      "masks, ids and extra variates are filled in before the network runs: it gets the same inputs "
      "in every call"}},
    {LogKind::recompile,
     {"___check_obj_id", "___check_type_id", "ID_MATCH", "object id", " is not ", "id(", "type("},
     {Severity::medium,
      "the guard includes an object's identity, and the object changed: a module, cache or config "
      "created for each call",
      "create it once and reuse it, or pass its contents as tensors", kCompileCost, kNoGuards}},
    {LogKind::recompile,
     {"dtype mismatch", "device mismatch", "dispatch key", "requires_grad", "expected type"},
     {Severity::medium, "a tensor has another dtype, device or gradient setting",
      "convert inputs in one place before the compiled function", kCompileCost,
      "values are float32 and weights have the --dtype chosen at load; neither can vary"}},
    {LogKind::recompile,
     {"GLOBAL_STATE", "grad_mode", "inference_mode", "autocast", "num_threads", "deterministic",
      "default_dtype"},
     {Severity::medium,
      "a global setting (grad mode, autocast, threads) differed from the first call",
      "enter torch.inference_mode() and autocast once, outside, and the same way for warm-up and "
      "serving",
      kCompileCost, kNoGuards}},
    {LogKind::recompile,
     {"layer_idx", "layer_index"},
     {Severity::medium,
      "all layers share their code, which contains the layer's index as a Python number: there is a "
      "version for each layer, and layers beyond the limit run eager",
      "pass each layer its own part of the cache instead of an index, so that all layers use the "
      "same code; or set torch._dynamo.config.recompile_limit above the number of layers",
      kCompileCost, "a layer is a pointer to its weights; all layers run the same code"}},
    {LogKind::recompile,
     {" == ", " != ", " < ", " > ", " in "},
     {Severity::medium, "a Python number or flag is part of the compiled code, and it changed",
      "pass it as a tensor, or keep it outside the compiled function; if it has few values, warm up "
      "each of them",
      kCompileCost, kNoGuards}},
    {LogKind::recompile,
     {},
     {Severity::medium, "a guard of the compiled code no longer held",
      "look at the guard named in the reason; TORCH_LOGS=guards,recompiles_verbose shows where it "
      "comes from",
      kCompileCost, kNoGuards}},

    {LogKind::graph_break,
     {"item", "_local_scalar_dense", "tolist", "scalar", "DataDependentOutput"},
     {Severity::medium,
      "a value is read from a tensor back into Python (.item(), int(tensor)), which cannot be traced",
      "keep the number on the host from the start: count positions in Python outside the compiled "
      "function and pass them as tensors. Or capture it: "
      "torch._dynamo.config.capture_scalar_outputs = True "
      "(TORCHDYNAMO_CAPTURE_SCALAR_OUTPUTS=1), with torch._check for its range",
      "the graph is split in two and the device waits for the host: the interpreter runs in between, "
      "nothing is fused across the break",
      "the position is a plain integer on the host and is never read back"}},
    {LogKind::graph_break,
     {"recompile limit", "cache_size_limit", "recompile_limit"},
     {Severity::high, "the recompile limit was hit inside this frame",
      "see the limit hits: remove the changing guard", kEagerCost, kNoGuards}},
    {LogKind::graph_break,
     {"jump", "branching", "control flow", "cond", "data-dependent", "Data-dependent"},
     {Severity::medium, "a Python branch depends on a tensor's value",
      "use torch.where or torch.cond, or decide on the host before the compiled function",
      kBreakCost,
      "decisions depend on shapes and options alone, and are made before the first kernel"}},
    {LogKind::graph_break,
     {"print", "logging", "logger", "warnings", "warn"},
     {Severity::low, "something is printed or logged inside compiled code",
      "remove it, or list it in torch._dynamo.config.reorderable_logging_functions", kBreakCost,
      "the library never prints; it returns warnings as values"}},
    {LogKind::graph_break,
     {"generator", "context manager", "with block", "try", "inlined", "skip", "builtin", "C/C++"},
     {Severity::medium, "the code calls something that cannot be traced",
      "move the call out of the compiled function, replace it with a traceable one, or exclude the "
      "whole part with torch.compiler.disable so that the break is where you want it",
      kBreakCost, "the whole forward pass is one piece of native code"}},
    {LogKind::graph_break,
     {},
     {Severity::medium, "the code contains something that cannot be traced into a graph",
      "compile with fullgraph=True while developing: it stops at the first break and names it",
      kBreakCost, "the whole forward pass is one piece of native code"}},

    {LogKind::cudagraph_skip,
     {"mutated inputs", "mutation"},
     {Severity::high,
      "the graph writes into its inputs: the key-value cache is updated in place, and a recorded "
      "graph must not write to memory it does not own",
      "make the cache static and known to the graph: allocate it once, mark its tensors with "
      "torch._dynamo.mark_static_address, never replace them; or keep it as a buffer of the module",
      kLaunchCost,
      "a plan holds every buffer of a call, including the cache, at a fixed address, and kernels "
      "write to it"}},
    {LogKind::cudagraph_skip,
     {"_local_scalar_dense", "item", "unbacked", "nonzero", "incompatible op"},
     {Severity::high,
      "the graph contains an operation that needs the host while it runs: a scalar read from the "
      "device (.item()), or a result of unknown size",
      "keep the index on the host and pass it as a tensor argument, so that no value is read back; "
      "scalar capture alone moves the break but leaves the operation in the graph",
      kLaunchCost, "no value is read back; the host knows every position and size beforehand"}},
    {LogKind::cudagraph_skip,
     {"cpu device", "cpu", "multiple devices", "non-cuda"},
     {Severity::medium, "part of the graph, often one small tensor, is on the CPU",
      "create masks, indices and scalars on the same device as the model; without a GPU there are "
      "no CUDA graphs, so choose mode default",
      kLaunchCost, "runs on the CPU: mode reduce-overhead plans buffers and needs no device"}},
    {LogKind::cudagraph_skip,
     {"dynamic shape", "symint", "symbolic", "distinct sizes", "too many"},
     {Severity::medium, "a graph is recorded for each shape, and these shapes are dynamic or many",
      "pad to a few fixed sizes, or set "
      "torch._inductor.config.triton.cudagraph_skip_dynamic_graphs = True on purpose",
      kLaunchCost, "a plan serves a class of shapes, not one shape"}},
    {LogKind::cudagraph_skip,
     {},
     {Severity::medium, "the graph does something that cannot be recorded and replayed",
      "see the reason; move the operation it names out of the compiled part", kLaunchCost,
      "a plan holds memory, not a recording: there is nothing that cannot be planned"}},

    {LogKind::replan,
     {"evicted"},
     {Severity::medium, "more shape classes are in use than plans are kept",
      "raise --plan-cache-size (TORCHDYNAMO_CACHE_SIZE_LIMIT is honoured too)",
      "laying out buffers again: microseconds; in max-autotune also measuring",
      "this is toto.cpp's own log: a replan changes no result"}},
    {LogKind::replan,
     {"cache file invalid"},
     {Severity::medium, "a file of the cache folder was damaged, truncated or from another version",
      "nothing: it is written again. If it recurs, run `toto doctor` to check the folder",
      "measuring or packing once more",
      "this is toto.cpp's own log: a damaged cache file is never used"}},
    {LogKind::replan,
     {},
     {Severity::low, "a shape class was not part of the warm-up",
      "warm up with the shapes you will use, or use mode default, which keeps no plans",
      "laying out buffers once: microseconds; in max-autotune also measuring",
      "this is toto.cpp's own log: a replan changes no result"}},
};

}  // namespace

LogAdvice advise(const LogGroup& group) {
  const auto fits = [&](const Cause& cause) {
    if (cause.kind != group.kind) return false;
    if (cause.words.front().empty()) return true;
    return std::any_of(cause.words.begin(), cause.words.end(), [&](std::string_view word) {
      return !word.empty() && group.reason.find(word) != std::string::npos;
    });
  };
  // The last row of each kind matches every reason.
  return std::find_if(std::begin(kCauses), std::end(kCauses), fits)->advice;
}

}  // namespace toto::compile_log
