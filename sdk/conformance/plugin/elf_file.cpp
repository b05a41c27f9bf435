#include "conformance/plugin/elf_file.h"

namespace plugrad::conformance {
namespace {

constexpr uint64_t kMostLibraryBytes = uint64_t{1} << 30;

bool is_readable(const Elf64_Ehdr& header) {
  return std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
         header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_ident[EI_DATA] == ELFDATA2LSB;
}

}  // namespace

ElfFile::ElfFile(const std::string& path) : file_(path, kMostLibraryBytes) {
  if (bytes_.size() >= sizeof header_) header_ = at<Elf64_Ehdr>(0);
  if (!is_readable(header_))
    throw std::runtime_error(path + " is not a 64-bit little-endian ELF file");
}

std::vector<Elf64_Phdr> ElfFile::segments() const {
  std::vector<Elf64_Phdr> all;
  for (uint32_t i = 0; i < header_.e_phnum; ++i)
    all.push_back(at<Elf64_Phdr>(header_.e_phoff + uint64_t{i} * header_.e_phentsize));
  return all;
}

Elf64_Shdr ElfFile::section(uint32_t type) const {
  for (uint16_t i = 0; i < header_.e_shnum; ++i) {
    const Elf64_Shdr section = section_number(i);
    if (section.sh_type == type) return section;
  }
  return {};
}

Elf64_Shdr ElfFile::section_number(uint32_t number) const {
  return at<Elf64_Shdr>(header_.e_shoff + uint64_t{number} * header_.e_shentsize);
}

std::string ElfFile::text(const Elf64_Shdr& strings, uint64_t offset) const {
  const uint64_t from = strings.sh_offset + offset;
  if (from >= bytes_.size()) throw std::runtime_error("the library is damaged: a name is outside");
  return std::string(bytes_.substr(from, bytes_.find('\0', from) - from));
}

}  // namespace plugrad::conformance
