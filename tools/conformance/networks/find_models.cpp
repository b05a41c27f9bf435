#include "networks/find_models.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/check.h"
#include "base/child_process.h"
#include "fetch_models_script.h"

namespace plugrad::tools {
namespace {

namespace fs = std::filesystem;

std::string id_of(const fs::path& below) {
  std::string id = fs::path(below).replace_extension().string();
  for (char& c : id)
    c = c == '/' ? '.' : std::isalnum(static_cast<unsigned char>(c)) || c == '-' ? c : '_';
  return id;
}

std::vector<FoundModel> models_below(const fs::path& folder) {
  std::vector<FoundModel> models;
  std::error_code failed;
  for (auto at = fs::recursive_directory_iterator(folder, failed);
       !failed && at != fs::recursive_directory_iterator(); at.increment(failed))
    if (at->path().extension() == ".onnx" && at->is_regular_file())
      models.push_back({at->path().string(), id_of(at->path().lexically_relative(folder))});
  require(!failed, "[conformance] --models {}: {}", folder.string(), failed.message());
  std::ranges::sort(models, {}, &FoundModel::path);
  std::set<std::string> ids;
  for (FoundModel& model : models)
    while (!ids.insert(model.id).second) model.id += "_";
  return models;
}

void fetch(const std::string& package, const std::string& folder) {
  const std::string script = folder + "/fetch_models.py";
  std::ofstream(script) << kFetchModels;
  try {
    output_of({.program = "python3", .arguments = {script, folder, "--package", package}});
  } catch (const std::runtime_error& error) {
    fail(ErrorKind::User, "[conformance] --models {}: {}", package, error.what());
  }
}

}  // namespace

std::vector<FoundModel> find_models(const std::string& given, const std::string& scratch) {
  std::error_code ignored;
  if (fs::is_regular_file(given, ignored)) return {{given, id_of(fs::path(given).filename())}};
  const bool is_folder = fs::is_directory(given, ignored);
  if (!is_folder) fetch(given, scratch);
  std::vector<FoundModel> models = models_below(is_folder ? given : scratch);
  require(!models.empty(), "[conformance] --models {}: there is no .onnx file below it", given);
  return models;
}

}  // namespace plugrad::tools
