// Finds speech in a WAV file with a network from an ONNX file, silero_vad.onnx of the package
// silero-vad (pip install --no-deps silero-vad==6.2.3): speech MODEL.onnx AUDIO.wav
#include <plugrad/onnx.h>
#include <plugrad/plugrad.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>
using namespace plugrad;

constexpr int64_t kRate = 16000, kChunk = 512, kContext = 64;  // samples a second, judged, before

// The samples, from -1 to 1, of a file of one channel of 16 bits at 16 kHz.
std::vector<float> read_wave(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  const auto number = [&](size_t at, size_t size) {
    uint32_t value = 0;
    if (at + size <= bytes.size()) std::memcpy(&value, bytes.data() + at, size);
    return value;
  };
  std::vector<float> samples;
  for (size_t at = 12; at + 8 <= bytes.size(); at += 8 + number(at + 4, 4)) {  // chunks
    const std::string name = bytes.substr(at, 4);
    if (name == "fmt " &&
        (number(at + 10, 2) != 1 || number(at + 12, 4) != kRate || number(at + 22, 2) != 16))
      throw std::runtime_error(path + " is not one channel of 16 bits at 16 kHz");
    if (name != "data") continue;
    for (size_t i = at + 8; i + 2 <= std::min(at + 8 + number(at + 4, 4), bytes.size()); i += 2)
      samples.push_back(static_cast<float>(static_cast<int16_t>(number(i, 2))) / 32768);
  }
  if (samples.empty()) throw std::runtime_error(path + " is no WAV file with samples");
  return samples;
}

int main(int argc, char** argv) try {
  if (argc != 3) {
    std::cout << "usage: speech MODEL.onnx AUDIO.wav\n";
    return 2;
  }
  const onnx::Model model = onnx::Model::load(argv[1]);
  std::vector<float> samples = read_wave(argv[2]);
  samples.insert(samples.begin(), kContext, 0);
  Tensor state = Tensor::zeros({2, 1, 128});
  double began = -1;
  const auto chunks = (static_cast<int64_t>(samples.size()) - kContext) / kChunk;
  for (int64_t i = 0; i <= chunks; ++i) {
    bool is_speech = false;
    if (i < chunks) {
      const auto first = samples.begin() + i * kChunk;
      const std::vector<float> heard(first, first + kContext + kChunk);
      const auto result = model({{"input", Tensor::from(heard, {1, kContext + kChunk})},
                                 {"state", state},
                                 {"sr", Tensor(kRate)}});
      state = result.at("stateN");
      is_speech = result.at("output").item<float>() > 0.5f;
    }
    const double now = static_cast<double>(i * kChunk) / kRate;
    if (is_speech && began < 0) began = now;
    if (!is_speech && began >= 0) {
      std::cout << "speech from " << began << " to " << now << " s\n";
      began = -1;
    }
  }
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
