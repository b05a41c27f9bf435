#include "conformance/plugin/manifest.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "conformance/files.h"
#include "conformance/plugin/elf_file.h"

namespace plugrad::conformance {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr uint64_t kMostManifestBytes = 1 << 20;  // same limit as the host's

uint64_t round_up(uint64_t value, uint64_t to) {
  return (value + to - 1) / to * to;
}

// The text of the plugrad note in a note segment; nullopt if the segment has only other notes.
std::optional<std::string> find_note(const ElfFile& file, const Elf64_Phdr& segment) {
  const uint64_t align = segment.p_align == 8 ? 8 : 4;
  uint64_t at = 0;  // in the segment
  while (at <= segment.p_filesz && segment.p_filesz - at >= sizeof(Elf64_Nhdr)) {
    const auto note = file.at<Elf64_Nhdr>(segment.p_offset + at);
    const uint64_t name_at = at + sizeof note;
    const uint64_t text_at = at + round_up(sizeof note + uint64_t{note.n_namesz}, align);
    const std::string_view text = file.part(segment.p_offset + text_at, note.n_descsz);
    if (note.n_type == PGR_NOTE_TYPE &&
        file.part(segment.p_offset + name_at, note.n_namesz) == std::string_view(PGR_NOTE_NAME, 8))
      return std::string(text.substr(0, text.find('\0')));
    at = text_at + round_up(note.n_descsz, align);
  }
  return std::nullopt;
}

std::string manifest_text(const json& object, const char* key) {
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
  const ElfFile file(library_path);
  for (const Elf64_Phdr& segment : file.segments())
    if (segment.p_type == PT_NOTE)
      if (auto text = find_note(file, segment)) return text;
  return std::nullopt;
}

ManifestFacts parse_manifest(const std::string& text) {
  if (nests_too_deep(text)) throw std::runtime_error("the manifest nests too deeply");
  const json root = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!root.is_object()) throw std::runtime_error("the manifest is not a JSON object");
  ManifestFacts facts;
  facts.name = manifest_text(root, "name");
  facts.device_name = manifest_text(root, "device_name");
  facts.version = manifest_text(root, "version");
  facts.sanitizer = manifest_text(root, "sanitizer");
  facts.renderer = manifest_text(root, "renderer");
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
