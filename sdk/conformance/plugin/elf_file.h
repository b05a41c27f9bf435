// Reads 64-bit little-endian ELF files, by the gABI.
#pragma once

#include <elf.h>

#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/files.h"

namespace plugrad::conformance {

// Every access is checked: std::runtime_error where a damaged file points outside itself.
class ElfFile {
 public:
  explicit ElfFile(const std::string& path);

  std::vector<Elf64_Phdr> segments() const;
  // The first section of the type; size 0 if there is none.
  Elf64_Shdr section(uint32_t type) const;
  Elf64_Shdr section_number(uint32_t number) const;
  std::string text(const Elf64_Shdr& strings, uint64_t offset) const;

  template <typename Record>
  std::vector<Record> table(const Elf64_Shdr& section) const {
    std::vector<Record> records;
    for (uint64_t i = 0; i + sizeof(Record) <= section.sh_size; i += sizeof(Record))
      records.push_back(at<Record>(section.sh_offset + i));
    return records;
  }
  template <typename Record>
  Record at(uint64_t offset) const {
    Record record;
    std::memcpy(&record, part(offset, sizeof record).data(), sizeof record);
    return record;
  }
  std::string_view part(uint64_t offset, uint64_t size) const {
    if (offset > bytes_.size() || bytes_.size() - offset < size)
      throw std::runtime_error("the library is damaged: a table reaches past the end of the file");
    return bytes_.substr(offset, size);
  }

 private:
  MappedFile file_;  // libraries with debug information are large
  std::string_view bytes_ = file_.bytes();
  Elf64_Ehdr header_{};
};

}  // namespace plugrad::conformance
