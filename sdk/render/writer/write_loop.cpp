// Renders LOOP and IF and their ends.
#include "render/text.h"
#include "render/writer/kernel_writer.h"

namespace plugrad::render {

void KernelWriter::write_loop(uint32_t number) {
  OpenLoop loop;
  loop.number = number;
  loop.name = "idx" + std::to_string(next_loop_++);
  loop.type = prelude_.type(type_of(number));
  const bool is_checked = loops_.may_turn_too_often;
  loop.begin = use_index(ir_.source(number, 0), Prec::Loose);
  loop.end =
      is_checked ? use_name(ir_.source(number, 1)) : use_index(ir_.source(number, 1), Prec::Unary);
  settle_all();
  loop.body_at = body_.size();
  if (loops_.unrolled[number] == 1) write_loop_head(loop, loop.name, "++" + loop.name);
  ++depth_;
  values_[number].text = loop.name;
  open_loops_.push_back(std::move(loop));
}

// The counter of a checked loop is declared outside of it.
void KernelWriter::write_loop_head(const OpenLoop& loop, const std::string& counter,
                                   const std::string& step) {
  const std::string start = loop.type + " " + counter + " = " + loop.begin + ";";
  if (loops_.may_turn_too_often) line(start);
  if (dialect_.tile_loop != nullptr && loops_.holds_tile[loop.number]) line(dialect_.tile_loop);
  line("for (" + (loops_.may_turn_too_often ? std::string(";") : start) + " " + counter + " < " +
       loop.end + "; " + step + ") {");
}

// Repeats the text for each unrolled iteration, with the loop's counter as a constant.
void KernelWriter::write_turns(const OpenLoop& loop, const std::string& first) {
  const std::string text = body_.substr(loop.body_at);
  body_.resize(loop.body_at);
  const uint32_t turns = loops_.unrolled[loop.number];
  const bool is_whole = first == loop.begin;
  const std::string counter = loop.name + "_0";
  if (!is_whole) write_loop_head(loop, counter, counter + " += " + std::to_string(turns));
  depth_ += is_whole ? 0 : 1;
  for (uint32_t turn = 0; turn < turns; ++turn) {
    const std::string plus = turn == 0 ? "" : " + " + std::to_string(turn);
    line("{");
    std::string constant = "const " + loop.type;
    constant += " " + loop.name;
    constant += " = " + first;
    line(constant + plus + ";");
    body_ += text;
    line("}");
  }
  depth_ -= is_whole ? 0 : 1;
}

void KernelWriter::write_loop_end() {
  const OpenLoop loop = std::move(open_loops_.back());
  open_loops_.pop_back();
  const uint32_t turns = loops_.unrolled[loop.number];
  const bool is_whole =
      turns > 1 && source(loop.number, 1).arg - source(loop.number, 0).arg == turns;
  const std::string counter = turns > 1 ? loop.name + "_0" : loop.name;
  if (turns > 1) write_turns(loop, is_whole ? loop.begin : counter);
  if (!is_whole) line("}");
  if (is_whole || !loops_.may_turn_too_often) return;
  prelude_.pointer(PGR_DTYPE_U32);
  const std::string slot =
      expand(dialect_.groups->slot, {{'0', std::to_string(ir_.params().size())}});
  line(expand(dialect_.groups->loop_check, {{'0', counter}, {'1', loop.end}, {'2', slot}}));
}

void KernelWriter::write_if(uint32_t number) {
  const std::string condition = use(ir_.source(number, 0), Prec::Loose);
  settle_all();
  line("if (" + condition + ") {");
  ++depth_;
}

void KernelWriter::write_end(uint32_t number) {
  settle_all();
  --depth_;
  if (inst(number).op == PGR_OP_END_LOOP) return write_loop_end();
  line("}");
}

}  // namespace plugrad::render
