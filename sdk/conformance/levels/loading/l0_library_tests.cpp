// L0: the library file: symbols, note and manifest.
#include <dlfcn.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "conformance/levels/expect.h"
#include "conformance/levels/loading/elf_symbols.h"
#include "conformance/levels/loading/l0_families.h"
#include "conformance/plugin/manifest.h"

namespace plugrad::conformance {
namespace {

using nlohmann::json;

bool starts_with_any(std::string_view name, std::initializer_list<std::string_view> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

// True if the library was built with a sanitizer, whose run-time the program provides.
bool is_of_sanitizer(std::string_view name) {
  return starts_with_any(name, {"__asan", "__ubsan", "__tsan", "__lsan", "__msan", "__sanitizer"});
}

void check_exports(Context& context) {
  const LibrarySymbols symbols = read_symbols(context.plugin().path());
  std::string others;
  bool has_entry = false;
  for (const std::string& name : symbols.exported) {
    if (name == PGR_PLUGIN_ENTRY_NAME)
      has_entry = true;
    else if (!is_of_sanitizer(name))
      others += (others.empty() ? "" : ", ") + name;
  }
  expect(has_entry, "the library does not export " PGR_PLUGIN_ENTRY_NAME);
  expect(others.empty(), "the library exports more than its entry: " + others.substr(0, 500));
}

void check_no_host_symbols(Context& context) {
  const LibrarySymbols symbols = read_symbols(context.plugin().path());
  for (const auto* names : {&symbols.imported, &symbols.imported_weak})
    for (const std::string& name : *names)
      expect(!starts_with_any(name, {"pgr_", "plugrad", "_ZN7plugrad", "_ZNK7plugrad"}),
             "the library imports " + name + "; everything of the host comes in its table");
  for (const std::string& library : symbols.needed)
    expect(!starts_with_any(library, {"libplugrad_core", "libplugrad_plugin_"}),
           "the library is linked with " + library);
}

// Each import must be defined by a library that this one lists: hosts need not have loaded others.
void check_imports(Context& context) {
  const LibrarySymbols symbols = read_symbols(context.plugin().path());
  std::vector<void*> libraries;
  for (const std::string& library : symbols.needed)
    if (void* handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD))
      libraries.push_back(handle);
  std::string missing;
  for (const std::string& name : symbols.imported) {
    const bool is_found = std::any_of(libraries.begin(), libraries.end(), [&](void* library) {
      return ::dlsym(library, name.c_str()) != nullptr;
    });
    if (!is_found && !is_of_sanitizer(name)) missing += (missing.empty() ? "" : ", ") + name;
  }
  for (void* library : libraries) ::dlclose(library);
  expect(missing.empty(), "no library that this one is linked with has " + missing.substr(0, 500));
}

std::optional<json> parse(const std::optional<std::string>& text, const std::string& where) {
  if (!text) return std::nullopt;
  json parsed = json::parse(*text, nullptr, false);
  expect(parsed.is_object(), "the manifest " + where + " is not a JSON object");
  return parsed;
}

json any_manifest(Context& context) {
  const std::string& path = context.plugin().path();
  if (const auto beside = parse(manifest_beside(path), "beside the library")) return *beside;
  const auto inside = parse(manifest_inside(path), "inside the library");
  expect(inside.has_value(), "the library has neither a manifest beside it nor a note inside");
  return *inside;
}

void check_note(Context& context) {
  const auto inside = parse(manifest_inside(context.plugin().path()), "inside the library");
  expect(inside.has_value(),
         "the library has no ELF note with its manifest: PGR_PLUGIN_NOTE, or plugrad_add_plugin");
}

void check_note_agrees(Context& context) {
  const std::string& path = context.plugin().path();
  const auto inside = parse(manifest_inside(path), "inside the library");
  const auto beside = parse(manifest_beside(path), "beside the library");
  if (!inside || !beside) throw Unsupported("there is only one of note and file");
  for (const auto& [key, value] : beside->items())
    expect(inside->contains(key) && (*inside)[key] == value,
           "note and file do not agree about \"" + key + "\"");
  for (const auto& [key, value] : inside->items())
    expect(beside->contains(key), "the note has \"" + key + "\", the file has not");
}

bool is_word(std::string_view text, bool upper) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= '0' && c <= '9') || c == '_' ||
           (upper ? c >= 'A' && c <= 'Z' : c >= 'a' && c <= 'z');
  });
}

void check_manifest(Context& context) {
  const json manifest = any_manifest(context);
  auto text = [&](const char* key) {
    expect(manifest.contains(key) && manifest[key].is_string(),
           std::string("the manifest has no text \"") + key + "\"");
    return manifest[key].get<std::string>();
  };
  expect(is_word(text("name"), false), "\"name\" is not lower case, digits and underscore");
  expect(is_word(text("device_name"), true),
         "\"device_name\" is not upper case, digits, underscore");
  const std::string file = std::filesystem::path(context.plugin().path()).filename();
  expect(file == "libplugrad_plugin_" + text("name") + ".so",
         "a plugin named " + text("name") + " is called " + file);
  expect(manifest.contains("abi") && manifest["abi"].is_object(), "the manifest has no \"abi\"");
  const json& abi = manifest["abi"];
  for (const char* key : {"major", "minor_low", "minor_high"})
    expect(abi.contains(key) && abi[key].is_number_unsigned(),
           std::string("\"abi\" has no whole number \"") + key + "\"");
  expect(abi["major"] == PGR_API_MAJOR, "the plugin is of another major");
  expect(abi["minor_low"] <= abi["minor_high"], "\"minor_low\" is above \"minor_high\"");
}

void check_manifest_agrees_with_info(Context& context) {
  const json manifest = any_manifest(context);
  const pgr_plugin_api& api = context.plugin().api();
  pgr_plugin_info info;
  PGR_INIT(info, PLUGIN_INFO);
  expect_ok("plugin.info", [&](pgr_error* error) { return api.info(api.plugin, &info, error); });
  const std::pair<const char*, pgr_string> kPairs[] = {
      {"name", info.name}, {"device_name", info.device_name}, {"version", info.version}};
  for (const auto& [key, value] : kPairs)
    if (manifest.contains(key))
      expect(manifest[key].get<std::string>() == sdk::to_view(value),
             std::string("the manifest's \"") + key + "\" is " + manifest[key].dump() +
                 ", plugin.info says " + std::string(sdk::to_view(value)));
}

void check_info_options(Context& context) {
  const pgr_plugin_api& api = context.plugin().api();
  pgr_plugin_info info;
  PGR_INIT(info, PLUGIN_INFO);
  expect_ok("plugin.info", [&](pgr_error* error) { return api.info(api.plugin, &info, error); });
  expect(info.option_count == 0 || info.options, "info.options is NULL with a count");
  const char* at = reinterpret_cast<const char*>(info.options);
  for (uint32_t i = 0; i < info.option_count; ++i, at += info.option_stride) {
    const auto* schema = reinterpret_cast<const pgr_option_schema*>(at);
    expect(schema->struct_id == PGR_STRUCT_OPTION_SCHEMA,
           "an option's schema has a wrong struct_id");
    expect(info.option_stride >= schema->struct_size, "info.option_stride is below struct_size");
    expect(schema->key.size > 0, "an option has no key");
    expect(schema->help.size > 0,
           "option " + std::string(sdk::to_view(schema->key)) + " has no help");
  }
}

}  // namespace

void add_library_tests(Tests& tests) {
  auto add = [&](const std::string& id, std::function<void(Context&)> run) {
    add_test(tests, Level::L0, "l0." + id, std::move(run));
  };
  add("library.exports", check_exports);
  add("library.no_host_symbols", check_no_host_symbols);
  add("library.imports", check_imports);
  add("manifest.note", check_note);
  add("manifest.note_agrees", check_note_agrees);
  add("manifest.fields", check_manifest);
  add("manifest.info_agrees", check_manifest_agrees_with_info);
  add("info.options", check_info_options);
}

}  // namespace plugrad::conformance
