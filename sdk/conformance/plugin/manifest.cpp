#include "conformance/plugin/manifest.h"

#include <elf.h>

#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "conformance/files.h"

namespace plugrad::conformance {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr uint64_t kMostManifestBytes = 1 << 20;  // same limit as the host's
constexpr uint64_t kMostLibraryBytes = uint64_t{1} << 30;

// A record at an offset of the file; throws if it is out of bounds.
template <typename Record>
Record record_at(std::string_view file, uint64_t offset) {
  if (offset > file.size() || file.size() - offset < sizeof(Record))
    throw std::runtime_error("the library is damaged: a table reaches past the end of the file");
  Record record;
  std::memcpy(&record, file.data() + offset, sizeof record);
  return record;
}

uint64_t round_up(uint64_t value, uint64_t to) {
  return (value + to - 1) / to * to;
}

// The text of the plugrad note in a note segment; nullopt if the segment has only other notes.
std::optional<std::string> find_note(std::string_view file, const Elf64_Phdr& segment) {
  const uint64_t align = segment.p_align == 8 ? 8 : 4;
  uint64_t at = segment.p_offset;
  const uint64_t end = at + std::min<uint64_t>(segment.p_filesz, file.size());
  while (at + sizeof(Elf64_Nhdr) <= end) {
    const auto note = record_at<Elf64_Nhdr>(file, at);
    const uint64_t name_at = at + sizeof note;
    const uint64_t text_at = at + round_up(sizeof note + uint64_t{note.n_namesz}, align);
    if (text_at > file.size() || file.size() - text_at < note.n_descsz)
      throw std::runtime_error("the library is damaged: a note reaches past the end of the file");
    if (note.n_type == PGR_NOTE_TYPE &&
        file.substr(name_at, note.n_namesz) == std::string_view(PGR_NOTE_NAME, 8)) {
      const std::string_view text = file.substr(text_at, note.n_descsz);
      return std::string(text.substr(0, text.find('\0')));
    }
    at = text_at + round_up(note.n_descsz, align);
  }
  return std::nullopt;
}

std::string text_of(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) return "";
  if (!found->is_string())
    throw std::runtime_error(std::string("the manifest's \"") + key + "\" is not text");
  return found->get<std::string>();
}

}  // namespace

std::optional<std::string> manifest_beside(const std::string& library_path) {
  const fs::path path = fs::path(library_path).replace_extension(".json");
  if (!fs::exists(path)) return std::nullopt;
  return read_whole_file(path.string(), kMostManifestBytes);
}

std::optional<std::string> manifest_inside(const std::string& library_path) {
  const std::string file = read_whole_file(library_path, kMostLibraryBytes);
  const auto header = record_at<Elf64_Ehdr>(file, 0);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_ident[EI_DATA] != ELFDATA2LSB)
    throw std::runtime_error(library_path + " is not a 64-bit little-endian ELF file");
  for (uint32_t i = 0; i < header.e_phnum; ++i) {
    const auto segment =
        record_at<Elf64_Phdr>(file, header.e_phoff + uint64_t{i} * header.e_phentsize);
    if (segment.p_type != PT_NOTE) continue;
    if (auto text = find_note(file, segment)) return text;
  }
  return std::nullopt;
}

ManifestFacts parse_manifest(const std::string& text) {
  if (nests_too_deep(text)) throw std::runtime_error("the manifest nests too deeply");
  const json root = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!root.is_object()) throw std::runtime_error("the manifest is not a JSON object");
  ManifestFacts facts;
  facts.name = text_of(root, "name");
  facts.device_name = text_of(root, "device_name");
  facts.version = text_of(root, "version");
  facts.sanitizer = text_of(root, "sanitizer");
  facts.renderer = text_of(root, "renderer");
  const json options = root.value("renderer_options", json::object());
  if (!options.is_object())
    throw std::runtime_error("the manifest's \"renderer_options\" is not an object");
  for (const auto& [key, value] : options.items())
    facts.renderer_options[key] = value.is_string() ? value.get<std::string>() : value.dump();
  return facts;
}

ManifestFacts read_manifest(const std::string& library_path) {
  std::optional<std::string> text = manifest_beside(library_path);
  if (!text) text = manifest_inside(library_path);
  if (!text)
    throw std::runtime_error(library_path +
                             " has no manifest, neither a .json beside it nor a note inside");
  return parse_manifest(*text);
}

}  // namespace plugrad::conformance
