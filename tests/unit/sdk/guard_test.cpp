#include "plugrad/sdk/guard.h"

#include <gtest/gtest.h>

#include <array>
#include <new>

#include "plugrad/plugin_api/device.h"
#include "plugrad/sdk/options.h"

namespace plugrad::sdk {
namespace {

struct Error {
  std::array<char, 64> text;
  pgr_error error;
  explicit Error(uint64_t capacity = 64) {
    text.fill('#');
    PGR_INIT(error, ERROR);
    error.message = text.data();
    error.message_capacity = capacity;
  }
};

TEST(Guard, StatusErrorGivesItsStatusAndMessage) {
  Error e;
  EXPECT_EQ(guard(&e.error, [] { throw StatusError(PGR_STATUS_NOT_FOUND, "no kernel k", 7); }),
            PGR_STATUS_NOT_FOUND);
  EXPECT_STREQ(e.error.message, "no kernel k");
  EXPECT_EQ(e.error.message_size, 11u);
  EXPECT_EQ(e.error.code, PGR_STATUS_NOT_FOUND);
  EXPECT_EQ(e.error.native_code, 7);
}

TEST(Guard, OtherExceptionsHaveFixedStatuses) {
  EXPECT_EQ(guard(nullptr, [] {}), PGR_STATUS_OK);
  EXPECT_EQ(guard(nullptr, [] { throw std::bad_alloc(); }), PGR_STATUS_OUT_OF_HOST_MEMORY);
  EXPECT_EQ(guard(nullptr, [] { throw std::runtime_error("x"); }), PGR_STATUS_INTERNAL);
  EXPECT_EQ(guard(nullptr, [] { throw 5; }), PGR_STATUS_INTERNAL);
}

TEST(Guard, LongMessageIsCutAtTheCapacity) {
  Error e(5);
  report(&e.error, PGR_STATUS_INTERNAL, "0123456789");
  EXPECT_STREQ(e.error.message, "0123");
  EXPECT_EQ(e.text[5], '#');
  EXPECT_EQ(e.error.message_size, 4u);
}

TEST(Guard, AShorterErrorStructIsNotWrittenBehindItsEnd) {
  Error e;
  e.error.struct_size = offsetof(pgr_error, code);
  e.error.code = 99;
  report(&e.error, PGR_STATUS_BUSY, "busy");
  EXPECT_EQ(e.error.code, 99);
  EXPECT_EQ(e.error.message_size, 4u);
}

TEST(Fill, WritesOnlyWhatTheCallerHolds) {
  pgr_memory_stats full;
  PGR_INIT(full, MEMORY_STATS);
  full.total_bytes = 1;
  full.free_bytes = 2;
  full.used_bytes = 3;
  pgr_memory_stats out;
  PGR_INIT(out, MEMORY_STATS);
  out.used_bytes = 77;
  out.struct_size = offsetof(pgr_memory_stats, used_bytes);
  const pgr_struct_header chained = {sizeof chained, 1000, nullptr};
  out.next = &chained;
  fill(&out, full);
  EXPECT_EQ(out.total_bytes, 1u);
  EXPECT_EQ(out.free_bytes, 2u);
  EXPECT_EQ(out.used_bytes, 77u);
  EXPECT_EQ(out.struct_size, offsetof(pgr_memory_stats, used_bytes));
  EXPECT_EQ(out.next, &chained);
}

TEST(Fill, ALongerCallerKeepsItsOwnEnd) {
  struct Newer {
    pgr_memory_stats base;
    uint64_t added;
  } out{};
  PGR_INIT(out.base, MEMORY_STATS);
  out.base.struct_size = sizeof out;
  out.added = 5;
  pgr_memory_stats full{};
  full.used_bytes = 3;
  fill(&out.base, full);
  EXPECT_EQ(out.base.used_bytes, 3u);
  EXPECT_EQ(out.added, 5u);
  EXPECT_EQ(out.base.struct_size, sizeof out);
}

TEST(Read, FieldsBehindTheCallersEndAreZero) {
  pgr_memory_stats in;
  PGR_INIT(in, MEMORY_STATS);
  in.free_bytes = 2;
  in.used_bytes = 3;
  in.struct_size = offsetof(pgr_memory_stats, used_bytes);
  const pgr_memory_stats own = read(&in);
  EXPECT_EQ(own.free_bytes, 2u);
  EXPECT_EQ(own.used_bytes, 0u);
}

TEST(Chain, UnknownStructsAreSkippedUnlessTheyMustBeUnderstood) {
  pgr_struct_header second = {sizeof second, 1001, nullptr};
  pgr_struct_header first = {sizeof first, 1000, &second};
  pgr_memory_stats in;
  PGR_INIT(in, MEMORY_STATS);
  in.next = &first;
  EXPECT_NO_THROW(read(&in));
  second.struct_id |= PGR_STRUCT_MUST_UNDERSTAND;
  Error e;
  EXPECT_EQ(guard(&e.error, [&] { read(&in); }), PGR_STATUS_INCOMPATIBLE);
  EXPECT_STREQ(e.error.message, "extension struct 1001 must be understood, and is unknown");
  EXPECT_EQ(guard(nullptr, [&] { fill(&in, pgr_memory_stats{}); }), PGR_STATUS_INCOMPATIBLE);
}

TEST(Blob, ReleaseMayBeCalledTwice) {
  pgr_blob blob;
  PGR_INIT(blob, BLOB);
  give_blob(&blob, "bytes");
  EXPECT_EQ(std::string(static_cast<const char*>(blob.data), blob.size), "bytes");
  blob.release(&blob);
  EXPECT_EQ(blob.size, 0u);
  blob.release(&blob);
}

TEST(Options, AreReadByTheMakersStride) {
  struct Longer {
    pgr_option option;
    uint64_t added;
  } options[2] = {};
  const char* keys[] = {"withdraw", "withdraw"};
  const char* values[] = {"exp2", "sin,fma"};
  for (int i = 0; i < 2; ++i) {
    PGR_INIT(options[i].option, OPTION);
    options[i].option.key = to_pgr(keys[i]);
    options[i].option.value = to_pgr(values[i]);
  }
  const auto pairs = read_options(&options[0].option, 2, sizeof(Longer));
  ASSERT_EQ(pairs.size(), 2u);
  EXPECT_EQ(find_option(pairs, "withdraw"), "sin,fma");
  EXPECT_EQ(find_option(pairs, "other", "fallback"), "fallback");
}

}  // namespace
}  // namespace plugrad::sdk
