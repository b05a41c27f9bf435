// Lines of gzip members: whole, cut, damaged and beyond the limits.
#include "trace/lines.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <vector>

#include "trace/page.h"

namespace plugrad::tools::trace {
namespace {

using Bytes = std::vector<std::byte>;

void add_member(Bytes& file, std::string text) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  Bytes out(deflateBound(&stream, text.size()) + 32);
  stream.next_in = reinterpret_cast<Bytef*>(text.data());
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  ASSERT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  file.insert(file.end(), out.begin(), out.end() - stream.avail_out);
  deflateEnd(&stream);
}

struct Read {
  std::vector<std::string> lines;
  Ending ending;
};

Read read(const Bytes& file, const Limits& limits = {}) {
  LineReader reader(file, limits);
  Read out{};
  while (const auto line = reader.next()) out.lines.emplace_back(*line);
  out.ending = reader.ending();
  return out;
}

TEST(TraceLines, MembersAreOneText) {
  Bytes file;
  const std::string large(1 << 20, 'x');
  add_member(file, "a\n\nb\n");
  add_member(file, "");
  add_member(file, large + "\n");
  const Read whole = read(file);
  EXPECT_EQ(whole.lines, (std::vector<std::string>{"a", "", "b", large}));
  EXPECT_EQ(whole.ending, Ending::Whole);
}

TEST(TraceLines, EveryCutLeavesAPrefixOfTheLines) {
  Bytes file;
  add_member(file, "one\ntwo\n");
  const size_t first = file.size();
  add_member(file, "three\nfour\n");
  for (size_t size = 1; size < file.size(); ++size) {
    const Read cut = read(Bytes(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size)));
    const std::vector<std::string> all = {"one", "two", "three", "four"};
    ASSERT_LE(cut.lines.size(), all.size());
    EXPECT_TRUE(std::equal(cut.lines.begin(), cut.lines.end(), all.begin())) << size;
    EXPECT_EQ(cut.ending, size == first ? Ending::Whole : Ending::CutOff) << size;
    EXPECT_GE(cut.lines.size(), size >= first ? 2u : 0u);
  }
}

TEST(TraceLines, ALineWithoutItsNewlineIsCutOff) {
  Bytes file;
  add_member(file, "one\ntw");
  const Read cut = read(file);
  EXPECT_EQ(cut.lines, std::vector<std::string>{"one"});
  EXPECT_EQ(cut.ending, Ending::CutOff);
}

TEST(TraceLines, BytesAfterAMemberAreDamage) {
  Bytes file;
  add_member(file, "one\n");
  file.insert(file.end(), 10, std::byte{'x'});
  EXPECT_EQ(read(file).ending, Ending::Damaged);
  EXPECT_EQ(read(file).lines.size(), 1u);
}

TEST(TraceLines, LimitsEndTheText) {
  Bytes file;
  add_member(file, "one\n" + std::string(1 << 20, ' ') + "\n");
  const Read line = read(file, {.line_bytes = 1000});
  EXPECT_EQ(line.lines, std::vector<std::string>{"one"});
  EXPECT_EQ(line.ending, Ending::TooLarge);
  EXPECT_EQ(read(file, {.text_bytes = 1000}).ending, Ending::TooLarge);
}

TEST(TraceLines, DepthAndValuesAreBounded) {
  const Limits limits{.line_values = 10, .depth = 3};
  EXPECT_TRUE(fits("[[[1,2]]]", limits));
  EXPECT_FALSE(fits("[[[[1]]]]", limits));
  EXPECT_TRUE(fits(R"({"a":"[[[[[[,,,,,,,,,,,,\"[[[[["})", limits));
  EXPECT_FALSE(fits("[1,2,3,4,5,6,7,8,9,10]", limits));
}

TEST(TracePage, Base64) {
  const auto of = [](std::string_view text) { return to_base64(std::as_bytes(std::span(text))); };
  EXPECT_EQ(of(""), "");
  EXPECT_EQ(of("f"), "Zg==");
  EXPECT_EQ(of("fo"), "Zm8=");
  EXPECT_EQ(of("foo"), "Zm9v");
  EXPECT_EQ(of("\xff\xfe\xfd\xfc"), "//79/A==");
}

}  // namespace
}  // namespace plugrad::tools::trace
