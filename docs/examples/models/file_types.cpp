// Says what kind of data files hold, with the network of the package magika:
//   plugrad-fetch-models FOLDER --only magika
//   file_types FOLDER/magika-1.0.3/magika/models/standard_v3_3/model.onnx FILE…
#include <plugrad/onnx.h>
#include <plugrad/plugrad.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "files.h"
using namespace plugrad;

const std::string kSpaces = " \t\n\r\v\f";

std::string part_of(std::ifstream& file, uint64_t begin, uint64_t size) {
  std::string bytes(size, '\0');
  file.seekg(static_cast<std::streamoff>(begin));
  file.read(bytes.data(), static_cast<std::streamsize>(size));
  return bytes;
}

// The bytes at both ends of a file, without white space around them; padded.
std::vector<int32_t> tokens(const std::string& path, const nlohmann::json& config) {
  std::ifstream file = open_file(path);
  const uint64_t size = std::filesystem::file_size(path);
  const uint64_t block = std::min<uint64_t>(size, config["block_size"]);
  std::string head = part_of(file, 0, block), tail = part_of(file, size - block, block);
  head.erase(0, head.find_first_not_of(kSpaces));
  tail.erase(tail.find_last_not_of(kSpaces) + 1);
  if (block == size) {
    head.erase(head.find_last_not_of(kSpaces) + 1);
    tail = head;
  }
  const size_t begin = config["beg_size"], end = config["end_size"];
  head = head.substr(0, begin);
  tail = tail.substr(tail.size() - std::min(end, tail.size()));
  std::vector<int32_t> row(begin + end, config["padding_token"]);
  const auto byte_of = [](char c) { return static_cast<uint8_t>(c); };
  std::ranges::transform(head, row.begin(), byte_of);
  std::ranges::transform(tail, row.end() - static_cast<int64_t>(tail.size()), byte_of);
  return row;
}

int main(int argc, char** argv) try {
  if (argc < 3) {
    std::cout << "usage: file_types MODEL.onnx FILE…\n";
    return 2;
  }
  const onnx::Model model = onnx::Model::load(argv[1]);
  const auto beside = std::filesystem::path(argv[1]).replace_filename("config.min.json");
  const auto config = nlohmann::json::parse(read_file(beside.string()));
  const std::vector<std::string> paths(argv + 2, argv + argc),
      types = config["target_labels_space"];
  std::vector<int32_t> rows;
  for (const std::string& path : paths) {
    const std::vector<int32_t> row = tokens(path, config);
    rows.insert(rows.end(), row.begin(), row.end());
  }
  const auto count = static_cast<int64_t>(paths.size());
  const Tensor scores = model({Tensor::from(rows).reshape({count, -1})})[0];
  const auto best = scores.argmax(1).to_vector<int64_t>();
  const auto highest = scores.max(1).to_vector<float>();
  const size_t width = std::ranges::max(paths, {}, &std::string::size).size();
  for (size_t i = 0; i < paths.size(); ++i)
    std::cout << std::left << std::setw(static_cast<int>(width)) << paths[i] << "  "
              << std::setw(12) << types.at(static_cast<size_t>(best[i])) << std::right << std::fixed
              << std::setprecision(1) << std::setw(6) << 100 * highest[i] << "%\n";
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
