// Misbehaving libraries: each produces the expected record, and the host and its other plugins
// continue to work.
#include <cfenv>

#include "abi/zoo/zoo.h"

using namespace plugrad::runtime;
using testing::HasSubstr;

namespace {

struct Row {
  const char* name;
  Expected expected;
  const char* error = "";  // part of the error of selecting its device; empty: success
  const char* library = "zoo";
  const char* keys = "";  // keys of the manifest
};

constexpr LoadStage kOpen = LoadStage::Open, kEntry = LoadStage::Entry, kTable = LoadStage::Table,
                    kDevices = LoadStage::Devices;
constexpr LoadState kRefused = LoadState::Refused, kLoaded = LoadState::Loaded;

// The failed selection lists each rejected plugin with its reason.
constexpr const char* kNone = "no device is available for";

// clang-format off
constexpr Row kRows[] = {
    // the constructor
    {"crash_constructor", {kOpen, kRefused, "opened on trial in a process of its own, it ended the process with signal 11"}, kNone},
    {"abort_constructor", {kOpen, kRefused, "it ended the process with signal 6"}, kNone},
    {"exit_constructor", {kOpen, kRefused, "it ended the process with exit code"}, kNone},
    {"hang_constructor", {kOpen, kRefused, "it had not answered after 1 s"}, kNone},
    // the library
    {"no_entry", {kEntry, kRefused, "it exports no symbol pgr_plugin_entry_v1"}, kNone, "no_entry"},
    {"other_major", {kEntry, kRefused, "it is built for plugin ABI 2.x; this host speaks 1.0"}, kNone, "other_major"},
    {"preview", {kEntry, kRefused, "it is built for plugin ABI 0.9, a preview of 1.0; this host speaks 1.0"}, kNone, "preview"},
    {"both_majors", {kDevices, kLoaded, ""}, "", "both_majors"},
    {"importing", {kOpen, kRefused, "undefined symbol: zoo_is_nowhere"}, kNone, "importing"},
    {"dependent", {kOpen, kRefused, "libzoo_gone.so: cannot open shared object file"}, kNone, "dependent"},
#ifdef ZOO_HAS_SANITIZED
    {"sanitized", {LoadStage::Manifest, kRefused, "it is built with the sanitizer \"address\", this host with \"\""}, kNone,
     "sanitized", R"(, "sanitizer": "address")"},
    {"sanitized_in_secret", {kOpen, kRefused, "it ended the process with exit code"}, kNone, "sanitized"},
#endif
    // the entry
    {"crash_entry", {kOpen, kRefused, "it ended the process with signal 11"}, kNone},
    {"abort_entry", {kOpen, kRefused, "it ended the process with signal 6"}, kNone},
    {"exit_entry", {kOpen, kRefused, "it ended the process with exit code"}, kNone},
    {"hang_entry", {kOpen, kRefused, "it had not answered after 1 s"}, kNone},
    {"throw_entry", {kEntry, kRefused, "an exception left the plugin: thrown in the zoo"}, kNone},
    {"entry_fails", {kEntry, kRefused, "its entry answered IO_ERROR: its firmware file is missing"}, kNone},
    {"entry_unknown_code", {kEntry, kRefused, "its entry answered INTERNAL"}, kNone},
    {"no_answer", {kEntry, kRefused, "its entry did not answer the hello"}, kNone},
    {"newer_host", {kEntry, kRefused, "it needs a newer host: plugin ABI 1.77; this host speaks 1.0"}, kNone},
    {"newer_host_ok", {kEntry, kRefused, "it needs a newer host"}, kNone},
    {"canary_hello", {kEntry, kRefused, "its headers lay out pgr_hello differently"}, kNone},
    {"canary_error", {kEntry, kRefused, "its headers lay out pgr_error differently"}, kNone},
    {"prints", {kDevices, kLoaded, ""}},  // rejected by the conformance suite
    // the table
    {"table_null", {kTable, kRefused, "the table is NULL"}, kNone},
    {"table_misaligned", {kTable, kRefused, "the table is misaligned"}, kNone},
    {"table_other_id", {kTable, kRefused, "the table is of another kind"}, kNone},
    {"table_size_0", {kTable, kRefused, "the table is shorter than its header"}, kNone},
    {"table_size_odd", {kTable, kRefused, "its table lacks the function device_count"}, kNone},
    {"table_size_huge", {kDevices, kLoaded, ""}},  // as of a newer plugin
    {"table_short", {kTable, kRefused, "its table lacks the function device_count"}, kNone},
    {"open_null", {kTable, kRefused, "its table lacks the function device_open"}, kNone},
    {"slots_null", {kTable, kRefused, "its table lacks the function info"}, kNone},
    // plugin information
    {"throw_info", {kTable, kRefused, "an exception left the plugin"}, kNone},
    {"crash_info", {kOpen, kRefused, "it ended the process with signal 11"}, kNone},
    {"info_fails", {kTable, kRefused, "its licence file is missing (IO_ERROR)"}, kNone},
    {"info_null_name", {kTable, kRefused, "it says that its device name is \"\", its manifest \"INFO_NULL_NAME\""}, kNone},
    {"info_huge_name", {kTable, kRefused, "it says that its device name is \"\""}, kNone},
    {"info_wild_name", {kOpen, kRefused, "it ended the process with signal 11"}, kNone},
    {"other_name", {kTable, kRefused, "it says that its device name is \"NOBODY\", its manifest \"OTHER_NAME\""}, kNone},
    // its devices
    {"throw_count", {kDevices, kRefused, "an exception left the plugin"}, kNone},
    {"crash_count", {kOpen, kRefused, "it ended the process with signal 11"}, kNone},
    {"hang_count", {kOpen, kRefused, "it had not answered after 1 s"}, kNone},
    {"crash_open", {kOpen, kRefused, "it ended the process with signal 11"}, kNone},
    {"hang_open", {kOpen, kRefused, "it had not answered after 1 s"}, kNone},
    {"count_fails", {kDevices, kRefused, "the bus is gone (DEVICE_LOST)"}, kNone},
    {"count_unknown_code", {kDevices, kRefused, "a code that this host does not know (INTERNAL)"}, kNone},
    {"count_huge", {kDevices, kRefused, "it says that it has 4000000000 devices; at most 65536"}, kNone},
    {"no_devices", {kDevices, LoadState::Absent, "no /dev/zoo0"}, kNone},
    {"ten_thousand", {kDevices, kLoaded, ""}},
    {"open_fails", {kDevices, kLoaded, "/dev/zoo0 is locked"}, "[device_open] OPEN_FAILS:0: /dev/zoo0 is locked (PERMISSION_DENIED)"},
    {"open_unknown_code", {kDevices, kLoaded, "it is complicated (INTERNAL)"}, "it is complicated"},
    {"open_gives_nothing", {kDevices, kLoaded, "it answered OK and gave no device"}, "it answered OK and gave no device"},
    {"throw_open", {kDevices, kLoaded, "thrown in the zoo"}, "an exception left the plugin: thrown in the zoo (INTERNAL)"},
    // its interfaces
    {"query_fails", {kDevices, kLoaded, "out of order"}, "[query_interface]"},
    {"throw_query", {kDevices, kLoaded, "thrown in the zoo"}, "an exception left the plugin"},
    {"no_allocator", {kDevices, kLoaded, "lacks the mandatory interface pgr.allocator"}, "lacks the mandatory interface"},
    {"runner_null", {kDevices, kLoaded, "pgr.runner: the table is NULL"}, "the table is NULL"},
    {"runner_other_id", {kDevices, kLoaded, "pgr.runner: the table is of another kind"}, "of another kind"},
    {"runner_misaligned", {kDevices, kLoaded, "pgr.runner: the table is misaligned"}, "misaligned"},
    {"runner_size_0", {kDevices, kLoaded, "pgr.runner: the table is shorter than its header"}, "shorter"},
    {"runner_short", {kDevices, kLoaded, "a mandatory function is missing"}, "[pgr.runner] RUNNER_SHORT:0"},
    {"runner_slot_null", {kDevices, kLoaded, "a mandatory function is missing"}, "[pgr.runner] RUNNER_SLOT_NULL:0"},
    // its facts
    {"throw_device_info", {kDevices, kLoaded, "thrown in the zoo"}, "an exception left the plugin"},
    {"throw_caps", {kDevices, kLoaded, "thrown in the zoo"}, "an exception left the plugin"},
    {"crash_device_info", {kOpen, kRefused, "it ended the process with signal 11"}, kNone},
    {"abort_device_info", {kOpen, kRefused, "it ended the process with signal 6"}, kNone},
    {"hang_device_info", {kOpen, kRefused, "it had not answered after 1 s"}, kNone},
    {"crash_second_device_info", {kOpen, kRefused, "it ended the process with signal 11"}, kNone},
    {"throw_second_device_info", {kDevices, kLoaded, ""}},
    {"crash_caps", {kOpen, kRefused, "it ended the process with signal 11"}, kNone},
    {"caps_params_1", {kDevices, kLoaded, "max_params = 1: kernels need 8 (0: unknown)"}, "(INCOMPATIBLE)"},
    {"caps_params_7", {kDevices, kLoaded, "max_params = 7: kernels need 8 (0: unknown)"}, "(INCOMPATIBLE)"},
    {"caps_params_8", {kDevices, kLoaded, ""}},
    {"terminal_message", {kDevices, kLoaded, "red ?[31m and ??"}, "red ?[31m and ?? (IO_ERROR)"},
    {"endless_message", {kDevices, kLoaded, "never ends"}, "never ends"},
    {"no_id", {kDevices, kLoaded, "the plugin gives no stable id"}, "gives no stable id"},
    {"caps_align_3", {kDevices, kLoaded, "buffer_align_bytes = 3: not a power of two"}, "(INCOMPATIBLE)"},
    {"caps_lanes_3", {kDevices, kLoaded, "vector_lanes[11] = 3, which is no power of two"}, "(INCOMPATIBLE)"},
    {"caps_lanes_huge", {kDevices, kLoaded, ""}},
    {"caps_unknown_values", {kDevices, kLoaded, ""}},
    {"caps_no_group_size", {kDevices, kLoaded, "has_local = 1 and max_local_size[0] = 0"}, "(INCOMPATIBLE)"},
    {"caps_core_stride_0", {kDevices, kLoaded, "tensor_core_stride = 0"}, "(INCOMPATIBLE)"},
    {"caps_core_count", {kDevices, kLoaded, "tensor_core_count = 1000000000"}, "(INCOMPATIBLE)"},
    {"caps_core_flat", {kDevices, kLoaded, "tensor core 0 is 16 x 16 x 0 of 32 threads"}, "(INCOMPATIBLE)"},
    {"caps_core_null", {kDevices, kLoaded, ""}},
};
// clang-format on

class ZooLibrary : public testing::TestWithParam<Row> {};

}  // namespace

TEST_P(ZooLibrary, LeavesItsRecordAndTheHostGoesOn) {
  const Row& row = GetParam();
  Zoo zoo;
  zoo.plugins.add(row.name, row.keys, row.library);
  zoo.find(row.name);
  expect_record(zoo.record, row.expected);
  EXPECT_THAT(zoo.error, HasSubstr(*row.error ? row.error : "no error"));
  if (row.error == kNone) {
    EXPECT_THAT(zoo.error, HasSubstr(zoo.record.reason));
  }
}

INSTANTIATE_TEST_SUITE_P(Zoo, ZooLibrary, testing::ValuesIn(kRows),
                         [](const auto& tested) { return std::string(tested.param.name); });

// Such libraries change denormals or rounding of the thread that loads them.
TEST(ZooFloats, TheHostsRoundingAndDenormalsStay) {
  volatile float tiny = 1e-40f, third = 3.0f;
  const auto sums = [&] { return std::pair(tiny / 2.0f, 1.0f / third); };
  const auto before = sums();
  ASSERT_NE(before.first, 0.0f);
  for (const char* library : {"zoo", "fast"}) {
    Zoo zoo;
    zoo.plugins.add("changes_float", "", library);
    zoo.find("changes_float");
    EXPECT_EQ(zoo.error, "no error");
    EXPECT_EQ(sums(), before) << library;
    EXPECT_EQ(std::fegetround(), FE_TONEAREST) << library;
  }
}

TEST(ZooDevices, TenThousandCanBeUsedAndFiltered) {
  Zoo zoo;
  zoo.plugins.add("ten_thousand", "", "zoo");
  zoo.find("ten_thousand:9999");
  EXPECT_EQ(zoo.found.stable_id, "ZOO-09999");
  zoo.find("ten_thousand:0", "!ten_thousand:0,good");
  EXPECT_THAT(zoo.error, HasSubstr("hides its devices"));
  zoo.find("ten_thousand:1", "ten_thousand:9998,ten_thousand:17,good");
  EXPECT_EQ(zoo.found.stable_id, "ZOO-00017");
  zoo.find("ten_thousand:10000");
  EXPECT_THAT(zoo.error, HasSubstr("TEN_THOUSAND has 10000 devices: 0 to 9999"));
}

TEST(ZooDevices, OfTwoWithOneIdTheSecondIsRefused) {
  Zoo zoo;
  zoo.plugins.add("same_ids", "", "zoo");
  zoo.plugins.add("good", "", "zoo");
  Registry registry(zoo.plugins.options());
  EXPECT_EQ(registry.find_device("same_ids").name(), "SAME_IDS:0");
  EXPECT_EQ(message_of([&] { registry.find_device("same_ids:1"); }),
            "[device_open] SAME_IDS:1: its stable id \"ZOO-same\" is that of SAME_IDS:0 too "
            "(INCOMPATIBLE)");
  EXPECT_EQ(registry.find_device("same_ids:1,good").name(), "GOOD:0");
  EXPECT_EQ(registry.open_all().size(), 3u);
}

TEST(ZooDevices, AnOrderThatIsNotByIdIsRecorded) {
  Zoo zoo;
  zoo.plugins.add("unsorted", "", "zoo");
  Registry registry(zoo.plugins.options());
  EXPECT_EQ(registry.open_all().size(), 2u);
  EXPECT_THAT(registry.records()[0].reason,
              HasSubstr("not sorted by stable id (\"ZOO-00009\" before \"ZOO-00008\")"));
}

TEST(ZooDevices, TextsArePrintable) {
  Zoo zoo;
  zoo.plugins.add("odd_texts", "", "zoo");
  zoo.find("odd_texts");
  EXPECT_EQ(zoo.found.name, "tab\there ?[2J caf\xc3\xa9 ?");
  EXPECT_EQ(zoo.found.vendor + zoo.found.driver, "");
}

TEST(ZooTrial, NoAnswerIsRememberedSoThatTheNextStartsDoNotWait) {
  Zoo zoo;
  zoo.plugins.add("hang_entry", "", "zoo");
  zoo.find("hang_entry");
  EXPECT_THAT(zoo.record.reason, HasSubstr("it had not answered after 1 s"));
  const auto start = std::chrono::steady_clock::now();
  zoo.find("hang_entry");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(900));
  EXPECT_THAT(zoo.record.reason,
              HasSubstr("after 1 s, 0 min ago; it is tried again an hour after"));
}

TEST(ZooTrial, AGoodOutcomeIsRememberedAndATrustedFileIsNotTried) {
  Zoo zoo;
  std::string path = zoo.plugins.add("crash_entry", "", "zoo");
  zoo.find("crash_entry");
  EXPECT_THAT(zoo.record.hint, HasSubstr("PLUGRAD_TRUST_PLUGINS=" + path));
  Zoo good;
  good.plugins.add("plain", "", "zoo");
  good.find("plain");
  const auto tries = [&] {
    return std::distance(std::filesystem::recursive_directory_iterator(good.cache.path()),
                         std::filesystem::recursive_directory_iterator());
  };
  const auto before = tries();
  EXPECT_GT(before, 0);
  good.find("plain");
  EXPECT_EQ(tries(), before);
}
