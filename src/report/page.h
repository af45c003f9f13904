// A report as one HTML file that needs nothing else: no network, no second file. Its policy admits
// exactly our style sheet and our script, by hash, so that even text that slipped through the
// escaping could not run.
#pragma once

#include <string>
#include <string_view>

namespace toto::report {

// Colours and type of a drawing, light and dark; a drawing that stands alone carries it inside.
extern const std::string_view kChartStyle;

// The style sheet and the script of every page, as a policy names them: "sha256-...".
std::string page_style_hash();
std::string page_script_hash();

// `title` is plain text, `body` markup whose text has been escaped already.
std::string html_page(std::string_view title, std::string_view body);

}  // namespace toto::report
