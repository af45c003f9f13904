#include "report/fan_chart_drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "report/page.h"
#include "report/plot.h"
#include "report/svg.h"

namespace toto::report {
namespace {

constexpr double kTitleSize = 17;
constexpr double kOriginGap = 6;      // between the forecast's origin and its label
constexpr double kLabelLift = 14;     // of unit and origin's label above the frame, whose edge may
                                      // hold the highest tick
constexpr double kLabelRow = 16;      // from one row of labels to the next
constexpr double kBandOpacity = 0.2;  // of each band; nested bands add up
constexpr std::string_view kFontFamily =
    "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif";

// The values with the last observation in front, so that a line or band starts there. A single step
// is drawn as a dot and a bar instead.
struct Joined {
  std::vector<float> values;
  std::size_t first;  // step of values[0]
};

Joined join(const FanView& view, std::span<const float> values) {
  Joined joined{{values.begin(), values.end()}, view.history.size()};
  if (values.size() < 2 || view.history.empty()) return joined;
  if (!std::isfinite(view.history.back()) || !std::isfinite(values.front())) return joined;
  joined.values.insert(joined.values.begin(), view.history.back());
  --joined.first;
  return joined;
}

// The same for the forecast, if it continues the history.
Joined join_forecast(const FanView& view, std::span<const float> values) {
  if (view.continues) return join(view, values);
  return {{values.begin(), values.end()}, view.history.size()};
}

// Whether the move from the last observation to `first` is at most the history's longest.
bool within_moves(std::span<const float> history, float first) {
  float longest = -1;
  for (std::size_t i = 1; i < history.size(); ++i) {
    const float move = std::abs(history[i] - history[i - 1]);
    if (std::isfinite(move)) longest = std::max(longest, move);
  }
  return !history.empty() && std::abs(first - history.back()) <= longest;  // false for a NaN
}

// Draws from top to bottom; `y_` is the lower edge of the part drawn so far.
class FanDrawing {
 public:
  FanDrawing(const FanView& view, const FanLayout& layout)
      : view_(view), layout_(layout), y_(layout.margin) {}

  std::string draw() {
    const ValueAxis axis = value_axis_of(view_, layout_);
    place_frame(axis);
    if (layout_.alone) draw_heading();
    draw_legend();
    y_ += 16 + kLabelLift + (needs_label_row() ? kLabelRow : 0);
    frame_.top = y_;
    frame_.bottom = y_ + layout_.plot_height;
    draw_value_axis(svg_, axis, frame_);
    draw_unit();
    if (!view_.has_values()) draw_empty_note();
    // Lines last: nothing hides them.
    draw_bands();
    draw_origin();
    draw_lines();
    draw_steps();
    if (layout_.alone) draw_footnote();
    return finished();
  }

 private:
  const FanChart& chart() const { return view_.chart; }
  double right() const { return layout_.width - layout_.margin; }
  double inner_width() const { return right() - layout_.margin; }

  void place_frame(const ValueAxis& axis) {
    frame_ = {.left = layout_.margin + label_width(axis) + 8,
              .right = right(),
              .steps = view_.steps(),
              .low = axis.low,
              .high = axis.high};
    origin_x_ = frame_.x(view_.history.empty() ? 0 : view_.history.size() - 1);
    origin_label_ = !chart().origin_label.empty() ? clean_text(chart().origin_label)
                    : view_.history.empty()
                        ? "Forecast from " + view_.when(0)
                        : "Forecast after " + view_.when(view_.history.size() - 1);
    const double width = text_width(origin_label_, kSmallSize);
    origin_label_leads_ = origin_x_ + kOriginGap + width > right();
    origin_label_left_ =
        std::max(layout_.margin, origin_label_leads_ ? origin_x_ - width : origin_x_);
  }

  // The unit is in one row with the origin's label, or above it if the two would overlap.
  bool needs_label_row() const {
    const double end = layout_.margin + text_width(clean_text(chart().y_label), kSmallSize);
    return !chart().y_label.empty() && end + 16 > origin_label_left_;
  }

  void draw_lines_of_text(std::string_view css_class, std::string_view text, double font_size,
                          std::size_t max_lines) {
    for (const std::string& line : wrap_text(text, font_size, inner_width(), max_lines)) {
      y_ += font_size * 1.35;
      svg_.text(css_class, layout_.margin, y_ - font_size * 0.3, line);
    }
  }

  void draw_heading() {
    draw_lines_of_text("t-title", chart().title, kTitleSize * 1.1, 2);  // it is bold: wider
    draw_lines_of_text("t-subtitle", chart().subtitle, kFontSize, 2);
    if (!chart().warn_untrained) return;
    svg_.element("rect", {{"class", "t-note-mark"},
                          {"x", layout_.margin},
                          {"y", y_ + 10},
                          {"width", 3.0},
                          {"height", 16.0}});
    svg_.text("t-note", layout_.margin + 10, y_ + 22, kUntrainedNote);
    y_ += 28;
  }

  void draw_legend() {
    constexpr double kSwatch = 20, kRow = 20;
    double x = layout_.margin;
    double row = y_ + (y_ > layout_.margin ? 20 : 12);  // the height at which swatches are centred
    const auto place = [&](std::string_view label, auto&& draw_swatch) {
      const std::string text = fit_text(clean_text(label), kFontSize, inner_width() - kSwatch - 6);
      const double width = kSwatch + 6 + text_width(text, kFontSize);
      if (x > layout_.margin && x + width > right()) {
        x = layout_.margin;
        row += kRow;
      }
      draw_swatch();
      svg_.text("t-legend", x + kSwatch + 6, row + 4.5, text);
      x += width + 12;
    };
    const auto line = [&](std::string_view css_class) {
      return [this, css_class, &x, &row] { draw_rule(svg_, css_class, x + 1, row, x + 19, row); };
    };
    if (!view_.history.empty()) place("History", line("t-history"));
    place("Median", line("t-median"));
    // A swatch is as dark as its band in the plot, where it covers all wider ones.
    double shows_through = 1;
    for (const FanChart::Band& band : chart().bands) {
      shows_through *= 1 - kBandOpacity;
      place(band.label, [&] {
        svg_.element("rect", {{"class", "t-band"},
                              {"fill-opacity", fmt::format("{:.3f}", 1 - shows_through)},
                              {"x", x + 1},
                              {"y", row - 6},
                              {"width", 18.0},
                              {"height", 12.0},
                              {"rx", 2.0}});
      });
    }
    if (!chart().actual.empty()) place("Actual", line("t-actual"));
    y_ = row + 8;
  }

  void draw_unit() {
    if (chart().y_label.empty()) return;
    const double y = frame_.top - kLabelLift - (needs_label_row() ? kLabelRow : 0);
    svg_.text("t-tick", layout_.margin, y,
              fit_text(clean_text(chart().y_label), kSmallSize, inner_width()));
  }

  void draw_empty_note() {
    svg_.text("t-subtitle", (frame_.left + frame_.right) / 2, (frame_.top + frame_.bottom) / 2,
              "No values to show: all are missing", "middle");
  }

  void draw_bands() {
    for (const FanChart::Band& band : chart().bands) {
      Joined low = join_forecast(view_, band.low);
      Joined high = join_forecast(view_, band.high);
      if (low.first != high.first) {  // a gap at one end of the first step
        low = {band.low, view_.history.size()};
        high = {band.high, view_.history.size()};
      }
      const PathData path = band_path(low.values, high.values, frame_, low.first);
      if (path.empty()) continue;
      svg_.element("path", {{"class", "t-band"},
                            {"fill-opacity", fmt::format("{}", kBandOpacity)},
                            {"d", path.text()}});
    }
  }

  void draw_origin() {
    if (!view_.history.empty()) {
      draw_rule(svg_, "t-origin", origin_x_, frame_.top - kLabelLift - 10, origin_x_,
                frame_.bottom);
    }
    const double offset = origin_label_leads_ ? -kOriginGap : kOriginGap;
    const bool fits = origin_label_left_ > layout_.margin;
    svg_.text("t-origin-label", fits ? origin_x_ + offset : layout_.margin, frame_.top - kLabelLift,
              origin_label_, fits && origin_label_leads_ ? "end" : "start");
  }

  void draw_lines() {
    draw_line(svg_, "t-history", view_.history, frame_, 0);
    // A single step has no line: a thin link connects it with the history.
    const bool single = chart().median.size() == 1;
    if (single && view_.continues) {
      const std::array<float, 2> link = {view_.history.back(), chart().median.front()};
      draw_line(svg_, "t-link", link, frame_, view_.history.size() - 1);
    }
    const Joined median = join_forecast(view_, chart().median);
    draw_line(svg_, "t-median", median.values, frame_, median.first);
    if (chart().actual.empty()) return;
    const Joined actual = join(view_, chart().actual);
    draw_line(svg_, "t-actual", actual.values, frame_, actual.first);
  }

  void draw_steps() {
    const std::vector<StepTick> ticks =
        view_.times.empty()
            ? number_ticks(view_.first_number, view_.steps(), frame_.step_width(), kSmallSize)
            : calendar_ticks(view_.times, frame_.step_width(), kSmallSize);
    const bool two_rows = draw_step_axis(svg_, ticks, frame_, layout_.margin, right());
    y_ = frame_.bottom + (two_rows ? 38 : 24);
  }

  void draw_footnote() {
    y_ += 8;
    draw_lines_of_text("t-footnote", chart().footnote, kSmallSize, 3);
  }

  // The outermost element is written last: its height is known only now.
  std::string finished() const {
    const double height = std::ceil(y_ + layout_.margin);
    const std::string view_box = fmt::format("0 0 {} {}", layout_.width, height);
    SvgWriter svg;
    if (!layout_.alone) {
      // For report.js: from a pointer to a step, and from a value to its height.
      const std::string frame = fmt::format("{} {} {} {} {} {}", frame_.x(0), frame_.step_width(),
                                            frame_.low, frame_.high, frame_.top, frame_.bottom);
      svg.open("svg", {{"class", layout_.css_class},
                       {"viewBox", view_box},
                       {"font-size", kFontSize},
                       {"aria-hidden", "true"},
                       {"data-frame", frame}});
      return svg.markup() + svg_.markup() + "</svg>\n";
    }
    svg.open("svg", {{"xmlns", "http://www.w3.org/2000/svg"},
                     {"viewBox", view_box},
                     {"width", layout_.width},
                     {"height", height},
                     {"font-family", kFontFamily},
                     {"font-size", kFontSize},
                     {"role", "img"},
                     {"aria-label", description(view_)}});
    return svg.markup() + fmt::format("<style>{}</style>\n", chart_style()) +
           SvgWriter()
               .element("rect",
                        {{"class", "t-surface"}, {"width", layout_.width}, {"height", height}})
               .markup() +
           svg_.markup() + "</svg>\n";
  }

  const FanView& view_;
  const FanLayout& layout_;
  Frame frame_;
  SvgWriter svg_;
  double y_;
  double origin_x_ = 0;              // the last observation
  double origin_label_left_ = 0;     // where its text begins
  bool origin_label_leads_ = false;  // left of the rule
  std::string origin_label_;
};

}  // namespace

FanView::FanView(const FanChart& checked_chart) : chart(checked_chart), history(chart.history) {
  constexpr std::size_t kLeastHistory = 120;
  const std::size_t wanted = chart.max_history > 0
                                 ? static_cast<std::size_t>(chart.max_history)
                                 : std::max(3 * chart.median.size(), kLeastHistory);
  const std::size_t skipped = history.size() - std::min(history.size(), wanted);
  first_number = chart.first_step + skipped;
  history = history.subspan(skipped);
  if (!chart.forecast_times.empty()) {
    times.assign(chart.history_times.begin() + static_cast<std::ptrdiff_t>(skipped),
                 chart.history_times.end());
    times.insert(times.end(), chart.forecast_times.begin(), chart.forecast_times.end());
    precision = date_precision(times);
  }
  continues = chart.origin_label.empty() && within_moves(history, chart.median.front());
  ValueRange range;
  for (const std::span<const float> values :
       {history, std::span(chart.median), std::span(chart.actual)}) {
    range.add(values);
  }
  for (const FanChart::Band& band : chart.bands) {
    range.add(band.low);
    range.add(band.high);
  }
  low = range.low;
  high = range.high;
}

std::string FanView::when(std::size_t step) const {
  return times.empty() ? fmt::format("step {}", first_number + step)
                       : format_date(times[step], precision);
}

std::string description(const FanView& view) {
  const FanChart& chart = view.chart;
  const std::size_t last = view.steps() - 1;
  std::string text = chart.title.empty() ? "Forecast" : chart.title;
  if (!view.history.empty()) {
    text += fmt::format(". History of {} points to {}", view.history.size(),
                        view.when(view.history.size() - 1));
  }
  const auto number = [](float value) {
    return std::isfinite(value) ? fmt::format("{:.6g}", value) : "missing";
  };
  text += fmt::format(". Forecast of {} steps to {}, where the median is {}", chart.median.size(),
                      view.when(last), number(chart.median.back()));
  for (const FanChart::Band& band : chart.bands) {
    text += fmt::format(", the {} band {} to {}", band.label, number(band.low.back()),
                        number(band.high.back()));
  }
  text += '.';
  if (chart.warn_untrained) text += fmt::format(" {}.", kUntrainedNote);
  return text;
}

ValueAxis value_axis_of(const FanView& view, const FanLayout& layout) {
  constexpr double kTickDistance = 40;
  ValueAxis axis =
      value_axis(view.low, view.high, static_cast<int>(layout.plot_height / kTickDistance));
  if (!view.has_values()) axis.ticks.clear();
  return axis;
}

std::string draw_fan(const FanView& view, const FanLayout& layout) {
  return FanDrawing(view, layout).draw();
}

}  // namespace toto::report
