// The numbers of collectives in traces, as the document and the viewer have them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <iterator>
#include <string>

#include "base/collective_kind.h"

namespace plugrad {
namespace {

std::string without_spaces(std::string text) {
  std::erase_if(text, [](unsigned char c) { return std::isspace(c) != 0; });
  return text;
}

std::string text_of(const std::string& path) {
  std::ifstream file(std::string(PLUGRAD_SOURCE_DIR) + "/" + path);
  return without_spaces(std::string(std::istreambuf_iterator<char>(file), {}));
}

TEST(CollectiveKinds, AreThoseOfTheDocumentAndTheViewer) {
  std::string numbered, quoted;
  for (size_t i = 0; i < kCollectiveKinds; ++i) {
    const std::string name(name_of(static_cast<CollectiveKind>(i)));
    numbered += (i == 0 ? "" : ",") + std::to_string(i) + name;
    quoted += "'" + name + "',";
  }
  const std::string in_document = "`collective`(" + numbered + ")";
  EXPECT_NE(text_of("docs/trace-format.md").find(in_document), std::string::npos) << in_document;
  const std::string in_viewer = "COLLECTIVES=[" + quoted + "];";
  EXPECT_NE(text_of("tools/viewer/src/colour.js").find(in_viewer), std::string::npos) << in_viewer;
}

}  // namespace
}  // namespace plugrad
