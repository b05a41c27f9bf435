// Cycles of operand traffic through caches of 64 KiB and 1 MiB, computed by hand.
#include "cost/traffic.h"

#include <gtest/gtest.h>

namespace plugrad::cost {
namespace {

// A line of 64 bytes takes 2 cycles from the second cache, and 4 more from memory.
const Machine kMachine = [] {
  Machine m;
  m.levels = {{{64 << 10, 64, 64}, {1 << 20, 32, 32}, {0, 0, 0}, {0, 64.0 / 6, 64.0 / 6}}};
  return m;
}();
constexpr double kLine = 2, kSecond = 4, kPage = 7;

double cycles(const Nest& nest, const std::vector<Operand>& operands) {
  return traffic_cycles(nest, operands, kMachine);
}

// 1,024 rows of 1,024 floats are 64 Ki lines and 1 Ki pages, each fetched once from behind both
// caches.
TEST(Traffic, of_a_stream_is_each_line_once) {
  const Nest rows{{1024, 1024}, {1, 16}, {0, 1}};
  EXPECT_DOUBLE_EQ(cycles(rows, {{{4096, 4}}}), 65536 * (kLine + kSecond) + 1024 * kPage);
}

// Outer loop over columns: every inner iteration is in another line and page. The lines of all
// 1,024 rows map to the same sets, so no column finds the lines of the previous one.
TEST(Traffic, of_columns_is_a_line_for_each_element) {
  const Nest columns{{1024, 1024}, {1, 1}, {1, 0}};
  const double all = 1 << 20;
  EXPECT_DOUBLE_EQ(cycles(columns, {{{4096, 4}}}), all * (kLine + kSecond + kPage));
}

// At a row stride of 4,160 bytes the rows' lines map to different sets: the second cache holds the
// 1,024 lines, and half of them would exceed the first.
TEST(Traffic, of_columns_with_padded_rows_is_kept) {
  const Nest columns{{1024, 1024}, {1, 1}, {1, 0}};
  const double padded = cycles(columns, {{{4160, 4}}}), crowded = cycles(columns, {{{4096, 4}}});
  EXPECT_LT(padded, 0.8 * crowded);
}

// An operand that is invariant in the outer loop is fetched once if the cache holds it: both hold
// 16 KiB, only the second 512 KiB, none 4 MiB.
TEST(Traffic, of_what_is_read_again_is_once_where_it_is_kept) {
  const auto again = [](int64_t count) {
    return cycles({{8, count}, {1, 16}, {0, 1}}, {{{0, 4}}});
  };
  EXPECT_DOUBLE_EQ(again(4 << 10), 256 * (kLine + kSecond) + 4 * kPage);
  EXPECT_DOUBLE_EQ(again(128 << 10), 8192 * (8 * kLine + kSecond) + 8 * 128 * kPage);
  EXPECT_DOUBLE_EQ(again(1 << 20), 8 * (65536 * (kLine + kSecond) + 1024 * kPage));
}

// 16 floats of each of 256 rows at a stride of 4 KiB, read in 8 outer iterations: packed, they are
// 16 contiguous KiB.
TEST(Traffic, of_a_packed_panel_is_that_of_a_run) {
  const Nest nest{{8, 256, 16}, {1, 1, 16}, {0, 1, 2}};
  const double packed = cycles(nest, {{{0, 4096, 4}, 4, true}});
  EXPECT_DOUBLE_EQ(packed, 256 * (kLine + kSecond) + 4 * kPage);
  EXPECT_GT(cycles(nest, {{{0, 4096, 4}}}), 8 * packed);
}

// 8 rows of 2 KiB fill the sets of the first cache once; as single lines, 2 KiB apart, 32 would.
TEST(Traffic, of_rows_that_fill_all_sets_is_kept) {
  const Nest again{{8, 8, 512}, {1, 1, 16}, {0, 1, 2}};
  EXPECT_DOUBLE_EQ(cycles(again, {{{0, 2048, 4}}}), 256 * (kLine + kSecond) + 4 * kPage);
}

// 16 planes 8 KiB apart map to one set of the first cache, however many rows of each are read: 3
// rows of each are 48 lines in 3 sets of 8 ways, read again for each of 8 columns.
TEST(Traffic, of_planes_that_share_sets_is_not_kept_by_what_their_rows_have) {
  const Nest columns{{8, 16, 3}, {1, 1, 1}, {0, 1, 2}};
  const double crowded = cycles(columns, {{{4, 8192, 1280}}});
  EXPECT_DOUBLE_EQ(crowded, 48 * (8 * kLine + kSecond) + 16 * kPage);
  const double apart = cycles(columns, {{{4, 8192 + 3840, 1280}}});
  EXPECT_LT(apart, crowded);
}

TEST(Traffic, again_is_what_the_first_reading_is_not) {
  const Nest rows{{1024, 1024}, {1, 16}, {0, 1}};
  const std::vector<Operand> stream = {{{4096, 4}}};
  EXPECT_DOUBLE_EQ(reading_again(rows, stream, kMachine), 0);
  const Nest columns{{1024, 1024}, {1, 1}, {1, 0}};
  EXPECT_DOUBLE_EQ(reading_again(columns, stream, kMachine),
                   cycles(columns, stream) - cycles(rows, stream));
}

// Groups of four floats in 32 rows that share the sets of both caches: each line is fetched for
// each of its 4 parts, 3 times more than once, and at a higher latency than in a stream. One row
// keeps its line.
TEST(Traffic, of_lines_that_are_written_in_parts_is_more_than_their_reading) {
  const auto written = [](int64_t rows) {
    const Nest nest{{rows, 1024}, {rows, 4}, {1, 0}};
    const Operand planes{{256 << 10, 4}};
    return std::pair(writing_again(nest, planes, kMachine),
                     reading_again(nest, std::vector<Operand>{planes}, kMachine));
  };
  const auto [many, read] = written(32);
  EXPECT_DOUBLE_EQ(read, 3 * 64 * 32 * (kLine + kSecond));
  EXPECT_DOUBLE_EQ(many, 4 * read);
  EXPECT_DOUBLE_EQ(written(1).first, 0);
}

TEST(Traffic, of_one_element_and_of_nothing) {
  EXPECT_DOUBLE_EQ(cycles({{1}, {1}, {0}}, {{{4}}}), kLine + kSecond + kPage);
  EXPECT_DOUBLE_EQ(cycles({{}, {}, {}}, {}), 0);
}

TEST(Traffic, rows_that_share_sets_are_kept_by_larger_caches_or_none) {
  EXPECT_EQ(cache_that_keeps({.lines = 1024}, kMachine), 0u);
  EXPECT_EQ(cache_that_keeps({.lines = 1025}, kMachine), 1u);
  EXPECT_EQ(cache_that_keeps({16, 1, 4096}, kMachine), 0u);  // of 8 ways, 2 sets
  EXPECT_EQ(cache_that_keeps({256, 1, 4096}, kMachine), 1u);
  EXPECT_EQ(cache_that_keeps({257, 1, 4096}, kMachine), 3u);
  EXPECT_EQ(cache_that_keeps({16, 64, 4096}, kMachine), 0u);  // the rows fill all sets
  EXPECT_EQ(cache_that_keeps({256, 64, 4096}, kMachine), 1u);
  EXPECT_EQ(cache_that_keeps({256, 65, 4160}, kMachine), 3u);
}

// 256 rows of one line: the second cache holds them, but each row is in a separate page.
TEST(Traffic, of_rows_read_again_counts_their_pages) {
  EXPECT_DOUBLE_EQ(reading_cycles({256, 1, 4096}, kMachine), 256 * (kLine + kPage));
  EXPECT_DOUBLE_EQ(reading_cycles({.lines = 256}, kMachine), 0);
  EXPECT_DOUBLE_EQ(reading_cycles({48, 1, 4096}, kMachine), 48 * kLine);
}

}  // namespace
}  // namespace plugrad::cost
