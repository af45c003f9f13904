// A report as one self-contained HTML file: no network, no second file. Its content security policy
// allows only its own style sheet and script, by hash: text that slipped through the escaping could
// not run.
#pragma once

#include <string>
#include <string_view>

namespace toto::report {

// The colours of a drawing, light and dark, for an SVG file. Plain rules without
// variables: viewers that know little CSS draw the light form. The blue and the vermilion are Okabe
// and Ito's, distinguishable with every kind of colour vision.
std::string chart_style();

// The style sheet and the script of every report as a policy names them: "sha256-...".
std::string page_style_hash();
std::string page_script_hash();

// `title` is plain text, `body` is markup with its text escaped.
std::string html_page(std::string_view title, std::string_view body);

}  // namespace toto::report
