// Reads the text in a picture, with the networks of the package rapidocr: one finds lines, the other
// reads them. For upright text.
//   plugrad-fetch-models FOLDER --only rapidocr
//   cd FOLDER/rapidocr-3.10.0/rapidocr/models
//   read_text PP-OCRv6_det_small.onnx PP-OCRv6_rec_small.onnx PICTURE.png [BOXES.png]
#include <plugrad/onnx.h>
#include <plugrad/plugrad.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iomanip>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "picture.h"
using namespace plugrad;

constexpr int64_t kMultiple = 32;   // of both sides of the picture that the finder sees
constexpr int64_t kLongest = 1280;  // pixels of its longer side
constexpr int64_t kHeight = 48;     // pixels of a line that the reader sees
constexpr int64_t kWidths = 80;     // its width is a multiple: few sizes are compiled
constexpr float kInk = 0.3f;        // least probability of a pixel
constexpr float kLine = 0.5f;       // least mean probability of a line
// The finder marks the middle of a line; area over circumference times this is added around it.
constexpr double kGrowth = 1.6;

// The pixels from -1 to 1, blue first, with zeros on the right up to `padded_width`.
Tensor as_input(const Picture& picture, int64_t padded_width) {
  std::vector<float> values(static_cast<size_t>(3 * picture.height * padded_width));
  for (int64_t colour = 0; colour < 3; ++colour)
    for (int64_t y = 0; y < picture.height; ++y)
      for (int64_t x = 0; x < picture.width; ++x)
        values[static_cast<size_t>((colour * picture.height + y) * padded_width + x)] =
            static_cast<float>(picture.at(x, y)[2 - colour]) / 127.5f - 1;
  return Tensor::from(values, {1, 3, picture.height, padded_width});
}

struct Island {
  Rectangle box;
  double mean;  // probability of ink
};

// The connected sets of pixels with ink.
std::vector<Island> islands(const std::vector<float>& ink, int64_t width, int64_t height) {
  std::vector<bool> reached(ink.size());
  std::vector<Island> found;
  const auto is_new = [&](int64_t x, int64_t y) {
    const auto at = static_cast<size_t>(y * width + x);
    return x >= 0 && x < width && y >= 0 && y < height && ink[at] > kInk && !reached[at];
  };
  for (int64_t start = 0; start < width * height; ++start) {
    if (!is_new(start % width, start / width)) continue;
    std::vector<std::pair<int64_t, int64_t>> pixels = {{start % width, start / width}};
    reached[static_cast<size_t>(start)] = true;
    Rectangle box{width, height, 0, 0};
    double sum = 0;
    for (size_t i = 0; i < pixels.size(); ++i) {  // pixels grows meanwhile
      const auto [x, y] = pixels[i];
      sum += ink[static_cast<size_t>(y * width + x)];
      box = {std::min(box.left, x), std::min(box.top, y), std::max(box.right, x + 1),
             std::max(box.bottom, y + 1)};
      for (const auto& [dx, dy] : {std::pair{-1, 0}, {1, 0}, {0, -1}, {0, 1}}) {
        if (!is_new(x + dx, y + dy)) continue;
        reached[static_cast<size_t>((y + dy) * width + x + dx)] = true;
        pixels.emplace_back(x + dx, y + dy);
      }
    }
    found.push_back({box, sum / static_cast<double>(pixels.size())});
  }
  return found;
}

// Boxes of the lines of text, from top to bottom.
std::vector<Rectangle> lines_in(const onnx::Model& finder, const Picture& picture) {
  const auto longest = static_cast<double>(std::max(picture.width, picture.height));
  const auto side = [&](int64_t pixels) {
    const double scaled = static_cast<double>(pixels) * std::min(1.0, kLongest / longest);
    return std::max(kMultiple, std::lrint(scaled / kMultiple) * kMultiple);
  };
  const int64_t width = side(picture.width), height = side(picture.height);
  const Tensor result = finder({as_input(resize(picture, width, height), width)})[0];
  const double across = static_cast<double>(picture.width) / static_cast<double>(width);
  const double down = static_cast<double>(picture.height) / static_cast<double>(height);
  std::vector<Rectangle> boxes;
  for (const auto& [box, mean] : islands(result.to_vector<float>(), width, height)) {
    const int64_t wide = box.right - box.left, high = box.bottom - box.top;
    if (std::min(high, wide) < 3 || mean < kLine) continue;
    const double grown =
        kGrowth * static_cast<double>(high * wide) / static_cast<double>(2 * (high + wide));
    const auto scaled = [&](int64_t at, double by, double factor, int64_t most) {
      return std::clamp<int64_t>(std::lrint((static_cast<double>(at) + by) * factor), 0, most);
    };
    const Rectangle line = {scaled(box.left, -grown, across, picture.width),
                            scaled(box.top, -grown, down, picture.height),
                            scaled(box.right, grown, across, picture.width),
                            scaled(box.bottom, grown, down, picture.height)};
    if (line.left < line.right && line.top < line.bottom) boxes.push_back(line);
  }
  std::ranges::sort(boxes, {}, [](const Rectangle& box) { return std::tuple(box.top, box.left); });
  return boxes;
}

// The characters that the reader tells apart; the first stands between characters.
std::vector<std::string> characters_of(const onnx::Model& reader) {
  const auto metadata = reader.metadata();
  if (!metadata.contains("character"))
    throw std::runtime_error("the second network has no list of characters");
  std::vector<std::string> characters = {""};
  std::istringstream lines(metadata.at("character"));
  for (std::string line; std::getline(lines, line);) characters.push_back(line);
  characters.push_back(" ");
  return characters;
}

// The text of one line, and the mean probability of its characters.
std::pair<std::string, double> read(const onnx::Model& reader, const Picture& line,
                                    const std::vector<std::string>& characters) {
  const auto ratio = static_cast<double>(line.width * kHeight) / static_cast<double>(line.height);
  const int64_t width = std::max<int64_t>(1, std::lrint(ratio));
  const int64_t padded = (width + kWidths - 1) / kWidths * kWidths;
  const Tensor scores = reader({as_input(resize(line, width, kHeight), padded)})[0];
  const auto best = scores.argmax(2).to_vector<size_t>();
  const auto probabilities = scores.max(2).to_vector<float>();
  std::string text;
  double sum = 0, count = 0;
  for (size_t i = 0; i < best.size(); ++i) {
    if (best[i] == 0 || (i > 0 && best[i] == best[i - 1]))
      continue;  // equal ones are one character
    text += characters.at(best[i]);
    sum += probabilities[i];
    ++count;
  }
  return {text, count > 0 ? sum / count : 0};
}

int main(int argc, char** argv) try {
  if (argc < 4 || argc > 5) {
    std::cout << "usage: read_text FINDER.onnx READER.onnx PICTURE.png [BOXES.png]\n";
    return 2;
  }
  const auto finder = onnx::Model::load(argv[1]), reader = onnx::Model::load(argv[2]);
  const std::vector<std::string> characters = characters_of(reader);
  Picture picture = read_png(argv[3]);
  const std::vector<Rectangle> boxes = lines_in(finder, picture);
  for (const Rectangle& box : boxes) {
    const auto [text, probability] = read(reader, crop(picture, box), characters);
    std::cout << std::fixed << std::setprecision(1) << std::setw(5) << 100 * probability << "%  "
              << text << "\n";
  }
  for (const Rectangle& box : boxes) draw_box(picture, box, {220, 20, 60});
  if (argc == 5) write_png(argv[4], picture);
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
