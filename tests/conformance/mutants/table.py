"""The mutants: plugins with one defect each, and the test of the suite that must detect it.

A row: name, defect, file (of sdk/template/c, sdk/template/cpp or plugins/reference), replacements,
test. The text to replace must occur in the file exactly once, so that an outdated row fails the
check."""

# Edits the C of a kernel before compilation; a use replaces `from` by `to`.
EDIT_KERNEL = """static void edit_kernel(pgr_compile_desc *desc, const char *from, const char *to) {
  const char *at = desc->input, *end = at + desc->input_bytes;
  char *out = malloc(4 * desc->input_bytes + 1024), *next = out;
  while (at < end)
    if ((size_t)(end - at) >= strlen(from) && memcmp(at, from, strlen(from)) == 0) {
      next = stpcpy(next, to), at += strlen(from);
    } else {
      *next++ = *at++;
    }
  desc->input = out, desc->input_bytes = (uint64_t)(next - out);
}

static pgr_status compiler_compile("""


def edited(*pairs):
    calls = "".join(f'  edit_kernel(&own, "{old}", "{new}");\n' for old, new in pairs)
    return [("static pgr_status compiler_compile(", EDIT_KERNEL),
            ("  write_identity(device, identity, sizeof identity);\n  PGR_TRY(pgr_cc_compile",
             f"{calls}  write_identity(device, identity, sizeof identity);\n  PGR_TRY(pgr_cc_compile")]


# Edits the decoded kernel before the interpreter runs it.
DECODED = "      throw sdk::StatusError(PGR_STATUS_BAD_BINARY, e.what());\n    }\n"


def decoded(statement):
    loop = ("    for (pgr_ir_inst& inst : std::span(const_cast<pgr_ir_inst*>(ir->insts().data()), ir->insts().size())) {\n"
            f"      {statement}\n    }}\n")
    return [(DECODED, DECODED + loop)]


C, KERNELS, MEMORY, DEVICE = "c/plugin.c", "cpp/kernels.cpp", "cpp/memory.cpp", "cpp/device.cpp"
CALL = "  pgr_cc_call(kernel, addresses, own.scalars, groups, own.group_count); /* FILL: your launch */\n"
OPENED = "  device->used_bytes = 0;\n"
READ_ONLY = "static pgr_status plugin_info("

EARLY = """struct late {
  void *kernel, *addresses[MOST_BUFFERS];
  uint64_t scalars[64], groups, counts[3];
};
static void *run_late(void *context) {
  struct late *late = context;
  usleep(20000);
  pgr_cc_call(late->kernel, late->addresses, late->scalars, late->groups, late->counts);
  return NULL;
}
#include <pthread.h>

static pgr_status runner_launch("""
EARLY_CALL = """  {
    struct late *late = malloc(sizeof *late);
    pthread_t thread;
    late->kernel = kernel, late->groups = groups;
    memcpy(late->counts, own.group_count, sizeof late->counts);
    memcpy(late->addresses, addresses, own.buffer_count * sizeof *addresses);
    if (own.scalar_count) memcpy(late->scalars, own.scalars, own.scalar_count * sizeof *late->scalars);
    pthread_create(&thread, NULL, run_late, late), pthread_detach(thread);
  }
"""

ROWS = [
    # memory
    ("offset-of-copy-in", "copy_in ignores the offset", C,
     [("memcpy(dst->data + offset, src, size)", "memcpy(dst->data, src, size)")], "l1.memory.copy_in.ranges"),
    ("offset-of-copy-out", "copy_out ignores the offset", C,
     [("memcpy(dst, src->data + offset, size)", "memcpy(dst, src->data, size)")], "l1.memory.copy_out.ranges"),
    ("last-byte-of-copy", "a copy omits its last byte", C,
     [("memcpy(dst->data + dst_offset, src->data + src_offset, size);",
       "memcpy(dst->data + dst_offset, src->data + src_offset, size ? size - 1 : 0);")], "l1.memory.copy.ranges"),
    ("range-that-overflows", "a range is checked by a sum that overflows", C,
     [('PGR_TRY(pgr_check_range(dst->size, offset, size, "copy_in: dst", error));',
       'if (offset + size > dst->size) return pgr_fail(error, PGR_STATUS_INVALID_ARGUMENT, "range");\n'
       '  if (offset > dst->size) return PGR_STATUS_OK;')], "l1.memory.bad_range.copy_in"),
    ("wrong-status", "a bad range is INTERNAL", C,
     [('PGR_TRY(pgr_check_range(src->size, offset, size, "copy_out: src", error));',
       'if (pgr_check_range(src->size, offset, size, "copy_out: src", NULL))\n'
       '    return pgr_fail(error, PGR_STATUS_INTERNAL, "range");')], "l1.memory.bad_range.copy_out"),
    ("alignment-ignored", "the requested alignment is ignored", MEMORY,
     [("    *out = new pgr_buffer{\n        sdk::make_host_buffer(*device->plugin->host, desc,",
       "    pgr_alloc_desc own = sdk::read(desc);\n    own.align_bytes = 0;\n"
       "    *out = new pgr_buffer{\n        sdk::make_host_buffer(*device->plugin->host, &own,")],
     "l1.memory.alignment.requested"),
    ("alignment-unchecked", "an alignment that is no power of two is accepted", C,
     [("if (own.align_bytes & (own.align_bytes - 1))", "if (own.align_bytes == 1)"),
      ("posix_memalign(&data, own.align_bytes,", "posix_memalign(&data, BUFFER_ALIGN,")],
     "l1.memory.alignment.not_a_power"),
    ("zero-flag-ignored", "memory with the zero flag is not zeroed", C,
     [("memset(data, 0, own.size_bytes)", "memset(data, 0x5a, own.size_bytes)")], "l1.memory.zero_flag"),
    ("memory-leaked", "free keeps the memory", C, [("  free(buffer->data);\n", "")], "l1.memory.leak.alloc"),
    ("used-bytes-grow", "freed memory still counts as used", C,
     [("  __sync_fetch_and_sub(&device->used_bytes, buffer->size);\n", "  (void)device;\n")], "l1.memory.stats"),
    ("null-crashes", "a NULL buffer is read", C,
     [('if (!device || !dst || (!src && size > 0)) return pgr_null(error, "copy_in: device, dst or src");',
       "if (!device) return PGR_STATUS_INVALID_ARGUMENT;")], "l1.memory.null_arguments"),
    ("fill-of-half-a-pattern", "a pattern of 8 bytes repeats its first 4", MEMORY,
     [("sdk::read_pattern(pattern, pattern_bytes, size));",
       "sdk::read_pattern(pattern, pattern_bytes, size) % (uint64_t{1} << 32) * ((uint64_t{1} << 32) + 1));")],
     "l1.memory.fill.pattern_8"),
    ("map-of-a-copy", "map gives a stale copy", MEMORY,
     [("    *out = buffer->data;\n", "    *out = std::memcpy(new char[buffer->size + 1], buffer->data, buffer->size);\n")],
     "l1.memory.map.writes"),
    ("sub-buffer-from-the-start", "a sub-buffer ignores its offset", MEMORY,
     [("sdk::make_sub_buffer(parent, offset, size, kBufferAlign)", "sdk::make_sub_buffer(parent, 0, size, kBufferAlign)")],
     "l1.memory.sub_buffer.range"),
    # launches
    ("tail-skipped", "the last of many groups does not run", C,
     [(CALL, CALL.replace("groups,", "groups - (groups > 1),"))], "l1.launch.groups.17x1x1"),
    ("early-completion", "a launch returns before it has finished", C,
     [("static pgr_status runner_launch(", EARLY), (CALL, EARLY_CALL)], "l1.launch.finished"),
    ("scalars-shifted", "a kernel reads the next scalar", C,
     [(CALL, CALL.replace("own.scalars", "own.scalars + (own.scalar_count > 1)"))], "l1.launch.params.scalars"),
    ("buffers-reversed", "buffers are bound from the last to the first", C,
     [("addresses[i] = own.buffers[i]->data;", "addresses[own.buffer_count - 1 - i] = own.buffers[i]->data;")],
     "l1.launch.params.buffers"),
    ("local-size-ignored", "a group of several work-items runs as one", C,
     [("pgr_count_groups(own.group_count, own.local_size,",
       "pgr_count_groups(own.group_count, (const uint32_t[3]){1, 1, 1},")], "l1.error.launch.local_size.0"),
    ("group-ids-swapped", "GROUP_ID of axis 0 and 1 are swapped", KERNELS,
     decoded("if (inst.op == PGR_OP_GROUP_ID && inst.arg < 2) inst.arg = 1 - inst.arg;"), "l1.launch.groups.3x5x7"),
    ("hang", "a launch of 1000 groups never returns", C,
     [(CALL, "  while (groups == 1000) usleep(1000);\n" + CALL)], "l1.launch.groups.1000x1x1"),
    ("crash", "a launch of 1000 groups crashes", C,
     [(CALL, "  if (groups == 1000) *(volatile int *)8 = 1;\n" + CALL)], "l1.launch.groups.1000x1x1"),
    # binaries and names
    ("garbage-accepted", "invalid bytes are accepted as a binary", C,
     [('  if (!output) return pgr_fail(error, PGR_STATUS_BAD_BINARY, "load: no binary of acme, or damaged");\n',
       "  if (!output) output = binary, header.bytes = size;\n")], "l1.error.binary.garbage"),
    ("damage-accepted", "a truncated binary is padded with zeros", KERNELS,
     [("      ir = sdk::decode_ir(binary, size);\n",
       "      std::string whole(static_cast<const char*>(binary), size);\n"
       "      if (size >= sizeof(pgr_ir_header))\n"
       "        whole.resize(reinterpret_cast<const pgr_ir_header*>(whole.data())->total_bytes);\n"
       "      ir = sdk::decode_ir(whole.data(), whole.size());\n")],
     "l1.error.binary.truncated"),
    ("unknown-code", "a missing kernel returns status 999", C,
     [("return pgr_fail_text(error, PGR_STATUS_NOT_FOUND, \"no kernel", "return pgr_fail_text(error, 999, \"no kernel")],
     "l1.error.kernel.not_found"),
    ("message-unclamped", "a message is longer than its buffer", C,
     [("  if (index != 0)\n",
       "  if (index != 0 && error && error->message) error->message[error->message_capacity] = 'x';\n  if (index != 0)\n")],
     "l1.error.message.capacity"),
    ("program-leaked", "unload leaves the library open", C,
     [("  dlclose(program->library.handle);\n", "")], "l1.error.program.leak"),
    ("stale-cache", "the first binary of a size serves every kernel of that size", C,
     [("  PGR_TRY(pgr_cc_compile(cc_of(device), &own,",
       "  static struct { uint64_t size, bytes; char *binary; } kept[64];\n  uint64_t slot;\n"
       "  for (slot = 0; slot < 64 && kept[slot].size; ++slot)\n"
       "    if (kept[slot].size == own.input_bytes) {\n"
       "      bytes = memcpy(malloc(kept[slot].bytes), kept[slot].binary, kept[slot].bytes);\n"
       "      return pgr_give_blob(out_binary, bytes, kept[slot].bytes, error);\n    }\n"
       "  PGR_TRY(pgr_cc_compile(cc_of(device), &own,"),
      ("  pgr_seal_binary(bytes, size, MAGIC, identity);\n",
       "  pgr_seal_binary(bytes, size, MAGIC, identity);\n  if (slot < 64) {\n"
       "    kept[slot].size = own.input_bytes, kept[slot].bytes = size + sizeof(pgr_binary_header);\n"
       "    kept[slot].binary = memcpy(malloc(kept[slot].bytes), bytes, kept[slot].bytes);\n  }\n")],
     "l2.compile.stale"),
    # numbers
    ("nan-dropped", "the larger of a NaN and a number is the number", C,
     edited(("return b != b ? b + b : larger;", "return larger;")), "l2.alu.max.f32"),
    ("bf16-truncated", "a cast to bf16 truncates", C,
     edited(("bits + 0x7fffu + ((bits >> 16) & 1u)", "bits")), "l2.cast.f32.bf16"),
    ("division-floored", "a negative quotient is rounded down", C,
     edited(("a / safe", "(a / safe - (a % safe != 0 && (a < 0) != (safe < 0)))")), "l2.alu.idiv.i32"),
    ("shift-count-masked", "a shift by 32 shifts by 0", C,
     edited(("? (i32)0 : a <<", "? a << (b & 31) : a <<")), "l2.alu.shl.i32"),
    ("minus-zero-lost", "the negative of 0 is +0", C, edited(("= -", "= 0.0f - ")), "l2.alu.neg.f32"),
    ("truncated-sign-lost", "-0.5 truncates to +0, where denormals may be flushed", C,
     [("own.denormals = PGR_DENORMALS_PRESERVE", "own.denormals = PGR_DENORMALS_UNSPECIFIED"),
      *edited(("default: __builtin_trunc)(x)", "default: __builtin_trunc)(x) + 0"))], "l2.alu.trunc.f32"),
    ("denormals-flushed", "denormals are flushed, though claimed preserved", C,
     [(CALL, "  __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040u);\n" + CALL +
       "  __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() & ~0x8040u);\n")], "l2.alu.mul.f32"),
    ("contracted", "a multiply and an add round once with contract off", KERNELS,
     decoded("const uint32_t first = inst.src[0]; if (inst.op == PGR_OP_ADD && ir->inst(first).op == PGR_OP_MUL) "
             "inst = {PGR_OP_FMA, inst.dtype, inst.lanes, 3, {ir->inst(first).src[0], ir->inst(first).src[1], inst.src[1]}, 0};"),
     "l2.contract.off.f32"),
    ("zero-times-anything", "the product of a number and a constant 0 is 0, of NaN and infinity too", KERNELS,
     decoded("if (inst.op == PGR_OP_MUL && ir->inst(inst.src[1]).op == PGR_OP_CONST && ir->inst(inst.src[1]).arg == 0) "
             "inst.src[0] = inst.src[1];"), "l2.known.mul.f32"),
    ("false-claim", "an op is claimed that cannot be computed", C,
     [("{PGR_OP_TRUNC, FLOATS},", "{PGR_OP_TRUNC, FLOATS}, {PGR_OP_SIN, FLOATS},")], "l2.alu.sin.f32"),
    ("groups-of-one", "groups of several work-items are claimed but have one", C,
     [("  own.subgroup_size = own.max_local_total = 1;\n",
       "  own.subgroup_size = 1, own.max_local_total = 64, own.has_local = 1, own.local_bytes = 1024;\n")],
     "l1.device.limits"),
    ("lanes-beyond-the-ir", "vectors of 2^30 lanes are claimed", C,
     [("own.vector_lanes[i] = 1;", "own.vector_lanes[i] = 1u << 30;")], "l1.device.vector_lanes"),
    ("operand-of-lanes-lost", "a sum of four lanes takes its first operand twice", KERNELS,
     decoded("if (inst.op == PGR_OP_ADD && inst.lanes == 4) inst.src[1] = inst.src[0];"), "l1.lanes.f32"),
    ("gate-ignored", "a store writes where its gate is closed", KERNELS,
     decoded("if (inst.op == PGR_OP_STORE && inst.src_count == 4) inst.src_count = 3;"), "l1.access.gates.i32"),
    ("barrier-removed", "work-items do not wait for one another", KERNELS,
     decoded("if (inst.op == PGR_OP_BARRIER) inst.op = PGR_OP_NOP;"), "l2.local.mirror.f32.32"),
    ("wait-removed", "work-items do not wait for their copies", KERNELS,
     decoded("if (inst.op == PGR_OP_ASYNC_WAIT) inst.op = PGR_OP_NOP;"), "l2.async_copy.rounds.f32.16"),
    ("write-past-the-end", "a kernel writes one element past its buffer", C,
     edited(("  data2[alu1] = ", "  data2[alu1 + 1] = data2[alu1] = ")), "l2.alu.add.f32"),
    ("commit-on-another-dtype", "ASYNC_COMMIT is claimed on u8 in place of bool", "reference/device.cpp",
     [("  if (claims.is_gpu) limit_as_gpu(caps);\n",
       "  if (claims.is_gpu) limit_as_gpu(caps);\n  caps.op_dtypes[PGR_OP_ASYNC_COMMIT] = 1u << PGR_DTYPE_U8;\n")],
     "l1.device.limits"),
    # the library
    ("clamp-ignored", "an older, shorter struct is filled completely", C,
     [("  own.unified_memory = 1; /* FILL: 0 where the host cannot reach the device's memory */\n"
       "  return pgr_fill(out, &own, error);\n",
       "  own.unified_memory = 1;\n  own.struct_size = out->struct_size, own.next = out->next;\n"
       "  memcpy(out, &own, sizeof own);\n  return PGR_STATUS_OK;\n")], "l0.clamp.device_caps.sizes"),
    ("extension-ignored", "a mandatory extension is skipped", C,
     [("  own.is_software = 1; /* FILL: 0 once it is hardware, and \"software\": false in manifest.json */\n",
       "  own.is_software = 1;\n  if (out) out->next = NULL;\n")], "l0.clamp.device_info.chain"),
    ("second-symbol", "a second symbol is exported", C,
     [("PGR_EXPORT pgr_status PGR_PLUGIN_ENTRY(",
       "PGR_EXPORT int pgr_plugin_entry_v7(void) { return 0; }\nPGR_EXPORT pgr_status PGR_PLUGIN_ENTRY(")],
     "l0.library.exports"),
    ("note-disagrees", "the manifest beside the library differs from the one inside", "c/manifest.json",
     [('"version": "0.1.0"', '"version": "0.2.0"')], "l0.manifest.note_agrees"),
    ("name-disagrees", "info names another device than the manifest", C,
     [('own.device_name = pgr_text("ACME");', 'own.device_name = pgr_text("ACMF");')], "l0.manifest.info_agrees"),
    ("prints", "opening a device prints", C, [(OPENED, OPENED + '  puts("acme: hello");\n')], "l0.process.silence"),
    ("reads-environment", "opening a device reads an environment variable", C,
     [(OPENED, OPENED + '  if (getenv("ACME_DEBUG")) abort();\n')], "l0.process.forbidden_calls"),
    ("descriptor-leaked", "each opened device keeps a descriptor", C,
     [(OPENED, OPENED + '  (void)!open("/dev/null", O_RDONLY);\n')], "l0.process.open_close"),
    ("thread-leaked", "each opened device keeps a thread", C,
     [(READ_ONLY, "#include <pthread.h>\nstatic void *sleep_long(void *none) { return sleep(1000), none; }\n\n" + READ_ONLY),
      (OPENED, OPENED + "  {\n    pthread_t thread;\n    pthread_create(&thread, NULL, sleep_long, NULL);\n  }\n")],
     "l0.process.open_close"),
    ("device-leaked", "closing a device keeps its memory", C,
     [("  (void)self;\n  free(device);\n", "  (void)self, (void)device;\n")], "l0.process.open_close"),
    ("second-open-crashes", "opening a second device crashes", C,
     [(OPENED, OPENED + "  {\n    static int opened;\n    if (opened++) *(volatile int *)8 = 1;\n  }\n")],
     "l0.device.independent"),
    ("signal-handler", "opening a device installs a signal handler", C,
     [(READ_ONLY, "#include <signal.h>\n" + READ_ONLY), (OPENED, OPENED + "  signal(SIGUSR1, SIG_IGN);\n")],
     "l0.process.signals"),
    ("rounding-changed", "a device changes the caller's rounding mode", C,
     [(OPENED, OPENED + "  __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x6000u);\n")], "l0.process.arithmetic"),
    ("option-accepted", "an unknown option is accepted", C,
     [('  PGR_TRY(pgr_only_option(options, option_count, option_stride, "cc", cc, sizeof cc, error));\n',
       "  (void)options, (void)option_count, (void)option_stride;\n")], "l0.device.unknown_option"),
    ('early-mark', 'an event is reached before the preceding work is done', "reference/queue.cpp",
     [('    submit(*device, queue,\n           {[device, work, state = event->state] {',
       '    event->state->mark(0, {}); submit(*device, queue,\n           {[device, work, state = event->state] {')],
     'l3.queue.event_wait'),
    ('wait-ignored', "a queue does not wait for another queue's event", "reference/queue.cpp",
     [('    submit(*device, queue, {[state = event->state] { state->wait_for_ever(); }, {}});',
       '')],
     'l3.queue.order.events'),
    ('finish-at-once', 'finish returns while work is left', "reference/queue.cpp",
     [('    if (WorkQueue* worker = work_queue_of(*device, queue)) worker->finish();',
       '')],
     'l3.queue.finish'),
    ('destroy-drops', 'destroying a queue does not wait for its work', "reference/queue.cpp",
     [('  sdk::guard(nullptr, [&] { queue->work->finish(); });\n',
       ''),
      ('  delete queue;',
       '  new std::shared_ptr<WorkQueue>(queue->work); delete queue;')],
     'l3.queue.destroy_waits'),
    ('timeout-ignored', 'a wait ignores its time limit', "reference/queue.cpp",
     [('const auto timeout = std::chrono::nanoseconds(std::min(timeout_ns, kYearNs));',
       'const auto timeout = std::chrono::nanoseconds(kYearNs);')],
     'l3.queue.timeout'),
    ('map-does-not-wait', 'map does not wait for queued work', "reference/allocator.cpp",
     [('    wait_for(*device, buffer->memory.get());\n',
       '')],
     'l3.queue.map_waits'),
    ('copy-not-on-queue', 'a copy overtakes its queue', "reference/allocator.cpp",
     [('submit(*device, queue, make_work(*device, CopyWork',
       'submit(*device, nullptr, make_work(*device, CopyWork')],
     'l3.queue.order.copies'),
    ('copy-in-keeps-pointer', "copy_in reads the host's bytes after it has returned", "reference/allocator.cpp",
     [('bytes = std::string(from, size)]',
       'bytes = std::string_view(from, size)]')],
     'l3.queue.order.copies'),
    ('synchronize-first-only', 'synchronize waits for one queue only', "reference/work_queue.cpp",
     [('  for (const auto& queue : queues_of(device)) queue->finish();',
       '  if (!queues_of(device).empty()) queues_of(device)[0]->finish();')],
     'l3.queue.synchronize'),
    ('lifo', 'a queue runs the newest work first', "reference/work_queue.cpp",
     [('    pending_.push_back(std::move(work));',
       '    pending_.size() > 1 ? (void)pending_.insert(pending_.begin() + 1, std::move(work)) : pending_.push_back(std::move(work));')],
     'l3.queue.order.copies'),
    ('graph-skips-last', 'a replay omits the last node of a larger graph', "reference/graph.cpp",
     [('    for (const pgr_graph::Node& node : graph->nodes) {',
       '    for (const pgr_graph::Node& node : std::span(graph->nodes).first(graph->nodes.size() - (graph->nodes.size() > 5))) {')],
     'l3.graph.random'),
    ('patch-ignored', 'a patched scalar is ignored', "reference/graph.cpp",
     [('launch->scalars[slot] = bits;',
       '')],
     'l3.graph.patch.scalar'),
    ('patch-buffer-ignored', 'a patched buffer is ignored', "reference/graph.cpp",
     [('buffer_slot(node, slot, number) = *buffer;',
       'buffer_slot(node, slot, number);')],
     'l3.graph.patch.buffer'),
    ('graph-not-on-queue', 'a replay does not wait for its queue', "reference/graph.cpp",
     [('submit(*device, queue, make_work(*device, *launch, nullptr))',
       'submit(*device, nullptr, make_work(*device, *launch, nullptr))')],
     'l3.graph.replay.queue'),
    ('clock-too-fast', "the device's clock runs twice as fast as it says", "reference/profile.cpp",
     [('return host_now_ns() - device.opened_ns;',
       'return (host_now_ns() - device.opened_ns) * 2;')],
     'l3.time.clock_runs'),
    ('time-at-record', "an event's time is that of its recording", "reference/queue.cpp",
     [('state->mark(device_now_ns(*device),',
       'state->mark(recorded,'),
      ('    submit(*device, queue,\n           {[device, work, state',
       '    const uint64_t recorded = device_now_ns(*device); submit(*device, queue,\n           {[recorded, device, work, state')],
     'l3.time.event.order'),
    ('counters-stuck', 'a counter never moves', "reference/profile.cpp",
     [('"1", device->kernels_launched}',
       '"1", 5}'),
      ('"bytes", device->bytes_copied}',
       '"bytes", 5}')],
     'l3.time.counters'),
    ('stale-binary', 'a source of the same length is given the binary of the first', "reference/compiler.cpp",
     [('    const sdk::IrView ir = sdk::decode_ir(own.input, own.input_bytes);',
       '    static std::string kept; if (own.input_bytes == 744 || (kept.size() == own.input_bytes)) { if (kept.empty()) kept.assign((const char*)own.input, own.input_bytes); own.input = kept.data(); } else if (kept.empty()) kept.assign((const char*)own.input, own.input_bytes);\n    const sdk::IrView ir = sdk::decode_ir(own.input, own.input_bytes);'),
      ('    const pgr_compile_desc own',
       '    pgr_compile_desc own')],
     'l2.compile.stale'),
    ('identity-changes', 'the cache identity changes from call to call', "reference/compiler.cpp",
     [('    if (device)\n      text +=',
       '    static int n = 0; text += std::to_string(++n);\n    if (device)\n      text +=')],
     'l2.compile.identity.stays'),
    ('validate-all-good', 'validate calls damaged bytes good', "reference/compiler.cpp",
     [('*out = status == PGR_STATUS_OK ? PGR_BINARY_GOOD : PGR_BINARY_FOREIGN;',
       '*out = PGR_BINARY_GOOD;')],
     'l2.compile.validate.bad'),
]
