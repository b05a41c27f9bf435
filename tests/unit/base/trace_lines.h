// Reads a trace file (docs/trace-format.md) in tests.
#pragma once

#include <gtest/gtest.h>
#include <zlib.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

using TraceLines = std::map<std::string, std::vector<nlohmann::json>>;

/// The whole members of a trace as text.
inline std::string trace_text(const std::string& path) {
  std::string text;
  char piece[4096];
  const gzFile file = gzopen(path.c_str(), "rb");
  EXPECT_NE(file, nullptr) << path;
  for (int got; file && (got = gzread(file, piece, sizeof piece)) > 0;)
    text.append(piece, piece + got);
  if (file) gzclose(file);
  return text;
}

/// The lines of a trace by type.
inline TraceLines trace_lines(const std::string& path) {
  const std::string text = trace_text(path);
  EXPECT_TRUE(text.empty() || text.starts_with("{\"t\":\"trace\"")) << path;
  TraceLines lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    nlohmann::json line = nlohmann::json::parse(text.substr(begin, end - begin));
    lines[line["t"]].push_back(std::move(line));
    begin = end == text.npos ? text.size() : end + 1;
  }
  return lines;
}
