#include "models/find_models.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <set>
#include <system_error>

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
  require(!failed, "[models] --models {}: {}", folder.string(), failed.message());
  std::ranges::sort(models, {}, &FoundModel::path);
  std::set<std::string> ids;
  for (FoundModel& model : models)
    while (!ids.insert(model.id).second) model.id += "_";
  return models;
}

// A path is never asked for at pip.
bool may_be_package(const std::string& given) {
  return given.find('/') == given.npos && !given.starts_with('.') && !given.ends_with(".onnx");
}

void fetch(const std::string& package, const std::string& folder) {
  const std::string script = folder + "/fetch_models.py";
  std::ofstream(script) << kFetchModels;
  try {
    output_of({.program = "python3", .arguments = {script, folder, "--package", package}});
  } catch (const std::system_error& error) {
    fail(ErrorKind::User,
         "[models] --models {0}: there is no folder or file {0}, and python3, which would look for "
         "a "
         "package, cannot be started: {1}",
         package, error.code().message());
  } catch (const std::runtime_error&) {
    fail(ErrorKind::User,
         "[models] --models {0}: there is no folder or file {0}, and no models of a package {0} "
         "(see "
         "above)",
         package);
  }
}

}  // namespace

std::vector<FoundModel> find_models(const std::string& given, const std::string& scratch) {
  std::error_code ignored;
  if (fs::is_regular_file(given, ignored)) return {{given, id_of(fs::path(given).filename())}};
  const bool is_folder = fs::is_directory(given, ignored);
  require(is_folder || may_be_package(given),
          "[models] --models {0}: there is no folder or file {0}", given);
  if (!is_folder) fetch(given, scratch);
  std::vector<FoundModel> models = models_below(is_folder ? given : scratch);
  require(!models.empty(), "[models] --models {}: there is no .onnx file below it", given);
  return models;
}

}  // namespace plugrad::tools
