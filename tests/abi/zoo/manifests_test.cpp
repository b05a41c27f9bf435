// Manifests that are oversized, incomplete or invalid: in the file, in the note, and in both.
#include <fstream>

#include "abi/zoo/zoo.h"
#include "runtime/discovery/manifest.h"

using namespace plugrad::runtime;
using testing::HasSubstr;

namespace {

constexpr const char* kGood =
    R"("name": "bad", "device_name": "BAD", "abi": {"major": 1, "minor_low": 0, "minor_high": 0})";

std::string with(const std::string& keys) {
  return std::string("{") + kGood + ", " + keys + "}";
}

LoadRecord record_of(const std::string& manifest, const char* library = "zoo") {
  Zoo zoo;
  zoo.plugins.add_with_manifest("bad", manifest, library);
  zoo.find("good");
  return zoo.record;
}

std::string repeated(const std::string& text, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += text;
  return out;
}

}  // namespace

TEST(ZooManifests, EachIsRefusedWithItsReason) {
  const std::string huge = with("\"vendor\": \"" + std::string(2 << 20, 'x') + "\"");
  const std::pair<std::string, const char*> cases[] = {
      {"{", "not valid JSON"},
      {"{\"name\": \"bad\", }", "not valid JSON"},
      {std::string("\0\0\0", 3), "not valid JSON"},
      {"\xef\xbb", "not valid JSON"},
      {"{\"name\": \"b\xff\"}", "not valid JSON"},
      {"null", "not a JSON object"},
      {"[]", "not a JSON object"},
      {"7", "not a JSON object"},
      {huge, "more than the 1048576 that are allowed"},
      {repeated("[", 100000), "nests more than 32 levels deep"},
      {repeated("{\"a\":", 500000), "more than the 1048576"},
      {with("\"x\": " + repeated("[", 50) + repeated("]", 50)), "nests more than 32 levels deep"},
      {"{}", "\"name\" is missing"},
      {R"({"name": 7})", "\"name\" is not text"},
      {R"({"name": "bad", "device_name": null})", "\"device_name\" is not text"},
      {R"({"name": "bad", "device_name": "BAD", "abi": [0, 9, 9]})", "\"abi\" is not an object"},
      {with(R"("priority": 1e99)"), "\"priority\" is not a whole number"},
      {with(R"("priority": 18446744073709551615)"), "not from 0 to 1000000"},
      {with(R"("priority": -1)"), "not from 0 to 1000000"},
      {with(R"("software": "yes")"), "\"software\" is not true or false"},
      {with(R"("probes": "/dev/x")"), "\"probes\" is not a list of texts"},
      {with(R"("probes": [["/dev/x"]])"), "\"probes\" holds something that is no text"},
      {with("\"probes\": [\"\"" + repeated(",\"\"", 300) + "]"), "\"probes\" has 301 entries"},
      {with(R"("vendor": "red \u001b[31m")"), "\"vendor\" holds control characters"},
      {with("\"vendor\": \"" + std::string(5000, 'x') + "\""), "more than 4096 bytes"},
      {with(R"("renderer": 7)"), "\"renderer\" is not text"},
      {with(R"("renderer": "../c")"), "\"renderer\" is \"../c\": not lower case"},
      {with(R"("renderer_options": {"a": "b"})"), "has no \"renderer\" to go to"},
      {with(R"("renderer": "c", "renderer_options": {"a": 1})"),
       "\"renderer_options.a\" is not text"},
      {with(R"("options": ["a"])"), "\"options\" is not an object"},
      {with(R"("options": {"a": 1})"), "\"options.a\" is not an object"},
      {with(R"("options": {"a": {"type": 1}})"), "\"options.a.type\" is not text"},
      {R"({"name": "../bad", "device_name": "BAD", "abi": {"major": 1, "minor_low": 0, "minor_high": 0}})",
       "not lower case"},
      {R"({"name": "bad", "device_name": "", "abi": {"major": 1, "minor_low": 0, "minor_high": 0}})",
       "device_name \"\" is not upper case"},
      {R"({"name": "bad", "device_name": "BAD\nX", "abi": {"major": 1, "minor_low": 0, "minor_high": 0}})",
       "control characters"},
      {"{\"name\": \"bad\", \"device_name\": \"" + std::string(65, 'B') +
           "\", \"abi\": {\"major\": 1, \"minor_low\": 0, \"minor_high\": 0}}",
       "64 at most"},
      {R"({"name": "bad", "device_name": "BAD", "abi": {"major": 2, "minor_low": 0, "minor_high": 0}})",
       "built for plugin ABI 2.x; this host speaks 1.0"},
      {R"({"name": "bad", "device_name": "BAD", "abi": {"major": 0, "minor_low": 9, "minor_high": 9}})",
       "built for plugin ABI 0.9, a preview of 1.0; this host speaks 1.0"},
      {R"({"name": "bad", "device_name": "BAD", "abi": {"major": 1, "minor_low": 1, "minor_high": 1}})",
       "it needs a newer host: plugin ABI 1.1; this host speaks 1.0"},
      {R"({"name": "bad", "device_name": "BAD", "abi": {"major": 1, "minor_low": 9, "minor_high": 8}})",
       "\"abi.minor_low\" is 9, above \"abi.minor_high\", which is 8"},
      {with(R"("sanitizer": "memory")"), "built with the sanitizer \"memory\""},
  };
  for (auto& [manifest, reason] : cases) {
    SCOPED_TRACE(manifest.substr(0, 200));
    expect_record(record_of(manifest), {LoadStage::Manifest, LoadState::Refused, reason});
  }
}

TEST(ZooManifests, UnknownKeysAreOfALaterHost) {
  LoadRecord record = record_of(with(R"("colour": {"a": [1, null]}, "priority": 3)"));
  EXPECT_EQ(record.state, LoadState::Available) << record.reason;
  EXPECT_EQ(record.manifest.priority, 3);
}

TEST(ZooManifests, OptionsAreReadInBothForms) {
  LoadRecord record = record_of(with(
      R"("options": {"a": "what a does", "b": {"type": "int", "default": "7", "help": "b's"}})"));
  ASSERT_EQ(record.manifest.options.size(), 2u) << record.reason;
  EXPECT_EQ(record.manifest.options[0].help, "what a does");
  EXPECT_EQ(record.manifest.options[1].type + record.manifest.options[1].default_value +
                record.manifest.options[1].help,
            "int7b's");
}

TEST(ZooManifests, TheNoteAloneIsEnough) {
  LoadRecord record = record_of("", "noted");
  EXPECT_EQ(record.state, LoadState::Available) << record.reason;
  EXPECT_EQ(record.manifest.device_name, "NOTED");
  EXPECT_EQ(record.manifest.version, "7");
}

TEST(ZooManifests, NoteAndFileMustSayTheSame) {
  const std::string same =
      R"({"version":"7","abi":{"minor_high":0,"minor_low":0,"major":1},"device_name":"NOTED","name":"noted"})";
  EXPECT_EQ(record_of(same, "noted").state, LoadState::Available) << "layout does not count";
  const std::pair<std::string, const char*> cases[] = {
      {R"({"name": "noted", "device_name": "NOTED", "version": "8", "abi": {"major": 1, "minor_low": 0, "minor_high": 0}})",
       R"("version" is "7" in the note, "8" in the file)"},
      {R"({"name": "noted", "device_name": "NOTED", "version": "7", "abi": {"major": 1, "minor_low": 0, "minor_high": 1}})",
       R"("abi.minor_high" is 0 in the note, 1 in the file)"},
      {R"({"name": "noted", "device_name": "NOTED", "abi": {"major": 1, "minor_low": 0, "minor_high": 0}})",
       R"("version" is "7" in the note, missing in the file)"},
      {R"({"name": "noted", "device_name": "NOTED", "version": "7", "abi": {"major": 1, "minor_low": 0, "minor_high": 0}, "extra": 1})",
       R"("extra" is missing in the note, 1 in the file)"},
      {"{", "not valid JSON"},
  };
  for (auto& [file, reason] : cases)
    expect_record(record_of(file, "noted"), {LoadStage::Manifest, LoadState::Refused, reason});
}
