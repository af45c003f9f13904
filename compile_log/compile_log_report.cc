// The analysis as text, Markdown and JSON.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "compile_log/compile_log.h"
#include "io/json.h"

namespace toto::compile_log {
namespace {

constexpr LogKind kKinds[] = {LogKind::recompile, LogKind::limit_hit, LogKind::graph_break,
                              LogKind::cudagraph_skip, LogKind::replan};
// By LogKind: keys of the JSON totals, and words for people.
constexpr std::string_view kTotalNames[] = {"recompiles", "limit_hits", "graph_breaks",
                                            "cudagraph_skips", "replans"};
constexpr std::string_view kWords[] = {"recompilation", "recompile limit hit", "graph break",
                                       "skipped CUDA graph", "replan"};
constexpr std::size_t kMaxShown = 30;  // groups on a terminal

// "function (file:line)"; a replan names its shape instead.
std::string place_of(const LogGroup& group) {
  if (group.kind == LogKind::replan) return group.function;
  std::string function = group.function;
  if (function.empty()) {
    function = group.kind == LogKind::cudagraph_skip ? "a graph without a name in the log"
                                                     : "a function without a name in the log";
  }
  return group.location.empty() ? function : fmt::format("{} ({})", function, group.location);
}

// The reason, preceded by the limit that was hit.
std::string reason_of(const LogGroup& group) {
  std::string reason = group.reason.empty() ? "no reason in the log" : group.reason;
  if (group.limit.empty()) return reason;
  return fmt::format("config.{}, last reason: {}", group.limit, reason);
}

// Topics that were not enabled, so that their events are not counted.
std::vector<std::string_view> topics_not_shown(const LogAnalysis& analysis) {
  std::vector<std::string_view> names;
  if (!analysis.topics.recompiles) names.push_back("recompiles");
  if (!analysis.topics.graph_breaks) names.push_back("graph_breaks");
  if (!analysis.topics.cudagraphs) names.push_back("cudagraphs");
  return names;
}

// Whether the log holds anything of PyTorch, not only plans of this engine.
bool has_torch(const LogAnalysis& analysis) {
  const LoggedTopics& topics = analysis.topics;
  return topics.recompiles || topics.graph_breaks || topics.cudagraphs ||
         analysis.num_events() > analysis.total(LogKind::replan);
}

// Empty if all topics were enabled.
std::string caveat_of(const LogAnalysis& analysis) {
  const auto missing = topics_not_shown(analysis);
  if (missing.empty() || !has_torch(analysis)) return {};
  return fmt::format("nothing shows that TORCH_LOGS=\"{}\" was enabled: its events are not counted",
                     fmt::join(missing, ","));
}

// Wraps `text` to 100 columns; all lines but the first are indented by `indent` spaces.
std::string wrapped(std::string_view text, std::size_t indent) {
  constexpr std::size_t kColumns = 100;
  std::string lines;
  std::size_t column = indent;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (column > indent && column + 1 + end > kColumns) {
      lines += '\n' + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      lines += ' ';
      ++column;
    }
    lines += text.substr(0, end);
    column += end;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// Escapes untrusted text for Markdown: no tables, links, emphasis or HTML.
std::string escaped(std::string_view text) {
  constexpr std::string_view kSpecial = "\\`*_[]<>|#&";
  std::string safe;
  for (const char c : text) {
    if (kSpecial.find(c) != std::string_view::npos) safe += '\\';
    safe += c;
  }
  return safe;
}

}  // namespace

std::string summary_of(const LogAnalysis& analysis) {
  if (!analysis.evidence()) {
    return fmt::format(
        "nothing recognised in {}: neither PyTorch compiler logs nor plans of toto. That does not "
        "prove that all is well; run with TORCH_LOGS=\"+dynamo,recompiles,graph_breaks,cudagraphs\" "
        "(or TOTO_LOGS=plans), which always logs something, and pass the standard error output",
        counted(analysis.lines, "line"));
  }
  if (analysis.num_events() == 0) {
    std::vector<std::string_view> on;
    if (analysis.topics.recompiles) on.push_back("recompiles");
    if (analysis.topics.graph_breaks) on.push_back("graph breaks");
    if (analysis.topics.cudagraphs) on.push_back("CUDA graphs");
    if (analysis.topics.plans) on.push_back("plans");
    return fmt::format(
        "healthy as far as it was logged ({} on): {} without a problem{}", fmt::join(on, ", "),
        counted(analysis.lines, "line"),
        analysis.plans > 0 ? fmt::format(", {}", counted(analysis.plans, "plan")) : std::string());
  }
  std::string parts;
  for (const LogKind kind : kKinds) {
    if (analysis.total(kind) == 0) continue;
    parts += fmt::format("{}{}", parts.empty() ? "" : ", ",
                         counted(analysis.total(kind), kWords[static_cast<std::size_t>(kind)]));
  }
  return fmt::format("{} in {}; the worst is {}", parts, counted(analysis.lines, "line"),
                     name_of(analysis.groups.front().advice.severity));
}

std::string json_text(const LogAnalysis& analysis) {
  io::JsonWriter json;
  json.begin_object().field("lines", analysis.lines).field("evidence", analysis.evidence());
  json.key("logged").begin_object();
  json.field("recompiles", analysis.topics.recompiles)
      .field("graph_breaks", analysis.topics.graph_breaks)
      .field("cudagraphs", analysis.topics.cudagraphs)
      .field("plans", analysis.topics.plans)
      .end_object();
  json.key("totals").begin_object();
  for (const LogKind kind : kKinds) {
    json.field(kTotalNames[static_cast<std::size_t>(kind)], analysis.total(kind));
  }
  json.end_object().field("plans", analysis.plans).field("summary", summary_of(analysis));
  json.key("groups").begin_array();
  for (const LogGroup& group : analysis.groups) {
    json.begin_object()
        .field("kind", name_of(group.kind))
        .field("function", group.function)
        .field("location", group.location)
        .field("path", group.path)
        .field("reason", group.reason)
        .field("count", group.count)
        .field("first_line", group.first_line)
        .field("severity", name_of(group.advice.severity))
        .field("why", group.advice.why)
        .field("change", group.advice.change)
        .field("cost", group.advice.cost)
        .field("here", group.advice.here);
    if (!group.limit.empty()) json.field("limit", group.limit);
    json.end_object();
  }
  return json.end_array().end_object().take();
}

std::string markdown_text(const LogAnalysis& analysis, std::string_view name) {
  std::string text =
      fmt::format("# Compile log {}\n\n**{}**\n", escaped(name), escaped(summary_of(analysis)));
  const std::string caveat = caveat_of(analysis);
  if (!caveat.empty()) text += fmt::format("\n{}.\n", escaped(caveat));
  if (analysis.groups.empty()) return text;
  text += "\n| # | severity | what | times | where | reason |\n|---:|---|---|---:|---|---|\n";
  std::size_t number = 0;
  for (const LogGroup& group : analysis.groups) {
    text +=
        fmt::format("| {} | {} | {} | {} | {} | {} |\n", ++number, name_of(group.advice.severity),
                    kWords[static_cast<std::size_t>(group.kind)], group.count,
                    escaped(place_of(group)), escaped(reason_of(group)));
  }
  // Groups with the same cause share one section.
  std::map<std::string_view, std::vector<std::size_t>> by_cause;
  for (std::size_t i = 0; i < analysis.groups.size(); ++i) {
    by_cause[analysis.groups[i].advice.why].push_back(i);
  }
  text += "\n## What to do\n";
  for (std::size_t i = 0; i < analysis.groups.size(); ++i) {
    const LogAdvice& advice = analysis.groups[i].advice;
    const std::vector<std::size_t>& same = by_cause[advice.why];
    if (same.front() != i) continue;
    std::vector<std::size_t> numbers(same);
    for (std::size_t& shown : numbers) ++shown;
    text += fmt::format(
        "\n### {}: group{} {}\n\n- **Why:** {}.\n- **Change in PyTorch:** {}.\n- **Cost:** {}.\n"
        "- **Here:** {}.\n",
        kWords[static_cast<std::size_t>(analysis.groups[i].kind)], same.size() == 1 ? "" : "s",
        fmt::join(numbers, ", "), escaped(advice.why), escaped(advice.change), escaped(advice.cost),
        escaped(advice.here));
  }
  return text;
}

std::string table_text(const LogAnalysis& analysis, std::string_view name) {
  constexpr std::size_t kIndent = 18;
  std::string text = fmt::format("{}\n{}\n", name, wrapped(summary_of(analysis), 0));
  const std::string caveat = caveat_of(analysis);
  if (!caveat.empty()) text += fmt::format("note: {}\n", wrapped(caveat, 6));
  std::map<std::string_view, std::size_t> said;  // cause -> number of the group that explains it
  for (std::size_t i = 0; i < std::min(analysis.groups.size(), kMaxShown); ++i) {
    const LogGroup& group = analysis.groups[i];
    const LogAdvice& advice = group.advice;
    text += fmt::format("\n{:>3}. {:<9}   {} x {}: {}\n", i + 1, name_of(advice.severity),
                        group.count, kWords[static_cast<std::size_t>(group.kind)], place_of(group));
    text += fmt::format("     reason       {}\n", wrapped(reason_of(group), kIndent));
    const auto [known, is_new] = said.emplace(advice.why, i + 1);
    if (!is_new) {
      text += fmt::format("     what to do   see {}\n", known->second);
      continue;
    }
    text += fmt::format("     why          {}\n", wrapped(advice.why, kIndent));
    text += fmt::format("     change       {}\n", wrapped(advice.change, kIndent));
    text += fmt::format("     cost         {}\n", wrapped(advice.cost, kIndent));
    text += fmt::format("     toto.cpp     {}\n", wrapped(advice.here, kIndent));
  }
  if (analysis.groups.size() > kMaxShown) {
    text += fmt::format("\nand {}: --output FILE.md and --json FILE list all\n",
                        counted(analysis.groups.size() - kMaxShown, "more group"));
  }
  return text;
}

}  // namespace toto::compile_log
