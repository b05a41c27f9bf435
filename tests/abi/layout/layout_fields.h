/* Every field of every struct of plugin_api, in order; layout.c proves that none is missing.
   X-macro arguments: S(struct) opens a struct, F(struct, field) names one field. Append-only. */
#ifndef PLUGRAD_TESTS_ABI_LAYOUT_FIELDS_H
#define PLUGRAD_TESTS_ABI_LAYOUT_FIELDS_H

/* clang-format off */
#define PGR_LAYOUT(S, F) \
  S(pgr_string) \
  F(pgr_string, data) \
  F(pgr_string, size) \
  S(pgr_struct_header) \
  F(pgr_struct_header, struct_size) \
  F(pgr_struct_header, struct_id) \
  F(pgr_struct_header, next) \
  S(pgr_error) \
  F(pgr_error, struct_size) \
  F(pgr_error, struct_id) \
  F(pgr_error, next) \
  F(pgr_error, message) \
  F(pgr_error, message_capacity) \
  F(pgr_error, message_size) \
  F(pgr_error, code) \
  F(pgr_error, native_code) \
  S(pgr_blob) \
  F(pgr_blob, struct_size) \
  F(pgr_blob, struct_id) \
  F(pgr_blob, next) \
  F(pgr_blob, data) \
  F(pgr_blob, size) \
  F(pgr_blob, release) \
  F(pgr_blob, owner) \
  S(pgr_option) \
  F(pgr_option, struct_size) \
  F(pgr_option, struct_id) \
  F(pgr_option, next) \
  F(pgr_option, key) \
  F(pgr_option, value) \
  S(pgr_option_schema) \
  F(pgr_option_schema, struct_size) \
  F(pgr_option_schema, struct_id) \
  F(pgr_option_schema, next) \
  F(pgr_option_schema, key) \
  F(pgr_option_schema, type) \
  F(pgr_option_schema, default_value) \
  F(pgr_option_schema, help) \
  S(pgr_host_api) \
  F(pgr_host_api, struct_size) \
  F(pgr_host_api, struct_id) \
  F(pgr_host_api, next) \
  F(pgr_host_api, api_major) \
  F(pgr_host_api, api_minor) \
  F(pgr_host_api, host) \
  F(pgr_host_api, log) \
  F(pgr_host_api, alloc) \
  F(pgr_host_api, free) \
  F(pgr_host_api, thread_count) \
  F(pgr_host_api, parallel_for) \
  F(pgr_host_api, cache_get) \
  F(pgr_host_api, cache_put) \
  F(pgr_host_api, open_component) \
  S(pgr_plugin_info) \
  F(pgr_plugin_info, struct_size) \
  F(pgr_plugin_info, struct_id) \
  F(pgr_plugin_info, next) \
  F(pgr_plugin_info, name) \
  F(pgr_plugin_info, device_name) \
  F(pgr_plugin_info, version) \
  F(pgr_plugin_info, vendor) \
  F(pgr_plugin_info, options) \
  F(pgr_plugin_info, option_count) \
  F(pgr_plugin_info, option_stride) \
  S(pgr_plugin_api) \
  F(pgr_plugin_api, struct_size) \
  F(pgr_plugin_api, struct_id) \
  F(pgr_plugin_api, next) \
  F(pgr_plugin_api, plugin) \
  F(pgr_plugin_api, info) \
  F(pgr_plugin_api, device_count) \
  F(pgr_plugin_api, device_open) \
  F(pgr_plugin_api, device_close) \
  F(pgr_plugin_api, query_interface) \
  F(pgr_plugin_api, shutdown) \
  S(pgr_hello) \
  F(pgr_hello, struct_size) \
  F(pgr_hello, struct_id) \
  F(pgr_hello, next) \
  F(pgr_hello, host) \
  F(pgr_hello, plugin_path) \
  F(pgr_hello, options) \
  F(pgr_hello, option_count) \
  F(pgr_hello, option_stride) \
  F(pgr_hello, plugin_minor) \
  F(pgr_hello, need_host_minor) \
  F(pgr_hello, canary_error_size) \
  F(pgr_hello, canary_hello_offset) \
  S(pgr_ir_header) \
  F(pgr_ir_header, magic) \
  F(pgr_ir_header, version) \
  F(pgr_ir_header, header_bytes) \
  F(pgr_ir_header, flags) \
  F(pgr_ir_header, total_bytes) \
  F(pgr_ir_header, name_offset) \
  F(pgr_ir_header, name_bytes) \
  F(pgr_ir_header, param_offset) \
  F(pgr_ir_header, param_stride) \
  F(pgr_ir_header, param_count) \
  F(pgr_ir_header, array_offset) \
  F(pgr_ir_header, array_stride) \
  F(pgr_ir_header, array_count) \
  F(pgr_ir_header, inst_offset) \
  F(pgr_ir_header, inst_stride) \
  F(pgr_ir_header, inst_count) \
  F(pgr_ir_header, operand_offset) \
  F(pgr_ir_header, operand_count) \
  F(pgr_ir_header, local_size) \
  F(pgr_ir_header, group_count) \
  S(pgr_ir_param) \
  F(pgr_ir_param, kind) \
  F(pgr_ir_param, dtype) \
  F(pgr_ir_param, flags) \
  F(pgr_ir_param, align_bytes) \
  F(pgr_ir_param, elem_count) \
  F(pgr_ir_param, min) \
  F(pgr_ir_param, max) \
  S(pgr_ir_array) \
  F(pgr_ir_array, space) \
  F(pgr_ir_array, dtype) \
  F(pgr_ir_array, align_bytes) \
  F(pgr_ir_array, lanes) \
  F(pgr_ir_array, elem_count) \
  S(pgr_ir_inst) \
  F(pgr_ir_inst, op) \
  F(pgr_ir_inst, dtype) \
  F(pgr_ir_inst, lanes) \
  F(pgr_ir_inst, src_count) \
  F(pgr_ir_inst, src) \
  F(pgr_ir_inst, arg) \
  S(pgr_device_info) \
  F(pgr_device_info, struct_size) \
  F(pgr_device_info, struct_id) \
  F(pgr_device_info, next) \
  F(pgr_device_info, stable_id) \
  F(pgr_device_info, name) \
  F(pgr_device_info, arch) \
  F(pgr_device_info, vendor) \
  F(pgr_device_info, driver) \
  F(pgr_device_info, memory_bytes) \
  F(pgr_device_info, is_software) \
  F(pgr_device_info, reserved) \
  S(pgr_tensor_core) \
  F(pgr_tensor_core, struct_size) \
  F(pgr_tensor_core, struct_id) \
  F(pgr_tensor_core, next) \
  F(pgr_tensor_core, kind) \
  F(pgr_tensor_core, n) \
  F(pgr_tensor_core, m) \
  F(pgr_tensor_core, k) \
  F(pgr_tensor_core, threads) \
  F(pgr_tensor_core, dtype_in) \
  F(pgr_tensor_core, dtype_out) \
  F(pgr_tensor_core, elems_a) \
  F(pgr_tensor_core, elems_b) \
  F(pgr_tensor_core, elems_c) \
  F(pgr_tensor_core, fraction_bits_in) \
  F(pgr_tensor_core, reserved) \
  F(pgr_tensor_core, layout_a) \
  F(pgr_tensor_core, layout_b) \
  F(pgr_tensor_core, layout_c) \
  S(pgr_device_caps) \
  F(pgr_device_caps, struct_size) \
  F(pgr_device_caps, struct_id) \
  F(pgr_device_caps, next) \
  F(pgr_device_caps, op_dtypes) \
  F(pgr_device_caps, storage_dtypes) \
  F(pgr_device_caps, denormals) \
  F(pgr_device_caps, contract_supported) \
  F(pgr_device_caps, vector_lanes) \
  F(pgr_device_caps, vector_registers) \
  F(pgr_device_caps, subgroup_size) \
  F(pgr_device_caps, has_local) \
  F(pgr_device_caps, threads) \
  F(pgr_device_caps, max_local_size) \
  F(pgr_device_caps, max_local_total) \
  F(pgr_device_caps, division) \
  F(pgr_device_caps, max_groups) \
  F(pgr_device_caps, local_bytes) \
  F(pgr_device_caps, core_local_bytes) \
  F(pgr_device_caps, local_banks) \
  F(pgr_device_caps, local_bank_bytes) \
  F(pgr_device_caps, local_in_cache) \
  F(pgr_device_caps, async_copy_bytes) \
  F(pgr_device_caps, private_bytes) \
  F(pgr_device_caps, cache_bytes) \
  F(pgr_device_caps, cache_line_bytes) \
  F(pgr_device_caps, max_buffer_bytes) \
  F(pgr_device_caps, max_params) \
  F(pgr_device_caps, buffer_align_bytes) \
  F(pgr_device_caps, unified_memory) \
  F(pgr_device_caps, tensor_core_count) \
  F(pgr_device_caps, tensor_cores) \
  F(pgr_device_caps, tensor_core_stride) \
  S(pgr_memory_stats) \
  F(pgr_memory_stats, struct_size) \
  F(pgr_memory_stats, struct_id) \
  F(pgr_memory_stats, next) \
  F(pgr_memory_stats, total_bytes) \
  F(pgr_memory_stats, free_bytes) \
  F(pgr_memory_stats, used_bytes) \
  S(pgr_device_api) \
  F(pgr_device_api, struct_size) \
  F(pgr_device_api, struct_id) \
  F(pgr_device_api, next) \
  F(pgr_device_api, info) \
  F(pgr_device_api, caps) \
  F(pgr_device_api, memory_stats) \
  F(pgr_device_api, health) \
  F(pgr_device_api, synchronize) \
  S(pgr_alloc_desc) \
  F(pgr_alloc_desc, struct_size) \
  F(pgr_alloc_desc, struct_id) \
  F(pgr_alloc_desc, next) \
  F(pgr_alloc_desc, size_bytes) \
  F(pgr_alloc_desc, align_bytes) \
  F(pgr_alloc_desc, flags) \
  F(pgr_alloc_desc, reserved) \
  S(pgr_allocator_api) \
  F(pgr_allocator_api, struct_size) \
  F(pgr_allocator_api, struct_id) \
  F(pgr_allocator_api, next) \
  F(pgr_allocator_api, alloc) \
  F(pgr_allocator_api, free) \
  F(pgr_allocator_api, copy_in) \
  F(pgr_allocator_api, copy_out) \
  F(pgr_allocator_api, copy) \
  F(pgr_allocator_api, fill) \
  F(pgr_allocator_api, map) \
  F(pgr_allocator_api, unmap) \
  F(pgr_allocator_api, sub_buffer) \
  S(pgr_render_desc) \
  F(pgr_render_desc, struct_size) \
  F(pgr_render_desc, struct_id) \
  F(pgr_render_desc, next) \
  F(pgr_render_desc, ir) \
  F(pgr_render_desc, ir_bytes) \
  F(pgr_render_desc, options) \
  F(pgr_render_desc, option_count) \
  F(pgr_render_desc, option_stride) \
  S(pgr_renderer_api) \
  F(pgr_renderer_api, struct_size) \
  F(pgr_renderer_api, struct_id) \
  F(pgr_renderer_api, next) \
  F(pgr_renderer_api, render) \
  S(pgr_compile_desc) \
  F(pgr_compile_desc, struct_size) \
  F(pgr_compile_desc, struct_id) \
  F(pgr_compile_desc, next) \
  F(pgr_compile_desc, input) \
  F(pgr_compile_desc, input_bytes) \
  F(pgr_compile_desc, name) \
  F(pgr_compile_desc, options) \
  F(pgr_compile_desc, option_count) \
  F(pgr_compile_desc, option_stride) \
  F(pgr_compile_desc, contract) \
  F(pgr_compile_desc, optimize) \
  S(pgr_compiler_api) \
  F(pgr_compiler_api, struct_size) \
  F(pgr_compiler_api, struct_id) \
  F(pgr_compiler_api, next) \
  F(pgr_compiler_api, compile) \
  F(pgr_compiler_api, cache_identity) \
  F(pgr_compiler_api, validate) \
  F(pgr_compiler_api, disassemble) \
  S(pgr_kernel_limits) \
  F(pgr_kernel_limits, struct_size) \
  F(pgr_kernel_limits, struct_id) \
  F(pgr_kernel_limits, next) \
  F(pgr_kernel_limits, max_local_total) \
  F(pgr_kernel_limits, registers) \
  F(pgr_kernel_limits, local_bytes) \
  F(pgr_kernel_limits, private_bytes) \
  S(pgr_launch_desc) \
  F(pgr_launch_desc, struct_size) \
  F(pgr_launch_desc, struct_id) \
  F(pgr_launch_desc, next) \
  F(pgr_launch_desc, buffers) \
  F(pgr_launch_desc, buffer_count) \
  F(pgr_launch_desc, scalar_count) \
  F(pgr_launch_desc, scalars) \
  F(pgr_launch_desc, group_count) \
  F(pgr_launch_desc, local_size) \
  F(pgr_launch_desc, timing) \
  S(pgr_runner_api) \
  F(pgr_runner_api, struct_size) \
  F(pgr_runner_api, struct_id) \
  F(pgr_runner_api, next) \
  F(pgr_runner_api, load) \
  F(pgr_runner_api, kernel) \
  F(pgr_runner_api, limits) \
  F(pgr_runner_api, launch) \
  F(pgr_runner_api, unload) \
  S(pgr_queue_api) \
  F(pgr_queue_api, struct_size) \
  F(pgr_queue_api, struct_id) \
  F(pgr_queue_api, next) \
  F(pgr_queue_api, create) \
  F(pgr_queue_api, destroy) \
  F(pgr_queue_api, finish) \
  F(pgr_queue_api, record) \
  F(pgr_queue_api, wait) \
  F(pgr_queue_api, event_wait) \
  F(pgr_queue_api, event_time) \
  F(pgr_queue_api, event_destroy) \
  S(pgr_graph_node) \
  F(pgr_graph_node, struct_size) \
  F(pgr_graph_node, struct_id) \
  F(pgr_graph_node, next) \
  F(pgr_graph_node, kind) \
  F(pgr_graph_node, depends_count) \
  F(pgr_graph_node, depends) \
  F(pgr_graph_node, kernel) \
  F(pgr_graph_node, launch) \
  F(pgr_graph_node, dst) \
  F(pgr_graph_node, src) \
  F(pgr_graph_node, dst_offset_bytes) \
  F(pgr_graph_node, src_offset_bytes) \
  F(pgr_graph_node, size_bytes) \
  S(pgr_graph_api) \
  F(pgr_graph_api, struct_size) \
  F(pgr_graph_api, struct_id) \
  F(pgr_graph_api, next) \
  F(pgr_graph_api, build) \
  F(pgr_graph_api, patch_buffer) \
  F(pgr_graph_api, patch_scalar) \
  F(pgr_graph_api, replay) \
  F(pgr_graph_api, destroy) \
  S(pgr_counter) \
  F(pgr_counter, struct_size) \
  F(pgr_counter, struct_id) \
  F(pgr_counter, next) \
  F(pgr_counter, name) \
  F(pgr_counter, unit) \
  F(pgr_counter, value) \
  S(pgr_profile_api) \
  F(pgr_profile_api, struct_size) \
  F(pgr_profile_api, struct_id) \
  F(pgr_profile_api, next) \
  F(pgr_profile_api, calibrate) \
  F(pgr_profile_api, counter)
/* clang-format on */

#endif
