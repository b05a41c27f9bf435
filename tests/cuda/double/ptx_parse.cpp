#include <algorithm>
#include <cctype>
#include <charconv>
#include <stdexcept>

#include "double/ptx.h"

namespace plugrad::cuda_double {
namespace {

std::string_view trim(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())))
    text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())))
    text.remove_suffix(1);
  return text;
}

// Splits at separators outside brackets.
std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size()) {
      depth += text[i] == '{' || text[i] == '[' || text[i] == '(';
      depth -= text[i] == '}' || text[i] == ']' || text[i] == ')';
    }
    if (i < text.size() && (text[i] != separator || depth != 0)) continue;
    if (!trim(text.substr(begin, i - begin)).empty())
      parts.push_back(trim(text.substr(begin, i - begin)));
    begin = i + 1;
  }
  return parts;
}

[[noreturn]] void refuse(std::string_view what) {
  throw std::runtime_error("PTX that the double does not know: " + std::string(what));
}

uint64_t number_in(std::string_view text, std::string_view before) {
  const size_t at = text.find(before);
  if (at == text.npos) return 0;
  const std::string_view digits = trim(text.substr(at + before.size()));
  uint64_t value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

uint32_t size_of_type(std::string_view declaration) {
  for (const auto& [name, size] :
       {std::pair(".u64", 8), std::pair(".s64", 8), std::pair(".b64", 8), std::pair(".f64", 8),
        std::pair(".u16", 2), std::pair(".s16", 2), std::pair(".b16", 2), std::pair(".u8", 1),
        std::pair(".s8", 1), std::pair(".b8", 1)})
    if (declaration.find(name) != declaration.npos) return static_cast<uint32_t>(size);
  return 4;
}

class KernelParser {
 public:
  KernelParser(Kernel& kernel, std::map<std::string, uint64_t> outer_shared) : kernel_(kernel) {
    kernel_.slots.push_back(0);  // slot 0 is unused
    for (const auto& [name, size] : outer_shared)
      declare(kernel_.shared, kernel_.shared_size, name, size, 64);
  }

  void param(std::string_view text) {
    const uint32_t size = size_of_type(text);
    const std::string name(text.substr(text.find_last_of(" \t") + 1));
    kernel_.param_bytes.push_back(size);
    declare(kernel_.params, kernel_.params_size, name, size, size);
    kernel_.param_offsets.push_back(static_cast<uint32_t>(kernel_.params.back().offset));
  }

  // A statement without its semicolon.
  void statement(std::string_view text) {
    if (text.starts_with(".pragma") || text.starts_with(".loc ")) return;
    if (text.starts_with(".reg")) return registers(text);
    if (text.starts_with(".shared")) return array(kernel_.shared, kernel_.shared_size, text);
    if (text.starts_with(".local")) return array(kernel_.local, kernel_.local_size, text);
    instruction(text);
  }
  void label(std::string_view name) {
    labels_[std::string(name)] = static_cast<uint32_t>(kernel_.code.size());
  }
  void finish() {
    for (const auto& [inst, label] : branches_) {
      const auto found = labels_.find(label);
      if (found == labels_.end()) refuse("branch to " + label);
      kernel_.code[inst].target = found->second;
    }
  }

  static std::pair<std::string, uint64_t> array_of(std::string_view text) {
    const size_t open = text.find('[');
    const std::string_view head = trim(text.substr(0, open));
    return {std::string(head.substr(head.find_last_of(" \t") + 1)),
            size_of_type(head) * (open == text.npos ? 1 : number_in(text, "["))};
  }

 private:
  void declare(std::vector<Symbol>& list, uint64_t& total, const std::string& name, uint64_t size,
               uint64_t align) {
    total = (total + align - 1) / align * align;
    list.push_back({slot(name), total});
    total += size;
  }
  void array(std::vector<Symbol>& list, uint64_t& total, std::string_view text) {
    const auto [name, size] = array_of(text);
    declare(list, total, name, size, std::max<uint64_t>(number_in(text, ".align"), 8));
  }

  // Families such as "%r<8>" are recognised by their prefix; other registers are declared one by
  // one.
  void registers(std::string_view text) {
    for (std::string_view name : split(text.substr(text.find_last_of(" \t") + 1), ','))
      if (!name.starts_with('%')) slot(std::string(name));
  }

  uint32_t slot(const std::string& name) {
    const auto [found, is_new] = names_.try_emplace(name, kernel_.slots.size());
    if (!is_new) return found->second;
    kernel_.slots.push_back(0);
    constexpr const char* kSpecials[] = {"%tid.", "%ntid.", "%ctaid.", "%nctaid."};
    for (size_t kind = 0; kind < 4; ++kind)
      if (name.starts_with(kSpecials[kind]) && name.size() == std::strlen(kSpecials[kind]) + 1)
        kernel_.specials[kind * 3 + static_cast<size_t>(name.back() - 'x')] = found->second;
    return found->second;
  }

  uint32_t constant(std::string_view text, bool is_double) {
    uint64_t bits = 0;
    if (text.starts_with("0f") || text.starts_with("0F") || text.starts_with("0d") ||
        text.starts_with("0D") || text.starts_with("0x") || text.starts_with("0X")) {
      std::from_chars(text.data() + 2, text.data() + text.size(), bits, 16);
    } else {
      const bool is_negative = text.starts_with('-');
      uint64_t magnitude = 0;
      const std::string_view digits = text.substr(is_negative ? 1 : 0);
      const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), magnitude).ptr;
      if (end == digits.data() || is_double) refuse(text);
      bits = is_negative ? 0 - magnitude : magnitude;
    }
    const uint32_t made = slot("constant " + std::string(text));
    kernel_.slots[made] = bits;
    return made;
  }

  uint32_t operand(std::string_view text) {
    if (text.starts_with('%') || names_.contains(std::string(text))) return slot(std::string(text));
    if (std::isdigit(static_cast<unsigned char>(text[0])) || text[0] == '-')
      return constant(text, false);
    if (text == "_") return 0;
    refuse(text);
  }

  // [%rd1+8]
  void address(std::string_view text, Inst& inst, uint32_t& into) {
    text = trim(text.substr(1, text.size() - 2));
    size_t sign = text.find_first_of("+-", 1);
    into = operand(trim(text.substr(0, sign)));
    if (sign == text.npos) return;
    const bool is_negative = text[sign] == '-';
    std::string_view digits = trim(text.substr(sign + 1));
    const bool again = digits.starts_with('-');
    if (again) digits.remove_prefix(1);
    int64_t value = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), value);
    inst.offset = is_negative != again ? -value : value;
  }

  void list(std::string_view text, std::array<uint32_t, 4>& into) {
    if (text.starts_with('{')) text = text.substr(1, text.size() - 2);
    const auto parts = split(text, ',');
    if (parts.size() > 4) refuse(text);
    for (size_t i = 0; i < parts.size(); ++i) into[i] = operand(parts[i]);
  }

  void instruction(std::string_view text) {
    Inst inst;
    inst.text = text;
    if (text.starts_with('@')) {
      const size_t end = text.find_first_of(" \t");
      std::string_view name = text.substr(1, end - 1);
      inst.is_guard_negated = name.starts_with('!');
      if (inst.is_guard_negated) name.remove_prefix(1);
      inst.guard = static_cast<int>(slot(std::string(name)));
      text = trim(text.substr(end));
    }
    const size_t end = std::min(text.find_first_of(" \t"), text.size());
    const std::string mnemonic(text.substr(0, end));
    const auto operands = split(text.substr(end), ',');
    inst.step = find_step(mnemonic, inst.lanes);
    if (!inst.step) refuse(text);
    place(mnemonic, operands, inst);
    kernel_.code.push_back(std::move(inst));
  }

  // mov.b64 unpacks and packs registers: {%r1, %r2}.
  bool place_pack(const std::string& mnemonic, const std::vector<std::string_view>& operands,
                  Inst& inst) {
    if (!mnemonic.starts_with("mov.") || operands.size() != 2) return false;
    const bool packs = operands[1].starts_with('{'), unpacks = operands[0].starts_with('{');
    if (!packs && !unpacks) return false;
    const std::string_view braced = packs ? operands[1] : operands[0];
    const size_t parts = split(braced.substr(1, braced.size() - 2), ',').size();
    inst.step = find_step((packs ? "pack" : "unpack") + std::to_string(parts) + mnemonic.substr(3),
                          inst.lanes);
    if (!inst.step) refuse(mnemonic);
    list(operands[0], inst.to);
    list(operands[1], inst.from);
    return true;
  }

  void place(const std::string& mnemonic, const std::vector<std::string_view>& operands,
             Inst& inst) {
    const std::string root = mnemonic.substr(0, mnemonic.find('.'));
    if (root == "bra") {
      branches_.push_back({kernel_.code.size(), std::string(operands.at(0))});
    } else if (root == "ld") {
      list(operands.at(0), inst.to);
      address(operands.at(1), inst, inst.from[0]);
    } else if (root == "st" || root == "red") {
      address(operands.at(0), inst, inst.to[0]);
      list(operands.at(1), inst.from);
    } else if (root == "atom") {
      inst.to[1] = operand(operands.at(0));
      address(operands.at(1), inst, inst.to[0]);
      list(operands.at(2), inst.from);
    } else if (root == "cp") {
      for (size_t i = 2; i < operands.size(); ++i) inst.from[i - 1] = operand(operands[i]);
      if (operands.size() == 3) inst.from[2] = inst.from[1];
      if (operands.size() == 1) inst.from[0] = operand(operands[0]);
      if (operands.size() < 2) return;
      address(operands[0], inst, inst.to[0]);
      address(operands[1], inst, inst.from[0]);
      if (inst.offset != 0) refuse(inst.text);
    } else if (root == "mma") {
      list(operands.at(0), inst.to);
      for (size_t i = 1; i < operands.size(); ++i)
        for (std::string_view name : split(operands[i].substr(1, operands[i].size() - 2), ','))
          inst.tile.push_back(operand(name));
    } else if (root != "bar" && root != "barrier" && root != "ret" && root != "exit" &&
               root != "membar" && root != "fence") {
      if (place_pack(mnemonic, operands, inst)) return;
      inst.to[0] = operand(operands.at(0));
      for (size_t i = 1; i < operands.size() && i <= 4; ++i)
        inst.from[i - 1] = operand(operands[i]);
    }
  }

  Kernel& kernel_;
  std::map<std::string, uint32_t> names_, labels_;
  std::vector<std::pair<size_t, std::string>> branches_;
};

std::string without_comments(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    if (text.substr(i, 2) == "//") {
      i = std::min(text.find('\n', i), text.size());
    } else if (text.substr(i, 2) == "/*") {
      i = std::min(text.find("*/", i), text.size() - 2) + 2;
    } else {
      out += text[i++];
    }
  }
  return out;
}

// Up to the brace that closes the one at the beginning of `text`.
std::string_view block_of(std::string_view text) {
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    depth += text[i] == '{';
    depth -= text[i] == '}';
    if (depth == 0) return text.substr(1, i - 1);
  }
  refuse("a block without an end");
}

void parse_body(std::string_view body, KernelParser& parser) {
  while (!(body = trim(body)).empty()) {
    if (body.front() == '{' || body.front() == '}') {  // of inline assembly
      body.remove_prefix(1);
      continue;
    }
    const size_t stop = body.find_first_of(";:");
    if (stop == body.npos) refuse(body);
    // A colon ends a label; braces of vectors and inline assembly contain none.
    if (body[stop] == ':')
      parser.label(trim(body.substr(0, stop)));
    else
      parser.statement(trim(body.substr(0, stop)));
    body.remove_prefix(stop + 1);
  }
  parser.finish();
}

void parse_entry(std::string_view head, std::string_view body,
                 const std::map<std::string, uint64_t>& shared, Program& program) {
  const size_t name_at = head.find(".entry") + 6, open = head.find('(', name_at);
  const std::string name(trim(head.substr(name_at, open - name_at)));
  Kernel& kernel = program.kernels[name];
  kernel.name = name;
  KernelParser parser(kernel, shared);
  const size_t close = head.find(')', open);
  for (std::string_view param : split(head.substr(open + 1, close - open - 1), ','))
    parser.param(param);
  const size_t limit = head.find(".maxntid", close);
  if (limit != head.npos) {
    kernel.max_items = 1;
    for (std::string_view size : split(head.substr(limit + 8), ',')) {
      uint64_t value = 1;
      std::from_chars(size.data(), size.data() + size.size(), value);
      kernel.max_items *= value;
    }
  }
  parse_body(body, parser);
}

}  // namespace

Program parse_ptx(std::string_view given) {
  const std::string text = without_comments(given);
  Program program;
  std::map<std::string, uint64_t> shared;
  std::string_view rest = trim(text);
  if (!rest.starts_with(".version")) refuse("it does not begin with .version");
  while (!(rest = trim(rest)).empty()) {
    if (rest.starts_with(".version") || rest.starts_with(".target") ||
        rest.starts_with(".address_size")) {
      const size_t end = std::min(rest.find('\n'), rest.size());
      if (rest.starts_with(".target")) program.target = trim(rest.substr(7, end - 7));
      rest.remove_prefix(end);
      continue;
    }
    const size_t stop = rest.find_first_of(";{");
    if (stop == rest.npos) refuse(rest);
    const std::string_view head = trim(rest.substr(0, stop));
    if (rest[stop] == ';') {
      if (head.find(".shared") == head.npos) refuse(head);
      shared.insert(KernelParser::array_of(head));
      rest.remove_prefix(stop + 1);
      continue;
    }
    if (head.find(".entry") == head.npos) refuse(head);
    const std::string_view body = block_of(rest.substr(stop));
    parse_entry(head, body, shared, program);
    rest.remove_prefix(stop + body.size() + 2);
  }
  return program;
}

}  // namespace plugrad::cuda_double
