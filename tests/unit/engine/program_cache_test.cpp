// A process reads the programs that an earlier one generated; unreadable entries are regenerated.
#include "engine/kernels/program_cache.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/hash.h"
#include "base/settings.h"
#include "base/storage/disk_cache.h"
#include "plugrad/plugin_api/kernel_ir.h"
#include "unit/base/temporary_directory.h"

namespace plugrad::engine {
namespace {

class ProgramCache : public ::testing::Test {
 protected:
  Program example() const {
    Program program;
    program.code.name = "r_4_8";
    program.code.colored_name = "\x1b[34m4\x1b[0m 8";
    pgr_ir_header header{};
    header.magic = PGR_IR_MAGIC;
    program.code.ir.resize(sizeof header + 3, std::byte{7});
    std::memcpy(program.code.ir.data(), &header, sizeof header);
    program.code.group_count[1] = 5;
    program.code.local_size[0] = 32;
    program.code.schedule = codegen::parse_schedule("upcast(1, 4) thread(0, 0)");
    program.code.estimates = {12, 34};
    program.code.work = {56, 78};
    program.source = "void r_4_8() {}\n";
    return program;
  }

  TemporaryDirectory directory_;
  SettingScope scope_{[this](Settings& s) { s.cache_dir = directory_.path(); }};
};

TEST_F(ProgramCache, GivesBackEveryField) {
  EXPECT_FALSE(find_program("key"));
  keep_program("key", example());
  const auto found = find_program("key");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->code.name, example().code.name);
  EXPECT_EQ(found->code.colored_name, example().code.colored_name);
  EXPECT_EQ(found->code.ir, example().code.ir);
  EXPECT_EQ(found->code.group_count[1], 5u);
  EXPECT_EQ(found->code.local_size[0], 32u);
  EXPECT_EQ(codegen::to_string(found->code.schedule), "upcast(1, 4) thread(0, 0)");
  EXPECT_EQ(found->code.estimates.flops, 12);
  EXPECT_EQ(found->code.estimates.bytes, 34);
  EXPECT_EQ(found->code.work.operations, 56);
  EXPECT_EQ(found->code.work.bytes, 78);
  EXPECT_EQ(found->source, example().source);
  EXPECT_FALSE(find_program("another key"));
}

// The checksums of these entries are valid, as if another program had written them.
TEST_F(ProgramCache, EntriesThatEndAnywhere_AreMisses_AndRemoved) {
  keep_program("key", example());
  const auto whole = disk_cache().get(as_bytes("key"));
  ASSERT_TRUE(whole);
  for (size_t size = 0; size < whole->size(); ++size) {
    disk_cache().put(as_bytes("key"), std::span(*whole).first(size));
    EXPECT_FALSE(find_program("key")) << size << " bytes";
    EXPECT_FALSE(disk_cache().get(as_bytes("key"))) << size << " bytes";
  }
  auto longer = *whole;
  longer.push_back(std::byte{0});
  disk_cache().put(as_bytes("key"), longer);
  EXPECT_FALSE(find_program("key"));
}

TEST_F(ProgramCache, WhatIsNoKernelIr_IsAMiss) {
  Program program = example();
  program.code.ir[0] ^= std::byte{1};
  keep_program("key", program);
  EXPECT_FALSE(find_program("key"));
}

}  // namespace
}  // namespace plugrad::engine
