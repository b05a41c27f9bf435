#include "io/safetensors.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <cstring>

#include "../nn/scratch_folder.h"
#include "io/foreign_format.h"

using namespace plugrad;
using namespace plugrad::io;
using testing::HasSubstr;

namespace {

std::string with_header(const std::string& header, size_t data_bytes) {
  uint64_t size = header.size();
  return std::string(reinterpret_cast<const char*>(&size), 8) + header +
         std::string(data_bytes, '\1');
}

std::string entry(const std::string& dtype, const std::string& shape, uint64_t begin,
                  uint64_t end) {
  return "{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":[" +
         std::to_string(begin) + "," + std::to_string(end) + "]}";
}

class MalformedSafetensors : public testing::Test {
 protected:
  std::string error_of(const std::string& bytes) {
    auto path = folder.write("bad.safetensors", bytes);
    std::string message = user_error([&] { read_safetensors(path); });
    EXPECT_THAT(message, HasSubstr("bad.safetensors"));
    return message;
  }
  std::string error_of_header(const std::string& header, size_t data_bytes = 8) {
    return error_of(with_header(header, data_bytes));
  }
  ScratchFolder folder;
};

template <class T>
NamedArray array_of(const std::string& name, DType dtype, const std::vector<T>& values) {
  return {name, dtype, {static_cast<int64_t>(values.size())}, std::as_bytes(std::span(values))};
}

}  // namespace

TEST(Safetensors, WhatIsWrittenIsReadBack) {
  ScratchFolder folder;
  std::vector<float> weight = {1, 2.5f, -3, 4, 5, 6};
  std::vector<uint8_t> flags = {1, 0, 1};
  NamedArray w{"layer.weight", DType::F32, {2, 3}, std::as_bytes(std::span(weight))};
  NamedArray arrays[] = {array_of("flags", DType::U8, flags),
                         w,
                         {"empty", DType::F16, {0, 4}, {}},
                         {"scalar", DType::F32, {}, std::as_bytes(std::span(weight).first(1))}};
  auto path = folder.path / "net.safetensors";
  write_safetensors(path, arrays, {{"format", "pt"}});

  SafetensorsFile file = read_safetensors(path);
  ASSERT_EQ(file.arrays.size(), 4u);
  EXPECT_EQ(file.metadata.at("format"), "pt");
  const NamedArray& read = file.arrays[2];
  EXPECT_EQ(read.name, "layer.weight");
  EXPECT_EQ(read.dtype, DType::F32);
  EXPECT_EQ(read.shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(std::memcmp(read.bytes.data(), weight.data(), 24), 0);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(read.bytes.data()) % 4, 0u);
  EXPECT_EQ(file.arrays[0].name, "empty");
  EXPECT_EQ(file.arrays[3].shape.size(), 0u);
  EXPECT_EQ(folder.file_count(), 1u);
}

TEST(Safetensors, TheHeaderIsTheFormatsOwn) {
  ScratchFolder folder;
  std::vector<float> values = {1, 2};
  NamedArray arrays[] = {array_of("a", DType::F32, values)};
  write_safetensors(folder.path / "a.safetensors", arrays);
  std::string header = R"({"a":{"data_offsets":[0,8],"dtype":"F32","shape":[2]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::string bytes = contents(folder.path / "a.safetensors");
  EXPECT_EQ(bytes.substr(8, header.size()), header);
  EXPECT_EQ(bytes.size(), 8 + header.size() + 8);
}

TEST(Safetensors, AFailedSaveLeavesTheOldFile) {
  ScratchFolder folder;
  auto path = folder.write("net.safetensors", "old");
  std::vector<float> values = {1};
  NamedArray twice[] = {array_of("a", DType::F32, values), array_of("a", DType::F32, values)};
  EXPECT_THAT(user_error([&] { write_safetensors(path, twice); }), HasSubstr("\"a\" occurs twice"));
  EXPECT_EQ(contents(path), "old");
  EXPECT_EQ(folder.file_count(), 1u);
  EXPECT_THAT(user_error([&] { write_safetensors(folder.path / "no" / "such.safetensors", {}); }),
              HasSubstr("no/such.safetensors: No such file"));
}

TEST(Safetensors, AMissingFileIsNamed) {
  EXPECT_THAT(user_error([] { read_safetensors("nowhere.safetensors"); }),
              HasSubstr("[load] cannot open nowhere.safetensors: No such file"));
}

TEST_F(MalformedSafetensors, Truncated) {
  EXPECT_THAT(error_of("\1\2\3"), HasSubstr("3 bytes are too few"));
  std::string whole = with_header("{\"a\":" + entry("F32", "[2]", 0, 8) + "}", 8);
  EXPECT_NO_THROW(read_safetensors(folder.write("good.safetensors", whole)));
  EXPECT_THAT(error_of(whole.substr(0, 20)), HasSubstr("truncated: a header of"));
  EXPECT_THAT(error_of(whole.substr(0, whole.size() - 1)),
              HasSubstr("outside the 7 bytes of data"));
}

TEST_F(MalformedSafetensors, AFileOfAnotherFormatIsNamedWithTheWayToThisOne) {
  using namespace std::string_literals;
  const std::string zip = "PK\3\4\x14\0\0\0\0\0\0\0\0\0"s, end(600, '\0');
  const std::pair<std::string, const char*> files[] = {
      {zip + "archive/data.pkl" + end,
       "a PyTorch file, no safetensors file; read it with torch.load"},
      {"\x80\2\x8a\nl\xfc"s + end,
       "a pickle of Python, such as an old PyTorch file, no safetensors"},
      {zip + "w.npy" + end, "a .npz archive, no safetensors file; load_npz reads it"},
      {zip + "readme.md" + end, "a zip archive, no safetensors file; unpack it"},
      {"\x93NUMPY\1\0"s + end, "a .npy file, no safetensors file; load_npy reads it"},
      {"GGUF\3\0\0\0"s + end, "a GGUF file, no safetensors file; "},
      {"\x89HDF\r\n\x1a\n" + end, "an HDF5 file, no safetensors file; "},
      {"\x1f\x8b\x08" + end, "compressed by gzip, no safetensors file; unpack it"},
      {"version https://git-lfs.github.com/spec/v1\noid",
       "a Git LFS pointer, no safetensors file; "},
      {" <!DOCTYPE html><html>404</html>", "an HTML or XML page, perhaps in place of a download"},
      {"{\"metadata\": {}, \"weight_map\": {\"w\": \"model-00001-of-2.safetensors\"}}",
       "an index of safetensors files, no safetensors file; load each"},
      {"{\"error\": \"not found\"}", "a text, no safetensors file"}};
  for (const auto& [bytes, what] : files)
    EXPECT_THAT(error_of(bytes), HasSubstr("bad.safetensors: the file is " + std::string(what)));
  // Bytes of a header's size that another format begins with, too.
  const std::string header = "{\"a\":" + std::string(0x280 - 6, ' ') + "}";
  EXPECT_THAT(error_of_header(header + " "), HasSubstr("not valid JSON"));
  const std::string whole = with_header("{\"a\":1}", 0);
  EXPECT_EQ(foreign_format(std::as_bytes(std::span(whole)), Wanted::Npy),
            "the file is a safetensors file, no .npy file; plugrad.nn.safe_load and nn::load read "
            "it");
}

TEST_F(MalformedSafetensors, HugeHeader) {
  std::string bytes = with_header("{}", 0);
  bytes[7] = '\x7f';
  EXPECT_THAT(error_of(bytes), HasSubstr("at most 100000000"));
}

TEST_F(MalformedSafetensors, HeaderThatIsNoJsonObject) {
  EXPECT_THAT(error_of_header("[1]"), HasSubstr("does not begin with '{'"));
  EXPECT_THAT(error_of_header("{\"a\":"), HasSubstr("not valid JSON"));
  EXPECT_THAT(error_of_header("{\"a\":1}"), HasSubstr("lacks dtype"));
  EXPECT_THAT(error_of_header("{\"__metadata__\":{\"a\":1}}", 0),
              HasSubstr("metadata \"a\" is not a text"));
}

TEST_F(MalformedSafetensors, NamesThatOccurTwice) {
  std::string a = "\"a\":" + entry("F32", "[2]", 0, 8);
  EXPECT_THAT(error_of_header("{" + a + "," + a + "}"), HasSubstr("\"a\" occurs twice"));
}

TEST_F(MalformedSafetensors, OffsetsOutsideTheFileOrBackwards) {
  EXPECT_THAT(error_of_header("{\"a\":" + entry("F32", "[2]", 8, 16) + "}"),
              HasSubstr("outside the 8 bytes"));
  EXPECT_THAT(error_of_header("{\"a\":" + entry("F32", "[2]", 8, 0) + "}"),
              HasSubstr("bytes 8 to 0"));
  EXPECT_THAT(error_of_header("{\"a\":" + entry("F32", "[2]", 0, UINT64_MAX) + "}"),
              HasSubstr("outside"));
}

TEST_F(MalformedSafetensors, OverlapsAndHoles) {
  std::string overlap =
      "{\"a\":" + entry("F32", "[2]", 0, 8) + ",\"b\":" + entry("F32", "[1]", 4, 8) + "}";
  EXPECT_THAT(error_of_header(overlap), HasSubstr("\"a\" and \"b\" overlap"));
  EXPECT_THAT(error_of_header("{\"a\":" + entry("F32", "[1]", 4, 8) + "}"),
              HasSubstr("bytes 0 to 4"));
  EXPECT_THAT(error_of_header("{\"a\":" + entry("F32", "[1]", 0, 4) + "}"),
              HasSubstr("4 bytes follow"));
}

TEST_F(MalformedSafetensors, ShapesAndDTypes) {
  EXPECT_THAT(error_of_header("{\"a\":" + entry("F32", "[3]", 0, 8) + "}"),
              HasSubstr("has 8 bytes, but"));
  EXPECT_THAT(error_of_header("{\"a\":" + entry("F33", "[2]", 0, 8) + "}"), HasSubstr("\"F33\""));
  EXPECT_THAT(error_of_header("{\"a\":" + entry("F32", "[-2]", 0, 8) + "}"),
              HasSubstr("impossible shape [-2]"));
  std::string huge = "[4611686018427387904,4]";
  EXPECT_THAT(error_of_header("{\"a\":" + entry("F32", huge, 0, 8) + "}"),
              HasSubstr("impossible shape"));
  EXPECT_THAT(error_of_header("{\"a\":" + entry("F32", "2", 0, 8) + "}"), HasSubstr("not a list"));
}

TEST(Safetensors, AFileOfThePackageIsRead) {
  // Written by safetensors.numpy.save 0.8.0.
  std::string header =
      R"({"__metadata__":{"format":"np"},"layer.weight":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
      R"("half":{"dtype":"F16","shape":[2],"data_offsets":[24,28]},)"
      R"("flag":{"dtype":"BOOL","shape":[2],"data_offsets":[28,30]}})";
  std::string data(
      "\0\0\0\0\0\0\x80\x3f\0\0\0\x40\0\0\x40\x40\0\0\x80\x40\0\0\xa0\x40\0\x3e\0\xc0\1\0", 30);
  header.resize(216, ' ');
  std::string bytes = with_header(header, 0) + data;
  ASSERT_EQ(bytes.size(), 254u);
  ScratchFolder folder;
  SafetensorsFile file = read_safetensors(folder.write("package.safetensors", bytes));
  ASSERT_EQ(file.arrays.size(), 3u);
  EXPECT_EQ(file.arrays[0].dtype, DType::Bool);
  EXPECT_EQ(file.arrays[1].dtype, DType::F16);
  float last = 0;
  std::memcpy(&last, file.arrays[2].bytes.data() + 20, 4);
  EXPECT_EQ(last, 5.0f);
}
