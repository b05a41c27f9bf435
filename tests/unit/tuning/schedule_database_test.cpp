#include "tuning/schedule_database.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "base/hash.h"
#include "base/log.h"
#include "tuning/kernel_schedule.h"
#include "unit/base/temporary_directory.h"

namespace plugrad::tuning {
namespace {

ScheduleRecord record(const std::string& kernel, const std::string& list,
                      std::vector<int64_t> sizes = {64, 64}) {
  return {
      1,  "CPU x86", "clang 19", kernel, "family of " + kernel.substr(0, 1), std::move(sizes), 2,
      17, 0.001,     0.002,      list};
}

class SearchDatabase : public testing::Test {
 protected:
  SearchDatabase() {
    set_log_sink([](std::string_view line, void* to) { *static_cast<std::string*>(to) += line; },
                 &log);
  }
  ~SearchDatabase() override { set_log_sink(nullptr, nullptr); }
  // Lines of plugrad 1.0's text file.
  void append(const std::string& lines) { std::ofstream(text, std::ios::app) << lines; }

  TemporaryDirectory directory;
  const std::string path = directory / "search.db", text = directory / "search.tsv";
  std::string log;
};

TEST_F(SearchDatabase, gives_back_what_was_added_to_another_process_too) {
  ScheduleDatabase first(path), second(path);
  EXPECT_FALSE(second.find(record("a", "")));
  first.add(record("a", "upcast(0, 4) thread(0, 0)"));
  const auto found = second.find(record("a", ""));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->list, "upcast(0, 4) thread(0, 0)");
  EXPECT_EQ(found->sizes, (std::vector<int64_t>{64, 64}));
  EXPECT_EQ(found->seconds, 0.001);
  EXPECT_EQ(found->width, 2u);
  EXPECT_EQ(found->tried, 17u);
  first.add(record("a", "unroll(1, 2)"));  // the last one is used
  EXPECT_EQ(second.find(record("a", ""))->list, "unroll(1, 2)");
  EXPECT_EQ(second.all().size(), 1u);
}

TEST_F(SearchDatabase, knows_devices_compilers_and_versions_apart) {
  ScheduleDatabase db(path);
  db.add(record("a", "upcast(0, 4)"));
  ScheduleRecord other = record("a", "");
  other.device = "CPU arm";
  EXPECT_FALSE(db.find(other));
  other = record("a", "");
  other.compiler = "clang 20";
  EXPECT_FALSE(db.find(other));
  other = record("a", "");
  other.version = 2;
  EXPECT_FALSE(db.find(other));
}

// Records are found by these facts: devices that differ in one have separate records.
TEST(SearchFacts, tell_devices_apart) {
  pgr_device_caps caps;
  PGR_INIT(caps, DEVICE_CAPS);
  std::set<std::string> facts = {device_facts_key(caps)};
  const auto with = [&](auto change) {
    pgr_device_caps other = caps;
    change(other);
    EXPECT_TRUE(facts.insert(device_facts_key(other)).second) << device_facts_key(other);
  };
  with([](pgr_device_caps& c) { c.threads = 2; });
  with([](pgr_device_caps& c) { c.vector_lanes[PGR_DTYPE_F32] = 8; });
  with([](pgr_device_caps& c) { c.vector_registers = 16; });
  with([](pgr_device_caps& c) { c.subgroup_size = 32; });
  with([](pgr_device_caps& c) { c.local_bytes = 4096; });
  with([](pgr_device_caps& c) { c.core_local_bytes = 4096; });
  with([](pgr_device_caps& c) { c.local_in_cache = 1; });
  with([](pgr_device_caps& c) { c.max_local_total = 64; });
  with([](pgr_device_caps& c) { c.private_bytes = 4096; });
  with([](pgr_device_caps& c) { c.async_copy_bytes = 4; });
  for (size_t level = 0; level < 3; ++level)
    with([&](pgr_device_caps& c) { c.cache_bytes[level] = 4096; });
}

TEST_F(SearchDatabase, knows_which_sizes_are_near) {
  ScheduleDatabase db(path);
  db.add(record("a1", "upcast(0, 2)", {64, 64}));
  db.add(record("a2", "upcast(0, 4)", {1024, 1024}));
  db.add(record("a3", "upcast(0, 8)", {512, 2048}));
  db.add(record("b1", "upcast(0, 16)", {1024, 1024}));
  db.add(record("a4", "upcast(0, 32)", {1024}));
  const auto near = db.near(record("a5", "", {1000, 1000}), 2);
  ASSERT_EQ(near.size(), 2u);
  EXPECT_EQ(near[0].list, "upcast(0, 4)");
  EXPECT_EQ(near[1].list, "upcast(0, 8)");
}

TEST_F(SearchDatabase, imports_a_text_file_of_plugrad_1_0_once) {
  append(to_line(record("a", "upcast(0, 4)")) + "\n");
  append(to_line(record("b", "unroll(0, 2)")).replace(60, 1, "#") + "\n");  // a flipped byte
  append("plugrad-search-1 nonsense\n\n" + std::string(1 << 20, 'x') + "\n");
  append(to_line(record("a", "unroll(0, 8)")) + "\n");  // the last one is used
  append(to_line(record("c", "unroll(0, 4)")) + "\n");
  ScheduleDatabase db(path, text);
  EXPECT_EQ(db.find(record("a", ""))->list, "unroll(0, 8)");
  EXPECT_FALSE(db.find(record("b", "")));
  EXPECT_TRUE(db.find(record("c", "")));
  EXPECT_THAT(log, testing::HasSubstr("imported 3 results of " + text));
  EXPECT_THAT(log, testing::HasSubstr("3 lines are damaged"));
  EXPECT_THAT(log, testing::HasSubstr("line 2"));
  log.clear();
  db.add(record("a", "upcast(0, 2)"));
  ScheduleDatabase next(path, text);
  EXPECT_EQ(next.find(record("a", ""))->list, "upcast(0, 2)") << "imported again";
  EXPECT_EQ(log, "");
}

// Lines of the previous version, without the number of candidates tried.
TEST(ScheduleText, reads_lines_of_twelve_fields) {
  const std::string line =
      "plugrad-search-1\t1\tCPU x86\tclang 19\ta\tfamily of a\t64,64\t0\t0.001\t0.002\t"
      "upcast(0, 4)";
  const auto found = parse_record(fmt::format("{}\t{:016x}", line, hash64(as_bytes(line))));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->list, "upcast(0, 4)");
  EXPECT_EQ(found->width, 0u);
  EXPECT_EQ(found->tried, 0u);
}

TEST(ScheduleText, a_line_that_was_cut_short_costs_only_itself) {
  const std::string a = to_line(record("a", "upcast(0, 4)")) + "\n", b = to_line(record("b", ""));
  for (const size_t length : {size_t{1}, b.size() / 2, b.size() - 1, b.size()}) {
    const ScheduleText read = parse_records(a + b.substr(0, length));
    EXPECT_EQ(read.records.size(), length == b.size() ? 2u : 1u) << length;
    EXPECT_EQ(read.damaged, length == b.size() ? 0u : 1u) << length;
  }
}

TEST_F(SearchDatabase, that_is_damaged_is_set_aside_with_a_warning) {
  {
    EXPECT_TRUE(ScheduleDatabase(path).add(record("a", "upcast(0, 4)")));
  }
  ASSERT_EQ(truncate(path.c_str(), 5000), 0);
  ScheduleDatabase db(path);
  EXPECT_FALSE(db.find(record("a", "")));
  EXPECT_TRUE(db.add(record("a", "upcast(0, 4)")));
  EXPECT_TRUE(db.find(record("a", "")));
  EXPECT_THAT(log, testing::HasSubstr("set aside as " + path + ".damaged"));
}

TEST_F(SearchDatabase, leaves_a_file_alone_that_never_was_one) {
  std::ofstream(path) << "my notes";
  ScheduleDatabase db(path);
  EXPECT_FALSE(db.find(record("a", "")));
  EXPECT_FALSE(db.add(record("a", "upcast(0, 4)")));
  EXPECT_THAT(log, testing::HasSubstr("search.db: file is not a database"));
  std::string left;
  std::getline(std::ifstream(path), left);
  EXPECT_EQ(left, "my notes");
}

TEST_F(SearchDatabase, loses_nothing_that_two_processes_find_at_once) {
  std::vector<pid_t> writers;
  for (int number = 0; number < 4; ++number) {
    writers.push_back(fork());
    if (writers.back() != 0) continue;
    ScheduleDatabase db(path);
    for (int i = 0; i < 50; ++i)
      if (!db.add(record(fmt::format("k{} of {}", i, number), "upcast(0, 4)"))) _exit(1);
    _exit(0);
  }
  for (const pid_t writer : writers) {
    int status = 0;
    waitpid(writer, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(ScheduleDatabase(path).all().size(), 200u);
}

TEST_F(SearchDatabase, survives_writers_that_are_killed) {
  for (int round = 0; round < 200; ++round) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t writer = fork();
    if (writer == 0) {
      ScheduleDatabase db(path);
      for (int i = 0;; ++i) {
        db.add(record("k" + std::to_string(i % 50), "upcast(0, " + std::to_string(i % 50) + ")"));
        if (i == 0 && write(ends[1], "", 1) != 1) _exit(1);
      }
    }
    char byte;
    const bool waits = round % 2 == 1;  // the others may be killed before they write
    ASSERT_EQ(waits ? read(ends[0], &byte, 1) : 1, 1);
    usleep(static_cast<useconds_t>(500 + 40 * round));
    kill(writer, SIGKILL);
    waitpid(writer, nullptr, 0);
    for (const int end : ends) close(end);
  }
  ScheduleDatabase db(path);
  EXPECT_GT(db.all().size(), 0u);
  for (const ScheduleRecord& found : db.all())
    EXPECT_EQ(found.list, "upcast(0, " + found.kernel.substr(1) + ")");
  db.add(record("last", "unroll(1, 2)"));
  EXPECT_TRUE(db.find(record("last", "")));
}

TEST_F(SearchDatabase, follows_a_link_and_refuses_what_is_no_regular_file) {
  std::filesystem::create_symlink("target.db", directory / "link");
  {
    EXPECT_TRUE(ScheduleDatabase(directory / "link").add(record("a", "upcast(0, 4)")));
  }
  EXPECT_TRUE(std::filesystem::is_symlink(directory / "link"));
  EXPECT_TRUE(ScheduleDatabase(directory / "target.db").find(record("a", "")));
  EXPECT_EQ(log, "");
  ASSERT_EQ(mkfifo((directory / "fifo").c_str(), 0600), 0);
  ScheduleDatabase fifo(directory / "fifo");
  EXPECT_FALSE(fifo.add(record("a", "")));
  EXPECT_FALSE(fifo.find(record("a", "")));
  EXPECT_THAT(log, testing::HasSubstr("fifo: it is a device, pipe or"));
  ScheduleDatabase full("/dev/full");
  EXPECT_FALSE(full.add(record("a", "")));
  EXPECT_FALSE(full.find(record("a", "")));
  EXPECT_THAT(log, testing::HasSubstr("/dev/full: it is a device, pipe or"));
  log.clear();
  ScheduleDatabase none("/dev/null");
  EXPECT_FALSE(none.add(record("a", "")));
  EXPECT_FALSE(none.find(record("a", "")));
  EXPECT_EQ(log, "");
}

TEST_F(SearchDatabase, that_cannot_be_written_or_read_is_a_warning) {
  ScheduleDatabase db(directory.path());  // a directory
  EXPECT_FALSE(db.find(record("a", "")));
  EXPECT_FALSE(db.add(record("a", "upcast(0, 4)")));
  EXPECT_THAT(log, testing::HasSubstr("search database"));
  log.clear();
  ScheduleDatabase elsewhere(directory / "mistyped/search.db");
  EXPECT_FALSE(elsewhere.add(record("a", "upcast(0, 4)")));
  EXPECT_THAT(log, testing::HasSubstr("mistyped/search.db: No such file"));
  EXPECT_FALSE(std::filesystem::exists(directory / "mistyped"));
  ScheduleDatabase none("");
  EXPECT_FALSE(none.add(record("a", "upcast(0, 4)")));
  EXPECT_FALSE(none.find(record("a", "")));
}

}  // namespace
}  // namespace plugrad::tuning
