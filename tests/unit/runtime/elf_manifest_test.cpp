// Turns valid, damaged and hostile ELF files into manifest text or a reason.
#include "runtime/discovery/elf_manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "unit/runtime/elf_file.h"

using namespace plugrad::runtime;
using testing::HasSubstr;

namespace {

std::string refusal_of(const std::function<void(ElfFile&)>& damage) {
  ElfFile file(plugrad_note("{}"));
  damage(file);
  return inspect_bytes(file.bytes()).refusal;
}

}  // namespace

TEST(Note, ThePlugradNoteIsFoundAmongOthers) {
  LibraryFile found = inspect_bytes(
      ElfFile(elf_note("GNU", 3, "build") + plugrad_note(R"({"a": 1})") + elf_note("x", 1, ""))
          .bytes());
  EXPECT_EQ(found.refusal, "");
  EXPECT_EQ(found.manifest, R"({"a": 1})");
}

TEST(Note, ALibraryWithoutItHasNoManifest) {
  EXPECT_FALSE(inspect_bytes(ElfFile().bytes()).manifest);
  EXPECT_FALSE(inspect_bytes(ElfFile(elf_note("GNU", 3, "build")).bytes()).manifest);
  std::string_view name(PGR_NOTE_NAME, sizeof PGR_NOTE_NAME);
  EXPECT_FALSE(inspect_bytes(ElfFile(elf_note(name, 1, "{}")).bytes()).manifest) << "another type";
  EXPECT_FALSE(inspect_bytes(ElfFile(elf_note("plugrae", PGR_NOTE_TYPE, "{}")).bytes()).manifest);
}

TEST(Note, TwoNotesMustSayTheSame) {
  std::string a = plugrad_note("{\"a\": 1}"), b = plugrad_note("{\"b\": 1}");
  EXPECT_EQ(inspect_bytes(ElfFile(a + a).bytes()).refusal, "");
  EXPECT_EQ(inspect_bytes(ElfFile(a + b).bytes()).refusal,
            "it holds two manifest notes that differ");
}

TEST(Note, WhatIsNoLibraryOfThisMachineIsRefused) {
  EXPECT_EQ(inspect_bytes("").refusal, "it is not a library: it is no ELF file");
  EXPECT_EQ(inspect_bytes("#!/bin/sh\necho hello").refusal,
            "it is not a library: it is no ELF file");
  EXPECT_EQ(inspect_bytes("\177ELF").refusal, "it is truncated: 4 bytes");
  EXPECT_THAT(refusal_of([](ElfFile& f) { f.header.e_ident[EI_CLASS] = ELFCLASS32; }),
              HasSubstr("32-bit library"));
  EXPECT_THAT(refusal_of([](ElfFile& f) { f.header.e_ident[EI_DATA] = ELFDATA2MSB; }),
              HasSubstr("little endian"));
  EXPECT_THAT(refusal_of([](ElfFile& f) { f.header.e_type = ET_EXEC; }),
              HasSubstr("not a shared library"));
  EXPECT_THAT(refusal_of([](ElfFile& f) { f.header.e_machine = EM_AARCH64; }),
              HasSubstr("built for ELF machine 183"));
  EXPECT_THAT(refusal_of([](ElfFile& f) { f.segments[0].p_type = PT_NULL; }),
              HasSubstr("nothing to load"));
}

TEST(Note, ClaimsThatTheFileDoesNotKeepAreRefused) {
  constexpr std::uint64_t kHuge = UINT64_MAX - 3;
  EXPECT_THAT(refusal_of([](ElfFile& f) { f.header.e_phnum = 0xffff; }), HasSubstr("damaged"));
  EXPECT_THAT(refusal_of([](ElfFile& f) { f.header.e_phentsize = 8; }), HasSubstr("damaged"));
  EXPECT_THAT(refusal_of([](ElfFile& f) { f.header.e_phoff = kHuge; }), HasSubstr("truncated"));
  for (int segment : {0, 1, 2}) {
    EXPECT_THAT(refusal_of([&](ElfFile& f) { f.segments[segment].p_offset = kHuge; }),
                HasSubstr("truncated"));
    EXPECT_THAT(refusal_of([&](ElfFile& f) {
                  f.segments[segment].p_filesz = f.segments[segment].p_memsz = kHuge;
                }),
                HasSubstr("truncated"));
  }
  EXPECT_THAT(refusal_of([](ElfFile& f) { f.segments[0].p_memsz = 1; }), HasSubstr("damaged"));
}

TEST(Note, AFileCutAnywhereIsNeverRead) {
  const std::string whole = ElfFile(plugrad_note(R"({"a": 1})")).bytes();
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_NE(inspect_bytes(whole.substr(0, size)).refusal, "") << size;
}

TEST(Note, NotesThatLeaveTheirSegmentEndTheReading) {
  for (std::uint32_t size : {9u, 0x7fffffffu, 0xffffffffu}) {
    std::string note = plugrad_note("{}");
    std::memcpy(note.data(), &size, sizeof size);  // of the name
    EXPECT_FALSE(inspect_bytes(ElfFile(note).bytes()).manifest) << size;
    note = plugrad_note("{}");
    std::memcpy(note.data() + 4, &size, sizeof size);  // of the text
    EXPECT_FALSE(inspect_bytes(ElfFile(note).bytes()).manifest) << size;
  }
}

TEST(Note, ReadingIsBounded) {
  std::string many;
  for (int i = 0; i < 100000; ++i) many += elf_note("", 0, "");
  EXPECT_EQ(inspect_bytes(ElfFile(many + plugrad_note("{}")).bytes()).manifest, std::nullopt);
  ElfFile large(std::string(3 << 20, 'x'));
  EXPECT_THAT(inspect_bytes(large.bytes()).refusal, HasSubstr("at most 2097152 are read"));
  ElfFile overlapping(plugrad_note(std::string(1 << 20, ' ')));
  for (int i = 0; i < 100; ++i) overlapping.segments.push_back(overlapping.segments[2]);
  overlapping.header.e_phnum = static_cast<Elf64_Half>(overlapping.segments.size());
  for (std::size_t i = 2; i < overlapping.segments.size(); ++i)
    overlapping.segments[i].p_offset += 100 * sizeof(Elf64_Phdr);
  EXPECT_THAT(inspect_bytes(overlapping.bytes()).refusal, HasSubstr("overlap"));
}
