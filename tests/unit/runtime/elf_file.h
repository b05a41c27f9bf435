// Small ELF libraries, valid and damaged, for tests of readers that do not open them.
#pragma once

#include <elf.h>

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "plugrad/plugin_api/plugin.h"
#include "runtime/discovery/elf_manifest.h"

namespace plugrad::runtime {

inline std::string elf_note(std::string_view name, std::uint32_t type, std::string_view text) {
  Elf64_Nhdr header{static_cast<Elf64_Word>(name.size()), static_cast<Elf64_Word>(text.size()),
                    type};
  std::string out(reinterpret_cast<char*>(&header), sizeof header);
  for (std::string_view part : {name, text}) {
    out += part;
    out.resize((out.size() + 3) / 4 * 4);
  }
  return out;
}

inline std::string plugrad_note(std::string_view json) {
  return elf_note({PGR_NOTE_NAME, sizeof PGR_NOTE_NAME}, PGR_NOTE_TYPE, std::string(json) + '\0');
}

/// A library that contains only notes: header, program headers (load, dynamic, notes), notes.
struct ElfFile {
  Elf64_Ehdr header{};
  std::vector<Elf64_Phdr> segments;
  std::string notes;

  explicit ElfFile(std::string note_bytes = "") : notes(std::move(note_bytes)) {
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_ident[EI_VERSION] = EV_CURRENT;
    header.e_type = ET_DYN;
    header.e_machine = EM_X86_64;
    header.e_phoff = sizeof header;
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = 3;
    std::uint64_t at = sizeof header + 3 * sizeof(Elf64_Phdr);
    segments = {{PT_LOAD, PF_R, 0, 0, 0, at, at, 4096},
                {PT_DYNAMIC, PF_R, 0, 0, 0, 0, 0, 8},
                {PT_NOTE, PF_R, at, 0, 0, notes.size(), notes.size(), 4}};
  }
  std::string bytes() const {
    std::string out(reinterpret_cast<const char*>(&header), sizeof header);
    for (const Elf64_Phdr& p : segments) out.append(reinterpret_cast<const char*>(&p), sizeof p);
    return out + notes;
  }
};

inline LibraryFile inspect_bytes(const std::string& bytes) {
  return inspect_library({bytes.size(), [&](std::uint64_t offset, std::span<std::byte> out) {
                            if (out.size() > bytes.size() || offset > bytes.size() - out.size())
                              return false;
                            if (!out.empty())
                              std::memcpy(out.data(), bytes.data() + offset, out.size());
                            return true;
                          }});
}

}  // namespace plugrad::runtime
