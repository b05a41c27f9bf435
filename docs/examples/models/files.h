// Files that the programs of this folder read and write.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

inline std::ifstream open_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file || !std::filesystem::is_regular_file(path))
    throw std::runtime_error(path + " is no file that can be read");
  return file;
}

inline std::string read_file(const std::string& path) {
  std::ifstream file = open_file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary);
  if (!(file << bytes).flush()) throw std::runtime_error(path + " cannot be written");
}

// The samples, from -1 to 1, of a WAV file of 16 bits: the mean of the channels.
inline std::vector<float> read_wave(const std::string& path, int rate) {
  const std::string bytes = read_file(path);
  const auto number = [&](size_t at, size_t size) {
    size_t value = 0;
    if (at + size <= bytes.size()) std::memcpy(&value, bytes.data() + at, size);
    return value;
  };
  std::vector<float> samples;
  size_t channels = 0;
  for (size_t at = 12, size = 0; at + 8 <= bytes.size(); at += 8 + size + size % 2) {  // chunks
    const std::string name = bytes.substr(at, 4);
    size = number(at + 4, 4);
    if (name == "fmt ") {
      channels = number(at + 10, 2);
      const size_t found_rate = number(at + 12, 4), bits = number(at + 22, 2);
      if (found_rate != static_cast<size_t>(rate) || bits != 16)
        throw std::runtime_error(path + ": " + std::to_string(found_rate) + " Hz of " +
                                 std::to_string(bits) + " bits; it must be " +
                                 std::to_string(rate) + " Hz of 16 bits");
    }
    if (name != "data" || channels == 0) continue;
    const size_t end = std::min(at + 8 + size, bytes.size());
    for (size_t i = at + 8; i + 2 * channels <= end; i += 2 * channels) {
      double sum = 0;
      for (size_t channel = 0; channel < channels; ++channel)
        sum += static_cast<int16_t>(number(i + 2 * channel, 2));
      samples.push_back(static_cast<float>(sum / static_cast<double>(channels) / 32768));
    }
  }
  if (samples.empty()) throw std::runtime_error(path + " is no WAV file with samples");
  return samples;
}
