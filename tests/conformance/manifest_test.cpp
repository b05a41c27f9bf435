// Tests the suite's reading of manifests, from the file next to the library and from the note
// inside.
#include "conformance/plugin/manifest.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace plugrad::conformance {
namespace {

namespace fs = std::filesystem;

// A file in the temporary directory, removed by the destructor.
class TemporaryFile {
 public:
  TemporaryFile(const std::string& name, const std::string& bytes)
      : path_(fs::temp_directory_path() / (std::to_string(::getpid()) + name)) {
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  ~TemporaryFile() { fs::remove(path_); }
  std::string path() const { return path_.string(); }

 private:
  fs::path path_;
};

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Manifest, NoteAndFileSayTheSame) {
  ASSERT_TRUE(manifest_inside(FAULTY_PLUGIN).has_value());
  EXPECT_EQ(manifest_inside(FAULTY_PLUGIN), manifest_beside(FAULTY_PLUGIN));
  EXPECT_EQ(read_manifest(FAULTY_PLUGIN).device_name, "FAULTY");
}

TEST(Manifest, TheNoteAloneIsEnough) {
  const TemporaryFile library("alone.so", bytes_of(FAULTY_PLUGIN));
  EXPECT_FALSE(manifest_beside(library.path()).has_value());
  EXPECT_EQ(read_manifest(library.path()).name, "faulty");
}

TEST(Manifest, RendererAndItsOptionsAreRead) {
  const ManifestFacts facts = parse_manifest(
      R"({"name": "a", "renderer": "opencl", "renderer_options": {"fp64": "no", "width": 4}})");
  EXPECT_EQ(facts.renderer, "opencl");
  EXPECT_EQ(facts.renderer_options.at("fp64"), "no");
  EXPECT_EQ(facts.renderer_options.at("width"), "4");
}

TEST(Manifest, TextThatIsNoManifestIsRefused) {
  for (const char* text : {"", "[]", "{", "{\"name\": 3}", "{\"renderer_options\": 1}"})
    EXPECT_THROW(parse_manifest(text), std::runtime_error) << text;
}

TEST(Manifest, DamagedLibrariesAreErrors) {
  const std::string whole = bytes_of(FAULTY_PLUGIN);
  for (const size_t size :
       {size_t{0}, size_t{3}, size_t{63}, size_t{64}, size_t{200}, size_t{700}}) {
    const TemporaryFile library("cut.so", whole.substr(0, size));
    EXPECT_THROW(read_manifest(library.path()), std::runtime_error) << size << " bytes";
  }
  // corrupting any byte of header and tables must not crash
  for (size_t at = 32; at < 1200; at += 3) {
    std::string spoilt = whole;
    spoilt[at] = static_cast<char>(0xff);
    const TemporaryFile library("spoilt.so", spoilt);
    try {
      read_manifest(library.path());
    } catch (const std::runtime_error&) {
    }
  }
}

}  // namespace
}  // namespace plugrad::conformance
