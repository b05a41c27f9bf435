// Truncated, damaged or foreign objects give BAD_BINARY, never a crash.
#include "elf_loader.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "unit/cpu_clang/cpu_device.h"

namespace plugrad::testing {
namespace {

using cpu_clang::LoadedObject;
using ::testing::HasSubstr;

constexpr size_t kWrapperBytes = 32;  // header in front of the object

// A kernel with constants, so that there is more than one section.
const std::string& object() {
  static const std::string bytes = [] {
    CpuDevice cpu;
    const std::string source =
        "static const float table[9] = {1, 2, 3, 5, 8, 13, 21, 34, 55};\n"
        "float k(long i) { return table[i % 9]; }\n";
    return cpu.compile(source).substr(kWrapperBytes);
  }();
  return bytes;
}

// Loads; a refusal must be BAD_BINARY with a message.
bool try_load(const std::string& bytes) {
  try {
    LoadedObject::load(bytes);
    return true;
  } catch (const sdk::StatusError& error) {
    EXPECT_EQ(error.status(), PGR_STATUS_BAD_BINARY);
    EXPECT_FALSE(std::string(error.what()).empty());
    return false;
  }
}

TEST(ElfLoader, LoadedFunction_ReadsItsConstants) {
  const auto loaded = LoadedObject::load(object());
  const auto k = reinterpret_cast<float (*)(long)>(const_cast<void*>(loaded->function("k")));
  ASSERT_NE(k, nullptr);
  EXPECT_EQ(k(5), 13.0f);
  EXPECT_EQ(k(8), 55.0f);
  EXPECT_EQ(loaded->function("other"), nullptr);
}

TEST(ElfLoader, EveryTruncation_IsRefusedOrStillWhole) {
  for (size_t size = 0; size < object().size(); ++size) {
    const bool is_loaded = try_load(object().substr(0, size));
    EXPECT_TRUE(!is_loaded || size > object().size() / 2) << size;
  }
}

TEST(ElfLoader, FlippedBits_NeverCrashTheLoader) {
  std::mt19937 random(7);
  int refused = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = object();
    for (uint32_t flips = 1 + random() % 4; flips > 0; --flips)
      bytes[random() % bytes.size()] ^= static_cast<char>(1u << (random() % 8));
    refused += !try_load(bytes);
  }
  EXPECT_GT(refused, 100);
}

TEST(ElfLoader, FlippedBitsOfHeaders_NeverCrashTheLoader) {
  Elf64_Ehdr header;
  std::memcpy(&header, object().data(), sizeof header);
  std::mt19937 random(8);
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = object();
    const size_t tables = object().size() - header.e_shoff;
    const size_t at = random() % 2 ? random() % sizeof header : header.e_shoff + random() % tables;
    bytes[at] = static_cast<char>(random());
    try_load(bytes);
  }
}

TEST(ElfLoader, ABinaryWithAnyFlippedBit_IsBad) {
  CpuDevice cpu;
  const std::string good = cpu.compile("void k(void) {}");
  for (size_t at = 0; at < good.size(); at += 7) {
    std::string bad = good;
    bad[at] ^= 4;
    EXPECT_THROW(Program(cpu, bad, "k"), std::runtime_error) << "byte " << at;
    EXPECT_EQ(cpu.error.error.code, PGR_STATUS_BAD_BINARY);
    uint32_t state = 0;
    cpu.check(cpu.compiler->validate(cpu.device, bad.data(), bad.size(), &state, nullptr));
    EXPECT_NE(state, PGR_BINARY_GOOD);
  }
}

TEST(ElfLoader, BinaryOfAnotherMachine_IsForeign) {
  CpuDevice cpu, old("x86-64");
  const std::string binary = old.compile("void k(void) {}");
  uint32_t state = 0;
  cpu.check(cpu.compiler->validate(cpu.device, binary.data(), binary.size(), &state, nullptr));
  EXPECT_EQ(state, PGR_BINARY_FOREIGN);
  EXPECT_THROW(Program(cpu, binary, "k"), std::runtime_error);
  EXPECT_THAT(cpu.error.text(), HasSubstr("another processor"));
}

}  // namespace
}  // namespace plugrad::testing
