#include "compile_log/log_record.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace toto::compile_log {
namespace {

constexpr std::size_t kMaxFunction = 200, kMaxPath = 500, kMaxReason = 500;

bool is_word(char c) {
  return is_digit(c) || c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// The text after `mark`, if `text` contains it.
std::optional<std::string_view> after(std::string_view text, std::string_view mark) {
  const std::size_t at = text.find(mark);
  if (at == std::string_view::npos) return std::nullopt;
  return text.substr(at + mark.size());
}

// "dir/file.py:105" at the beginning of `text`; empty without a line number. An abbreviated path
// ("...attention.py:105") is returned without the dots.
std::optional<std::string_view> path_at(std::string_view text) {
  for (std::size_t colon = text.find(':'); colon != std::string_view::npos;
       colon = text.find(':', colon + 1)) {
    std::size_t end = colon + 1;
    while (end < text.size() && is_digit(text[end])) ++end;
    if (end == colon + 1) continue;
    std::string_view path = text.substr(0, end);
    while (path.starts_with("...")) path.remove_prefix(3);
    return path.substr(path.size() > kMaxPath ? path.size() - kMaxPath : 0);
  }
  return std::nullopt;
}

// Removes the compile id in front and the source line at the end:
// "6/7: idx[7] == 0  # return int(...)".
std::string_view clean_reason(std::string_view text) {
  text = trimmed(text);
  const std::size_t id = text.find_first_not_of("0123456789/_!");
  if (id != std::string_view::npos && id > 0 && text.substr(id).starts_with(": ") &&
      text.substr(0, id).find('/') != std::string_view::npos) {
    text.remove_prefix(id + 2);
  }
  text = trimmed(text.substr(0, text.find("  # ")));
  while (text.ends_with('.') || text.ends_with(',')) text.remove_suffix(1);
  return text.substr(0, kMaxReason);
}

// "torch._dynamo hit config.recompile_limit (8)". A quotation of PyTorch's source has no number.
std::optional<LogRecord> begin_limit(std::string_view text) {
  const auto rest = after(text, "dynamo hit config.");
  if (!rest) return std::nullopt;
  const std::size_t open = rest->find(" (");
  const std::size_t close = rest->find(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open + 3 ||
      !rest->substr(0, open).ends_with("_limit") || !is_digit((*rest)[open + 2]) || close > 100) {
    return std::nullopt;
  }
  return LogRecord{.kind = LogKind::limit_hit, .limit = std::string(rest->substr(0, close + 1))};
}

// "Recompiling function NAME in dir/file.py:105".
std::optional<LogRecord> begin_recompile(std::string_view text) {
  const auto rest = after(text, "Recompiling function ");
  if (!rest) return std::nullopt;
  const std::size_t end = rest->find(" in ");
  if (end == std::string_view::npos) return std::nullopt;
  const auto path = path_at(rest->substr(end + 4));
  if (!path) return std::nullopt;
  return LogRecord{.kind = LogKind::recompile,
                   .function = std::string(rest->substr(0, std::min(end, kMaxFunction))),
                   .path = std::string(*path),
                   .placed = true};
}

// In the order of the versions: "Graph break: REASON from user code at:" (2.0 to 2.5), "Graph break
// in user code at F:L" and "Graph break (details suppressed) in user code at F:L" (2.6 on), "Graph
// break: torch.compile cannot properly resume ...".
std::optional<LogRecord> begin_break(std::string_view text) {
  LogRecord record{.kind = LogKind::graph_break};
  const std::string_view said = trimmed(text);
  // "Graph break from `Tensor.item()`, consider setting: ..."
  if (const auto call = after(said, "Graph break from `")) {
    record.reason = clean_reason(call->substr(0, call->find('`')));
    record.is_notice = true;
    return record;
  }
  const auto place = after(said, " break in user code at ");
  const auto again = said.find("Graph break (") != std::string_view::npos
                         ? after(said, ") in user code at ")
                         : std::nullopt;
  if (const auto rest = place ? place : again) {
    const auto path = path_at(*rest);
    if (!path) return std::nullopt;
    record.path = *path;
    record.placed = true;
    return record;
  }
  constexpr std::string_view kBegin = "Graph break: ";
  const std::size_t from = said.find("from user code at");
  const std::size_t begin = said.find(kBegin);
  if (begin == std::string_view::npos) return std::nullopt;
  if (from != std::string_view::npos && from > begin) {
    record.reason = clean_reason(
        said.substr(begin + kBegin.size(), from - std::min(from, begin + kBegin.size())));
    if (record.reason == "skip:") record.reason.clear();
    return record;
  }
  if (!said.starts_with(kBegin)) return std::nullopt;
  // A complete sentence; the actual reason may follow.
  if (said.find("cannot properly resume") == std::string_view::npos) {
    record.reason = clean_reason(said.substr(kBegin.size()));
  }
  return record;
}

// "skipping cudagraphs due to REASON"; the template in PyTorch's source has a placeholder instead.
std::optional<LogRecord> begin_skip(std::string_view text) {
  constexpr std::string_view kMark = "skipping cudagraphs due to ";
  auto rest = after(text, kMark);
  if (!rest) return std::nullopt;
  while (rest->starts_with(kMark)) rest->remove_prefix(kMark.size());
  std::string_view reason = rest->substr(0, rest->find("Found from"));
  reason = clean_reason(reason);
  if (reason.empty() || reason.front() == '{' || reason.front() == '%') return std::nullopt;
  return LogRecord{.kind = LogKind::cudagraph_skip, .reason = std::string(reason)};
}

// `File "dir/util.py", line 141, in __getitem__`
bool take_frame(LogRecord& record, std::string_view text) {
  const auto rest = after(text, "File \"");
  if (!rest) return false;
  const std::size_t quote = rest->find("\", line ");
  if (quote == std::string_view::npos) return false;
  std::string_view number = rest->substr(quote + 8);
  const std::size_t end = std::min(number.find_first_not_of("0123456789"), number.size());
  const auto function = after(number, ", in ");
  if (end == 0 || !function) return false;
  if (!record.placed) {
    std::string_view path = rest->substr(0, quote);
    path = path.substr(path.size() > kMaxPath ? path.size() - kMaxPath : 0);
    record.path =
        std::string(path) + ":" + std::string(number.substr(0, std::min<std::size_t>(end, 9)));
  }
  // Some stacks append the source line: "forward, code: x = f(y)".
  record.function =
      trimmed(function->substr(0, function->find(", code: "))).substr(0, kMaxFunction);
  return true;
}

// Keeps the first value; true if it was set now.
bool set_if_empty(std::string& part, std::string_view value) {
  if (!part.empty() || value.empty()) return false;
  part = value;
  return true;
}

// `function: 'positional_embedding' (dir/attention.py:105)`, `last reason: ...`
bool continue_limit(LogRecord& record, std::string_view said) {
  if (said.starts_with("function: ") && record.function.empty()) {
    const auto name = after(said, "'");
    if (!name) return false;
    const std::size_t end = name->find('\'');
    if (end == std::string_view::npos) return false;
    record.function = name->substr(0, std::min(end, kMaxFunction));
    if (const auto place = after(name->substr(end), "(")) {
      if (const auto path = path_at(*place)) record.path = *path;
    }
    return true;
  }
  for (const std::string_view mark : {"last reason: ", "reasons: "}) {
    if (said.starts_with(mark)) {
      return set_if_empty(record.reason, clean_reason(said.substr(mark.size())));
    }
  }
  return false;
}

// The first item of the list of failed guards is the reason; the others are consequences.
bool continue_recompile(LogRecord& record, const LogLine& line, std::string_view said) {
  if (said.starts_with("triggered by the following guard failure")) {
    record.guards_begun = true;
    return true;
  }
  // A list item without a prefix counts only if the previous line announced a list.
  if (!said.starts_with("- ") || !(record.guards_begun || line.has_prefix())) return false;
  return set_if_empty(record.reason, clean_reason(said.substr(2)));
}

// The reason follows under one of several headings, the place in a user stack.
bool continue_break(LogRecord& record, std::string_view said) {
  if (said.starts_with("Traceback (most recent call last)")) {
    record.in_traceback = true;
    return true;
  }
  if (said.starts_with("User code traceback:")) {
    record.in_traceback = false;
    return true;
  }
  for (const std::string_view mark : {"Graph Break Reason: ", "Reason: ", "reason: "}) {
    if (!said.starts_with(mark)) continue;
    // "Encountered graph break when attempting to trace CALL: a function call:" and a blank line.
    record.announced = said.ends_with(':');
    return record.announced || set_if_empty(record.reason, clean_reason(said.substr(mark.size())));
  }
  if (record.announced && !said.empty()) {
    record.announced = said.ends_with(':');
    return record.announced || set_if_empty(record.reason, clean_reason(said));
  }
  constexpr std::string_view kException = "torch._dynamo.exc.";
  if (said.starts_with(kException)) {
    if (const auto reason = after(said, ": ")) {
      return set_if_empty(record.reason, clean_reason(*reason));
    }
  }
  return !record.in_traceback && take_frame(record, said);
}

// The place follows as a stack frame of the user's code.
bool continue_skip(LogRecord& record, std::string_view said) {
  if (said.starts_with("Traceback (most recent call last)")) {
    record.in_traceback = true;
    return true;
  }
  return !record.in_traceback && take_frame(record, said);
}

}  // namespace

std::optional<LogRecord> begin_record(std::string_view text) {
  if (auto record = begin_skip(text)) return record;
  if (auto record = begin_recompile(text)) return record;
  if (auto record = begin_limit(text)) return record;
  return begin_break(text);
}

bool continue_with(LogRecord& record, const LogLine& line) {
  if (!record.kind) return false;
  const std::string_view said = trimmed(line.text);
  switch (*record.kind) {
    case LogKind::limit_hit:
      return continue_limit(record, said);
    case LogKind::recompile:
      return continue_recompile(record, line, said);
    case LogKind::graph_break:
      return continue_break(record, said);
    case LogKind::cudagraph_skip:
      return continue_skip(record, said);
    case LogKind::replan:
      return false;  // always a single line
  }
  return false;
}

std::optional<PlanLine> parse_plan(std::string_view text) {
  const auto said = after(text, "[plans] ");
  if (!said) return std::nullopt;
  PlanLine plan;
  const bool again = said->starts_with("replan ");
  if (!again && !said->starts_with("plan ")) return plan;  // weights and schedules
  std::string_view rest = said->substr(again ? 7 : 5);
  const std::size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
  rest.remove_prefix(digits);
  if (digits == 0 || !rest.starts_with(": ")) return plan;
  plan.is_plan = true;
  if (!again) return plan;
  rest.remove_prefix(2);
  // "REASON: SHAPE", where the reason may contain a file name.
  const std::size_t end = rest.rfind(": ");
  plan.replan = LogRecord{
      .kind = LogKind::replan,
      .function = std::string(end == std::string_view::npos ? std::string_view()
                                                            : rest.substr(end + 2, kMaxFunction)),
      .reason = std::string(clean_reason(rest.substr(0, end)))};
  return plan;
}

LoggedTopics topics_shown(const LogLine& line) {
  LoggedTopics topics;
  if (line.artifact.starts_with("recompiles")) topics.recompiles = true;
  if (line.artifact == "graph_breaks") topics.graph_breaks = true;
  if (line.artifact == "cudagraphs") topics.cudagraphs = true;
  // A component with detailed logging ("+dynamo") also logs its topics.
  if (line.is_detail && line.artifact.empty()) {
    const auto from = [&](std::string_view path, std::string_view logger) {
      return line.source.starts_with(path) || line.source.starts_with(logger);
    };
    const bool dynamo = from("torch/_dynamo/", "torch._dynamo.");
    topics.recompiles |= dynamo;
    topics.graph_breaks |= dynamo;
    topics.cudagraphs |= from("torch/_inductor/", "torch._inductor.");
  }
  if (trimmed(line.text).starts_with("[plans] ")) topics.plans = true;
  return topics;
}

std::string without_values(std::string_view reason) {
  std::string form;
  for (std::size_t i = 0; i < reason.size();) {
    const bool starts = is_digit(reason[i]) && (i == 0 || !is_word(reason[i - 1]));
    if (!starts) {
      form += reason[i++];
      continue;
    }
    std::size_t end = i;
    while (end < reason.size() && is_digit(reason[end])) ++end;
    const bool in_name = end < reason.size() && is_word(reason[end]);
    const bool is_index =
        (i > 0 && reason[i - 1] == '[' && end < reason.size() && reason[end] == ']') ||
        form.ends_with("index ");
    if (in_name || is_index) {
      form += reason.substr(i, end - i);
    } else {
      form += '#';
    }
    i = end;
  }
  return form;
}

}  // namespace toto::compile_log
