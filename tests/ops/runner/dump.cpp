// Writes rows to files, for a comparison by another program.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>

#include "ops/runner/check.h"
#include "ops/runner/inputs.h"

namespace plugrad::ops {
namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

std::string json(const std::optional<Bound>& bound) {
  return bound ? fmt::format("[{}, {}]", bound->absolute, bound->relative) : "null";
}

// Appends tensors to a file and describes them.
class Writer {
 public:
  explicit Writer(const std::string& path) : out_(path, std::ios::binary) {}
  std::string add(const std::vector<Tensor>& tensors) {
    std::string list;
    for (const Tensor& tensor : tensors) {
      const auto bytes = tensor.to_bytes();
      out_.write(reinterpret_cast<const char*>(bytes.data()),
                 static_cast<std::streamsize>(bytes.size()));
      list += fmt::format(R"({}{{"dtype": "{}", "shape": [{}], "offset": {}}})",
                          list.empty() ? "" : ", ", name_of(tensor.dtype()),
                          fmt::join(tensor.shape(), ", "), offset_);
      offset_ += bytes.size();
    }
    return "[" + list + "]";
  }
  bool good() const { return out_.good(); }

 private:
  std::ofstream out_;
  size_t offset_ = 0;
};

}  // namespace

void dump(const Entry& entry, const std::string& folder) {
  const Case& row = entry.row;
  const In inputs = inputs_of(entry, input_values(entry), false);
  const std::vector<Tensor> outputs = row.function(inputs).tensors;
  const std::vector<size_t> places = differentiated(row, outputs);
  const std::vector<Tensor> flows = gradients_of(outputs, inputs, places);
  std::vector<Tensor> all = outputs;
  all.insert(all.end(), flows.begin(), flows.end());
  Tensor::realize(all);
  const std::string file = fmt::format("{}.{}.bin", entry.family, row.name);
  Writer writer(folder + "/" + file);
  const std::string in = writer.add(inputs), out = writer.add(outputs), flow = writer.add(flows);
  ASSERT_TRUE(writer.good()) << folder;
  std::ofstream(folder + "/index.jsonl", std::ios::app)
      << fmt::format(
             R"({{"family": "{}", "name": "{}", "torch": {}, "file": "{}", "inputs": {}, "outputs": {}, )"
             R"("gradients": {}, "gradients_of": [{}], "forward": {}, "backward": {}, "torch_dtype": {}}})",
             entry.family, row.name, quoted(row.torch), file, in, out, flow,
             fmt::join(places, ", "), json(row.checks.forward), json(row.checks.backward),
             row.checks.torch_dtype)
      << "\n";
}

}  // namespace plugrad::ops
