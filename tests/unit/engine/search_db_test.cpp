#include "engine/search_db.h"

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
#include "engine/tune.h"
#include "unit/base/temporary_directory.h"

namespace plugrad::engine {
namespace {

SearchRecord record(const std::string& kernel, const std::string& list,
                    std::vector<int64_t> sizes = {64, 64}) {
  return {
      1,  "CPU x86", "clang 19", kernel, "family of " + kernel.substr(0, 1), std::move(sizes), 2,
      17, 0.001,     0.002,      list};
}

class SearchDatabase : public testing::Test {
 protected:
  SearchDatabase() {
    set_log_sink([](std::string_view text, void* to) { *static_cast<std::string*>(to) += text; },
                 &log);
  }
  ~SearchDatabase() override { set_log_sink(nullptr, nullptr); }
  void append(const std::string& text) { std::ofstream(path, std::ios::app) << text; }

  TemporaryDirectory directory;
  const std::string path = directory / "search.tsv";
  std::string log;
};

TEST_F(SearchDatabase, gives_back_what_was_added_to_another_process_too) {
  SearchDb first(path), second(path);
  EXPECT_FALSE(second.find(record("a", "")));
  first.add(record("a", "upcast(0, 4) thread(0, 0)"));
  const auto found = second.find(record("a", ""));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->list, "upcast(0, 4) thread(0, 0)");
  EXPECT_EQ(found->sizes, (std::vector<int64_t>{64, 64}));
  EXPECT_EQ(found->seconds, 0.001);
  EXPECT_EQ(found->width, 2u);
  EXPECT_EQ(found->tried, 17u);
  first.add(record("a", "unroll(1, 2)"));  // the last one counts
  EXPECT_EQ(second.find(record("a", ""))->list, "unroll(1, 2)");
  EXPECT_EQ(second.all().size(), 1u);
}

TEST_F(SearchDatabase, knows_devices_compilers_and_versions_apart) {
  SearchDb db(path);
  db.add(record("a", "upcast(0, 4)"));
  SearchRecord other = record("a", "");
  other.device = "CPU arm";
  EXPECT_FALSE(db.find(other));
  other = record("a", "");
  other.compiler = "clang 20";
  EXPECT_FALSE(db.find(other));
  other = record("a", "");
  other.version = 2;
  EXPECT_FALSE(db.find(other));
}

// Lists are found by these: a device that differs in one has others.
TEST(SearchFacts, tell_devices_apart) {
  pgr_device_caps caps;
  PGR_INIT(caps, DEVICE_CAPS);
  std::set<std::string> facts = {search_facts(caps)};
  const auto with = [&](auto change) {
    pgr_device_caps other = caps;
    change(other);
    EXPECT_TRUE(facts.insert(search_facts(other)).second) << search_facts(other);
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
  SearchDb db(path);
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

TEST_F(SearchDatabase, ignores_damaged_lines_with_one_warning) {
  SearchDb db(path);
  db.add(record("a", "upcast(0, 4)"));
  append(to_line(record("b", "unroll(0, 2)")).replace(60, 1, "#") + "\n");  // a flipped byte
  append("nonsense\n\n" + std::string(1 << 20, 'x') + "\n");
  append(to_line(record("c", "unroll(0, 4)")) + "\n");
  EXPECT_TRUE(db.find(record("a", "")));
  EXPECT_FALSE(db.find(record("b", "")));
  EXPECT_TRUE(db.find(record("c", "")));
  EXPECT_THAT(log, testing::HasSubstr("3 lines are damaged"));
  EXPECT_THAT(log, testing::HasSubstr("line 2"));
  log.clear();
  append("more nonsense\n");
  db.find(record("a", ""));
  EXPECT_EQ(log, "");
}

// Of the version before, which did not say how many lists were tried.
TEST_F(SearchDatabase, reads_lines_of_twelve_fields) {
  const std::string line =
      "plugrad-search-1\t1\tCPU x86\tclang 19\ta\tfamily of a\t64,64\t0\t0.001\t0.002\t"
      "upcast(0, 4)";
  append(fmt::format("{}\t{:016x}\n", line, hash64(as_bytes(line))));
  const auto found = SearchDb(path).find(record("a", ""));
  ASSERT_TRUE(found) << log;
  EXPECT_EQ(found->list, "upcast(0, 4)");
  EXPECT_EQ(found->width, 0u);
  EXPECT_EQ(found->tried, 0u);
}

TEST_F(SearchDatabase, a_line_that_was_cut_short_costs_only_itself) {
  const std::string line = to_line(record("b", "unroll(0, 2)"));
  for (const size_t length : {size_t{1}, line.size() / 2, line.size() - 1, line.size()}) {
    std::filesystem::remove(path);
    SearchDb db(path);
    db.add(record("a", "upcast(0, 4)"));
    append(line.substr(0, length));  // and no line's end
    db.add(record("c", "unroll(0, 4)"));
    EXPECT_TRUE(db.find(record("a", "")));
    EXPECT_TRUE(db.find(record("c", "")));
    EXPECT_EQ(db.find(record("b", "")).has_value(), length == line.size());
  }
}

TEST_F(SearchDatabase, survives_writers_that_are_killed) {
  for (int round = 0; round < 200; ++round) {
    const pid_t writer = fork();
    if (writer == 0) {
      SearchDb db(path);
      for (int i = 0;; ++i)
        db.add(record("k" + std::to_string(i % 50), "upcast(0, " + std::to_string(i % 50) + ")"));
    }
    usleep(static_cast<useconds_t>(500 + 40 * round));
    kill(writer, SIGKILL);
    waitpid(writer, nullptr, 0);
  }
  SearchDb db(path);
  EXPECT_GT(db.all().size(), 0u);
  for (const SearchRecord& found : db.all())
    EXPECT_EQ(found.list, "upcast(0, " + found.kernel.substr(1) + ")");
  db.add(record("last", "unroll(1, 2)"));
  EXPECT_TRUE(db.find(record("last", "")));
}

// Lines are appended, so that replace_file's rules are held by another function.
TEST_F(SearchDatabase, follows_a_link_and_refuses_what_is_no_regular_file) {
  std::filesystem::create_symlink("target.tsv", directory / "link");
  EXPECT_TRUE(SearchDb(directory / "link").add(record("a", "upcast(0, 4)")));
  EXPECT_TRUE(std::filesystem::is_symlink(directory / "link"));
  EXPECT_TRUE(SearchDb(directory / "target.tsv").find(record("a", "")));
  EXPECT_EQ(log, "");
  ASSERT_EQ(mkfifo((directory / "fifo").c_str(), 0600), 0);
  SearchDb fifo(directory / "fifo");
  EXPECT_FALSE(fifo.add(record("a", "")));
  EXPECT_FALSE(fifo.find(record("a", "")));
  EXPECT_THAT(log, testing::HasSubstr("fifo: it cannot be written: it is a device, pipe or"));
  SearchDb full("/dev/full");
  EXPECT_FALSE(full.add(record("a", "")));
  EXPECT_FALSE(full.find(record("a", "")));
  EXPECT_THAT(log, testing::HasSubstr("/dev/full: it cannot be written: it is a device, pipe or"));
  log.clear();
  SearchDb none("/dev/null");
  EXPECT_FALSE(none.add(record("a", "")));
  EXPECT_FALSE(none.find(record("a", "")));
  EXPECT_EQ(log, "");
}

TEST_F(SearchDatabase, of_more_bytes_than_any_is_ignored_with_a_warning) {
  SearchDb db(path);
  db.add(record("a", "upcast(0, 4)"));
  ASSERT_EQ(truncate(path.c_str(), off_t{1} << 42), 0);
  EXPECT_FALSE(db.find(record("a", "")));
  EXPECT_THAT(log, testing::HasSubstr("no regular file of at most 256 MiB"));
}

TEST_F(SearchDatabase, that_cannot_be_written_or_read_is_a_warning) {
  SearchDb db(directory.path());  // a directory
  EXPECT_FALSE(db.find(record("a", "")));
  EXPECT_FALSE(db.add(record("a", "upcast(0, 4)")));
  EXPECT_THAT(log, testing::HasSubstr("search database"));
  log.clear();
  SearchDb elsewhere(directory / "mistyped/search.tsv");
  EXPECT_FALSE(elsewhere.add(record("a", "upcast(0, 4)")));
  EXPECT_THAT(log, testing::HasSubstr("mistyped/search.tsv: it cannot be written: No such file"));
  EXPECT_FALSE(std::filesystem::exists(directory / "mistyped"));
  SearchDb none("");
  EXPECT_FALSE(none.add(record("a", "upcast(0, 4)")));
  EXPECT_FALSE(none.find(record("a", "")));
}

}  // namespace
}  // namespace plugrad::engine
